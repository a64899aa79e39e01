"""`irc bisect`: the pass, and the single rewrite of it, that makes a model compute something else."""

from __future__ import annotations

from pathlib import Path

import click

from . import options
from .options import MODEL


@click.command("bisect")
@MODEL
@options.target_option(None)
@click.option("--passes", "-p", "pipeline", default=None, help="Pipeline to look at (default: the default pipeline).")
@options.input_options
@options.AGAINST
@options.tolerance_options
@click.option("--output", "-o", type=click.Path(path_type=Path), help="Folder for before.ir and after.ir.")
@options.JSON
def command(
    model: Path,
    target: str | None,
    pipeline: str | None,
    inputs: options.Inputs,
    against: Path | None,
    rtol: float,
    atol: float,
    output: Path | None,
    as_json: bool,
) -> int:
    """Find the pass, and the rewrite of it, after which MODEL gives other outputs than it should.  Exits 1 if any does.

    Outputs are those of the target (default: the reference), which runs no passes of its own here; they are judged by
    the reference on the model as it was read, or by --against.  A crash and an invalid model count as wrong.  Where the
    reference gives what is right of the very model on which the target does not, the target's lowering is to blame, and
    the first node that departs is named.
    """
    from .. import compile as compile_model
    from .. import read
    from ..passes import DEFAULT
    from ..targets import get
    from ..testing.agreement import Judge
    from ..testing.bisection import Trial, bisect, save_both

    loaded = read(model)
    backend = get(target or "reference")
    first = compile_model(loaded, target=get("reference"), passes="", seed=0)
    feeds = inputs.make(first)
    judge = Judge(model, loaded) if against is None else Judge.of(against)
    trial = Trial(backend, feeds, list(judge.outputs(first, feeds).values()), judge, rtol, atol)
    verdict = bisect(
        loaded, trial.run, trial.want, passes=pipeline or DEFAULT, rtol=rtol, atol=atol, examine=trial.examine
    )
    written = save_both(verdict, output) if output is not None and verdict.before is not None else {}
    if as_json:
        options.print_json({**verdict.as_dict(), "files": {k: str(v) for k, v in written.items()}})
    else:
        click.echo(str(verdict))
        for name, path in written.items():
            click.echo(f"{name:<8} {path}")
    return int(verdict.blame != "nothing")
