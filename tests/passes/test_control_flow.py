"""Choices and loops under `cond-to-if` and `lower-loops`: what moves, what stays, and the bits on every target."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import dtypes
from irc.ir.build import function
from irc.ir.data import ArrayData
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.passes import DEFAULT, run_passes
from irc.passes.cond_to_if import cost_of
from irc.testing import check_passes, model_of

TARGETS = ["xla", "mlx{compile=off}"]
I32 = TensorType(dtypes.i32, ())


def scalar(value: Any, dtype: str) -> np.ndarray:
    return np.asarray(value, dtype)


def names(model: Model) -> list[str]:
    """Operators of the body of `main`, in order."""
    return [node.op.name for node in model.main.body.nodes]


def inner(model: Model, index: int = -1) -> list[list[str]]:
    """Operators of each graph of a node of `main`."""
    return [[n.op.name for n in g.nodes] for g in list(model.main.body.nodes)[index].all_graphs()]


# ------------------------------------------------------------------------------------------------------------- choices


def switch(b: Any, x: Any, i: Any, count: int = 3) -> Any:
    works = ("tanh", "exponential", "negate", "logistic")
    branches = [b.region([], lambda r, k=k: r.apply(works[k], r.abs(x))) for k in range(count)]
    return b.case(i, branches=tuple(branches))


@pytest.mark.parametrize("index", [-1, 0, 1, 2, 3, 9])
@pytest.mark.parametrize("count", [1, 2, 4])
def test_case_becomes_nested_ifs(index: int, count: int):
    model = model_of(lambda b, x, i: switch(b, x, i, count), x="f32[B]", i="i32[]")
    inputs = [np.linspace(-2, 2, 5, dtype="f4"), scalar(index, "int32")]
    after = check_passes(model, "cond-to-if", inputs=inputs)
    assert "case" not in [n.op.name for n in after.nodes()]
    assert sum(n.op.name == "if" for n in after.nodes()) == max(count - 1, 1)


@pytest.mark.parametrize("dtype", ["u8", "i8"])
def test_case_of_more_branches_than_its_index_can_count(dtype: str):
    count = 300 if dtype == "u8" else 130

    def body(b: Any, x: Any, i: Any) -> Any:
        return b.case(i, branches=tuple(b.region([], lambda r, k=k: r.add(x, float(k))) for k in range(count)))

    model = model_of(body, x="f32[]", i=f"{dtype}[]")
    kind = dtypes.DType.of(dtype)
    for index in (0, 1, 126, int(kind.max_value())):
        check_passes(model, "cond-to-if", inputs=[scalar(0.5, "float32"), np.asarray(index, kind.numpy)])


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}", "onnx"])
@pytest.mark.parametrize("passes", ["dce", "cond-to-if,canonicalize,dce"])
def test_case_on_targets(target: str, passes: str):
    """ONNX has no case: there it is decomposed."""
    model = model_of(switch, x="f32[B]", i="i32[]")
    exe = irc.compile(model, target=target, passes=passes)
    x = np.linspace(-2, 2, 5, dtype="f4")
    for index in (-1, 0, 1, 2, 7):
        inputs = [x, np.asarray(index, "i4")]
        np.testing.assert_allclose(exe(*inputs)[0], evaluate(model, inputs)[0], rtol=1e-6)


def test_what_all_branches_compute_is_computed_once():
    """Through two levels of choices; `abs` in front of different work is shared, the work is not."""

    def body(b: Any, x: Any, p: Any, q: Any) -> Any:
        deep = b.region(
            [],
            lambda r: r.if_(
                q,
                then=r.region([], lambda s: s.tanh(s.exponential(s.abs(x)))),
                else_=r.region([], lambda s: s.negate(s.exponential(s.abs(x)))),
            ),
        )
        return b.if_(p, then=b.region([], lambda r: r.exponential(r.abs(x))), else_=deep)

    model = model_of(body, x="f32[B]", p="bool[]", q="bool[]")
    after = check_passes(model, "cond-to-if", {"B": 3})
    assert names(after) == ["abs", "exponential", "if"]
    assert inner(after) == [[], ["if"]]


def test_what_only_some_branches_compute_stays_there():
    model = model_of(switch, x="f32[B]", i="i32[]")
    after = check_passes(model, "cond-to-if{case=false}", {"B": 3})
    assert names(after) == ["abs", "case"]
    one = model_of(
        lambda b, x, p: b.if_(p, then=b.region([], lambda r: r.tanh(x)), else_=b.region([], lambda r: x)),
        x="f32[B]",
        p="bool[]",
    )
    assert names(check_passes(one, "cond-to-if", {"B": 3})) == ["if"]


def test_deep_chains_sink_to_the_branch_that_needs_them():
    def body(b: Any, x: Any, p: Any, q: Any) -> Any:
        chain = x
        for _ in range(30):
            chain = b.tanh(chain)
        both = b.negate(x)
        deep = b.region(
            [], lambda r: r.if_(q, then=r.region([], lambda s: s.add(chain, both)), else_=r.region([], lambda s: both))
        )
        return b.if_(p, then=deep, else_=b.region([], lambda r: x))

    model = model_of(body, x="f32[B]", p="bool[]", q="bool[]")
    after = check_passes(model, "cond-to-if", {"B": 3})
    assert names(after) == ["if"]
    assert inner(after) == [["negate", "if"], []]
    (choice,) = after.main.body.nodes
    (nested,) = [n for n in choice.keywords["then"].nodes if n.op.name == "if"]
    assert [n.op.name for n in nested.keywords["then"].nodes] == ["tanh"] * 30 + ["add"]


def test_nothing_sinks_into_a_loop_or_past_another_use():
    def body(b: Any, x: Any, p: Any, go: Any) -> Any:
        for_loop, for_predicate, outside = b.exponential(x), b.reduce(x, axes=(0,), kind="max"), b.tanh(x)
        loop = b.while_(
            (x,),
            cond=b.region([x.type], lambda r, s: r.compare(r.reduce(s, axes=(0,), kind="max"), 9.0, direction="lt")),
            body=b.region([x.type], lambda r, s: r.add(s, for_loop)),
        )
        chosen = b.if_(
            b.compare(for_predicate, 0.0, direction="lt"),
            then=b.region([], lambda r: r.add(outside, r.broadcast_in_dim(for_predicate, dims=x.dims))),
            else_=b.region([], lambda r: x),
        )
        return loop, chosen, outside

    def fixed(b: Any, x: Any, p: Any, go: Any) -> Any:
        return body(_Spread(b), x, p, go)

    model = model_of(fixed, x="f32[4]", p="bool[]", go="bool[]")
    assert names(run_passes(model, "cond-to-if")) == names(model)


class _Spread:
    """A builder whose regions spread scalars without being told which axes."""

    def __init__(self, build: Any) -> None:
        self.build = build

    def __getattr__(self, name: str) -> Any:
        return getattr(self.build, name)

    def region(self, types: Any, body: Callable[..., Any]) -> Any:
        return self.build.region(types, lambda r, *v: body(_Spread(r), *v))

    def broadcast_in_dim(self, x: Any, dims: Any) -> Any:
        return self.build.broadcast_in_dim(x, dims=dims, broadcast_dimensions=())


def test_effects_neither_sink_nor_are_shared():
    def body(b: Any, n: Any, p: Any) -> Any:
        frozen = b.freeze(n)
        then = b.region([], lambda r: (r.freeze(n), frozen)[1])
        return b.if_(p, then=then, else_=b.region([], lambda r: (r.freeze(n), n)[1]))

    model = model_of(body, n="i64[]", p="bool[]")
    after = run_passes(model, "cond-to-if")
    assert names(after) == ["freeze", "if"]
    assert inner(after) == [["freeze"], ["freeze"]]


def chosen_products(b: Any, x: Any, p: Any, q: Any) -> Any:
    """Where(p, x @ x, Where(q, tanh(x) @ x, x))"""
    first = b.MatMul(x, x)
    second = b.MatMul(b.tanh(x), x)
    return b.select(p, first, b.select(q, second, x))


@pytest.mark.parametrize("p", [True, False])
@pytest.mark.parametrize("q", [True, False])
def test_a_chain_of_selects_becomes_nested_ifs(p: bool, q: bool):
    model = model_of(chosen_products, x="f32[8,8]", p="bool[]", q="bool[]")
    inputs = [np.linspace(-1, 1, 64, dtype="f4").reshape(8, 8), scalar(p, "bool"), scalar(q, "bool")]
    after = check_passes(model, "cond-to-if{min-cost=500}", inputs=inputs)
    assert names(after) == ["if"]
    assert inner(after) == [["MatMul"], ["if"]]
    cheap = check_passes(model, "cond-to-if", inputs=inputs)
    assert names(cheap) == ["MatMul", "tanh", "MatMul", "select", "select"]
    for target in TARGETS:
        exe = irc.compile(model, target=target, passes="cond-to-if{min-cost=500}")
        np.testing.assert_allclose(exe(*inputs)[0], evaluate(model, inputs)[0], rtol=1e-5, atol=1e-6)


def test_selects_that_stay():
    """A predicate of many elements; work that something else needs as well; what broadcasts is spread inside."""
    elements = model_of(lambda b, x, p: b.select(p, b.MatMul(x, x), x), x="f32[8,8]", p="bool[8,8]")
    assert names(check_passes(elements, "cond-to-if{min-cost=1}", {})) == ["MatMul", "select"]

    def used_twice(b: Any, x: Any, p: Any) -> Any:
        product = b.MatMul(x, x)
        return b.select(p, product, x), product

    model = model_of(used_twice, x="f32[8,8]", p="bool[]")
    assert names(check_passes(model, "cond-to-if{min-cost=1}", {})) == ["MatMul", "select"]
    spread = model_of(lambda b, x, y, p: b.select(p, b.exponential(x), y), x="f32[1,8]", y="f32[8,8]", p="bool[]")
    after = check_passes(spread, "cond-to-if{min-cost=1}", {})
    assert inner(after) == [["exponential", "broadcast_in_dim"], []]


def test_cost_of_a_product_is_its_multiplications():
    model = model_of(lambda b, x, y: (b.MatMul(x, y), b.add(x, 1.0)), x="f32[3,4]", y="f32[4,5]")
    product, total = model.main.body.nodes
    assert cost_of(product) == 3 * 4 * 5
    assert cost_of(total) == 12 + 1 + 12


def test_a_known_choice_keeps_the_weights_of_its_branch():
    def body(b: Any, x: Any) -> Any:
        kept = b.constant(ArrayData(np.full((100,), 2, "f4")), name="kept")
        gone = b.constant(ArrayData(np.full((100,), 3, "f4")), name="gone")
        then, otherwise = b.region([], lambda r: r.multiply(x, kept)), b.region([], lambda r: r.multiply(x, gone))
        return b.if_(b.constant(True), then=then, else_=otherwise)

    after = check_passes(model_of(body, x="f32[100]"), DEFAULT, {})
    assert names(after) == ["multiply"]
    assert list(after.constants) == ["kept"]


# --------------------------------------------------------------------------------------------------------------- loops


def repeated(b: Any, count: Any, x: Any, step: Callable[..., Any]) -> Any:
    """x after `count` times step(build, i, x)."""
    start = b.constant(0, dtypes.i32)
    state = [start.type, x.type]
    cond = b.region(state, lambda r, i, s: r.compare(i, count, direction="lt"))
    return b.while_((start, x), cond=cond, body=b.region(state, lambda r, i, s: (r.add(i, 1), step(r, i, s))))[1]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_invariant_work_leaves_the_loop(count: int):
    def step(r: Any, i: Any, s: Any, c: Any) -> Any:
        return r.add(s, r.tanh(r.exponential(c)))

    def body(b: Any, x: Any, c: Any, n: Any) -> Any:
        return repeated(b, n, x, lambda r, i, s: step(r, i, s, c))

    model = model_of(body, x="f32[B]", c="f32[B]", n="i32[]")
    inputs = [np.ones(3, "f4"), np.array([-1, 0, 1], "f4"), scalar(count, "int32")]
    after = check_passes(model, "lower-loops,dce", inputs=inputs)
    assert names(after) == ["exponential", "tanh", "while"]
    for target in TARGETS:
        exe = irc.compile(model, target=target, passes="lower-loops,dce")
        np.testing.assert_allclose(exe(*inputs)[0], evaluate(model, inputs)[0], rtol=1e-6)


def test_work_leaves_nested_loops_level_by_level():
    """What depends on the outer state leaves the inner loop only."""

    def body(b: Any, x: Any, c: Any, n: Any) -> Any:
        def outer(r: Any, i: Any, s: Any) -> Any:
            return repeated(r, n, s, lambda q, j, t: q.add(q.multiply(t, q.exponential(c)), q.tanh(s)))

        return repeated(b, n, x, outer)

    model = model_of(body, x="f32[B]", c="f32[B]", n="i32[]")
    after = run_passes(model, "lower-loops,dce", verify_each=True)
    assert names(after) == ["exponential", "while"]
    assert "tanh" in inner(after)[1]
    for count in (0, 2):
        inputs = [np.ones(3, "f4"), np.array([-1, 0, 1], "f4"), scalar(count, "int32")]
        check_passes(model, "lower-loops,dce", inputs=inputs)


def test_cheap_spreading_and_effects_stay_inside():
    def body(b: Any, x: Any, c: Any, n: Any) -> Any:
        def step(r: Any, i: Any, s: Any) -> Any:
            r.freeze(n)
            return r.add(s, r.broadcast_in_dim(c, dims=x.dims, broadcast_dimensions=()))

        return repeated(b, n, x, step)

    after = run_passes(model_of(body, x="f32[4]", c="f32[]", n="i32[]"), "lower-loops", verify_each=True)
    assert names(after) == ["while"]


@pytest.mark.parametrize("known", [True, False])
def test_what_might_not_end_leaves_only_a_loop_that_runs(known: bool):
    """A loop within a loop that never runs must not run."""

    def body(b: Any, x: Any, c: Any, n: Any) -> Any:
        def step(r: Any, i: Any, s: Any) -> Any:
            grown = r.while_(
                (c,),
                cond=r.region([c.type], lambda q, t: q.compare(t, 9.0, direction="lt")),
                body=r.region([c.type], lambda q, t: q.multiply(t, t)),
            )
            return r.add(s, grown)

        return repeated(b, b.constant(50, dtypes.i32) if known else n, x, step)

    model = model_of(body, x="f32[4]", c="f32[]", n="i32[]")
    assert names(run_passes(model, "lower-loops", verify_each=True)) == (["while"] * 2 if known else ["while"])
    endless = [np.ones(4, "f4"), scalar(1, "float32"), scalar(0, "int32")]
    if not known:
        np.testing.assert_array_equal(evaluate(run_passes(model, DEFAULT), endless)[0], np.ones(4))


def test_what_a_loop_binds_keeps_its_users_inside():
    def body(b: Any, x: Any, n: Any) -> Any:
        def step(r: Any, i: Any, s: Any) -> Any:
            r.bind_dim(n, dim="N")
            ones = r.exponential(r.iota(dtype=dtypes.f32, dims=(irc.ir.dims.symbol("N"),), axis=0))
            return r.add(s, r.reduce(ones, axes=(0,), kind="max"))

        return repeated(b, b.constant(2, dtypes.i32), x, step)

    model = model_of(body, x="f32[]", n="i64[]")
    after = check_passes(model, "lower-loops", inputs=[scalar(1, "float32"), scalar(3, "int64")])
    assert names(after) == ["while"]


@pytest.mark.parametrize("count, cap, unrolled", [(0, 32, True), (4, 8, True), (4, 7, False), (4, 0, False)])
def test_short_loops_are_unrolled(count: int, cap: int, unrolled: bool):
    def body(b: Any, x: Any) -> Any:
        return repeated(b, b.constant(count, dtypes.i32), x, lambda r, i, s: r.tanh(s))

    model = model_of(body, x="f32[B]")
    after = check_passes(model, f"lower-loops{{unroll={cap}}},canonicalize,dce", {"B": 3})
    assert names(after) == (["tanh"] * count if unrolled else ["while"])


def test_each_unrolled_iteration_draws_its_own_numbers():
    def body(b: Any, x: Any, key: Any) -> Any:
        def step(r: Any, i: Any, s: Any) -> Any:
            mixed = r.add(key, r.convert(i, dtype=dtypes.u32))
            return r.add(r.multiply(s, 4.0), r.convert(r.RandomBits(mixed, dims=(4,)), dtype=dtypes.f32))

        return repeated(b, b.constant(3, dtypes.i32), x, step)

    model = model_of(body, x="f32[4]", key="u32[2]")
    after = check_passes(model, DEFAULT, inputs=[np.zeros(4, "f4"), np.array([5, 6], "u4")])
    assert names(after).count("RandomBits") == 3


def test_scanned_rows_of_an_unrolled_loop():
    """Rows written into a buffer of the loop's length, as the ONNX front door spells Scan; nested, with a capture."""

    def body(b: Any, x: Any, c: Any) -> Any:
        buffer = b.full(0.0, dtypes.f32, (3, 4))
        start, zero = b.constant(0, dtypes.i32), b.constant(0, dtypes.i32)
        state = [start.type, x.type, buffer.type]

        def step(r: Any, i: Any, s: Any, rows: Any) -> Any:
            s = repeated(r, r.constant(2, dtypes.i32), s, lambda q, j, t: q.tanh(q.add(t, c)))
            return r.add(i, 1), s, r.dynamic_update_slice(rows, r.reshape(s, dims=(1, 4)), (i, zero))

        cond = b.region(state, lambda r, i, s, rows: r.compare(i, 3, direction="lt"))
        return b.while_((start, x, buffer), cond=cond, body=b.region(state, step))[1:]

    model = model_of(body, x="f32[4]", c="f32[4]")
    for passes in ("lower-loops{unroll=100},canonicalize,dce", DEFAULT):
        check_passes(model, passes, {})
    inputs = [np.linspace(-1, 1, 4, dtype="f4"), np.full(4, 0.25, "f4")]
    for target in TARGETS:
        for got, want in zip(irc.compile(model, target=target)(*inputs), evaluate(model, inputs), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)


