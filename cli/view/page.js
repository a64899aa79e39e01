"use strict";
// The viewer: reads the data embedded next to it, draws one graph on a canvas, steps through the passes.  Names from the
// model only ever become text nodes.  Kept ASCII, as the whole page is.

const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const ROW = 86, BOX = 42, SHOWN = 300, SMALLEST = 0.001;
const HUES = { convolution: 212, linalg: 232, normalization: 275, attention: 320, reduction: 28, window: 190, control: 48,
  recurrent: 340, quantization: 100, indexing: 168, shape: 178, resize: 150, sort: 15, random: 0, detection: 130 };
const state = { stage: 0, after: true, graph: 0, node: null, rewrite: null, term: "", x: 0, y: 0, zoom: 1 };
let drawn = 0, marks = new Map(), hits = new Set(), colour = {}, pending = false;
const canvas = $("canvas"), paint = canvas.getContext("2d");

function make(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key.startsWith("aria-")) element.setAttribute(key, value); else element[key] = value;
  }
  element.append(...children.filter((c) => c !== null && c !== undefined));
  return element;
}

// ---------------------------------------------------------------------------------------------------- what is shown

const stageOf = () => (!state.after && DATA.stages[state.stage].changes ? state.stage - 1 : state.stage);
const stageIndexes = new Map(), charts = new Map();

/** Where each node and value of a stage is: node -> {record, graph}, value -> {name, type, graph, node}. */
function stageIndex(number) {
  const key = DATA.stages[number].graphs;
  if (stageIndexes.has(key.join())) return stageIndexes.get(key.join());
  const index = { graphs: new Map(), nodes: new Map(), values: new Map(), users: new Map() };
  const use = (value, user) => {
    if (typeof value !== "number") return;
    if (!index.users.has(value)) index.users.set(value, []);
    if (!index.users.get(value).includes(user)) index.users.get(value).push(user);
  };
  for (const at of key) {
    const graph = DATA.graphs[at];
    index.graphs.set(graph.id, at);
    for (const [value, name, type] of graph.inputs) index.values.set(value, { name, type, graph: graph.id, node: null });
    for (const [node, record] of graph.nodes) {
      const row = DATA.records[record];
      index.nodes.set(node, { row, graph: graph.id });
      for (const [value, name, type, ints] of row.results) index.values.set(value, { name, type, ints, graph: graph.id, node });
      for (const [, operand] of row.operands) use(operand, node);
      for (const value of row.captures) use(value, node);
    }
  }
  stageIndexes.set(key.join(), index);
  return index;
}

const index = () => stageIndex(stageOf());
const snapshot = () => index().graphs.get(state.graph);

/** Boxes by layer and the pieces of lines by the layer they start in; each piece spans one layer, so culling is exact. */
function chart(at) {
  if (charts.has(at)) return charts.get(at);
  const graph = DATA.graphs[at], plan = graph.layout, boxes = [], layers = [], pieces = [], nodes = new Map();
  const put = (kind, title, under, node, row) => {
    const i = boxes.length;
    boxes.push({ kind, title, under, node, row, x: plan.x[i], w: plan.boxes[i], layer: plan.layer[i] });
    (layers[plan.layer[i]] ||= []).push(boxes[i]);
  };
  for (const [, name, type] of graph.inputs) put("input", name, type, null, null);
  for (const [, name, type] of graph.captures) put("capture", name, type, null, null);
  for (const [node, record] of graph.nodes) {
    const row = DATA.records[record];
    nodes.set(node, boxes.length);
    put("node", row.op, row.results.length ? row.results[0][2] : "", node, row);
  }
  for (const [name, value] of graph.outputs) put("output", name || "output", typeof value === "string" ? value : "", null, null);
  for (const [value, source, targets, lanes] of plan.lines) {
    const from = boxes[source];
    const add = (layer, x1, x2, ends, to) => (pieces[layer] ||= []).push({ x1, x2, ends, value, source, to });
    if (lanes === null) {
      add(from.layer, from.x, from.x, "source", -1);
      for (const t of targets) add(boxes[t].layer - 1, boxes[t].x, boxes[t].x, "target", t);
      continue;
    }
    const at = (layer) => (layer === from.layer ? from.x : lanes[layer - from.layer - 1]);
    lanes.forEach((x, i) => add(from.layer + i, at(from.layer + i), x, "lane", -1));
    for (const t of targets) add(boxes[t].layer - 1, at(boxes[t].layer - 1), boxes[t].x, "box", t);
  }
  const done = { graph, boxes, layers, pieces, nodes, width: plan.width, height: plan.layers * ROW - (ROW - BOX) };
  charts.set(at, done);
  return done;
}

