"""`irc view`: what the page holds, that no name gets out of it, and the page itself in a browser where there is one.

The page drives itself when its address ends in `#selftest` and leaves what it saw in its DOM, which is asserted here.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import irc
from irc.cli.main import run
from irc.cli.view import page, record
from irc.cli.view.layout import Line, lay_out
from irc.ir.text import parse_model
from irc.passes import DEFAULT, parse_pipeline

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"
EVIL = "</script><script>document.title='taken'</script><!-- & \u2028 \\u003c {{DATA}} é"

MODEL = """irc 1 vocabulary 1
model NAME {
  func @main<B>(%x: f32[B], %p: bool[]) -> (%y: f32[B]) {
    %0 = if(%p) captures(%x) : f32[B] loc(NAME)
      then { %1 = negate(%x) : f32[B]  %2 = negate(%1) : f32[B]  yield %2 }
      else { %3 = tanh(%x) : f32[B]  yield %3 }
    %4 = add(%0, f32[] 0.0) : f32[B]
    %5 = exponential(%x) : f32[B]
    %6 = call(%4) {callee = @other} : f32[B]
    return %6
  }
  func @other<B>(%x: f32[B]) -> (%y: f32[B]) {
    %0 = sine(%x) : f32[B]
    return %0
  }
}
"""


def small(name: str = "small"):
    return parse_model(MODEL.replace("NAME", json.dumps(name, ensure_ascii=False)))


def big(nodes: int):
    """Chains with branches that skip far ahead."""
    lines = ["%v0 = tanh(%x) : f32[4]"]
    for i in range(1, nodes):
        other = i - 1 if i % 3 else max(0, i - 1 - i % 200)
        lines.append(f"%v{i} = add(%v{i - 1}, %v{other}) : f32[4]")
    lines.append(f"return %v{nodes - 1}")
    body = "func @main(%x: f32[4]) -> (f32[4]) {\n" + "\n".join(lines) + "\n}"
    return parse_model('irc 1 vocabulary 1\nmodel "big" {\n' + body + "\n}\n")


class Elements(HTMLParser):
    """Start tags with their attributes, and the text of the scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.inside = False
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.inside = tag == "script"
        if self.inside:
            self.scripts.append("")

    def handle_data(self, data):
        if self.inside:
            self.scripts[-1] += data

    def handle_endtag(self, tag):
        self.inside = False


def written(model, pipeline: str = DEFAULT) -> tuple[dict, str]:
    data = record(model, parse_pipeline(pipeline))
    return data, page(data).decode("ascii")


# ---------------------------------------------------------------------------------------------------- without a browser


