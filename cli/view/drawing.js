// Paints what is in view; nothing else is visited, so the cost does not grow with the graph.

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
