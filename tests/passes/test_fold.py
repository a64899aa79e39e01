"""Folding: what is evaluated now, what moves to `init`, and what stays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.ir import dims, dtypes
from irc.ir.data import ArrayData, SplatData
from irc.ir.model import Model
from irc.passes.fold import Fold

Run = Callable[..., Any]
W = np.random.default_rng(1).standard_normal((8, 32)).astype("f4")


def weight(b: Any, array: np.ndarray = W, name: str = "w") -> Any:
    return b.constant(ArrayData(array), name=name)


def test_moved_weights_are_evaluated(run: Run):
    def body(b: Any, x: Any) -> Any:
        return b.MatMul(
            x, b.transpose(b.slice(weight(b), starts=(0, 0), limits=(8, 32), strides=(1, 2)), permutation=(1, 0))
        )

    case = run("fold,dce", body, x="f32[B,16]").same_bits(B=2)
    assert case.ops == ["MatMul"]
    assert case.init_ops == []
    assert [(c.name, c.dims) for c in case.after.constants.values()] == [("w_1_1", (16, 8))]
    assert np.array_equal(case.nodes[0].operands[1].data.numpy(), W[:, ::2].T)


EXACT: list[tuple[str, Any]] = [
    ("add", lambda b, w: b.add(w, w)),
    ("divide", lambda b, w: b.divide(w, 3.0)),
    ("sqrt", lambda b, w: b.sqrt(b.abs(w))),
    ("convert", lambda b, w: b.convert(w, dtype=dtypes.f16)),
    ("compare", lambda b, w: b.compare(w, 0.0, direction="gt")),
    ("select", lambda b, w: b.select(b.compare(w, 0.0, direction="gt"), w, b.negate(w))),
    ("round", lambda b, w: b.round_nearest_even(w)),
    ("Relu", lambda b, w: b.Relu(w)),
    ("integers", lambda b, w: b.reduce((b.convert(b.multiply(w, 9.0), dtype=dtypes.i32),), axes=(0,), kind="sum")),
]
INEXACT: list[tuple[str, Any]] = [
    ("exponential", lambda b, w: b.exponential(w)),
    ("Softmax", lambda b, w: b.Softmax(w)),
    ("sum", lambda b, w: b.reduce((w,), axes=(0,), kind="sum")),
    ("MatMul", lambda b, w: b.MatMul(w, np.ones((32, 2), "f4"))),
]


@pytest.mark.parametrize("name, make", EXACT, ids=[n for n, _ in EXACT])
def test_exact_work_is_evaluated(run: Run, name: str, make: Any):
    case = run("fold,dce", lambda b: make(b, weight(b))).same_bits()
    assert case.ops == case.init_ops == []


@pytest.mark.parametrize("name, make", INEXACT, ids=[n for n, _ in INEXACT])
def test_inexact_work_moves_to_init(run: Run, name: str, make: Any):
    case = run("fold,dce", lambda b, x: b.add(make(b, weight(b)), x), x="f32[]").same_bits()
    assert case.ops == ["add"]
    assert len(case.init_ops) == len(case.after.init.outputs) == 1
    (derived,) = case.after.derived
    assert case.nodes[0].operands[0] is derived
    assert run("fold{hoist=false},dce", lambda b, x: b.add(make(b, weight(b)), x), x="f32[]").init_ops == []


def test_a_chain_in_init_publishes_its_end_only(run: Run):
    def body(b: Any, x: Any) -> Any:
        return b.add(x, b.negate(b.tanh(b.exponential(weight(b)))))

    case = run("fold,dce", body, x="f32[]").same_bits()
    assert case.init_ops == ["exponential", "tanh", "negate"]
    assert [c.name for c in case.after.derived] == ["negate"]


def test_folding_again_extends_init(run: Run):
    case = run("fold,cse,fold,dce", lambda b, x: b.add(x, b.tanh(weight(b))), x="f32[]").same_bits()
    assert case.init_ops == ["tanh"]

    def twice(b: Any, x: Any) -> Any:
        derived = b.model.add_derived("d", type(b)(b.model, b.model.init).tanh(weight(b)))
        return b.add(x, b.exponential(derived))

    case = run("fold,dce", twice, x="f32[]").same_bits()
    assert case.init_ops == ["tanh", "exponential"]
    assert [c.name for c in case.after.derived] == ["exponential"]


def test_work_inside_a_loop_moves_out(run: Run):
    def body(b: Any, x: Any) -> Any:
        count = b.constant(0, dtypes.i32)
        cond = b.region([count.type, x.type], lambda i, n, s: i.compare(n, 3, direction="lt"))
        step = b.region([count.type, x.type], lambda i, n, s: (i.add(n, 1), i.add(s, i.exponential(weight(i)))))
        return b.while_((count, x), cond=cond, body=step)[1]

    case = run("fold,dce", body, x="f32[8,32]").same_bits()
    assert case.init_ops == ["exponential"]


def test_small_results_are_inline(run: Run):
    case = run("fold,dce", lambda b: b.add(b.constant(2.0), 3.0))
    assert case.after.constants == {}
    assert case.after.main.outputs[0].is_inline
    assert case.after.main.outputs[0].data.numpy() == 5


# What stays


def test_a_large_spread_constant_stays_a_broadcast(run: Run):
    case = run("fold,dce", lambda b: b.full(1.0, dtypes.f32, (1000, 1000))).same_bits()
    assert case.ops == ["broadcast_in_dim"]
    assert run("fold,dce", lambda b: b.full(1.0, dtypes.f32, (2, 3))).ops == []


def test_splats_stay_splats(run: Run):
    def body(b: Any) -> Any:
        big = b.constant(SplatData(2.0, dtypes.f32, (1 << 12, 1 << 12)), name="big")
        return b.transpose(b.add(b.multiply(big, 3.0), big), permutation=(1, 0)), b.compare(big, 2.0, direction="eq")

    case = run("fold,dce", body)
    assert case.ops == []
    first, second = (v.data for v in case.after.main.outputs)
    assert isinstance(first, SplatData)
    assert isinstance(second, SplatData)
    assert (first.splat, second.splat) == (8.0, True)


def test_what_spreads_a_lot_stays(run: Run):
    case = run("fold,dce", lambda b: b.broadcast_in_dim(weight(b), dims=(500, 8, 32), broadcast_dimensions=(1, 2)))
    assert case.ops == ["broadcast_in_dim"]
    assert run("fold,dce", lambda b: b.iota(dtype=dtypes.i32, dims=(100000,), axis=0)).ops == ["iota"]
    assert run("fold,dce", lambda b: b.iota(dtype=dtypes.i32, dims=(10,), axis=0)).ops == []


def test_symbolic_types_stay(run: Run):
    case = run("fold,dce", lambda b, x: b.full(1.0, dtypes.f32, (dims.symbol("B"),)), x="f32[B]").same_bits(B=3)
    assert case.ops == ["broadcast_in_dim"]


def test_barriers_stay(run: Run):
    assert run("fold,dce", lambda b: b.optimization_barrier((weight(b),))).ops == ["optimization_barrier"]


def test_effects_stay(run: Run):
    def body(b: Any) -> Any:
        b.bind_dim(b.constant(3, dtypes.i64), dim="N")
        return b.constant(1.0)

    assert run("fold,dce", body).ops == ["bind_dim"]


@pytest.mark.parametrize("option", [Fold(max_bytes=100), Fold(budget=100)], ids=str)
def test_budgets_leave_the_work_to_init(build: Callable[..., Model], case: Any, option: Fold):
    model = build(lambda b, x: b.add(x, b.negate(weight(b))), x="f32[]")
    out = case(model, [option]).same_bits()
    assert out.ops == ["add"]
    assert out.init_ops == ["negate"]


def test_a_node_that_cannot_be_evaluated_stays(run: Run, monkeypatch: pytest.MonkeyPatch):
    from irc.ir.errors import InferenceError
    from irc.ir.operators import get

    def refuse(*operands: Any, **keywords: Any) -> Any:
        raise InferenceError("no reference for this")

    monkeypatch.setattr(get("transpose"), "reference", refuse)
    assert run("fold", lambda b: b.transpose(weight(b), permutation=(1, 0))).ops == ["transpose"]
