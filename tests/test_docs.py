"""Runs what docs/ and README.md show: Python blocks, command lines, texts of models; checks links and names.

A page's Python blocks run in order in a process of their own.  One whose first line is `# folder/file.py` runs as if
it stood at the end of that file, so its relative imports work; one of tests/ has its test functions called.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from irc.ir.operators import find
from irc.ir.text import parse_model, print_model
from irc.passes import DEFAULT, all_passes

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DIGITS = ROOT / "examples" / "digits"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")

RUN_PYTHON = """
import json, re, sys, types
page, blocks = json.load(sys.stdin)

def module(name, package):
    made = sys.modules[name] = types.ModuleType(name)
    made.__package__ = package
    return made

shared = module("page", "")
for line, code in blocks:
    place = re.match(r"# ([\\w/]+)[.]py\\n", code)
    here = shared
    if place:
        folder, _, file = place[1].rpartition("/")
        package = "" if folder.startswith("tests") else f"irc.{folder.replace('/', '.')}"
        here = module(f"{package}.{file}_at_line_{line}", package)
    exec(compile("\\n" * line + code, page, "exec"), here.__dict__)
    if place and not package:
        tests = [f for n, f in vars(here).items() if n.startswith("test_")]
        assert tests, f"{page}:{line}: no test in this block"
        for test in tests:
            test()
"""

RUN_COMMANDS = """
import json, shlex, sys
from irc.cli.main import run
for command, wanted in json.load(sys.stdin):
    code = run(shlex.split(command)[1:])
    assert code == wanted, f"{command}: exit code {code}, the page says {wanted}"
"""


def blocks(page: Path, *languages: str) -> list[tuple[int, str]]:
    """(line of the fence, contents) of each code block in one of the languages."""
    text = page.read_text()
    return [(text.count("\n", 0, m.start()) + 1, m[2]) for m in BLOCK.finditer(text) if m[1] in languages]


def with_block(*languages: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, *languages)]


def run(script: str, what: object, folder: Path) -> None:
    """Run a script in a folder with the digits model (model.onnx, model.ir) and a batch (images.npy, inputs.npz)."""
    shutil.copyfile(DIGITS / "digits.onnx", folder / "model.onnx")
    prepare = (
        "import irc, numpy as np; irc.save(irc.import_onnx('model.onnx'), 'model.ir'); "
        "images = np.random.default_rng(0).random((4, 1, 8, 8), np.float32); np.save('images.npy', images); "
        "np.savez('inputs.npz', image=images); del images\n"
    )
    environment = {**os.environ, "IRC_CACHE_DIR": str(folder / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", prepare + script],
        input=json.dumps(what),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def name_of(page: Path) -> str:
    return page.stem


@pytest.mark.parametrize("page", with_block("python"), ids=name_of)
def test_python_of_the_page_runs(page: Path, tmp_path: Path):
    run(RUN_PYTHON, [str(page), blocks(page, "python")], tmp_path)


@pytest.mark.parametrize("page", with_block("sh"), ids=name_of)
def test_command_lines_of_the_page_run(page: Path, tmp_path: Path):
    """`# exit 1` behind a command is the exit code that the page promises; 0 otherwise."""
    commands = []
    for _, code in blocks(page, "sh"):
        for line in code.splitlines():
            command, _, comment = line.partition("#")
            if command.startswith("irc "):
                code_ = re.match(r" exit (\d)", comment)
                commands.append((command.strip(), int(code_[1]) if code_ else 0))
    assert commands, "no line starts with irc"
    run(RUN_COMMANDS, commands, tmp_path)


@pytest.mark.parametrize("page", with_block("irc"), ids=name_of)
def test_models_of_the_page_are_canonical_text(page: Path):
    for line, text in blocks(page, "irc"):
        assert print_model(parse_model(text, filename=f"{page.name}:{line}"), inline_weights=True) == text


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path):
    links = [link for link in LINK.findall(page.read_text()) if "://" not in link]
    assert not [link for link in links if not (page.parent / link).exists()]


def test_the_index_names_every_page():
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    assert not [page.name for page in PAGES[1:] if page != index and page.resolve() not in linked]


def test_semantics_names_operators_that_exist():
    rows = [line.split("|") for line in (ROOT / "docs" / "semantics.md").read_text().splitlines() if line[:3] == "| `"]
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]
    assert len(names) > 20
    assert not [name for name in names if find(name) is None]


def test_semantics_names_edge_cases_that_exist():
    """The last column of a table names rows of testing/edges.json of one of the operators in the first."""
    edges = {row["id"]: row["operator"] for row in json.loads((ROOT / "testing" / "edges.json").read_text())}
    rows = [line.split("|") for line in (ROOT / "docs" / "semantics.md").read_text().splitlines() if line[:3] == "| `"]
    named = [(row[1], edge) for row in rows for edge in re.findall(r"[\w-]+", row[3])]
    assert len(named) > 40
    assert not [edge for operators, edge in named if f"`{edges.get(edge)}`" not in operators]


def test_passes_names_every_pass():
    text = (ROOT / "docs" / "passes.md").read_text()
    assert not [p.name for p in all_passes() if f"`{p.name}`" not in text]


def test_passes_shows_the_default_pipeline():
    text = "".join((ROOT / "docs" / "passes.md").read_text().split())
    assert f"```{DEFAULT}```" in text


def test_a_wrong_block_fails(tmp_path: Path):
    with pytest.raises(AssertionError, match="assert 1 == 2"):
        run(RUN_PYTHON, ["page.md", [[3, "x = 1\n"], [7, "assert 1 == 2, 'assert 1 == 2'\n"]]], tmp_path)


def test_the_operator_tables_are_up_to_date():
    done = subprocess.run(
        [sys.executable, "-P", str(ROOT / "tests" / "operator_tables.py")], capture_output=True, text=True, check=True
    )
    assert done.stdout == (ROOT / "docs" / "operators.md").read_text(), "run `make docs`"
