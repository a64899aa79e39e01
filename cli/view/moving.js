// Pan, zoom, and going to nodes, graphs, passes and rewrites.

function fit(readable) {
  const c = current(), width = canvas.clientWidth, height = canvas.clientHeight;
  const whole = Math.min((width - 60) / Math.max(c.width, 1), (height - 60) / Math.max(c.height, 1), 1.2);
  state.zoom = Math.max(whole, readable ? 0.75 : SMALLEST);
  const middle = (c.width * state.zoom > width || c.height * state.zoom > height) && c.boxes.length ? c.boxes[0].x : c.width / 2;
  const free = width - (c.height * state.zoom > height ? 108 : 0);  // beside the overview
  state.x = free / 2 - middle * state.zoom;
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
  const height = canvas.clientHeight, width = canvas.clientWidth - (c.height * state.zoom > height ? 108 : 0);
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

/** Shows another state; what is in the middle of the view and survives stays where it is on the screen. */
function anchored(changes) {
  const old = current(), graph = state.graph, middle = [(canvas.clientWidth / 2 - state.x) / state.zoom, (canvas.clientHeight / 2 - state.y) / state.zoom];
  const far = (b) => (b.node === state.node ? -1 : Math.abs(b.x - middle[0]) + Math.abs(b.layer * ROW - middle[1]));
  show(changes);
  const c = current(), kept = old.boxes.filter((b) => b.node !== null && c.nodes.has(b.node));
  if (graph !== state.graph || !kept.length) { if (c !== old) fit(true); return; }
  const from = kept.reduce((a, b) => (far(b) < far(a) ? b : a)), to = c.boxes[c.nodes.get(from.node)];
  state.x += (from.x - to.x) * state.zoom; state.y += (from.layer - to.layer) * ROW * state.zoom;
  const least = canvas.clientHeight - 30 - c.height * state.zoom;
  if (least < 30) state.y = Math.min(Math.max(state.y, least), 30);
  draw();
}

function toStage(number, after = true) {
  anchored({ stage: Math.min(Math.max(number, 0), DATA.stages.length - 1), after, rewrite: null });
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
  if (state.rewrite !== null) toRewrite(state.rewrite, after); else anchored({ after });
}
