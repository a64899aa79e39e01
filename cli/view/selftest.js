// The page driven as a user drives it, when its address ends in #selftest; and, as the last line, the start.

/** Drives the page as a user does and leaves what it saw in an element, for a test that reads the DOM. */
function selftest() {
  const seen = { stages: [], rewrites: 0, subgraphs: [], graphs: [] };
  const started = performance.now();
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
    seen.milliseconds = performance.now() - started;
    seen.scripts = document.scripts.length; seen.title = document.title; seen.heading = $("model").textContent;
    seen.unnamed = [...document.querySelectorAll("button, input, select")].filter((e) => !(e.getAttribute("aria-label") || e.textContent.trim() || e.closest("label"))).length;
  } catch (error) { seen.error = String(error.stack); }
  document.body.append(make("pre", { id: "selftest", hidden: true }, JSON.stringify(seen)));
}

begin();