def test_carries_set_to_their_initial_value_are_captures():
    def body(b: Any, x: Any, c: Any, n: Any) -> Any:
        start, flag = b.constant(0, dtypes.i32), b.constant(True)
        state = [start.type, flag.type, x.type, c.type]
        cond = b.region(state, lambda r, i, f, s, t: r.and_(f, r.compare(i, n, direction="lt")))
        step = b.region(state, lambda r, i, f, s, t: (r.add(i, 1), r.constant(True), r.add(s, t), c))
        return b.while_((start, flag, x, c), cond=cond, body=step)[2:]

    model = model_of(body, x="f32[4]", c="f32[4]", n="i32[]")
    for count in (0, 3):
        inputs = [np.ones(4, "f4"), np.full(4, 0.5, "f4"), scalar(count, "int32")]
        after = check_passes(model, "canonicalize,dce", inputs=inputs)
    (loop,) = [n for n in after.main.body.nodes if n.op.name == "while"]
    assert len(loop.results) == 2
    assert [n.op.name for n in loop.keywords["cond"].nodes] == ["compare"]


def test_functions_are_lowered_too():
    model = Model("calls")
    types = [("x", TensorType(dtypes.f32, (4,)))]
    function(model, "inner", types, lambda b, x: repeated(b, b.constant(2, dtypes.i32), x, lambda r, i, s: r.tanh(s)))
    model.functions["inner"].public = False
    function(model, "main", types, lambda b, x: b.call((x,), callee="inner"))
    after = check_passes(model, "lower-loops,canonicalize,dce", {})
    assert [n.op.name for n in after.functions["inner"].body.nodes] == ["tanh", "tanh"]
