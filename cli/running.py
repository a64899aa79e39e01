"""`irc run`: run a model or an artifact on files or seeded random inputs."""

from __future__ import annotations

import time
from pathlib import Path

import click

from . import options


@click.command("run")
@click.argument("model", type=click.Path(path_type=Path))
@options.target_option(None)
@options.input_options
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), default=None, help="Write all outputs to an .npz file."
)
@click.option(
    "--repeat", default=1, show_default=True, type=click.IntRange(1), help="Calls; the last one's time is shown."
)
@options.POLICY
@options.CACHE
@options.ENTRY
@options.JSON
def command(
    model: Path,
    target: str | None,
    inputs: options.Inputs,
    output: Path | None,
    repeat: int,
    policy: str | None,
    cache: bool,
    entry: str | None,
    as_json: bool,
) -> None:
    """Run MODEL (an artifact, .ir or .onnx) once and show or save its outputs."""
    import numpy as np

    from .. import compile as compile_model
    from .. import load_executable
    from ..ir.errors import IrcError

    if model.is_dir():
        if target is not None or entry is not None or policy is not None or cache:
            raise click.UsageError(
                "an artifact has its target, entry, shapes and programs already; "
                "leave --target, --entry, --shapes and --cache out"
            )
        executable = load_executable(model)
    else:
        executable = compile_model(model, target=target or "xla", entry=entry, shapes=policy or "exact", cache=cache)
    feeds = inputs.make(executable)
    seconds = []
    for _ in range(repeat):
        started = time.perf_counter()
        outputs = executable(*feeds)
        seconds.append(time.perf_counter() - started)
    if output is not None:
        if output.suffix != ".npz":
            raise IrcError(f"{output}: expected a file ending in .npz")
        # ml_dtypes arrays would be written as raw bytes without a type, so they go out as f32.
        native = {n: a.astype(np.float32) if a.dtype.kind == "V" else a for n, a in outputs.by_name.items()}
        np.savez(output, **native)
    rows = {name: {"dtype": str(a.dtype), "shape": list(a.shape), **_figures(a)} for name, a in outputs.by_name.items()}
    if as_json:
        options.print_json(
            {
                "outputs": rows,
                "compiled": executable.compile_count,
                "loaded": executable.load_count,
                "seconds": {"first": seconds[0], "last": seconds[-1]},
            }
        )
        return
    for name, row in rows.items():
        figures = ", ".join(f"{k} {v:.6g}" for k, v in row.items() if k not in ("dtype", "shape"))
        click.echo(f"{name}: {row['dtype']}{row['shape']}  {figures}")
    last = f", last {seconds[-1] * 1e3:.2f} ms" if repeat > 1 else ""
    click.echo(
        f"{executable.backend.spec}: {executable.compile_count} compiled, {executable.load_count} loaded; "
        f"first call {seconds[0] * 1e3:.1f} ms{last}"
    )
    if output is not None:
        click.echo(f"written to {output}")


def _figures(array: object) -> dict[str, float]:
    """Least, greatest and mean element, for numbers."""
    import numpy as np

    a = np.asarray(array)
    if not a.size or a.dtype == object:
        return {}
    if a.dtype.kind == "c":
        a = np.abs(a)
    a = a.astype(np.float64)
    return {"min": float(a.min()), "max": float(a.max()), "mean": float(a.mean())}
