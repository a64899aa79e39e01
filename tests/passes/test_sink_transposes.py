"""Islands between transposes: which change their order of axes, which stay, and that numbers stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import dims, dtypes
from irc.ir.build import function
from irc.ir.data import ArrayData
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.passes import run_passes
from irc.testing import check_passes, model_of

TO_LAST, TO_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
PIPELINE = "sink-transposes,canonicalize,fold,dce"
X = "f32[B,3,4,5]"


def last(b: Any, x: Any) -> Any:
    return b.transpose(x, permutation=TO_LAST)


def first(b: Any, x: Any) -> Any:
    return b.transpose(x, permutation=TO_FIRST)


def count(model: Model) -> int:
    return sum(node.op.name == "transpose" for node in model.nodes())


def around(work: Any) -> Any:
    """What TensorFlow's exports look like: channels first outside, channels last inside."""
    return lambda b, x: first(b, work(b, last(b, x)))


GO = [
    ("nothing between", lambda b, y: y),
    ("one operand", lambda b, y: b.tanh(b.abs(y))),
    ("a number", lambda b, y: b.multiply(y, 2.0)),
    ("a constant of channels", lambda b, y: b.add(y, np.arange(3, dtype="f4"))),
    ("a constant of channels and columns", lambda b, y: b.add(y, np.arange(15, dtype="f4").reshape(5, 3))),
    ("a weight", lambda b, y: b.add(y, b.constant(ArrayData(np.ones((4, 5, 3), "f4")), name="w"))),
    ("used twice", lambda b, y: b.add(b.exponential(y), b.negate(y))),
    ("Clip", lambda b, y: b.Clip(y, 0.0, 1.0)),
    ("convert", lambda b, y: b.convert(b.convert(y, dtype=dtypes.f16), dtype=dtypes.f32)),
    ("compare and select", lambda b, y: b.select(b.compare(y, 0.0, direction="lt"), b.tanh(y), y)),
    ("concatenate", lambda b, y: b.concatenate((y, b.tanh(y)), axis=3)),
    ("slice", lambda b, y: b.slice(y, starts=(0, 1, 0, 0), limits=(dims.symbol("B"), 4, 5, 2), strides=(1, 2, 1, 1))),
    ("pad", lambda b, y: b.pad(y, 1.0, low=(0, 1, 2, 3), high=(0, 0, 1, 0), interior=(0, 0, 1, 0))),
    ("PadMode", lambda b, y: b.PadMode(y, low=(0, 1, 2, 0), high=(0, 0, 1, 0), mode="reflect")),
    ("reverse", lambda b, y: b.reverse(y, axes=(2, 3))),
    ("mean that keeps its axes", lambda b, y: b.ReduceMax(y, axes=(1, 2), keepdims=True)),
    ("scaled by a mean", lambda b, y: b.multiply(y, b.ReduceMax(y, axes=(1, 2), keepdims=True))),
    ("axes of size 1 come and go", lambda b, y: b.reshape(b.tanh(b.reshape(y, dims=(*y.dims, 1))), dims=y.dims)),
]


@pytest.mark.parametrize("name, work", GO, ids=[row[0] for row in GO])
def test_islands_lose_their_transposes(name: str, work: Any):
    model = model_of(around(work), x=X)
    assert count(check_passes(model, PIPELINE, {"B": 2})) == 0
    assert count(check_passes(model, PIPELINE, {"B": 0})) == 0


STAY = [
    ("nothing cancels", lambda b, x: b.tanh(last(b, x)), 1),
    ("the transposed value is needed too", lambda b, x: (last(b, x), first(b, b.tanh(last(b, x)))), 1),
    ("an operator of the old order", lambda b, x: first(b, b.reshape(last(b, x), dims=(dims.symbol("B"), 5, 4, 3))), 2),
]


@pytest.mark.parametrize("name, work, left", STAY, ids=[row[0] for row in STAY])
def test_nothing_grows(name: str, work: Any, left: int):
    model = model_of(work, x=X)
    after = check_passes(model, PIPELINE, {"B": 2})
    assert count(after) == min(left, count(model))


