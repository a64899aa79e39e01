"""Time of a call on each target as a ratio to ONNX Runtime on the same file, interleaved in one run.

    python -P bench/models.py model.onnx --shape x=1x3x320x320 --target xla --target 'mlx{compile=off}' --runs 30

The machine should be quiet: ONNX Runtime slows down under load more than XLA does.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click
import onnxruntime

import irc
from irc.cli import options
from irc.runtime.feeds import make_inputs


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@options.target_option(multiple=True)
@click.option("--shape", "shapes", multiple=True, metavar="NAME=1x3x320x320")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE")
@click.option("--runs", default=30, show_default=True)
def main(model: Path, target: tuple[str, ...], shapes: tuple[str, ...], dims: tuple[str, ...], runs: int) -> None:
    """Print compile time, first call, median call, and the median of the call-by-call ratios to ONNX Runtime."""
    settings = onnxruntime.SessionOptions()
    settings.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])
    click.echo(f"{model.name}: target, compile s, first call s, median ms, ratio to ONNX Runtime (median ms)")
    for spec in target or ("xla",):
        started = time.perf_counter()
        executable = irc.compile(model, target=spec)
        compiled = time.perf_counter() - started
        feeds = make_inputs(executable, {}, options.shapes(shapes), options.one_size(dims), 0)
        named = dict(zip(executable.entry.input_names, feeds, strict=True))
        started = time.perf_counter()
        executable(*feeds)
        first = time.perf_counter() - started
        session.run(None, named)
        ours, theirs = [], []
        for _ in range(runs):
            ours.append(_seconds(partial(executable, *feeds)))
            theirs.append(_seconds(partial(session.run, None, named)))
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
        median, judge = statistics.median(ours) * 1e3, statistics.median(theirs) * 1e3
        click.echo(f"  {spec:<20} {compiled:6.2f} {first:6.2f} {median:8.2f}  {ratio:6.2f} ({judge:.2f})")


def _seconds(call: Callable[[], object]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


if __name__ == "__main__":
    main()