const current = () => chart(snapshot());

function show(changes) {
  const known = index();
  Object.assign(state, changes);
  const now = index();
  if (!now.graphs.has(state.graph)) {
    const root = known.graphs.has(state.graph) ? DATA.graphs[known.graphs.get(state.graph)].root : "";
    const same = [...now.graphs.values()].find((at) => DATA.graphs[at].root === root);
    state.graph = DATA.graphs[same === undefined ? DATA.stages[stageOf()].graphs[0] : same].id;
  }
  if (state.node !== null && !now.nodes.has(state.node)) state.node = null;
  const stage = DATA.stages[state.stage];
  const rewrite = state.rewrite === null ? null : stage.rewrites[state.rewrite];
  const part = rewrite || { made: stage.added || [], gone: stage.removed || [], touched: stage.altered || [] };
  marks = new Map();
  if (stage.changes) {
    for (const n of part.touched) marks.set(n, "altered");
    for (const n of state.after ? part.made : part.gone) marks.set(n, state.after ? "added" : "removed");
  }
  find();
  panels();
  draw();
}

// ------------------------------------------------------------------------------------------------------------ drawing

function readColours() {
  const style = getComputedStyle(document.documentElement);
  for (const name of ["ground", "panel", "ink", "muted", "rule", "box", "edge", "accent", "port", "added", "added-soft",
    "removed", "removed-soft", "altered", "altered-soft", "accent-soft"]) colour[name] = style.getPropertyValue(`--${name}`).trim();
  colour.dark = matchMedia("(prefers-color-scheme: dark)").matches;
}

const draw = () => { if (!pending) { pending = true; requestAnimationFrame(() => { pending = false; drawNow(); }); } };

const cut = (text, width, size) => {
  const room = Math.floor(width / size);
  return text.length <= room ? text : `${text.slice(0, Math.max(room - 1, 1))}\u2026`;
};

function drawNow() {
  const ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio); canvas.height = Math.round(height * ratio);
  }
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  paint.fillStyle = colour.ground; paint.fillRect(0, 0, width, height);
  const c = current(), k = state.zoom;
  paint.setTransform(ratio * k, 0, 0, ratio * k, ratio * state.x, ratio * state.y);
  const top = -state.y / k, bottom = (height - state.y) / k, left = -state.x / k, right = (width - state.x) / k;
  const first = Math.max(0, Math.floor(top / ROW) - 1), last = Math.min(c.layers.length - 1, Math.ceil(bottom / ROW));
  const chosen = state.node === null ? -1 : c.nodes.get(state.node) ?? -1;
  const lines = { plain: new Path2D(), near: new Path2D() }, heads = { plain: new Path2D(), near: new Path2D() };
  for (let layer = first; layer <= last; layer++) {
    const y1 = layer * ROW + BOX, y2 = (layer + 1) * ROW;
    for (const p of c.pieces[layer] || []) {
      if (Math.max(p.x1, p.x2) < left || Math.min(p.x1, p.x2) > right) continue;
      const kind = chosen >= 0 && (p.source === chosen || p.to === chosen) ? "near" : "plain", path = lines[kind];
      if (p.ends === "source") { for (let y = y1; y < y1 + 18; y += 6) { path.moveTo(p.x1, y); path.lineTo(p.x1, y + 3); } continue; }
      if (p.ends === "target") { for (let y = y2 - 18; y < y2; y += 6) { path.moveTo(p.x1, y); path.lineTo(p.x1, y + 3); } } else {
        path.moveTo(p.x1, y1);
        if (p.x1 === p.x2) path.lineTo(p.x2, y2); else path.bezierCurveTo(p.x1, y1 + 26, p.x2, y2 - 26, p.x2, y2);
        if (p.ends === "lane") path.lineTo(p.x2, y2 + BOX);
      }
      if (p.ends !== "lane" && k > 0.25) { heads[kind].moveTo(p.x2 - 4, y2 - 7); heads[kind].lineTo(p.x2 + 4, y2 - 7); heads[kind].lineTo(p.x2, y2); }
    }
  }
  for (const kind of ["plain", "near"]) {
    paint.strokeStyle = paint.fillStyle = kind === "near" ? colour.accent : colour.edge;
    paint.lineWidth = (kind === "near" ? 2.2 : 1.3) / Math.min(1, Math.max(k, 0.3));
    paint.stroke(lines[kind]); paint.fill(heads[kind]);
  }
  drawn = 0;
  paint.textBaseline = "middle";
  const focus = state.rewrite !== null || state.term !== "";
  for (let layer = first; layer <= last; layer++) {
    for (const box of c.layers[layer] || []) {
      if (box.x + box.w / 2 < left || box.x - box.w / 2 > right) continue;
      drawn++;
      drawBox(box, k, focus);
    }
  }
  paint.setTransform(ratio, 0, 0, ratio, 0, 0);
  overview(c, width, height);
}

