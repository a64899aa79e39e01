"use strict";
// The data embedded in the page, and which part of it is shown.  Names from the model only ever become text nodes.  All
// scripts are kept ASCII, as the whole page is.

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
