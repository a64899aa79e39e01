// What mouse, keys and controls do, and what the page shows first.

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
