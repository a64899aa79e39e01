// The panels around the canvas: passes and rewrites, search results, details.

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
    ...section("Provenance", table([["source nodes", row.source.join(", ") || "none"], ["made by", row.rewrite || "no rewrite"], ["family", info[0]], ["id", `node ${row.node}`]])));
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
