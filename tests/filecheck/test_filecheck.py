"""Runs the `// RUN:` lines of the IR files of this folder; see `irc.testing.filecheck`."""

from __future__ import annotations

from pathlib import Path

import pytest

from irc.passes import get_pass
from irc.passes.manager import all_passes
from irc.testing.filecheck import check_line, complaint_about
from irc.testing.filecheck import run_lines as lines_of

FOLDER = Path(__file__).parent


def run_lines() -> list[tuple[Path, int, str]]:
    return [(path, number, line) for path in sorted(FOLDER.rglob("*.ir")) for number, line in lines_of(path)]


@pytest.mark.parametrize("path, number, line", run_lines(), ids=[f"{p.stem}:{n}" for p, n, _ in run_lines()])
def test_run_line(path: Path, number: int, line: str):
    check_line(path, number, line)


def test_every_file_has_a_run_line():
    silent = {p.name for p in FOLDER.rglob("*.ir")} - {p.name for p, _, _ in run_lines()}
    assert not silent


def test_every_pass_of_the_passes_folder_has_a_file():
    named = {name for _, _, line in run_lines() for name in [p.name for p in all_passes()] if name in line}
    own = {p.name for p in all_passes() if p.__module__.startswith(get_pass("cse").__module__.rpartition(".")[0])}
    assert own <= named


def test_a_wrong_expectation_fails(tmp_path: Path):
    path = tmp_path / "wrong.ir"
    path.write_text("// CHECK: multiply\n")
    assert "multiply" in complaint_about("add\n", ["%s"], path)
    assert complaint_about("multiply\n", ["%s"], path) == ""
