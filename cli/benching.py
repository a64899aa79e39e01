"""`irc bench`: times of calls on targets, side by side in one run, beside ONNX Runtime if wanted."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import click

from . import options
from .options import MODEL

ONNXRUNTIME = "onnxruntime"


@click.command("bench")
@MODEL
@options.target_option(multiple=True)
@options.input_options
@click.option("--against", type=click.Choice([ONNXRUNTIME]), help="Measure ONNX Runtime on the .onnx file too.")
@click.option("--runs", default=30, show_default=True, type=click.IntRange(1), help="Rounds: calls of each contender.")
@click.option("--sizes", "sweep", multiple=True, metavar="NAME=1,8,32", help="Measure at each of these sizes of a dim.")
@options.POLICY
@options.ENTRY
@options.JSON
def command(
    model: Path,
    target: tuple[str, ...],
    inputs: options.Inputs,
    against: str | None,
    runs: int,
    sweep: tuple[str, ...],
    policy: str | None,
    entry: str | None,
    as_json: bool,
) -> None:
    """Time MODEL (an artifact, .ir or .onnx) on each target (default: xla).

    Every round calls each contender once, in alternating order, on arrays that are on its device already; the ratio is
    the median over the rounds, to ONNX Runtime or else to the first target.  Copies from and to the host are timed
    apart, and so is the first call, which compiles.
    """
    from ..testing import benchmark

    if len(set(target)) != len(target):
        raise click.UsageError("a target is named twice; --runs gives more rounds")
    if against is not None and model.suffix.lower() != ".onnx":
        raise click.UsageError(f"--against {against} runs the .onnx file itself, and {model} is none; leave it out")
    cases = []
    for sizes in _combinations(options.dims(sweep, "--sizes")):
        made = list(_contenders(model, target, inputs.with_sizes(sizes), against, policy, entry))
        with _progress(runs, f"{runs} rounds", quiet=as_json) as rounds:
            benchmark.measure(made, runs, rounds=rounds)
        base = made[-1] if against is not None else made[0]
        ratios = {c.name: benchmark.ratio(c.times["call"], base.times["call"]) for c in made}
        cases.append({"sizes": sizes, "rows": [{**c.as_dict(), "ratio": ratios[c.name]} for c in made]})
        if not as_json:
            _print_case(cases[-1], base.name)
    if as_json:
        options.print_json({"model": str(model), "runs": runs, "ratio_to": base.name, "cases": cases})


def _combinations(sizes: dict[str, list[int]]) -> list[dict[str, int]]:
    return [dict(zip(sizes, values, strict=True)) for values in product(*sizes.values())]


def _contenders(
    model: Path, specs: tuple[str, ...], inputs: options.Inputs, against: str | None, policy: str | None,
    entry: str | None,
) -> Iterator[Any]:  # fmt: skip
    """What is measured, ONNX Runtime last; each is compiled and called once."""
    import time

    from .. import compile as compile_model
    from .. import load_executable
    from ..targets import get
    from ..testing.benchmark import of_executable, of_onnxruntime

    if model.is_dir():
        if specs or entry is not None or policy is not None:
            raise click.UsageError(
                "an artifact has its target, entry and shapes already; leave --target, --entry and --shapes out"
            )
        started = time.perf_counter()
        executable = load_executable(model)
        ready = time.perf_counter() - started
        backend = get(executable.backend.spec)
        yield of_executable(backend.spec, executable, backend, inputs.make(executable), ready)
        return
    feeds: list[Any] = []
    for spec in specs or ("xla",):
        backend = get(spec)
        started = time.perf_counter()
        executable = compile_model(model, target=backend, entry=entry, shapes=policy or "exact", seed=0)
        ready = time.perf_counter() - started
        feeds = feeds or inputs.make(executable)
        yield of_executable(spec, executable, backend, feeds, ready)
    if against is not None:
        yield of_onnxruntime(model, dict(zip(executable.input_types, feeds, strict=True)))


@contextlib.contextmanager
def _progress(runs: int, label: str, *, quiet: bool) -> Iterator[Any]:
    """What wraps the rounds: a bar on stderr if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield iter
        return
    with click.progressbar(length=runs, label=label, file=sys.stderr) as bar:

        def rounds(numbers: range) -> Iterator[int]:
            for number in numbers:
                yield number
                bar.update(1)

        yield rounds


def _print_case(case: dict[str, Any], base: str) -> None:
    if case["sizes"]:
        click.echo(", ".join(f"{n}={v}" for n, v in case["sizes"].items()))
    rows = [("", "call ms", "p10", "p90", "copy in", "copy out", "first call s", "ready s", "memory MB", f"x {base}")]
    for row in case["rows"]:
        memory = row["memory_bytes"]
        rows.append((
            row["name"],
            *(_ms(row["call"][key]) for key in ("median", "p10", "p90")),
            *(_ms(row[key]["median"]) if key in row else "-" for key in ("copy_in", "copy_out")),
            f"{row['first_call']:.2f}", f"{row['ready']:.2f}",
            "-" if memory is None else f"{memory / 1e6:.1f}",
            f"{row['ratio']:.2f}",
        ))  # fmt: skip
    widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
    for name, *others in rows:
        cells = [text.rjust(width) for text, width in zip(others, widths[1:], strict=True)]
        click.echo("  ".join([name.ljust(widths[0]), *cells]))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"