function drawBox(box, k, focus) {
  const x = box.x - box.w / 2, y = box.layer * ROW, mark = box.node === null ? undefined : marks.get(box.node);
  const hit = hits.has(box.node), selected = box.node !== null && box.node === state.node;
  paint.globalAlpha = focus && !mark && !hit && !selected ? 0.42 : 1;
  paint.beginPath();
  paint.roundRect(x, y, box.w, BOX, box.kind === "node" ? 7 : BOX / 2);
  paint.fillStyle = mark ? colour[`${mark}-soft`] : box.kind === "node" ? colour.box : colour.port;
  paint.fill();
  paint.lineWidth = selected ? 3 : mark || hit ? 2 : 1;
  if (mark || hit || selected) paint.lineWidth /= Math.min(1, Math.max(k, 0.3));
  paint.strokeStyle = selected || hit ? colour.accent : mark ? colour[mark] : colour.edge;
  paint.setLineDash(box.kind === "capture" ? [4, 3] : []);
  paint.stroke();
  paint.setLineDash([]);
  const family = box.row ? (DATA.ops[box.row.op] || [""])[0] : "";
  if (box.kind === "node") {
    paint.fillStyle = family in HUES ? `hsl(${HUES[family]} 60% ${colour.dark ? 62 : 48}%)` : colour.edge;
    paint.fillRect(x + 6, y + 9, 3, BOX - 18);
  }
  if (k > 0.3) {
    const room = box.w - 22, start = box.kind === "node" ? x + 15 : x + 13, single = !box.under;
    paint.fillStyle = colour.ink;
    paint.font = `${box.kind === "node" ? 600 : 400} 13px system-ui, -apple-system, "Segoe UI", sans-serif`;
    paint.fillText(cut(box.title, room, 8), start, single ? y + BOX / 2 : y + 14);
    paint.fillStyle = colour.muted;
    paint.font = '11px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace';
    if (!single) paint.fillText(cut(box.under, room, 6.7), start, y + 30);
    if (box.row && (box.row.graphs.length || box.row.calls.length)) {
      paint.fillStyle = colour.accent;
      paint.fillText("\u25a3", x + box.w - 16, y + 13);
    }
  }
  paint.globalAlpha = 1;
}

/** The strip on the right: the whole graph, and the part in view. */
function overview(c, width, height) {
  const strip = strips(c, width, height);
  if (!strip) return;
  paint.fillStyle = colour.panel; paint.globalAlpha = 0.88; paint.fillRect(strip.x, strip.y, strip.w, strip.h); paint.globalAlpha = 1;
  paint.strokeStyle = colour.rule; paint.lineWidth = 1; paint.strokeRect(strip.x, strip.y, strip.w, strip.h);
  for (const box of c.boxes) {
    const mark = box.node === null ? undefined : marks.get(box.node), hit = hits.has(box.node);
    paint.fillStyle = hit ? colour.accent : mark ? colour[mark] : colour.edge;
    const w = Math.max(2, box.w * strip.sx), h = Math.max(mark || hit ? 2 : 1, BOX * strip.sy);
    paint.fillRect(strip.x + 3 + box.x * strip.sx - w / 2, strip.y + 3 + box.layer * ROW * strip.sy, w, h);
  }
  const k = state.zoom, inside = (v, low, high) => Math.min(Math.max(v, low), high);
  const x1 = inside(strip.x + 3 - state.x / k * strip.sx, strip.x, strip.x + strip.w), y1 = inside(strip.y + 3 - state.y / k * strip.sy, strip.y, strip.y + strip.h);
  const x2 = inside(x1 + width / k * strip.sx, strip.x, strip.x + strip.w), y2 = inside(y1 + height / k * strip.sy, strip.y, strip.y + strip.h);
  paint.strokeStyle = colour.accent; paint.lineWidth = 1.5; paint.strokeRect(x1, y1, x2 - x1, Math.max(3, y2 - y1));
}

function strips(c, width, height) {
  if (c.height * state.zoom < height * 1.1 && c.width * state.zoom < width * 1.1) return null;
  const w = 96, h = height - 24, scale = Math.min((w - 6) / Math.max(c.width, 1), 0.25);
  return { x: width - w - 12, y: 12, w, h, sx: scale, sy: Math.min((h - 6) / Math.max(c.height, 1), 0.25) };
}

// --------------------------------------------------------------------------------------------------- moving the view

