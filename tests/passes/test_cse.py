"""Common subexpressions: what counts as equal, where the first node dominates, and what must stay apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irc.ir import build as building
from irc.ir import dtypes
from irc.ir.build import Builder
from irc.ir.container import load, save
from irc.ir.data import ArrayData, Data, MappedData, SplatData
from irc.ir.model import Model, Value
from irc.ir.reference import evaluate
from irc.ir.types import tensor
from irc.ir.verify import check
from irc.passes import run_passes

Run = Callable[..., Any]


def test_equal_chains_merge(run: Run):
    def body(b: Any, x: Any) -> Any:
        return b.add(b.tanh(b.exponential(x)), b.tanh(b.exponential(x)))

    assert run("cse", body, x="f32[4]").same_bits().ops == ["exponential", "tanh", "add"]


def test_commutative_operators_merge_in_either_order(run: Run):
    def body(b: Any, x: Any, y: Any) -> Any:
        return b.add(x, y), b.add(y, x), b.subtract(x, y), b.subtract(y, x), b.add(x, x)

    assert run("cse", body, x="f32[4]", y="f32[4]").same_bits().ops == ["add", "subtract", "subtract", "add"]


def test_attributes_are_compared_by_bits(run: Run):
    def body(b: Any, x: Any) -> Any:
        return [b.LeakyRelu(x, alpha=a) for a in (0.0, -0.0, 0.0, float("nan"), float("nan"))]

    assert run("cse", body, x="f32[4]").ops == ["LeakyRelu"] * 3


def test_inner_graphs_use_outer_values(run: Run):
    def body(b: Any, x: Any, p: Any) -> Any:
        y = b.tanh(x)
        then = b.region([], lambda i: i.add(i.tanh(x), i.exponential(x)))
        return b.if_(p, then=then, else_=b.region([], lambda i: i.exponential(x))), y

    merged = run("cse", body, x="f32[4]", p="bool[]").same_bits()
    (node,) = (n for n in merged.nodes if n.op.name == "if")
    # exponential stands in both branches, and neither dominates the other.
    assert [n.op.name for n in node.keywords["then"].nodes] == ["exponential", "add"]
    assert [n.op.name for n in node.keywords["else_"].nodes] == ["exponential"]
    apart = run("cse{across-graphs=false}", body, x="f32[4]", p="bool[]").same_bits()
    (node,) = (n for n in apart.nodes if n.op.name == "if")
    assert [n.op.name for n in node.keywords["then"].nodes] == ["tanh", "exponential", "add"]


def test_a_value_after_the_graph_does_not_serve_it(run: Run):
    def body(b: Any, x: Any, p: Any) -> Any:
        then = b.region([], lambda i: i.tanh(x))
        return b.if_(p, then=then, else_=b.region([], lambda i: x)), b.tanh(x), b.tanh(x)

    case = run("cse", body, x="f32[4]", p="bool[]").same_bits()
    assert case.ops == ["if", "tanh"]
    assert len(case.nodes[0].keywords["then"]) == 1


def test_effects_and_barriers_stay(run: Run):
    def body(b: Any, x: Any, n: Any) -> Any:
        b.bind_dim(n, dim="N")
        b.bind_dim(n, dim="M")
        return b.optimization_barrier((x,)), b.optimization_barrier((x,))

    ops = run("cse", body, x="f32[4]", n="i64[]").ops
    assert ops == ["bind_dim", "bind_dim", "optimization_barrier", "optimization_barrier"]


def test_calls_merge_unless_the_callee_has_effects(case: Any):
    model = Model("calls")
    x = [("x", building.TensorType(dtypes.f32, (4,)))]

    def noisy(b: Any, x: Any) -> Any:
        b.bind_dim(b.constant(3, dtypes.i64), dim="N")
        return x

    building.function(model, "quiet", x, lambda b, x: b.tanh(x)).public = False
    building.function(model, "noisy", x, noisy).public = False
    building.function(model, "main", x, lambda b, x: [b.call((x,), callee=c) for c in ("quiet", "noisy") * 2])
    out = case(model, "cse").same_bits()
    assert [n.keywords["callee"] for n in out.nodes] == ["quiet", "noisy", "noisy"]


def test_results_of_several_merge_together(run: Run):
    def body(b: Any, x: Any) -> Any:
        (a, c), (d, e) = (b.Split(x, axis=0, sizes=(1, 3)) for _ in range(2))
        return b.add(a, d), b.multiply(c, e)

    assert run("cse", body, x="f32[4]").same_bits().ops == ["Split", "add", "multiply"]


def test_equal_constants_merge(run: Run):
    big = ArrayData(np.arange(1 << 15, dtype="f4"))

    def body(b: Any, x: Any) -> Any:
        small = [b.constant(ArrayData(np.arange(100, dtype="f4")), name=f"s{i}") for i in range(2)]
        shared = [b.constant(big, name=f"b{i}") for i in range(2)]
        copied = b.constant(ArrayData(big.numpy().copy()), name="copied")
        splats = [b.constant(SplatData(v, dtypes.f32, (100,)), name=f"v{v}") for v in (0.0, -0.0)]
        return [b.add(x, c) for c in (*small, *shared, copied, *splats)]

    case = run("cse", body, x="f32[]").same_bits()
    assert list(case.after.constants) == ["s0", "b0", "v0.0", "v-0.0"]
    assert case.ops == ["add"] * 4
    assert len(run("cse{constants=false}", body, x="f32[]").after.constants) == 7


def test_large_mapped_constants_merge_by_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Across functions and graphs, types apart; of those that a sample tells apart nothing is hashed."""
    ones = np.ones((512, 256), np.float32)
    near = ones.copy()
    near[3, 4] = 2  # at no place that is sampled
    other = np.arange(512 * 256, dtype=np.float32).reshape(512, 256)
    model = Model("weights")
    names = {"a": ones, "b": ones, "near": near, "other": other, "bits": ones.view(np.int32)}
    held = {n: model.add_constant(n, ArrayData(array.copy())) for n, array in names.items()}
    for function, used in (("main", "a"), ("second", "b")):
        def body(b: Builder, x: Value, used: str = used) -> Value:
            inner = b.region([], lambda c: c.add(held[used], held["near"]))
            return b.add(b.if_(x, then=inner, else_=b.region([], lambda c: held["other"])), 0.0)

        building.function(model, function, [("x", tensor(dtypes.bool_))], body)
    building.function(model, "third", [], lambda b: b.negate(held["bits"]))
    save(model, tmp_path / "model.ir")
    loaded = load(tmp_path / "model.ir")
    hashed: list[Data] = []
    chunks = MappedData.chunks

    def counted(data: MappedData) -> Iterator[memoryview]:
        hashed.append(data)
        return chunks(data)

    monkeypatch.setattr(MappedData, "chunks", counted)
    out = run_passes(run_passes(loaded, "cse"), "cse")
    check(out)
    assert list(out.constants) == ["a", "near", "other", "bits"]
    assert {id(loaded.constants[n].data) for n in ("a", "b", "near")} == {id(d) for d in hashed}
    assert len(hashed) == 3
    assert evaluate(out, [np.array(True)], entry="second")[0].tolist() == (ones + near).tolist()
