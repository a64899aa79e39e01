"""IR files with `// RUN:` lines, run in-process and compared with their `// CHECK` lines by the package `filecheck`.

    // RUN: irc opt %s -p "canonicalize,dce" | filecheck %s
    // RUN: not irc opt %s -p "specialize{dims=N=1}" | filecheck %s --check-prefix=ERROR

`not` expects an IrcError, whose message is then what is checked.  Every pass runs with `verify_each`.
"""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path

from ..ir.errors import IrcError
from ..ir.text import parse_model, print_model
from ..passes import run_passes

RUN = "// RUN: "


def run_lines(path: Path) -> list[tuple[int, str]]:
    """(line number, command) of the RUN lines of a file."""
    lines = enumerate(Path(path).read_text().splitlines(), start=1)
    return [(number, line.removeprefix(RUN)) for number, line in lines if line.startswith(RUN)]


def check_file(path: str | Path) -> None:
    """AssertionError unless what every RUN line of the file prints is what its CHECK lines expect."""
    path = Path(path)
    found = run_lines(path)
    assert found, f"{path.name} has no line that starts with {RUN!r}"
    for number, line in found:
        check_line(path, number, line)


def check_line(path: Path, number: int, line: str) -> None:
    """One RUN line of a file."""
    command, _, checker = line.partition(" | ")
    name, *arguments = shlex.split(checker) or [""]
    assert name == "filecheck", f"{path.name}:{number}: expected `COMMAND | filecheck %s`, got {line!r}"
    complaint = complaint_about(output_of(shlex.split(command), path), arguments, path)
    assert not complaint, f"{path.name}:{number}: {complaint}"


def output_of(command: Sequence[str], path: Path) -> str:
    """What the left side of a RUN line prints."""
    fails = list(command[:1]) == ["not"]
    match list(command[fails:]):
        case ["irc", "opt", "%s", "-p", pipeline]:
            pass
        case _:
            raise AssertionError(
                f"a RUN line reads [not] irc opt %s -p PIPELINE | filecheck %s, got {shlex.join(command)}"
            )
    model = parse_model(path.read_text(), filename=path.name)
    try:
        out = run_passes(model, pipeline, verify_each=True)
    except IrcError as error:
        if fails:
            return f"{error}\n"
        raise
    assert not fails, f"{path.name}: {pipeline!r} was expected to fail"
    return print_model(out, locations=False)


def complaint_about(text: str, arguments: Sequence[str], path: Path) -> str:
    """What filecheck says about a text, with the text; or nothing."""
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import parse_argv_options
    from filecheck.parser import Parser

    options = parse_argv_options(["filecheck", *(str(path) if a == "%s" else a for a in arguments)])
    said = io.StringIO()
    with redirect_stderr(said):
        code = Matcher(options, FInput("output", text), Parser.from_opts(options)).run()
    return "" if code == 0 else f"{said.getvalue()}\n{text}"