function fit(readable) {
  const c = current(), width = canvas.clientWidth, height = canvas.clientHeight;
  const whole = Math.min((width - 60) / Math.max(c.width, 1), (height - 60) / Math.max(c.height, 1), 1.2);
  state.zoom = Math.max(whole, readable ? 0.75 : SMALLEST);
  const middle = (c.width * state.zoom > width || c.height * state.zoom > height) && c.boxes.length ? c.boxes[0].x : c.width / 2;
  state.x = width / 2 - middle * state.zoom;
  state.y = c.height * state.zoom > height ? 30 : (height - c.height * state.zoom) / 2;
  draw();
}

function zoomAt(factor, x = canvas.clientWidth / 2, y = canvas.clientHeight / 2) {
  const to = Math.min(Math.max(state.zoom * factor, SMALLEST), 3), real = to / state.zoom;
  state.x = x - (x - state.x) * real; state.y = y - (y - state.y) * real; state.zoom = to;
  draw();
}

/** Brings boxes into the middle; the zoom only changes when they would not be readable, or not fit. */
function centre(nodes) {
  const c = current(), boxes = nodes.filter((n) => c.nodes.has(n)).map((n) => c.boxes[c.nodes.get(n)]);
  if (!boxes.length) return;
  const x1 = Math.min(...boxes.map((b) => b.x - b.w / 2)), x2 = Math.max(...boxes.map((b) => b.x + b.w / 2));
  const y1 = Math.min(...boxes.map((b) => b.layer)) * ROW, y2 = Math.max(...boxes.map((b) => b.layer)) * ROW + BOX;
  const width = canvas.clientWidth, height = canvas.clientHeight;
  const most = Math.min((width - 80) / (x2 - x1), (height - 80) / (y2 - y1), 1);
  state.zoom = Math.max(Math.min(Math.max(state.zoom, 0.7), most), 0.05);
  state.x = width / 2 - (x1 + x2) / 2 * state.zoom; state.y = height / 2 - (y1 + y2) / 2 * state.zoom;
  draw();
}

/** Selects a node wherever it is, and goes there. */
function go(node) {
  const at = index().nodes.get(node);
  if (!at) return;
  show({ node, graph: at.graph });
  centre([node]);
  const row = at.row;
  $("status").textContent = `${row.op}, ${row.results.map((r) => `${r[1]}: ${r[2]}`).join(", ")}${row.source.length ? `, from ${row.source.join(", ")}` : ""}`;
}

function openGraph(id, node = null) {
  show({ graph: id, node });
  if (node === null) fit(true); else centre([node]);
}

function outwards() {
  const holder = DATA.graphs[snapshot()].holder;
  if (holder) openGraph(holder[1], holder[0]);
}

function toStage(number, after = true) {
  const before = DATA.graphs[snapshot()].id;
  show({ stage: Math.min(Math.max(number, 0), DATA.stages.length - 1), after, rewrite: null });
  const c = current();
  if (before !== state.graph || state.y + c.height * state.zoom < 40 || state.x + c.width * state.zoom < 40) fit(true);
}

function toChange(step) {
  for (let i = state.stage + step; i >= 0 && i < DATA.stages.length; i += step) {
    if (DATA.stages[i].changes || i === 0) { toStage(i); return; }
  }
}

/** Before or after, and to the rewrite's nodes there; the other state if this one has none of them. */
function toRewrite(number, after = state.after) {
  const rewrite = DATA.stages[state.stage].rewrites[number];
  const nodes = (a) => [...(a ? rewrite.made : rewrite.gone), ...rewrite.touched];
  if (!nodes(after).length && nodes(!after).length) after = !after;
  show({ rewrite: number, after });
  const there = nodes(after).filter((n) => index().nodes.has(n));
  if (!there.length) return;
  const homes = there.map((n) => index().nodes.get(n).graph);
  if (!homes.includes(state.graph)) show({ graph: homes[0] });
  centre(there);
}

function side(after) {
  if (state.rewrite !== null) toRewrite(state.rewrite, after); else { show({ after }); }
}

// ------------------------------------------------------------------------------------------------------------- panels

function find() {
  const words = state.term.toLowerCase().split(/\s+/).filter(Boolean);
  hits = new Set();
  if (!words.length) return;
  for (const [node, { row }] of index().nodes) {
    const text = [row.op, ...row.source, row.rewrite || "", ...row.results.flatMap((r) => [r[1], r[2]]),
      ...row.attributes.map((a) => `${a[0]}=${a[1]}`), ...row.operands.map((o) => (typeof o[1] === "string" ? o[1] : ""))].join("\n").toLowerCase();
    if (words.every((w) => text.includes(w))) hits.add(node);
  }
}

