"""How the time of each pass grows with the model: ratios of time per node at 1k, 10k and 100k nodes (1.0 is linear).

    python bench/passes.py --sizes 1000 10000 --shapes chain

The default pipeline makes as many Python calls per node at 100k nodes as at 10k (cProfile, all shapes: x1.00).  Its CPU
time per node, best of three runs of each size: chain x0.92, loops x0.99, wide x1.17, weights x1.28.  Single runs on a
shared machine say little: of those three, weights gave x0.82 to x1.68, chain x0.61 to x1.48.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from irc.ir import dims, dtypes
from irc.ir.build import function
from irc.ir.clone import clone_model
from irc.ir.data import ArrayData
from irc.ir.graph import Node
from irc.ir.model import Model
from irc.ir.types import TensorType
from irc.passes import DEFAULT, parse_pipeline, run_pipeline
from irc.passes.legalize import legalize

B = dims.symbol("B")


class NoComposites:
    """A target of core operators only."""

    name = "core"

    def claims(self, node: Node) -> str | None:
        return "composite" if node.op.is_composite else None


def chain(b: Any, x: Any, count: int) -> Any:
    """Rewrites everywhere: pairs that cancel, operands to swap, powers, composites."""
    for i in range(count // 8):
        y = b.transpose(b.transpose(x, permutation=(1, 0)), permutation=(1, 0))
        y = b.add(b.constant(float(i % 7)), b.negate(b.negate(y)))
        x = b.tanh(b.Swish(b.power(y, 2.0)))
    return x


def wide(b: Any, x: Any, count: int) -> Any:
    """Many users of one value, all equal in groups of ten, joined in a balanced tree."""
    values = [b.multiply(x, float(i // 10)) for i in range(count // 2)]
    while len(values) > 1:
        values = [b.add(a, c) for a, c in zip(values[::2], values[1::2], strict=False)] + values[len(values) & ~1 :]
    return values[0]


def weights(b: Any, x: Any, count: int) -> Any:
    """Work on constants: half folds, half moves to init."""
    w = b.constant(ArrayData(np.ones((8, 8, 2), "f4")), name="w")
    for i in range(count // 5):
        moved = b.transpose(b.multiply(w, float(i)), permutation=(1, 0, 2))
        x = b.add(x, b.reduce((b.exponential(moved),), axes=(1, 2), kind="sum"))
    return x


def loops(b: Any, x: Any, count: int) -> Any:
    """Loops with dead carries and branches."""
    for _ in range(count // 10):
        zero = b.constant(0, dtypes.i32)
        state = [zero.type, x.type, x.type]
        cond = b.region(state, lambda i, n, p, q: i.compare(n, 2, direction="lt"))
        body = b.region(state, lambda i, n, p, q: (i.add(n, 1), i.tanh(i.negate(i.negate(p))), i.exponential(q)))
        x = b.while_((zero, x, x), cond=cond, body=body)[1]
        same = x
        known = b.constant(True)
        x = b.if_(known, then=b.region([], lambda i, v=same: i.abs(v)), else_=b.region([], lambda i, v=same: v))
    return x


SHAPES: dict[str, Callable[[Any, Any, int], Any]] = {"chain": chain, "wide": wide, "weights": weights, "loops": loops}
STEPS = [
    "canonicalize",
    "lower-loops",
    "cond-to-if",
    "sink-transposes",
    "fold",
    "cse",
    "dce",
    "batch-norm",
    'specialize{dims="B=3"}',
    "legalize",
    DEFAULT,
]


def model_of(shape: str, count: int) -> Model:
    model = Model(shape)
    function(model, "main", [("x", TensorType(dtypes.f32, (B, 8)))], lambda b, x: SHAPES[shape](b, x, count))
    return model


def seconds(step: str, model: Model) -> float:
    """CPU time of one run on a copy; the copy, and the garbage of earlier runs, are not counted."""
    copy = clone_model(model)
    gc.collect()
    start = time.process_time()
    if step == "legalize":
        legalize(copy, NoComposites())
    else:
        run_pipeline(copy, parse_pipeline(step), original=model)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10000, 100000])
    parser.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    options = parser.parse_args()
    for shape in options.shapes:
        models = {size: model_of(shape, size) for size in options.sizes}
        nodes = {size: sum(len(g) for g in m.graphs()) for size, m in models.items()}
        print(f"{shape}: {', '.join(str(n) for n in nodes.values())} nodes")
        for step in STEPS:
            each = [seconds(step, models[size]) / nodes[size] for size in options.sizes]
            ratios = "  ".join(f"x{b / a:.2f}" for a, b in itertools.pairwise(each))
            name = "the default pipeline" if step == DEFAULT else step
            print(f"  {name:24} {' '.join(f'{e * 1e6:8.1f}' for e in each)} us a node   {ratios}", flush=True)


if __name__ == "__main__":
    main()