def test_two_become_one():
    def body(b: Any, x: Any, y: Any) -> Any:
        return b.Softmax(b.add(last(b, x), last(b, y)))

    after = check_passes(model_of(body, x=X, y=X), PIPELINE, {"B": 2})
    assert [n.op.name for n in after.main.body.nodes] == ["add", "transpose", "Softmax"]


def test_axes_that_are_left_in_order_need_none():
    model = model_of(lambda b, x: b.ReduceMax(last(b, x), axes=(1, 2), keepdims=False), x=X)
    after = check_passes(model, PIPELINE, {"B": 2})
    assert [n.op.name for n in after.main.body.nodes] == ["ReduceMax"]


def test_a_plain_value_is_transposed_back_where_that_pays():
    """One goes in front of the plain value, three go."""

    def body(b: Any, x: Any, plain: Any) -> Any:
        total = b.add(last(b, x), plain)
        return first(b, b.tanh(total)), first(b, b.abs(total))

    after = check_passes(model_of(body, x=X, plain="f32[B,4,5,3]"), PIPELINE, {"B": 2})
    assert count(after) == 1


def test_branches_and_loops_use_the_value_as_it_was():
    def body(b: Any, x: Any, p: Any) -> Any:
        y = b.tanh(last(b, x))
        chosen = b.if_(p, then=b.region([], lambda r: r.exponential(y)), else_=b.region([], lambda r: y))
        return chosen, first(b, y)

    model = model_of(body, x=X, p="bool[]")
    after = check_passes(model, PIPELINE, {"B": 2})
    assert count(after) <= 1


def test_inside_a_branch():
    def body(b: Any, x: Any, p: Any) -> Any:
        return b.if_(
            p, then=b.region([], lambda r: around(lambda q, y: q.tanh(y))(r, x)), else_=b.region([], lambda r: x)
        )

    assert count(check_passes(model_of(body, x=X, p="bool[]"), PIPELINE, {"B": 2})) == 0


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}"])
def test_targets_agree(target: str):
    def body(b: Any, x: Any, w: Any) -> Any:
        y = b.add(last(b, x), w)
        return first(b, b.concatenate((b.tanh(y), y), axis=3)), b.ReduceMax(y, axes=(1, 2), keepdims=False)

    model = model_of(body, x=X, w="f32[3]")
    inputs = [np.linspace(-1, 1, 120, dtype="f4").reshape(2, 3, 4, 5), np.array([0.5, 1, 2], "f4")]
    out = irc.compile(model, target=target)(*inputs)
    for got, want in zip(out, evaluate(model, inputs), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def random_model(seed: int) -> Model:
    """Elementwise work on values of two orders of axes, transposed to and fro."""
    rng = np.random.default_rng(seed)
    kinds = {True: TensorType(dtypes.f32, (2, 3, 4, 5)), False: TensorType(dtypes.f32, (2, 4, 5, 3))}
    model = Model("random")

    def body(b: Any, x: Any, y: Any) -> Any:
        pool: dict[bool, list[Any]] = {True: [x], False: [y]}
        for _ in range(30):
            side = bool(rng.random() < 0.5)
            u, v = (pool[side][rng.integers(len(pool[side]))] for _ in range(2))
            match rng.integers(6):
                case 0 | 1:
                    pool[not side].append(last(b, u) if side else first(b, u))
                case 2:
                    pool[side].append(b.add(u, v))
                case 3:
                    pool[side].append(b.multiply(u, rng.standard_normal(kinds[side].dims[3:]).astype("f4")))
                case 4:
                    pool[side].append(b.reverse(u, axes=(int(rng.integers(4)),)))
                case 5:
                    pool[side].append(b.maximum(u, b.ReduceMax(v, axes=(int(rng.integers(4)),), keepdims=True)))
        return pool[True][-1], pool[False][-1]

    function(model, "main", [("x", kinds[True]), ("y", kinds[False])], body)
    return run_passes(model, "canonicalize,cse,dce")


@pytest.mark.parametrize("seed", range(40))
def test_random_graphs_keep_their_bits_and_never_gain_a_transpose(seed: int):
    model = random_model(seed)
    after = check_passes(model, "sink-transposes", {})
    assert count(after) <= count(model)
