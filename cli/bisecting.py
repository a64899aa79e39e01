"""`irc bisect`: the pass, and the single rewrite of it, that makes a model compute something else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from . import options
from .options import MODEL


@click.command("bisect")
@MODEL
@options.target_option(None)
@click.option("--passes", "-p", "pipeline", default=None, help="Pipeline to look at (default: the default pipeline).")
@options.input_options
@click.option("--rtol", default=1e-4, show_default=True, help="Error allowed, relative to the greatest magnitude.")
@click.option("--atol", default=1e-6, show_default=True, help="Error allowed besides.")
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder for before.ir and after.ir.")
@options.JSON
def command(
    model: Path,
    target: str | None,
    pipeline: str | None,
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    seed: int,
    rtol: float,
    atol: float,
    output: Path | None,
    as_json: bool,
) -> int:
    """Find the pass, and the rewrite of it, after which MODEL departs from the reference.  Exits 1 if there is one.

    Outputs are those of the target (default: the reference), which runs no passes of its own here; they are judged by
    the reference on the model as it was read.  A crash and an invalid model count as wrong.
    """
    import numpy as np

    from .. import compile as compile_model
    from .. import read
    from ..passes import DEFAULT
    from ..runtime.feeds import make_inputs
    from ..targets import get
    from ..testing.bisection import bisect, save_both

    loaded = read(model)
    backend = get(target or "reference")
    files = {n: Path(p) for n, p in options.pairs(inputs, "--input").items()}
    first = compile_model(loaded, target=get("reference"), passes="", seed=0)
    feeds = make_inputs(first, files, options.shapes(shapes), options.one_size(dims), seed)

    def run(work: Any) -> Sequence[Any]:
        return list(compile_model(work, target=backend, passes="", seed=0)(*feeds))

    want = list(map(np.asarray, first(*feeds)))
    verdict = bisect(loaded, run, want, passes=pipeline or DEFAULT, rtol=rtol, atol=atol)
    written = save_both(verdict, output) if output is not None and verdict.blame == "pass" else {}
    if as_json:
        options.print_json({**verdict.as_dict(), "files": {k: str(v) for k, v in written.items()}})
    else:
        click.echo(str(verdict))
        for name, path in written.items():
            click.echo(f"{name:<8} {path}")
    return int(verdict.blame != "nothing")