const many = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const item = (title, under, act, now) => make("li", null, make("button", { type: "button", onclick: act, title: under || "", "aria-current": String(Boolean(now)) },
  title, under ? make("small", null, under) : null));
const nodeItem = (node, sign = "") => {
  const at = index().nodes.get(node) || stageIndex(Math.max(state.stage - 1, 0)).nodes.get(node) || stageIndex(state.stage).nodes.get(node);
  const row = at.row, name = row.source[0] || (row.results[0] || ["", ""])[1];
  return item(`${sign}${row.op}`, name, () => { if (!index().nodes.has(node)) show({ after: !state.after }); go(node); }, node === state.node);
};

function panels() {
  const graph = DATA.graphs[snapshot()], stage = DATA.stages[state.stage], kept = $("left").scrollTop;
  $("graphs").replaceChildren(...DATA.stages[stageOf()].graphs.map((at) => {
    const g = DATA.graphs[at];
    return make("option", { value: String(g.id), selected: g.id === state.graph }, `${"\u00a0\u00a0".repeat(depth(g))}${g.title} (${many(g.nodes.length, "node")})`);
  }));
  $("outwards").disabled = !graph.holder;
  $("stage").value = String(state.stage);
  $("stage").setAttribute("aria-valuetext", `${state.stage}: ${stage.name}, ${many(stage.changes, "change")}`);
  for (const [id, on] of [["before", !state.after], ["after", state.after]]) {
    $(id).setAttribute("aria-pressed", String(on));
    $(id).disabled = !stage.changes;
  }
  [...$("ticks").children].forEach((tick, i) => tick.classList.toggle("now", i === state.stage));
  const counts = stage.changes ? `: +${stage.added.length} \u2212${stage.removed.length} ~${stage.altered.length} nodes` : state.stage ? ": no change" : "";
  $("status").textContent = `${state.stage ? `pass ${state.stage} of ${DATA.stages.length - 1}, ` : ""}${stage.name}${counts}; ${many(stage.nodes, "node")} in the model`;
  const legend = !stage.changes ? [] : state.after ? [["added", "made by this pass"], ["altered", "changed"]] : [["removed", "removed by this pass"], ["altered", "changed"]];
  $("legend").replaceChildren(...legend.map(([name, text]) => {
    const dot = make("i"); dot.style.background = colour[name];
    return make("span", null, dot, text);
  }));
  $("legend").hidden = !legend.length; $("legend").style.display = legend.length ? "" : "none";
  foundPanel(); rewritePanel(stage); detailPanel(graph);
  $("left").scrollTop = kept;
}

function depth(graph) {
  let steps = 0;
  for (let g = graph; g && g.holder && steps < 12; steps++) g = DATA.graphs[index().graphs.get(g.holder[1])];
  return steps;
}

function foundPanel() {
  $("found").hidden = !state.term.trim();
  $("found").replaceChildren(make("h2", null, `${many(hits.size, "node")} found`),
    make("ul", null, ...[...hits].slice(0, SHOWN).map((n) => nodeItem(n))),
    ...(hits.size > SHOWN ? [make("p", { className: "muted" }, `and ${hits.size - SHOWN} more`)] : []));
}

function rewritePanel(stage) {
  const panel = $("rewrites");
  if (!stage.changes) {
    const text = state.stage ? "This pass changed nothing." : "The model as it was read. Move the slider to step through the passes.";
    panel.replaceChildren(make("h2", null, stage.name), make("p", { className: "muted" }, text));
    return;
  }
  const groups = new Map();
  stage.rewrites.forEach((r, i) => { if (!groups.has(r.label)) groups.set(r.label, []); groups.get(r.label).push(i); });
  const few = stage.rewrites.length <= 40;
  panel.replaceChildren(make("h2", null, stage.name),
    make("p", null, make("span", { className: "plus" }, `+${stage.added.length} `), make("span", { className: "minus" }, `\u2212${stage.removed.length} `),
      make("span", { className: "tilde" }, `~${stage.altered.length} `), make("span", { className: "muted" }, `nodes, ${many(stage.rewrites.length, "rewrite")}`)),
    ...[...groups].map(([label, numbers]) => make("details", { open: few || groups.size === 1 || numbers.includes(state.rewrite) },
      make("summary", null, `${label} `, make("span", { className: "muted" }, `\u00d7 ${numbers.length}`)),
      make("ul", null, ...numbers.slice(0, SHOWN).map((i) => {
        const r = stage.rewrites[i], on = i === state.rewrite;
        const li = item(r.what, `+${r.made.length} \u2212${r.gone.length} ~${r.touched.length}`, () => (on ? show({ rewrite: null }) : toRewrite(i)), on);
        if (on) li.append(make("ul", null, ...[["\u2212 ", r.gone], ["+ ", r.made], ["~ ", r.touched]].flatMap(([sign, nodes]) =>
          nodes.filter((n) => [state.stage, state.stage - 1].some((s) => stageIndex(s).nodes.has(n))).map((n) => nodeItem(n, sign)))));
        return li;
      }), numbers.length > SHOWN ? make("li", { className: "muted" }, `and ${numbers.length - SHOWN} more`) : null))));
}