def test_the_command_writes_the_same_self_contained_page_twice(tmp_path, capsys):
    pages = [tmp_path / "a.html", tmp_path / "b.html"]
    for path in pages:
        assert run(["view", str(DIGITS), "-o", str(path)]) == 0
    assert "13 nodes, 19 passes of which 1 changed it" in capsys.readouterr().out
    assert pages[0].read_bytes() == pages[1].read_bytes()
    parsed = Elements(pages[0].read_text("ascii"))
    names = {name for _, attributes in parsed.tags for name in attributes}
    assert not names & {"src", "href", "srcset", "style"}
    assert not [name for name in names if name.startswith("on")], "the policy forbids these"
    (policy,) = [a["content"] for t, a in parsed.tags if t == "meta" and a.get("http-equiv")]
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    digest = base64.b64encode(hashlib.sha256(parsed.scripts[1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy
    data = json.loads(parsed.scripts[0])
    assert data["model"] == "digits"
    ops = [data["records"][r]["op"] for _, r in data["graphs"][data["stages"][0]["graphs"][0]]["nodes"]]
    assert ops.count("Conv") == 3
    assert len(ops) == 13
    assert run(["view", str(DIGITS), "-o", str(tmp_path / "c.html"), "--passes", "nowhere"]) == 1


def test_every_node_of_every_state_is_in_the_page():
    model = small()
    expected = [sorted(n.op.name for g in model.graphs() for n in g.nodes)]
    data, text = written(model, "canonicalize,cse,dce")
    expected.append(sorted(n.op.name for g in model.graphs() for n in g.nodes))
    assert json.loads(Elements(text).scripts[0]) == json.loads(json.dumps(data))
    for stage, names in ((data["stages"][0], expected[0]), (data["stages"][-1], expected[1])):
        graphs = [data["graphs"][g] for g in stage["graphs"]]
        assert sorted(data["records"][r]["op"] for g in graphs for _, r in g["nodes"]) == names
        for graph in graphs:
            boxes = len(graph["inputs"]) + len(graph["captures"]) + len(graph["nodes"]) + len(graph["outputs"])
            assert len(graph["layout"]["x"]) == len(graph["layout"]["layer"]) == boxes
    assert [data["graphs"][g]["title"] for g in data["stages"][0]["graphs"]] == ["@main", "then", "else", "@other"]
    call = next(r for r in data["records"] if r["op"] == "call")
    assert call["calls"] == ["other"]


def test_passes_name_what_their_rewrites_replaced():
    data, _ = written(small(), "canonicalize,dce")
    ops = {r["node"]: r["op"] for r in data["records"]}
    stages = {s["name"]: s for s in data["stages"]}
    assert [s["name"] for s in data["stages"]] == ["as read", "canonicalize", "dce"]
    assert sorted(ops[n] for s in stages.values() for n in s.get("removed", [])) == [
        "exponential", "negate", "negate",
    ]  # fmt: skip
    for stage in data["stages"][1:]:
        gone = [n for rewrite in stage["rewrites"] for n in rewrite["gone"]]
        assert sorted(gone) == sorted(stage["removed"]), "each removal is some rewrite's"
        assert all(rewrite["label"].startswith(stage["name"]) for rewrite in stage["rewrites"])


def test_a_fusion_is_one_rewrite_with_all_its_nodes():
    text = """irc 1 vocabulary 1
model "swish" {
  func @main<B>(%x: f32[B]) -> (%y: f32[B]) {
    %0 = logistic(%x) : f32[B]
    %1 = multiply(%x, %0) : f32[B]
    return %1
  }
}
"""
    data, _ = written(parse_model(text), "fuse")
    ops = {r["node"]: r["op"] for r in data["records"]}
    (rewrite,) = data["stages"][1]["rewrites"]
    assert sorted(ops[n] for n in rewrite["gone"]) == ["logistic", "multiply"]
    assert [ops[n] for n in rewrite["made"]] == ["Swish"]
    assert rewrite["label"].startswith("fuse/")
    assert rewrite["what"].endswith("→ Swish")


def test_hostile_names_stay_inside_their_element():
    data, text = written(small(EVIL))
    parsed = Elements(text)
    assert [t for t, _ in parsed.tags].count("script") == 2
    assert json.loads(parsed.scripts[0])["model"] == EVIL
    assert [EVIL] in [r["source"] for r in data["records"]]
    (title,) = re.findall(r"<title>(.*?)</title>", text)
    assert html.unescape(title) == f"{EVIL} - irc view"


def test_rows_do_not_overlap_and_lines_go_down():
    data, _ = written(big(2000), "dce")
    graph = data["graphs"][data["stages"][0]["graphs"][0]]
    plan = graph["layout"]
    rows: dict[int, list[tuple[int, int]]] = {}
    for x, layer, width in zip(plan["x"], plan["layer"], plan["boxes"], strict=True):
        rows.setdefault(layer, []).append((x, width))
    for row in rows.values():
        row.sort()
        assert all(b[0] - a[0] >= (a[1] + b[1]) / 2 for a, b in pairwise(row))
    for _, source, targets, lanes in plan["lines"]:
        assert all(plan["layer"][t] > plan["layer"][source] for t in targets)
        assert lanes is None or len(lanes) == max(plan["layer"][t] for t in targets) - plan["layer"][source] - 1
    assert sum(len(lanes or []) for *_, lanes in plan["lines"]) <= 6 * len(plan["x"]) + 64


def test_a_diamond_is_laid_out_straight():
    placed = lay_out([80] * 4, [Line(0, (1, 2)), Line(1, (3,)), Line(2, (3,))])
    assert placed.layer == [0, 1, 1, 2]
    assert placed.x[0] == placed.x[3] == (placed.x[1] + placed.x[2]) // 2
    assert lay_out([], []).layers == 0


def test_what_needs_no_input_stands_right_above_its_first_user():
    chain = [Line(0, (3,)), Line(3, (4,)), Line(4, (5,))]
    assert lay_out([80] * 6, [*chain, Line(1, (2,)), Line(2, (5,))], inputs=1).layer == [0, 1, 2, 1, 2, 3]


# --------------------------------------------------------------------------------------------------------- in a browser


@pytest.fixture(scope="module")
def browser() -> str:
    names = [os.environ.get("IRC_CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome"]
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    if found is None:
        pytest.skip("no Chromium on PATH (chromium, chromium-browser, google-chrome) or in IRC_CHROMIUM")
    return found


def selftest(browser: str, path: Path) -> dict:
    """What the page saw when it drove itself."""
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,900"]
    command += [f"--user-data-dir={path.parent / 'profile'}", "--virtual-time-budget=5000", "--dump-dom"]
    done = subprocess.run([*command, f"{path.as_uri()}#selftest"], capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="selftest"[^>]*>(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, f"the page left no result\n{done.stderr[-2000:]}"
    seen = json.loads(html.unescape(found[1]))
    assert "error" not in seen, seen["error"]
    return seen


def test_the_page_searches_steps_and_opens_sub_graphs(browser, tmp_path):
    data, text = written(small(EVIL), "canonicalize,cse,dce")
    path = tmp_path / "small.html"
    path.write_text(text)
    seen = selftest(browser, path)
    assert seen["clicked"]
    assert seen["details"].startswith("if")
    assert EVIL in seen["details"], "provenance, as text"
    assert seen["followed"]
    assert seen["searched"]
    assert seen["hits"] == seen["listed"] == 1
    assert [s[:2] for s in seen["stages"]] == [[i, s["name"]] for i, s in enumerate(data["stages"])]
    for (_, _, after, before, idle), stage in zip(seen["stages"], data["stages"], strict=True):
        if stage["changes"]:
            assert after == len({*stage["added"], *stage["altered"]})
            assert before == len({*stage["removed"], *stage["altered"]})
        assert idle == (not stage["changes"] and stage is not data["stages"][0])
    assert seen["rewrites"] == sum(min(len(s.get("rewrites", [])), 5) for s in data["stages"])
    assert seen["subgraphs"] == [["if", "then", True]]
    assert [g for g, _ in seen["graphs"]] == ["@main (4 nodes)", "then (2 nodes)", "else (1 node)", "@other (1 node)"]
    assert all(painted for _, painted in seen["graphs"])
    assert (seen["scripts"], seen["unnamed"]) == (2, 0)
    assert seen["heading"] == EVIL
    assert "taken" != seen["title"]


def test_two_thousand_nodes_are_usable(browser, tmp_path):
    data, text = written(big(2000), "canonicalize,cse,dce")
    path = tmp_path / "big.html"
    path.write_text(text)
    seen = selftest(browser, path)
    assert seen["boxes"] == seen["drawnWhole"] == 2002
    assert 0 < seen["drawnClose"] < 30, "what is out of sight is not drawn"
    assert [s[1] for s in seen["stages"]] == [s["name"] for s in data["stages"]]


def test_the_model_is_not_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.ir"
    shutil.copyfile(Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx", tmp_path / "m.onnx")
    irc.save(irc.import_onnx(tmp_path / "m.onnx"), path)
    before = path.read_bytes()
    assert run(["view", str(path), "-o", str(path)]) == 1
    assert "ending in .html" in capsys.readouterr().err
    assert path.read_bytes() == before
