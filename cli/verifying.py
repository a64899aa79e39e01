"""`irc verify`: do the targets compute what ONNX Runtime (or the reference) computes?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from . import options
from .options import MODEL


@click.command("verify")
@MODEL
@options.target_option(multiple=True)
@options.input_options
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    default=None,
    help="Judge by this .onnx (ONNX Runtime) or .ir (reference).",
)
@click.option(
    "--rtol", default=1e-4, show_default=True, help="Error allowed, relative to the output's greatest magnitude."
)
@click.option("--atol", default=1e-6, show_default=True, help="Error allowed besides.")
@click.option("--layers", is_flag=True, help="Where they disagree, name the first node that departs.")
@options.ENTRY
@options.JSON
def command(
    model: Path,
    target: tuple[str, ...],
    inputs: tuple[str, ...],
    shapes: tuple[str, ...],
    dims: tuple[str, ...],
    seed: int,
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
    from ..ir.errors import IrcError
    from ..runtime.feeds import make_inputs
    from ..targets import get
    from ..testing.agreement import compare

    backends = [(spec, get(spec)) for spec in target or ("xla", "mlx")]
    loaded = read(model)
    judge = against or model
    files = {n: Path(p) for n, p in options.pairs(inputs, "--input").items()}
    feeds: list[Any] = []
    want: dict[str, Any] = {}
    rows = []
    for spec, backend in backends:
        executable = compile_model(loaded, target=backend, entry=entry)
        if len(executable.entry.inputs) > len(executable.input_types):
            raise IrcError(
                f"{model} draws random numbers without a seed, which differ from run to run; "
                "give its random operators a seed to compare them"
            )
        if not feeds:
            feeds = make_inputs(executable, files, options.shapes(shapes), options.one_size(dims), seed)
            want = _judge(judge, loaded if against is None else None, feeds, list(executable.input_types), entry)
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
            row["first_departure"] = _departure(
                loaded, backend, judge, feeds, list(executable.input_types), entry, rtol, atol
            )
            if not as_json:
                click.echo(f"{spec}: {row['first_departure']}")
        rows.append(row)
    agree = all(r["agrees"] for r in rows)
    if as_json:
        options.print_json({"model": str(model), "judge": str(judge), "agrees": agree, "targets": rows})
    else:
        click.echo(f"{model}: {'agrees' if agree else 'DISAGREES'} with {_judge_name(judge)}")
    return 0 if agree else 1


def _judge_name(judge: Path) -> str:
    return f"ONNX Runtime on {judge}" if judge.suffix == ".onnx" else f"the reference on {judge}"


def _judge(judge: Path, model: Any, feeds: Sequence[Any], names: Sequence[str], entry: str | None) -> dict[str, Any]:
    """Outputs by name, from ONNX Runtime or the reference."""
    from .. import read
    from ..testing.agreement import reference_values, run_onnx_file

    if judge.suffix == ".onnx":
        return run_onnx_file(judge, dict(zip(names, feeds, strict=True)))
    return reference_values(model if model is not None else read(judge), feeds, entry)


def _departure(
    model: Any,
    backend: Any,
    judge: Path,
    feeds: Sequence[Any],
    names: Sequence[str],
    entry: str | None,
    rtol: float,
    atol: float,
) -> str:
    """Text that names the first node that departs from the judge's intermediate values."""
    from .. import read
    from ..testing.agreement import first_departure, reference_values, run_onnx_file, with_intermediates

    if judge.suffix == ".onnx":
        want = run_onnx_file(judge, dict(zip(names, feeds, strict=True)), intermediates=True)
    else:
        want = reference_values(with_intermediates(read(judge), entry), feeds, entry)
    departure = first_departure(model, backend, feeds, want, entry=entry, rtol=rtol, atol=atol)
    return (
        str(departure)
        if departure is not None
        else "no single node departs beyond the tolerance: the error accumulates"
    )