const link = (text, act) => make("button", { type: "button", className: "link code", onclick: act }, text);
const table = (rows) => make("table", null, make("tbody", null, ...rows.map(([a, b]) => make("tr", null, make("td", null, a), make("td", { className: "code" }, b)))));

function reference(value) {
  if (value === null) return make("span", { className: "muted" }, "absent");
  if (typeof value === "string") return make("span", null, value);
  const at = index().values.get(value);
  if (!at) return make("span", null, `%${value}`);
  const to = () => (at.node === null ? openGraph(at.graph) : go(at.node));
  return make("span", null, link(`%${at.name}`, to), ` : ${at.type}`);
}

function section(title, content) { return content === null ? [] : [make("h3", null, title), content]; }

function detailPanel(graph) {
  const at = state.node === null ? null : index().nodes.get(state.node);
  if (!at) { $("details").replaceChildren(...graphDetails(graph)); return; }
  const row = at.row, info = DATA.ops[row.op] || ["", ""];
  const users = [...new Set(row.results.flatMap((r) => index().users.get(r[0]) || []))];
  $("details").replaceChildren(make("h2", null, row.op), make("p", { className: "muted" }, info[1]),
    ...section("Sub-graphs", row.graphs.length ? make("ul", null, ...row.graphs.map(([name, id]) => item(`Open ${name}`, "", () => openGraph(id)))) : null),
    ...section("Calls", row.calls.length ? make("ul", null, ...row.calls.map((name) => item(`Open @${name}`, "", () => {
      const to = [...index().graphs.values()].map((i) => DATA.graphs[i]).find((g) => g.title === `@${name}` && !g.holder);
      if (to) openGraph(to.id);
    }))) : null),
    ...section("Attributes", row.attributes.length ? table(row.attributes) : null),
    ...section("Operands", row.operands.length ? table(row.operands.map(([name, v]) => [name, reference(v)])) : null),
    ...section("Captures", row.captures.length ? table(row.captures.map((v, i) => [String(i), reference(v)])) : null),
    ...section("Results", row.results.length ? table(row.results.map(([, name, type, ints]) => [`%${name}`, ints === null ? type : `${type} holds [${ints}]`])) : null),
    ...section("Used by", users.length ? make("ul", null, ...users.slice(0, 40).map((n) => nodeItem(n))) : null),
    ...section("Provenance", table([["source nodes", row.source.join(", ") || "none"], ["made by", row.rewrite || "the importer"], ["family", info[0]], ["id", `node ${row.node}`]])));
}

function graphDetails(graph) {
  const typed = (values) => (values.length ? table(values.map(([, name, type]) => [`%${name}`, type])) : null);
  const counts = new Map();
  for (const [, record] of graph.nodes) counts.set(DATA.records[record].op, (counts.get(DATA.records[record].op) || 0) + 1);
  const rows = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const search = (op) => { $("search").value = op; show({ term: op }); };
  const metadata = Object.entries(DATA.metadata);
  return [make("h2", null, graph.title), make("p", { className: "muted" }, `${many(graph.nodes.length, "node")}. Select one for its details.`),
    ...section("Dims", graph.dims.length ? make("p", { className: "code" }, graph.dims.join(", ")) : null),
    ...section("Inputs", typed(graph.inputs)), ...section("Captures", typed(graph.captures)),
    ...section("Outputs", graph.outputs.length ? table(graph.outputs.map(([name, v], i) => [name || String(i), reference(v)])) : null),
    ...section("Operators", rows.length ? table(rows.map(([op, n]) => [make("span", null, link(op, () => search(op))), String(n)])) : null),
    ...section("Metadata", metadata.length ? table(metadata) : null),
    ...section("Pipeline", make("p", { className: "code" }, DATA.pipeline))];
}

// ------------------------------------------------------------------------------------------------------------- events

function boxAt(x, y) {
  const gx = (x - state.x) / state.zoom, gy = (y - state.y) / state.zoom, layer = Math.floor(gy / ROW);
  if (gy - layer * ROW > BOX) return null;
  return (current().layers[layer] || []).find((b) => Math.abs(b.x - gx) <= b.w / 2) || null;
}

