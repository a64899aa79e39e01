"""`irc reduce`: a smaller model on which the same fault shows."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from . import options
from .options import MODEL


@click.command("reduce")
@MODEL
@click.option("--output", "-o", required=True, type=click.Path(path_type=Path), help="Where the smallest model goes.")
@options.target_option(None)
@click.option("--test", "command_line", help="Command that exits 0 while the fault shows; {} is the model's path.")
@click.option("--passes", "-p", "pipeline", default=None, help="Passes to run before the target (default: none).")
@click.option("--tries", default=2000, show_default=True, help="Most candidates.")
@click.option("--seconds", default=300.0, show_default=True, help="Most time.")
@click.option("--rtol", default=1e-4, show_default=True, help="Error allowed, relative to the greatest magnitude.")
@click.option("--atol", default=1e-6, show_default=True, help="Error allowed besides.")
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
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> int:
    """Shrink MODEL while it fails: while --target departs from the reference or breaks off, or while --test exits 0.

    The smallest model so far is in OUTPUT at every moment, so the search may be interrupted.
    """
    from .. import read, save
    from ..ir.errors import IrcError
    from ..testing.reduce import shrink

    if (target is None) == (command_line is None):
        raise click.UsageError("give either --target or --test")
    if output.suffix != ".ir":
        raise IrcError(f"{output}: expected a file ending in .ir")
    files = {n: Path(p) for n, p in options.pairs(inputs, "--input").items()}
    judge = (target, pipeline, files, shapes, dims, seed, rtol, atol)
    fails = _command(command_line, seconds) if command_line else _departs(*judge)
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


def _departs(
    target: str | None, pipeline: str | None, files: dict[str, Path], shapes: Sequence[str], dims: Sequence[str],
    seed: int, rtol: float, atol: float,
) -> Any:  # fmt: skip
    """Whether the target gives something else than the reference, or breaks off where the reference does not."""
    import numpy as np

    from .. import compile as compile_model
    from ..runtime.feeds import make_inputs
    from ..targets import get
    from ..testing.agreement import compare

    backend = get(target or "")

    def fails(model: Any) -> bool:
        first = compile_model(model, target=get("reference"), passes="", seed=0)
        feeds = make_inputs(first, files, options.shapes(tuple(shapes)), options.one_size(tuple(dims)), seed)
        want = list(first(*feeds))
        try:
            got = list(compile_model(model, target=backend, passes=pipeline or "", seed=0)(*feeds))
        except Exception:
            return True
        rows = [compare("y", np.asarray(a), b, rtol=rtol, atol=atol) for a, b in zip(got, want, strict=True)]
        return not all(row.agrees for row in rows)

    return fails
