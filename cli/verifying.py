"""`irc verify`: do the targets compute what ONNX Runtime (or the reference) computes?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import options
from .options import MODEL

ACCUMULATES = "no single node departs beyond the tolerance: the error accumulates"


@click.command("verify")
@MODEL
@options.target_option(multiple=True)
@options.input_options
@options.AGAINST
@options.tolerance_options
@click.option("--layers", is_flag=True, help="Where they disagree, name the first node that departs.")
@options.ENTRY
@options.JSON
def command(
    model: Path,
    target: tuple[str, ...],
    inputs: options.Inputs,
    against: Path | None,
    rtol: float,
    atol: float,
    layers: bool,
    entry: str | None,
    as_json: bool,
) -> int:
    """Run MODEL on each target (default: xla and mlx) and compare every output.  Exits 1 if any disagrees.

    A .onnx file is judged by ONNX Runtime, a .ir file by the reference evaluator.
    """
    from .. import compile as compile_model
    from .. import read
    from ..targets import get
    from ..testing.agreement import Judge, compare, first_departure

    backends = [(spec, get(spec)) for spec in target or ("xla", "mlx")]
    loaded = read(model)
    judge = Judge.of(model, loaded, entry) if against is None else Judge.of(against, entry=entry)
    feeds: list[Any] = []
    want: dict[str, Any] = {}
    rows = []
    for spec, backend in backends:
        executable = compile_model(loaded, target=backend, entry=entry, seed=0)
        if not feeds:
            feeds = inputs.make(executable)
            want = judge.outputs(executable, feeds)
        got = executable(*feeds).by_name
        agreements = [compare(n, got[n], want[n], rtol=rtol, atol=atol) for n in got]
        row: dict[str, Any] = {
            "target": spec,
            "agrees": all(a.agrees for a in agreements),
            "outputs": {a.name: {"max_abs": a.max_abs, "max_rel": a.max_rel, "agrees": a.agrees} for a in agreements},
        }
        if not as_json:
            for agreement in agreements:
                click.echo(f"{spec}: {agreement}")
        if layers and not row["agrees"]:
            every = judge.intermediates(list(executable.input_types), feeds)
            departure = first_departure(loaded, backend, feeds, every, entry=entry, rtol=rtol, atol=atol)
            row["first_departure"] = str(departure or ACCUMULATES)
            if not as_json:
                click.echo(f"{spec}: {row['first_departure']}")
        rows.append(row)
    agree = all(r["agrees"] for r in rows)
    if as_json:
        options.print_json({"model": str(model), "judge": str(judge.path), "agrees": agree, "targets": rows})
    else:
        click.echo(f"{model}: {'agrees' if agree else 'DISAGREES'} with {judge}")
    return 0 if agree else 1