function pick(box) {
  if (!box || box.node === null) { show({ node: null }); return; }
  show({ node: box.node });
}

function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const typing = ["INPUT", "SELECT"].includes(event.target.tagName);
  if (event.key === "Escape" && event.target.id !== "search") { show({ node: null, rewrite: null }); return; }
  if (typing) return;
  const acts = { "/": () => $("search").focus(), "[": () => toChange(-1), "]": () => toChange(1), b: () => side(!state.after),
    "+": () => zoomAt(1.25), "=": () => zoomAt(1.25), "-": () => zoomAt(0.8), "0": () => fit(false) };
  const on = event.target === canvas ? { ArrowUp: () => follow(-1), ArrowDown: () => follow(1), ArrowLeft: () => beside(-1), ArrowRight: () => beside(1),
    Backspace: outwards, Enter: enter } : {};
  const act = acts[event.key] || on[event.key];
  if (act) { event.preventDefault(); act(); }
}

function enter() {
  const at = index().nodes.get(state.node);
  if (at && at.row.graphs.length) openGraph(at.row.graphs[0][1]);
}

function follow(step) {
  const c = current(), at = index().nodes.get(state.node);
  if (!at) { const first = c.boxes.find((b) => b.node !== null); if (first) go(first.node); return; }
  const next = step > 0 ? at.row.results.flatMap((r) => index().users.get(r[0]) || [])
    : at.row.operands.map((o) => (typeof o[1] === "number" ? (index().values.get(o[1]) || { node: null }).node : null)).filter((n) => n !== null);
  if (next.length) go(next[0]);
}

function beside(step) {
  const c = current(), i = c.nodes.get(state.node);
  if (i === undefined) return;
  const row = c.layers[c.boxes[i].layer].filter((b) => b.node !== null).sort((a, b) => a.x - b.x);
  const next = row[row.indexOf(c.boxes[i]) + step];
  if (next) go(next.node);
}

function listen() {
  let drag = null;
  const where = (e) => { const r = canvas.getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
  const jump = (strip, x, y) => {
    state.x = canvas.clientWidth / 2 - (x - strip.x - 3) / strip.sx * state.zoom;
    state.y = canvas.clientHeight / 2 - (y - strip.y - 3) / strip.sy * state.zoom;
    draw();
  };
  canvas.addEventListener("pointerdown", (e) => {
    const [x, y] = where(e), strip = strips(current(), canvas.clientWidth, canvas.clientHeight);
    const inside = strip && x >= strip.x && x <= strip.x + strip.w && y >= strip.y && y <= strip.y + strip.h;
    drag = { x, y, from: [state.x, state.y], strip: inside ? strip : null, moved: Boolean(inside) };
    try { canvas.setPointerCapture(e.pointerId); } catch (error) { drag.captured = String(error); }  // a synthetic event has no pointer
    if (inside) jump(strip, x, y);
  });
  canvas.addEventListener("pointermove", (e) => {
    const [x, y] = where(e);
    if (!drag) { canvas.style.cursor = boxAt(x, y) ? "pointer" : "grab"; return; }
    if (drag.strip) { jump(drag.strip, x, y); return; }
    if (Math.hypot(x - drag.x, y - drag.y) > 4) drag.moved = true;
    if (drag.moved) { state.x = drag.from[0] + x - drag.x; state.y = drag.from[1] + y - drag.y; draw(); }
  });
  canvas.addEventListener("pointerup", (e) => { if (drag && !drag.moved) pick(boxAt(...where(e))); drag = null; });
  canvas.addEventListener("dblclick", enter);
  canvas.addEventListener("wheel", (e) => {
    e.preventDefault();
    const unit = e.deltaMode === 1 ? 18 : 1;
    if (e.shiftKey) { state.x -= (e.deltaX || e.deltaY) * unit; draw(); } else zoomAt(Math.exp(-e.deltaY * unit * 0.0016), ...where(e));
  }, { passive: false });
  document.addEventListener("keydown", key);
  $("search").addEventListener("input", () => show({ term: $("search").value }));
  $("search").addEventListener("keydown", (e) => {
    if (e.key === "Enter" && hits.size) {
      const list = [...hits], at = list.indexOf(state.node);
      go(list[(at + (e.shiftKey ? list.length - 1 : 1)) % list.length]);
    }
    if (e.key === "Escape") { $("search").value = ""; show({ term: "" }); canvas.focus(); }
  });
  $("stage").addEventListener("input", () => toStage(Number($("stage").value)));
  $("graphs").addEventListener("change", () => openGraph(Number($("graphs").value)));
  for (const [id, act] of Object.entries({ outwards, previous: () => toChange(-1), next: () => toChange(1), before: () => side(false),
    after: () => side(true), smaller: () => zoomAt(0.8), larger: () => zoomAt(1.25), fit: () => fit(false) })) $(id).addEventListener("click", act);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); panels(); draw(); });
  new ResizeObserver(draw).observe(canvas);
}

