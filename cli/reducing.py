"""`irc reduce`: a smaller model on which the same fault shows."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import click

from . import options
from .options import MODEL

PATIENCE = 10
"""How many times as long as the first run, and seconds, the reference may take for a candidate."""

DIFFERS = "differs"


@click.command("reduce")
@MODEL
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the smallest model goes.")
@options.target_option(None)
@click.option("--test", "command_line", help="Command that exits 0 while the fault shows; {} is the model's path.")
@click.option("--passes", "-p", "pipeline", default=None, help="Passes to run before the target (default: none).")
@click.option("--tries", default=2000, show_default=True, help="Most candidates.")
@click.option("--seconds", default=300.0, show_default=True, help="Most time.")
@options.tolerance_options
@options.input_options
@options.JSON
def command(
    model: Path,
    output: Path,
    target: str | None,
    command_line: str | None,
    pipeline: str | None,
    tries: int,
    seconds: float,
    rtol: float,
    atol: float,
    inputs: options.Inputs,
    as_json: bool,
) -> int:
    """Shrink MODEL while it fails: while --target departs from the reference or breaks off, or while --test exits 0.

    Nodes go, in branches and loops too; branches and loops are dissolved; sizes and constants shrink.  Inputs stay, and
    those that are given by --input or --inputs keep their sizes.  The smallest model so far is in OUTPUT at every
    moment, so the search may be interrupted.
    """
    from .. import read, save
    from ..ir.errors import IrcError
    from ..testing.reduce import shrink

    if (target is None) == (command_line is None):
        raise click.UsageError("give either --target or --test")
    if output.suffix != ".ir":
        raise IrcError(f"{output}: expected a file ending in .ir")
    fails = _command(command_line, seconds) if command_line else _departs(target, pipeline, inputs, rtol, atol)
    found = shrink(read(model), fails, tries=tries, seconds=seconds, improved=lambda m: save(m, output))
    save(found.model, output)
    row = {
        "nodes_before": found.nodes_before, "nodes_after": found.nodes_after, "tried": found.tried,
        "complete": found.complete, "output": str(output),
    }  # fmt: skip
    if as_json:
        options.print_json(row)
    else:
        ended = "nothing smaller fails" if found.complete else "stopped by --tries or --seconds"
        click.echo(f"{output}: nodes {found.nodes_before} -> {found.nodes_after} in {found.tried} tries; {ended}")
    return 0


def _command(command_line: str | None, seconds: float) -> Any:
    """Whether the command, with the candidate saved to a file, exits 0 within the time."""
    from .. import save

    try:
        words = shlex.split(command_line or "")
    except ValueError as error:
        raise click.UsageError(f"--test {command_line!r}: {error}") from None
    if not any("{}" in w for w in words):
        raise click.UsageError(f"--test {command_line!r} does not name the model: write {{}} where its path goes")
    if shutil.which(words[0]) is None:
        raise click.UsageError(f"--test: {words[0]}: no such command")

    def fails(model: Any) -> bool:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.ir"
            save(model, path)
            filled = [w.replace("{}", str(path)) for w in words]
            try:
                return subprocess.run(filled, capture_output=True, check=False, timeout=seconds).returncode == 0
            except subprocess.TimeoutExpired:
                return False

    return fails


def _departs(target: str | None, pipeline: str | None, inputs: options.Inputs, rtol: float, atol: float) -> Any:
    """Whether the target fails as it did the first time: by other outputs than the reference's, or by the same error.

    A model on which the reference breaks off, or takes very much longer than the first time, does not count.
    """
    import time

    from .. import compile as compile_model
    from ..targets import get
    from ..testing.agreement import compare, reference_run

    backend = get(target or "")
    first: dict[str, Any] = {}

    def fault(model: Any) -> str:
        feeds = inputs.make(compile_model(model, target=get("reference"), passes="", seed=0))
        started = time.monotonic()
        want = list(reference_run(model, feeds, seconds=first.get("seconds")).values())
        first.setdefault("seconds", PATIENCE * (1 + time.monotonic() - started))
        try:
            got = list(compile_model(model, target=backend, passes=pipeline or "", seed=0)(*feeds))
        except Exception as error:
            return type(error).__name__
        rows = [compare("y", a, b, rtol=rtol, atol=atol) for a, b in zip(got, want, strict=True)]
        return "" if all(row.agrees for row in rows) else DIFFERS

    def fails(model: Any) -> bool:
        found = fault(model)
        return bool(found) and found == first.setdefault("fault", found)

    return fails
