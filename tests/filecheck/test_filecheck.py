"""Runs the `// RUN:` lines of the IR files of this folder in-process: parse, pipeline, print, filecheck.

    // RUN: irc opt %s -p "canonicalize,dce" | filecheck %s
    // RUN: not irc opt %s -p "specialize{dims=N=1}" | filecheck %s --check-prefix=ERROR

`not` expects an IrcError, whose message is then what is checked.  Every pass runs with `verify_each`.
"""

from __future__ import annotations

import io
import shlex
from contextlib import redirect_stderr
from pathlib import Path

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import parse_argv_options
from filecheck.parser import Parser

from irc.ir.errors import IrcError
from irc.ir.text import parse_model, print_model
from irc.passes import get_pass, run_passes
from irc.passes.manager import all_passes

FOLDER = Path(__file__).parent
RUN = "// RUN: "


def run_lines() -> list[tuple[Path, int, str]]:
    return [
        (path, number, line.removeprefix(RUN))
        for path in sorted(FOLDER.rglob("*.ir"))
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if line.startswith(RUN)
    ]


def output_of(command: list[str], path: Path) -> str:
    """What the left side of a RUN line prints."""
    fails = command[:1] == ["not"]
    match command[fails:]:
        case ["irc", "opt", "%s", "-p", pipeline]:
            pass
        case _:
            raise AssertionError(
                f"a RUN line reads [not] irc opt %s -p PIPELINE | filecheck %s, got {shlex.join(command)}"
            )
    model = parse_model(path.read_text(), filename=path.name)
    if fails:
        with pytest.raises(IrcError) as error:
            run_passes(model, pipeline, verify_each=True)
        return str(error.value) + "\n"
    return print_model(run_passes(model, pipeline, verify_each=True), locations=False)


def check(text: str, arguments: list[str], path: Path) -> str:
    """The complaint of filecheck, or nothing."""
    options = parse_argv_options(["filecheck", *(str(path) if a == "%s" else a for a in arguments)])
    said = io.StringIO()
    with redirect_stderr(said):
        code = Matcher(options, FInput("output", text), Parser.from_opts(options)).run()
    return "" if code == 0 else f"{said.getvalue()}\n{text}"


@pytest.mark.parametrize("path, number, line", run_lines(), ids=[f"{p.stem}:{n}" for p, n, _ in run_lines()])
def test_run_line(path: Path, number: int, line: str):
    command, _, checker = line.partition(" | ")
    name, *arguments = shlex.split(checker)
    assert name == "filecheck"
    complaint = check(output_of(shlex.split(command), path), arguments, path)
    assert not complaint, f"{path.name}:{number}: {complaint}"


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
    assert "multiply" in check("add\n", ["%s"], path)
    assert check("multiply\n", ["%s"], path) == ""
