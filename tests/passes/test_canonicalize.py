"""Each canonical rewrite: where it fires, where it must not, and that the bits of the results stay."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.ir import dims, dtypes
from irc.ir.build import function
from irc.ir.data import ArrayData
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.passes import PipelineReport, run_passes
from irc.passes.canonicalize.elementwise import loses_nothing

B, S = dims.symbol("B"), dims.symbol("S")
Run = Callable[..., Any]
SIZES = {"B": 3, "S": 5}


def transposed(b: Any, x: Any, *permutations: tuple[int, ...]) -> Any:
    for p in permutations:
        x = b.transpose(x, permutation=p)
    return x


def sliced(b: Any, x: Any, starts: Any, limits: Any, strides: Any) -> Any:
    return b.slice(x, starts=starts, limits=limits, strides=strides)


def broadcast(b: Any, x: Any, d: Any, axes: Any) -> Any:
    return b.broadcast_in_dim(x, dims=d, broadcast_dimensions=axes)


def padded(b: Any, x: Any, low: Any, high: Any) -> Any:
    return b.pad(x, 0.0, low=low, high=high, interior=(0, 0))


X = "f32[B,4]"
# name, body of (build, x: f32[B,4]), operators left
UNARY = [
    ("reshape to own dims", lambda b, x: b.reshape(x, dims=(B, 4)), []),
    ("reshape elsewhere", lambda b, x: b.reshape(x, dims=(4 * B,)), ["reshape"]),
    ("reshapes merge", lambda b, x: b.reshape(b.reshape(x, dims=(4 * B,)), dims=(2, 2 * B)), ["reshape"]),
    ("reshapes cancel", lambda b, x: b.reshape(b.reshape(x, dims=(4 * B,)), dims=(B, 4)), []),
    ("identity transpose", lambda b, x: transposed(b, x, (0, 1)), []),
    ("transposes cancel", lambda b, x: transposed(b, x, (1, 0), (1, 0)), []),
    ("one transpose", lambda b, x: transposed(b, x, (1, 0)), ["transpose"]),
    ("convert to own type", lambda b, x: b.convert(x, dtype=dtypes.f32), []),
    ("widened and back", lambda b, x: b.convert(b.convert(x, dtype=dtypes.f64), dtype=dtypes.f32), []),
    ("narrowed and back", lambda b, x: b.convert(b.convert(x, dtype=dtypes.f16), dtype=dtypes.f32), ["convert"] * 2),
    ("whole slice", lambda b, x: sliced(b, x, (0, 0), (B, 4), (1, 1)), []),
    ("every second", lambda b, x: sliced(b, x, (0, 0), (B, 4), (1, 2)), ["slice"]),
    ("slices merge", lambda b, x: sliced(b, sliced(b, x, (0, 1), (B, 4), (1, 1)), (0, 1), (B, 3), (1, 2)), ["slice"]),
    (
        "axes apart merge",
        lambda b, x: sliced(b, sliced(b, x, (0, 0), (B, 4), (1, 2)), (1, 0), (B, 2), (2, 1)),
        ["slice"],
    ),
    (
        "strides stay",
        lambda b, x: sliced(b, sliced(b, x, (0, 0), (B, 4), (1, 2)), (0, 1), (B, 2), (1, 1)),
        ["slice"] * 2,
    ),
    ("forward StridedSlice", lambda b, x: b.StridedSlice(x, starts=(0, 1), limits=(B, 4), strides=(1, 2)), ["slice"]),
    (
        "backward StridedSlice",
        lambda b, x: b.StridedSlice(x, starts=(0, 3), limits=(B, 0), strides=(1, -1)),
        ["StridedSlice"],
    ),
    ("broadcast to own dims", lambda b, x: broadcast(b, x, (B, 4), (0, 1)), []),
    (
        "broadcasts merge",
        lambda b, x: broadcast(b, broadcast(b, x, (2, B, 4), (1, 2)), (2, 3, B, 4), (0, 2, 3)),
        ["broadcast_in_dim"],
    ),
    (
        "a broadcast puts in ones itself",
        lambda b, x: broadcast(b, b.reshape(x, dims=(B, 1, 4, 1)), (2, B, 3, 4, 5), (1, 2, 3, 4)),
        ["broadcast_in_dim"],
    ),
    (
        "ones put in after a broadcast",
        lambda b, x: b.reshape(broadcast(b, x, (7, B, 4), (1, 2)), dims=(7, 1, B, 4, 1)),
        ["broadcast_in_dim"],
    ),
    (
        "ones taken away after a broadcast",
        lambda b, x: b.reshape(broadcast(b, b.reduce(x, axes=(1,), kind="sum"), (1, B, 1, 7), (1,)), dims=(B, 7)),
        ["reduce", "broadcast_in_dim"],
    ),
    (
        "axes that merge after a broadcast",
        lambda b, x: b.reshape(broadcast(b, x, (7, B, 4), (1, 2)), dims=(7 * B, 4)),
        ["broadcast_in_dim", "reshape"],
    ),
    ("broadcast adds ones", lambda b, x: broadcast(b, x, (B, 1, 4), (0, 2)), ["reshape"]),
    ("pad by nothing", lambda b, x: padded(b, x, (0, 0), (0, 0)), []),
    ("pad that cancels", lambda b, x: padded(b, x, (0, 1), (0, -1)), ["pad"]),
    ("PadMode by nothing", lambda b, x: b.PadMode(x, low=(0, 0), high=(0, 0), mode="edge"), []),
    ("concatenate one", lambda b, x: b.concatenate((x,), axis=0), []),
    ("concatenate flattens", lambda b, x: b.concatenate((b.concatenate((x, x), axis=0), x), axis=0), ["concatenate"]),
    (
        "concatenate on two axes",
        lambda b, x: b.concatenate((b.concatenate((x, x), axis=0),) * 2, axis=1),
        ["concatenate"] * 2,
    ),
    ("reverse nothing", lambda b, x: b.reverse(x, axes=()), []),
    ("reversals cancel", lambda b, x: b.reverse(b.reverse(x, axes=(0,)), axes=(0,)), []),
    ("reversals merge", lambda b, x: b.reverse(b.reverse(x, axes=(0,)), axes=(0, 1)), ["reverse"]),
    ("Tile once", lambda b, x: b.Tile(x, repeats=(1, 1)), []),
    ("Split into one", lambda b, x: b.Split(x, axis=1, sizes=(4,)), []),
    ("reduce nothing", lambda b, x: b.ReduceMax(b.reduce((x,), axes=(), kind="sum"), axes=()), []),
    ("reduce something", lambda b, x: b.ReduceMax(x, axes=(1,)), ["ReduceMax"]),
    ("x * 1", lambda b, x: b.multiply(x, 1.0), []),
    ("1 * x", lambda b, x: b.multiply(b.constant(1.0), x), []),
    ("x * 1 that broadcasts", lambda b, x: b.multiply(x, np.ones((2, 1, 4), "f4")), ["multiply"]),
    ("x * 2", lambda b, x: b.multiply(x, 2.0), ["multiply"]),
    ("x / 1", lambda b, x: b.divide(x, 1.0), []),
    ("1 / x", lambda b, x: b.divide(b.constant(1.0), x), ["divide"]),
    ("x + 0.0 is not x", lambda b, x: b.add(x, 0.0), ["add"]),
    ("x + -0.0", lambda b, x: b.add(x, -0.0), []),
    ("x - 0.0", lambda b, x: b.subtract(x, 0.0), []),
    ("x - -0.0 is not x", lambda b, x: b.subtract(x, -0.0), ["subtract"]),
    ("x ^ 1", lambda b, x: b.power(x, 1.0), []),
    ("x ^ 2", lambda b, x: b.power(x, 2.0), ["multiply"]),
    ("x ^ integer 2", lambda b, x: b.Pow(x, b.constant(2, dtypes.i64)), ["multiply"]),
    ("x ^ 0.5 stays", lambda b, x: b.power(x, 0.5), ["power"]),
    ("Pow of one type", lambda b, x: b.Pow(x, 3.0), ["power"]),
    ("--x", lambda b, x: b.negate(b.negate(x)), []),
    ("|-x|", lambda b, x: b.abs(b.negate(x)), ["abs"]),
    ("real of real", lambda b, x: b.real(x), []),
    ("select true", lambda b, x: b.select(b.constant(True), x, b.tanh(x)), []),
    ("select false", lambda b, x: b.select(b.constant(False), b.tanh(x), x), []),
    ("select equal", lambda b, x: b.select(b.compare(x, 0.0, direction="lt"), x, x), []),
    ("Sum of one", lambda b, x: b.Max((b.Min((b.Sum((b.Mean((x,)),)),)),)), []),
    ("Max of two", lambda b, x: b.Max((x, b.negate(x))), ["negate", "maximum"]),
    ("Clip without bounds", lambda b, x: b.Clip(x), []),
    ("Clip with one bound", lambda b, x: b.Clip(x, None, 1.0), ["Clip"]),
    ("only an axis of size 1 moves", lambda b, x: transposed(b, b.reshape(x, dims=(B, 1, 4)), (0, 2, 1)), ["reshape"]),
    (
        "transpose of a broadcast",
        lambda b, x: transposed(b, broadcast(b, x, (7, B, 4), (1, 2)), (1, 0, 2)),
        ["broadcast_in_dim"],
    ),
    (
        "transpose of a broadcast that turns axes",
        lambda b, x: transposed(b, broadcast(b, x, (7, B, 4), (1, 2)), (2, 0, 1)),
        ["broadcast_in_dim", "transpose"],
    ),
    ("pads merge", lambda b, x: padded(b, padded(b, x, (0, 1), (2, 0)), (1, 1), (0, 3)), ["pad"]),
    ("a pad that takes away stays", lambda b, x: padded(b, padded(b, x, (0, 1), (2, 0)), (0, -2), (0, 0)), ["pad"] * 2),
    ("slice inside a pad", lambda b, x: sliced(b, padded(b, x, (1, 2), (0, 1)), (1, 3), (B + 1, 6), (1, 2)), ["slice"]),
    ("slice that undoes a pad", lambda b, x: sliced(b, padded(b, x, (1, 2), (0, 1)), (1, 2), (B + 1, 6), (1, 1)), []),
    ("slice of padding", lambda b, x: sliced(b, padded(b, x, (1, 2), (0, 1)), (0, 1), (B + 1, 7), (1, 1)), ["pad"]),
    (
        "slice across the edge of a pad",
        lambda b, x: sliced(b, padded(b, x, (0, 2), (0, 0)), (0, 1), (B, 3), (1, 1)),
        ["pad", "slice"],
    ),
    (
        "slice of one piece",
        lambda b, x: sliced(b, b.concatenate((b.tanh(x), x), axis=0), (B, 1), (2 * B, 3), (1, 1)),
        ["slice"],
    ),
    (
        "slice of whole pieces",
        lambda b, x: sliced(b, b.concatenate((b.tanh(x), x, x), axis=0), (B, 0), (3 * B, 4), (1, 1)),
        ["concatenate"],
    ),
    (
        "slice across pieces",
        lambda b, x: sliced(b, b.concatenate((x, x), axis=1), (0, 2), (B, 6), (1, 1)),
        ["concatenate", "slice"],
    ),
    ("all parts of a split", lambda b, x: b.concatenate(b.Split(x, axis=1, sizes=(1, 3)), axis=1), []),
    (
        "parts exchanged",
        lambda b, x: b.concatenate(b.Split(x, axis=1, sizes=(1, 3))[::-1], axis=1),
        ["Split", "concatenate"],
    ),
    (
        "adjacent slices",
        lambda b, x: b.concatenate(
            (sliced(b, x, (0, 1), (B, 2), (1, 1)), sliced(b, x, (0, 2), (B, 4), (1, 1)), b.tanh(x)), axis=1
        ),
        ["tanh", "slice", "concatenate"],
    ),
    (
        "slices that make the whole",
        lambda b, x: b.concatenate(
            (sliced(b, x, (0, 0), (B, 2), (1, 1)), sliced(b, x, (0, 2), (B, 4), (1, 1))), axis=1
        ),
        [],
    ),
    (
        "slices apart",
        lambda b, x: b.concatenate(
            (sliced(b, x, (0, 0), (B, 1), (1, 1)), sliced(b, x, (0, 2), (B, 4), (1, 1))), axis=1
        ),
        ["slice", "slice", "concatenate"],
    ),
    ("max of equals", lambda b, x: b.maximum(x, x), []),
    ("x + -y", lambda b, x: b.add(x, b.negate(b.tanh(x))), ["tanh", "subtract"]),
    ("-y + x", lambda b, x: b.add(b.negate(b.tanh(x)), x), ["tanh", "subtract"]),
    ("x - -y", lambda b, x: b.subtract(x, b.negate(b.tanh(x))), ["tanh", "add"]),
    ("x * -1", lambda b, x: b.multiply(x, -1.0), ["negate"]),
    ("x * 0 is not 0", lambda b, x: b.multiply(x, 0.0), ["multiply"]),
    ("not equal", lambda b, x: b.not_(b.compare(x, 0.0, direction="eq")), ["compare"]),
    ("not less is not greater or equal", lambda b, x: b.not_(b.compare(x, 0.0, direction="lt")), ["compare", "not"]),
    (
        "select by not",
        lambda b, x: b.select(b.not_(b.compare(x, 0.0, direction="lt")), x, b.tanh(x)),
        ["compare", "tanh", "select"],
    ),
    (
        "select of bools",
        lambda b, x: b.select(
            b.compare(x, 0.0, direction="lt"), b.constant(np.array(True)), b.constant(np.array(False))
        ),
        ["compare"],
    ),
    ("maximum with 0", lambda b, x: b.maximum(b.constant(0.0), x), ["Relu"]),
]


@pytest.mark.parametrize("name, body, left", UNARY, ids=[row[0] for row in UNARY])
def test_one_operand(run: Run, name: str, body: Any, left: list[str]):
    case = run("canonicalize,dce", body, x=X)
    assert case.ops == left
    case.same_bits(**SIZES)


def test_special_values_keep_their_bits(run: Run):
    def body(b: Any, x: Any) -> Any:
        return b.subtract(b.add(b.multiply(x, 1.0), -0.0), 0.0), b.negate(b.negate(x)), b.divide(x, 1.0)

    case = run("canonicalize,dce", body, x="f32[7]")
    assert case.ops == []
    case.same_bits([np.array([0.0, -0.0, np.inf, -np.inf, 1e-45, 3e38, -1.5], "f4")])


INTEGERS = [
    ("x + 0", lambda b, x: b.add(x, 0), []),
    ("x | 0", lambda b, x: b.or_(x, 0), []),
    ("x & -1", lambda b, x: b.and_(x, -1), []),
    ("x & 1", lambda b, x: b.and_(x, 1), ["and"]),
    ("x & 0", lambda b, x: b.and_(x, 0), []),
    ("x | -1", lambda b, x: b.or_(x, -1), []),
    ("x * 0", lambda b, x: b.multiply(x, 0), []),
    ("x & x", lambda b, x: b.and_(x, x), []),
    ("not less", lambda b, x: b.not_(b.compare(x, 3, direction="lt")), ["compare"]),
    ("x << 0", lambda b, x: b.shift_left(x, 0), []),
    ("x ^ 2", lambda b, x: b.Pow(x, b.constant(2, dtypes.i64)), ["multiply"]),
    ("x ^ 2.0 rounds", lambda b, x: b.Pow(x, b.constant(2.0)), ["Pow"]),
    ("not not", lambda b, x: b.not_(b.not_(x)), []),
    ("0 - x", lambda b, x: b.subtract(b.constant(0, dtypes.i32), x), ["subtract"]),
    ("wider and back", lambda b, x: b.convert(b.convert(x, dtype=dtypes.i64), dtype=dtypes.i32), []),
    ("through f64", lambda b, x: b.convert(b.convert(x, dtype=dtypes.f64), dtype=dtypes.i64), ["convert"]),
    # -1 becomes 0 through the float, which saturates, and 255 directly, which wraps.
    ("through f64 to u8", lambda b, x: b.convert(b.convert(x, dtype=dtypes.f64), dtype=dtypes.u8), ["convert"] * 2),
    ("through f32", lambda b, x: b.convert(b.convert(x, dtype=dtypes.f32), dtype=dtypes.i64), ["convert"] * 2),
    ("to bool", lambda b, x: b.convert(b.convert(x, dtype=dtypes.i64), dtype=dtypes.bool_), ["convert"]),
]


@pytest.mark.parametrize("name, body, left", INTEGERS, ids=[row[0] for row in INTEGERS])
def test_integers(run: Run, name: str, body: Any, left: list[str]):
    case = run("canonicalize,dce", body, x="i32[6]")
    assert case.ops == left
    case.same_bits([np.array([-1, 0, 1, 7, 2**31 - 1, -(2**31)], "i4")])


@pytest.mark.parametrize(
    "source", [d for d in dtypes.ALL if d.bits == 8 and d.kind in ("int", "uint", "float")], ids=str
)
@pytest.mark.parametrize(
    "target", [dtypes.f16, dtypes.bf16, dtypes.f32, dtypes.i16, dtypes.u8, dtypes.u16, dtypes.i8], ids=str
)
def test_loses_nothing_is_true_of_every_value(source: dtypes.DType, target: dtypes.DType):
    every = np.arange(256, dtype=np.uint8).view(source.numpy)
    numbers = every.astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        survive = np.array_equal(every.astype(target.numpy).astype(np.float64), numbers, equal_nan=True)
    assert survive or not loses_nothing(source, target)
    if source.is_integer:
        assert survive == loses_nothing(source, target)


# Broadcast operands of elementwise operators


def test_scalar_broadcast_goes(run: Run):
    case = run("canonicalize,dce", lambda b, x: b.multiply(x, b.full(2.0, dtypes.f32, (B, 4))), x=X).same_bits(**SIZES)
    assert case.ops == ["multiply"]
    assert case.nodes[0].operands[1].dims == ()


def test_channel_broadcast_becomes_a_reshape(run: Run):
    def body(b: Any, x: Any, c: Any) -> Any:
        return b.add(x, broadcast(b, c, (B, 3, S, 2), (1,)))

    case = run("canonicalize,dce", body, x="f32[B,3,S,2]", c="f32[3]").same_bits(**SIZES)
    assert case.ops == ["reshape", "add"]
    assert case.nodes[0].result.dims == (3, 1, 1)


def test_broadcast_that_makes_the_shape_stays(run: Run):
    case = run("canonicalize,dce", lambda b, x: b.tanh(broadcast(b, x, (7, B, 4), (1, 2))), x=X).same_bits(**SIZES)
    assert case.ops == ["broadcast_in_dim", "tanh"]


def test_of_two_broadcasts_one_stays(run: Run):
    def body(b: Any, x: Any, y: Any) -> Any:
        return b.add(broadcast(b, x, (7, B, 4), (1, 2)), broadcast(b, y, (7, B, 4), (2,)))

    case = run("canonicalize,dce", body, x=X, y="f32[4]").same_bits(**SIZES)
    assert case.ops == ["broadcast_in_dim", "add"]


def test_broadcast_from_an_unknown_size_keeps_the_type(run: Run):
    """[S] may be [1]: narrowed, the result would be bcast(S, 4), not 4."""

    def body(b: Any, x: Any, y: Any) -> Any:
        return b.add(x, broadcast(b, y, (B, 4), (1,)))

    case = run("canonicalize,dce", body, x=X, y="f32[1]").same_bits(**SIZES)
    assert case.ops == ["add"]
    assert case.nodes[0].result.dims == (B, 4)


# Operand order, integers that typing knows, control flow


def test_constants_stand_on_the_right(run: Run):
    case = run("canonicalize", lambda b, x: b.minimum(b.constant(2.0), x), x=X).same_bits(**SIZES)
    assert [v.name for v in case.nodes[0].operands] == ["x", None]


def test_two_constants_do_not_swap_for_ever(run: Run):
    case = run("canonicalize", lambda b, x: b.add(b.multiply(b.constant(2.0), b.constant(3.0)), x), x=X)
    assert case.ops == ["multiply", "add"]


def test_shape_arithmetic_vanishes(run: Run):
    def body(b: Any, x: Any) -> Any:
        shape = b.dimensions(dims=(B, 4))
        first = b.take(shape, b.constant(0, dtypes.i64), axis=0)
        return b.multiply(first, 2), b.concatenate((b.reshape(first, dims=(1,)), b.constant([7])), axis=0)

    case = run("canonicalize,dce", body, x=X).same_bits(**SIZES)
    assert case.ops == ["dimensions", "dimensions"]
    assert [n.keywords["dims"] for n in case.nodes] == [(2 * B,), (B, 7)]
    assert [n.result.rank for n in case.nodes] == [0, 1]


def test_known_numbers_become_constants(run: Run):
    case = run(
        "canonicalize,dce", lambda b, x: b.add(b.take(b.dimensions(dims=(B, 4)), b.constant(1, dtypes.i64)), 5), x=X
    )
    assert case.ops == []
    assert case.after.main.outputs[0].data.numpy() == 9
    case.same_bits(**SIZES)


def test_known_sizes_of_another_type_and_rank(run: Run):
    def body(b: Any, x: Any) -> Any:
        return b.convert(b.reshape(b.dimensions(dims=(B, 4)), dims=(2, 1)), dtype=dtypes.i32)

    case = run("fixpoint(max=3){canonicalize,dce}", body, x=X).same_bits(**SIZES)
    assert case.ops == ["dimensions", "reshape", "convert"]


@pytest.mark.parametrize("chosen", [True, False])
def test_if_of_a_constant(run: Run, chosen: bool):
    def body(b: Any, x: Any) -> Any:
        y = b.tanh(x)
        then = b.region([], lambda i: i.add(i.exponential(y), x))
        return b.if_(np.array(chosen), then=then, else_=b.region([], lambda i: y))

    case = run("canonicalize,dce", body, x=X).same_bits(**SIZES)
    assert case.ops == (["tanh", "exponential", "add"] if chosen else ["tanh"])


@pytest.mark.parametrize("index, left", [(0, ["negate"]), (1, ["tanh"]), (9, ["tanh"]), (-1, ["tanh"])])
def test_case_of_a_constant(run: Run, index: int, left: list[str]):
    def body(b: Any, x: Any) -> Any:
        branches = (b.region([], lambda i: i.negate(x)), b.region([], lambda i: i.tanh(x)))
        return b.case(b.constant(index, dtypes.i32), branches=branches)

    assert run("canonicalize,dce", body, x=X).same_bits(**SIZES).ops == left


def test_loop_that_never_runs(run: Run):
    def body(b: Any, x: Any) -> Any:
        cond = b.region([x.type], lambda i, s: i.constant(np.array(False)))
        return b.while_((x,), cond=cond, body=b.region([x.type], lambda i, s: i.tanh(s)))

    assert run("canonicalize,dce", body, x=X).same_bits(**SIZES).ops == []


def test_values_that_a_loop_hands_on_are_used_directly(run: Run):
    def body(b: Any, x: Any, w: Any) -> Any:
        count = b.constant(0, dtypes.i32)
        last = b.constant(3, dtypes.i32)
        state = [count.type, x.type, w.type, last.type]
        cond = b.region(state, lambda i, n, s, v, end: i.compare(n, end, direction="lt"))
        step = b.region(state, lambda i, n, s, v, end: (i.add(n, 1), i.multiply(s, v), v, end))
        _, y, v, _ = b.while_((count, x, w, last), cond=cond, body=step)
        return b.add(y, v)

    case = run("canonicalize,dce", body, x=X, w="f32[4]").same_bits(**SIZES)
    assert case.ops == ["while", "add"]
    assert len(case.nodes[0].results) == 2
    assert case.nodes[1].operands[1] is case.after.main.inputs[1]


def test_rewrites_reach_inner_graphs(run: Run):
    def body(b: Any, x: Any, p: Any) -> Any:
        then = b.region([], lambda i: i.negate(i.negate(i.tanh(x))))
        return b.if_(p, then=then, else_=b.region([], lambda i: x))

    case = run("canonicalize,dce", body, x=X, p="bool[]").same_bits(**SIZES)
    (node,) = case.nodes
    assert [n.op.name for n in node.keywords["then"].nodes] == ["tanh"]


def test_dynamic_slice_at_known_starts(run: Run):
    def body(b: Any, x: Any) -> Any:
        zero, one = b.constant(0, dtypes.i32), b.constant(1, dtypes.i32)
        inside = b.dynamic_slice(x, (zero, one), sizes=(B, 2))
        clamped = b.dynamic_slice(x, (zero, b.constant(3, dtypes.i32)), sizes=(B, 2))
        return inside, clamped

    assert run("canonicalize,dce", body, x=X).same_bits(**SIZES).ops == ["slice", "dynamic_slice"]


def test_swish_is_raised(run: Run):
    case = run("canonicalize,dce", lambda b, x: b.multiply(b.logistic(x), x), x=X)
    assert case.ops == ["Swish"]
    x = np.linspace(-3, 3, 12, dtype="f4").reshape(3, 4)
    # One rounding where there were two: at most one unit in the last place.
    np.testing.assert_array_max_ulp(evaluate(case.before, [x])[0], evaluate(case.after, [x])[0], maxulp=1)


def test_a_call_with_effects_stays_though_its_result_is_known():
    model = Model("calls")

    def noisy(b: Any, n: Any) -> Any:
        b.bind_dim(n, dim="N")
        return b.constant(7, dtypes.i64)

    n = [("n", TensorType(dtypes.i64, ()))]
    function(model, "noisy", n, noisy).public = False
    function(model, "main", n, lambda b, n: b.call((n,), callee="noisy"))
    (call,) = model.main.body.nodes
    call.result.ints = (7,)
    assert [n.op.name for n in run_passes(model, "canonicalize,dce").main.body.nodes] == ["call"]


def test_integers_are_inferred_again(build: Callable[..., Model]):
    """A node typed before its operand was known: what it computes follows when the operand becomes a constant."""

    def body(b: Any, x: Any) -> Any:
        known = b.if_(
            b.constant(True),
            then=b.region([], lambda i: i.constant([3])),
            else_=b.region([], lambda i: i.constant([4])),
        )
        return b.add(known, 1)

    out = run_passes(build(body, x=X), "canonicalize,dce")
    assert list(out.main.body.nodes) == []
    assert out.main.outputs[0].data.numpy().tolist() == [4]


# Bookkeeping


def test_names_and_sources_survive(build: Callable[..., Model]):
    def body(b: Any, x: Any) -> Any:
        first = b.at(type(b.location)(("Reshape_1",))).reshape(x, dims=(4 * B,))
        return b.at(type(b.location)(("Reshape_2",))).reshape(first, dims=(2, 2 * B), name="result")

    (node,) = run_passes(build(body, x=X), "canonicalize,dce").main.body.nodes
    assert node.result.name == "result"
    assert node.location.source == ("Reshape_2", "Reshape_1")
    assert node.location.rewrite == "canonicalize/merge_reshapes"


def test_a_second_run_changes_nothing(build: Callable[..., Model]):
    for name, body, _ in UNARY:
        once = run_passes(build(body, x=X), "canonicalize,dce")
        report = PipelineReport()
        run_passes(once, "canonicalize", report=report)
        assert report.passes[0].changes == 0, name


def test_weights_keep_their_data(build: Callable[..., Model]):
    model = build(lambda b, x: b.multiply(b.constant(ArrayData(np.ones(4, "f4")), name="w"), x), x=X)
    out = run_passes(model, "canonicalize,dce")
    assert list(out.main.body.nodes) == []
    assert out.constants == {}
