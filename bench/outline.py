"""What the pass `outline` saves on a BERT-like encoder: lines of emitted code, time to compile, time of a call.

python -P bench/outline.py --layers 12 --width 256 --target xla --target 'mlx{compile=off}'
"""

from __future__ import annotations

import time
from typing import Any

import click
import numpy as np

import irc
from irc.ir import dtypes
from irc.ir.build import function
from irc.ir.data import ArrayData
from irc.ir.dims import symbol
from irc.ir.types import tensor
from irc.passes import DEFAULT
from irc.testing.benchmark import interleaved

B, S = symbol("B"), symbol("S")


def bert(layers: int, width: int, heads: int) -> irc.Model:
    """Encoder layers with attention by primitives, as exporters write them: x[B, S, width], mask[B, 1, 1, S]."""
    model = irc.Model(f"bert_{layers}")
    random = np.random.default_rng(0)

    def weight(name: str, *shape: int) -> Any:
        return model.add_constant(
            name, ArrayData((random.standard_normal(shape) * shape[0] ** -0.5).astype(np.float32))
        )

    def body(b: Any, x: Any, mask: Any) -> Any:
        for i in range(layers):
            path = f"encoder.layer.{i}"

            def dense(y: Any, name: str, rows: int, columns: int, path: str = path) -> Any:
                y = b.MatMul(y, weight(f"{path}.{name}.weight", rows, columns))
                return b.add(y, weight(f"{path}.{name}.bias", columns), name=f"{path}.{name}")

            def split(y: Any) -> Any:
                y = b.reshape(y, dims=(B, S, heads, width // heads))
                return b.transpose(y, permutation=(0, 2, 1, 3))

            def normal(y: Any, name: str, path: str = path) -> Any:
                scale, bias = weight(f"{path}.{name}.weight", width), weight(f"{path}.{name}.bias", width)
                return b.LayerNormalization(y, scale, bias, axis=-1, epsilon=1e-12)[0]

            q, k, v = (split(dense(x, f"attention.{n}", width, width)) for n in ("query", "key", "value"))
            scores = b.multiply(b.MatMul(q, b.transpose(k, permutation=(0, 1, 3, 2))), (width // heads) ** -0.5)
            y = b.MatMul(b.Softmax(b.add(scores, mask), axis=-1), v)
            y = b.reshape(b.transpose(y, permutation=(0, 2, 1, 3)), dims=(B, S, width))
            x = normal(b.add(dense(y, "attention.output", width, width), x), "attention.norm")
            y = dense(x, "intermediate", width, 4 * width)
            y = b.multiply(b.multiply(y, 0.5), b.add(b.erf(b.divide(y, 2**0.5)), 1.0))
            x = normal(b.add(dense(y, "output", 4 * width, width), x), "output.norm")
        return {"hidden": x}

    function(model, "main", [("x", tensor(dtypes.f32, B, S, width)), ("mask", tensor(dtypes.f32, B, 1, 1, S))], body)
    return model


def measured(
    model: irc.Model, target: str, passes: str, feeds: list[Any], dims: dict[str, int], runs: int
) -> dict[str, Any]:
    """Figures of one way to compile; the outputs too."""
    started = time.perf_counter()
    exe = irc.compile(model, target=target, passes=passes)
    exe.specialize(**dims)
    compiled = time.perf_counter() - started
    return {
        "lines": len(exe.source_for(**dims).splitlines()),
        "seconds": {**exe.report.seconds, "all": compiled},
        "call": interleaved({"call": lambda: exe(*feeds)}, runs)["call"].median,
        "outputs": exe(*feeds),
    }


@click.command()
@click.option("--layers", default=12, show_default=True)
@click.option("--width", default=256, show_default=True)
@click.option("--heads", default=4, show_default=True)
@click.option("--target", multiple=True, default=("xla", "mlx{compile=off}"), show_default=True)
@click.option("--runs", default=20, show_default=True)
def main(layers: int, width: int, heads: int, target: tuple[str, ...], runs: int) -> None:
    """Compile with and without `outline`, one after the other, and print the figures of both."""
    model = bert(layers, width, heads)
    dims = {"B": 1, "S": 64}
    random = np.random.default_rng(1)
    feeds = [random.standard_normal((1, 64, width), np.float32), np.zeros((1, 1, 1, 64), np.float32)]
    for spec in target:
        rows = {
            name: measured(model, spec, passes, feeds, dims, runs)
            for name, passes in (("before", DEFAULT), ("outlined", f"{DEFAULT},outline"))
        }
        for name, row in rows.items():
            click.echo(
                f"{spec:18} {name:9} {row['lines']:6} lines   "
                + "  ".join(f"{k} {v:.3f} s" for k, v in row["seconds"].items())
                + f"   a call {row['call'] * 1e3:.2f} ms"
            )
        want, got = (np.asarray(rows[n]["outputs"][0], np.float64) for n in ("before", "outlined"))
        click.echo(f"{spec:18} greatest difference of results {np.abs(want - got).max():.3g}")


if __name__ == "__main__":
    main()