function begin() {
  readColours();
  $("model").textContent = DATA.model;
  $("stage").max = String(DATA.stages.length - 1);
  const most = Math.max(1, ...DATA.stages.map((s) => s.changes)), end = Math.max(DATA.stages.length - 1, 1);
  $("ticks").append(...DATA.stages.map((s, i) => {
    const tick = make("i", { className: s.changes ? "change" : "", title: s.name });
    tick.style.left = `${i / end * 100}%`;
    if (s.changes) tick.style.height = `${6 + 11 * Math.sqrt(s.changes / most)}px`;
    return tick;
  }));
  state.graph = DATA.graphs[DATA.stages[0].graphs[0]].id;
  listen();
  show({});
  fit(true);
  const wish = new URLSearchParams(location.hash.slice(1));
  if (wish.has("stage")) toStage(Number(wish.get("stage")), wish.get("side") !== "before");
  if (wish.has("rewrite")) toRewrite(Number(wish.get("rewrite")));
  if (wish.has("node")) go(Number(wish.get("node")));
  if (wish.has("search")) { $("search").value = wish.get("search"); show({ term: wish.get("search") }); }
  if (wish.has("selftest")) selftest();
}

// ---------------------------------------------------------------------------------------------------------- self-test

/** Drives the page as a user does and leaves what it saw in an element, for a test that reads the DOM. */
function selftest() {
  const seen = { stages: [], rewrites: 0, subgraphs: [], graphs: [] };
  const press = (target, name) => target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true }));
  const enterValue = (id, value, event) => { $(id).value = value; $(id).dispatchEvent(new Event(event)); };
  try {
    fit(false); drawNow();
    seen.boxes = current().boxes.length; seen.drawnWhole = drawn;
    zoomAt(3 / state.zoom); drawNow();
    seen.drawnClose = drawn; seen.zoom = state.zoom;
    $("fit").click();
    const box = current().boxes.find((b) => b.node !== null), area = canvas.getBoundingClientRect();
    const point = { clientX: area.left + state.x + box.x * state.zoom, clientY: area.top + state.y + (box.layer * ROW + 4) * state.zoom, bubbles: true, pointerId: 1 };
    canvas.dispatchEvent(new PointerEvent("pointerdown", point)); canvas.dispatchEvent(new PointerEvent("pointerup", point));
    seen.clicked = state.node === box.node; seen.details = $("details").textContent;
    canvas.focus(); press(canvas, "ArrowDown");
    seen.followed = state.node !== box.node;
    enterValue("search", box.title, "input");
    seen.hits = hits.size; seen.listed = $("found").querySelectorAll("li").length;
    press($("search"), "Enter");
    seen.searched = hits.has(state.node);
    enterValue("search", "", "input");
    for (let i = 0; i < DATA.stages.length; i++) {
      enterValue("stage", String(i), "input"); drawNow();
      const count = marks.size;
      if (DATA.stages[i].changes) $("before").click();
      seen.stages.push([state.stage, DATA.stages[i].name, count, marks.size, $("rewrites").textContent.includes("changed nothing")]);
      $("after").click();
      for (let r = 0; r < (DATA.stages[i].rewrites || []).length && r < 5; r++) { toRewrite(r); drawNow(); seen.rewrites++; }
      for (const at of DATA.stages[i].graphs) { openGraph(DATA.graphs[at].id); drawNow(); }
    }
    enterValue("stage", "0", "input");
    for (const option of [...$("graphs").options]) {
      enterValue("graphs", option.value, "change"); drawNow();
      seen.graphs.push([option.textContent.trim(), drawn > 0]);
    }
    for (const [node, { row }] of index().nodes) {
      if (!row.graphs.length) continue;
      go(node); press(canvas, "Enter");
      const inside = DATA.graphs[snapshot()].title;
      press(canvas, "Backspace");
      seen.subgraphs.push([row.op, inside, state.node === node]);
    }
    seen.scripts = document.scripts.length; seen.title = document.title; seen.heading = $("model").textContent;
    seen.unnamed = [...document.querySelectorAll("button, input, select")].filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label"))).length;
  } catch (error) { seen.error = String(error.stack); }
  document.body.append(make("pre", { id: "selftest", hidden: true }, JSON.stringify(seen)));
}

begin();
