"""Operators that move or make elements by position: NumPy, decompositions, symbolic dims, known integers."""

import numpy as np
import pytest

from irc.ir import dims as sizes
from irc.ir import dtypes
from irc.ir.data import ArrayData
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.facts import Fact, fact_of_data, shape_fact
from irc.ir.types import tensor
from irc.testing.operators import assumptions_of, facts_of, run

B, S, N = symbol("B"), symbol("S"), symbol("N")
F = dtypes.f32
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def both(name, *operands, **keywords):
    """The result of the reference and of the decomposition, which only moves elements and so must be equal."""
    got, again = run(name, *operands, **keywords), run(name, *operands, decompose=True, **keywords)
    for a, b in zip(
        got if isinstance(got, tuple) else (got,), again if isinstance(again, tuple) else (again,), strict=True
    ):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)
    return got


def test_broadcast_in_dim():
    x = np.array([[1], [2]], np.int8)
    want = np.broadcast_to(x.reshape(2, 1, 1), (2, 5, 3))
    np.testing.assert_array_equal(run("broadcast_in_dim", x, dims=(2, 5, 3), broadcast_dimensions=(0, 2)), want)
    assert facts_of("broadcast_in_dim", tensor(F, 1, S), dims=(B, N, S), broadcast_dimensions=(0, 2)).type == tensor(
        F, B, N, S
    )
    assert facts_of("broadcast_in_dim", shape_fact((B,)), dims=(2, 1), broadcast_dimensions=(1,)).ints == (B, B)
    assert assumptions_of("broadcast_in_dim", tensor(F, B), dims=(S,), broadcast_dimensions=(0,)) == [
        "bcast(B, S) == S"
    ]
    with pytest.raises(InferenceError, match="do not broadcast: expected equal sizes, or one of them 1"):
        facts_of("broadcast_in_dim", tensor(F, 2), dims=(3,), broadcast_dimensions=(0,))
    with pytest.raises(
        InferenceError, match=r"axis 0 of the result and the size 2 that repeats to it must be equal, got 2 and 1"
    ):
        facts_of("broadcast_in_dim", tensor(F, 2), dims=(1,), broadcast_dimensions=(0,))
    with pytest.raises(InferenceError, match=r"broadcast_dimensions \[1, 0\] must increase strictly"):
        facts_of("broadcast_in_dim", tensor(F, 2, 2), dims=(2, 2), broadcast_dimensions=(1, 0))


def test_reshape():
    np.testing.assert_array_equal(run("reshape", X, dims=(6, 4)), X.reshape(6, 4))
    assert facts_of("reshape", tensor(F, B, S, 4), dims=(B * S, 2, 2)).type == tensor(F, B * S, 2, 2)
    assert facts_of("reshape", shape_fact((B, S)), dims=(2, 1)).ints == (B, S)
    assert facts_of("reshape", Fact(tensor(dtypes.i64, 1), (B,)), dims=()).ints == (B,)
    assert assumptions_of("reshape", tensor(F, B), dims=(S,)) == ["B == S"]
    with pytest.raises(InferenceError, match=r"element counts of f32\[2,3\] and f32\[7\] must be equal, got 6 and 7"):
        facts_of("reshape", tensor(F, 2, 3), dims=(7,))
    with pytest.raises(InferenceError, match="size 0 must not be negative: 0 is more than -1"):
        facts_of("reshape", tensor(F, 2, 3), dims=(-1, 6))


def test_transpose():
    np.testing.assert_array_equal(run("transpose", X, permutation=(2, 0, 1)), X.transpose(2, 0, 1))
    assert facts_of("transpose", tensor(F, B, S, 4), permutation=(2, 0, 1)).type == tensor(F, 4, B, S)
    column = Fact(tensor(dtypes.i64, 2, 2), (B, 1, 2, S))
    assert facts_of("transpose", column, permutation=(1, 0)).ints == (B, 2, 1, S)
    with pytest.raises(InferenceError, match=r"permutation \[0, 0\] must hold each axis of f32\[B,S\] once"):
        facts_of("transpose", tensor(F, B, S), permutation=(0, 0))


def test_concatenate():
    y = X[:, :1]
    np.testing.assert_array_equal(run("concatenate", [X, y, X], axis=1), np.concatenate([X, y, X], 1))
    assert facts_of("concatenate", (tensor(F, B, 3), tensor(F, S, 3)), axis=0).type == tensor(F, B + S, 3)
    assert facts_of("concatenate", (tensor(F, B, 3), tensor(F, 2, 4)), axis=1).type == tensor(F, 2, 7)
    unknown = tensor(dtypes.i64, 1)
    assert facts_of("concatenate", (shape_fact((B, 2)), unknown), axis=0).ints == (B, 2, None)
    with pytest.raises(InferenceError, match=r"dims off the axis \(axis 1\) must be equal, got 3 and 4"):
        facts_of("concatenate", (tensor(F, B, 3), tensor(F, S, 4)), axis=0)
    with pytest.raises(InferenceError, match="axis 2 is out of range for rank 2"):
        facts_of("concatenate", (tensor(F, B, 3),), axis=2)


def test_slice():
    got = run("slice", X, starts=(0, 1, 0), limits=(2, 3, 4), strides=(1, 1, 3))
    np.testing.assert_array_equal(got, X[:, 1:3, ::3])
    assert facts_of("slice", tensor(F, B, S), starts=(0, 1), limits=(B, S), strides=(1, 2)).type == tensor(F, B, S // 2)
    assert facts_of("slice", shape_fact((B, S, N)), starts=(1,), limits=(3,), strides=(1,)).ints == (S, N)
    assert assumptions_of("slice", tensor(F, S), starts=(2,), limits=(S,), strides=(1,)) == ["2 <= S"]
    with pytest.raises(InferenceError, match="the slice of axis 0 ends behind the axis: 5 is more than 4"):
        facts_of("slice", tensor(F, 4), starts=(0,), limits=(5,), strides=(1,))
    with pytest.raises(InferenceError, match="the stride of axis 0 must be at least 1, got 0"):
        facts_of("slice", tensor(F, 4), starts=(0,), limits=(4,), strides=(0,))
    with pytest.raises(InferenceError, match=r"limits must have one entry for each axis of f32\[4\], got \['4', '4'\]"):
        facts_of("slice", tensor(F, 4), starts=(0,), limits=(4, 4), strides=(1,))


def test_a_large_constant_table_is_read():
    table = fact_of_data(ArrayData(np.arange(1000, dtype=np.int64) * 2))
    assert facts_of("slice", table, starts=(10,), limits=(13,), strides=(1,)).ints == (20, 22, 24)


@pytest.mark.parametrize(
    "start, limit, stride", [(3, -1, -1), (3, 0, -2), (3, -1, -2), (2, -1, -3), (1, 1, -1), (0, 4, 3), (0, -1, -1)]
)
def test_strided_slice(start, limit, stride):
    got = both("StridedSlice", X, starts=(0, 0, start), limits=(2, 3, limit), strides=(1, 1, stride))
    np.testing.assert_array_equal(got, X[:, :, start : None if limit < 0 else limit : stride])


def test_strided_slice_of_nothing_and_of_symbolic_dims():
    empty = np.zeros((0,), np.float32)
    assert both("StridedSlice", empty, starts=(-1,), limits=(-1,), strides=(-1,)).shape == (0,)
    reversed_ = {"starts": (S - 1,), "limits": (-1,), "strides": (-2,)}
    assert facts_of("StridedSlice", tensor(F, S), **reversed_).type == tensor(F, (S + 1) // 2)
    assert facts_of("StridedSlice", shape_fact((B, S, N)), starts=(2,), limits=(-1,), strides=(-1,)).ints == (N, S, B)
    got = run("StridedSlice", np.arange(5.0), types=[tensor(dtypes.f64, S)], decompose=True, **reversed_)
    assert got.tolist() == [4, 2, 0]


@pytest.mark.parametrize(
    "low, high, interior",
    [((1, 0), (0, 2), (0, 0)), ((0, 1), (1, 0), (2, 1)), ((-1, 2), (0, -2), (0, 0)), ((-1, -1), (2, -3), (1, 2))],
)
def test_pad(low, high, interior):
    x = np.arange(1, 7, dtype=np.int16).reshape(2, 3)
    spread = np.full([d + (d - 1) * i for d, i in zip(x.shape, interior, strict=True)], 9, np.int16)
    spread[tuple(slice(None, None, i + 1) for i in interior)] = x
    wide = np.pad(spread, [(max(l, 0), max(h, 0)) for l, h in zip(low, high, strict=True)], constant_values=9)
    crop = tuple(slice(max(-l, 0), size - max(-h, 0)) for l, h, size in zip(low, high, wide.shape, strict=True))
    got = run("pad", x, np.int16(9), low=low, high=high, interior=interior)
    np.testing.assert_array_equal(got, wide[crop])


def test_pad_types():
    value = tensor(F)
    assert facts_of("pad", tensor(F, B, S), value, low=(0, 1), high=(N, 2), interior=(0, 0)).type == tensor(
        F, B + N, S + 3
    )
    assert facts_of("pad", tensor(F, S), value, low=(0,), high=(0,), interior=(1,)).type.dims == (
        S + sizes.maximum(S - 1, 0),
    )
    assert facts_of(
        "pad", shape_fact((B, S)), Fact(tensor(dtypes.i64), (7,)), low=(1,), high=(0,), interior=(0,)
    ).ints == (7, B, S)
    with pytest.raises(
        InferenceError, match=r"padding \(-3, 0\) of a dim of size 2 leaves a negative size: 0 is more than -1"
    ):
        facts_of("pad", tensor(F, 2), value, low=(-3,), high=(0,), interior=(0,))
    with pytest.raises(InferenceError, match=r"the padding value must be a scalar, got f32\[1\]"):
        facts_of("pad", tensor(F, 2), tensor(F, 1), low=(0,), high=(0,), interior=(0,))


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize(
    "low, high", [((1, 0), (0, 2)), ((1, 2), (1, 2)), ((7, 0), (0, 9)), ((0, -1), (0, 3)), ((-1, 3), (2, -2))]
)
def test_pad_mode(mode, low, high):
    x = np.arange(15).reshape(3, 5)
    got = both("PadMode", x, low=low, high=high, mode=mode)
    crop = x[tuple(slice(max(-l, 0), d - max(-h, 0)) for l, h, d in zip(low, high, x.shape, strict=True))]
    want = np.pad(crop, [(max(l, 0), max(h, 0)) for l, h in zip(low, high, strict=True)], mode=mode)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_pad_mode_of_a_symbolic_dim(mode, size):
    x = np.arange(size, dtype=np.float32)
    got = run("PadMode", x, types=[tensor(F, S)], decompose=True, low=(3,), high=(2,), mode=mode)
    np.testing.assert_array_equal(got, np.pad(x, (3, 2), mode=mode))
    assert facts_of("PadMode", tensor(F, S), low=(3,), high=(2,), mode=mode).type == tensor(F, S + 5)


def test_pad_mode_needs_something_to_show():
    with pytest.raises(InferenceError, match="edge padding of an axis that is empty: 1 is more than 0"):
        facts_of("PadMode", tensor(F, 0), low=(1,), high=(0,), mode="edge")
    with pytest.raises(InferenceError, match="mode must be reflect, edge or wrap, got 'mirror'"):
        facts_of("PadMode", tensor(F, 3), low=(1,), high=(0,), mode="mirror")


def test_reverse():
    np.testing.assert_array_equal(run("reverse", X, axes=(0, 2)), X[::-1, :, ::-1])
    assert facts_of("reverse", shape_fact((B, S)), axes=(0,)).ints == (S, B)
    with pytest.raises(InferenceError, match=r"axes \[0, 0\] name one axis twice"):
        facts_of("reverse", tensor(F, B), axes=(0, 0))


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if not d.is_bool and not d.is_string and d.bits > 2], ids=str)
def test_iota(dtype):
    got = run("iota", dtype=dtype, dims=(2, 5), axis=1)
    assert got.dtype == dtype.numpy
    want = np.broadcast_to(np.arange(5).astype(dtype.numpy), (2, 5))
    np.testing.assert_array_equal(got.astype(np.complex128), want.astype(np.complex128))


def test_iota_wraps_and_is_known():
    assert run("iota", dtype=dtypes.i4, dims=(10,), axis=0).astype(int).tolist() == [0, 1, 2, 3, 4, 5, 6, 7, -8, -7]
    assert facts_of("iota", dtype=dtypes.i4, dims=(10,), axis=0).ints == (0, 1, 2, 3, 4, 5, 6, 7, -8, -7)
    assert facts_of("iota", dtype=dtypes.i64, dims=(2, 2), axis=0).ints == (0, 0, 1, 1)
    assert facts_of("iota", dtype=dtypes.i64, dims=(B, 2), axis=0).type == tensor(dtypes.i64, B, 2)
    with pytest.raises(InferenceError, match="iota makes numbers, not bool"):
        facts_of("iota", dtype=dtypes.bool_, dims=(2,), axis=0)


def test_dimensions():
    assert facts_of("dimensions", dims=(B, 3)).ints == (B, 3)
    assert facts_of("dimensions", dims=(B * 3,), scalar=True) == Fact(tensor(dtypes.i64), (B * 3,))
    assert run("dimensions", dims=(4, 3)).tolist() == [4, 3]
    assert run("dimensions", dims=(4,), scalar=True).shape == ()
    with pytest.raises(InferenceError, match="a scalar has one size, got 2"):
        facts_of("dimensions", dims=(B, 3), scalar=True)


@pytest.mark.parametrize("dtype", ["i64", "i8", "f32", "f64", "bf16"])
def test_range(dtype):
    dtype = dtypes.DType.of(dtype)
    start, delta = np.asarray(-3).astype(dtype.numpy), np.asarray(2).astype(dtype.numpy)
    got = both("Range", start, delta, count=5)
    assert got.astype(float).tolist() == [-3, -1, 1, 3, 5]


def test_range_facts():
    start, delta = Fact(tensor(dtypes.i64), (B,)), Fact(tensor(dtypes.i64), (2,))
    assert facts_of("Range", start, delta, count=3).ints == (B, B + 2, B + 4)
    assert facts_of("Range", tensor(F), tensor(F), count=S).type == tensor(F, S)
    with pytest.raises(InferenceError, match=r"start and delta must be scalars, got f32\[1\]"):
        facts_of("Range", tensor(F, 1), tensor(F), count=S)


def test_split():
    parts = both("Split", X, axis=-1, sizes=(1, 0, 3))
    for got, want in zip(parts, np.split(X, [1, 1], -1), strict=True):
        np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(both("Split", X, axis=0, sizes=(2,)), X)
    types = [f.type for f in facts_of("Split", tensor(F, B, S), axis=1, sizes=(2, S - 2))]
    assert types == [tensor(F, B, 2), tensor(F, B, S - 2)]
    assert [f.ints for f in facts_of("Split", shape_fact((B, S, 3)), axis=0, sizes=(2, 1))] == [(B, S), (3,)]
    with pytest.raises(InferenceError, match=r"the sum of the sizes and dim 0 of f32\[4\] must be equal, got 5 and 4"):
        facts_of("Split", tensor(F, 4), axis=0, sizes=(2, 3))


def test_tile():
    np.testing.assert_array_equal(both("Tile", X, repeats=(1, 2, 3)), np.tile(X, (1, 2, 3)))
    assert both("Tile", X, repeats=(1, 0, 3)).shape == (2, 0, 12)
    assert facts_of("Tile", tensor(F, B, S), repeats=(N, 2)).type == tensor(F, B * N, S * 2)
    assert facts_of("Tile", shape_fact((B,)), repeats=(3,)).ints == (B, B, B)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_depth_to_space(mode):
    x = np.arange(2 * 8 * 2 * 3, dtype=np.float32).reshape(2, 8, 2, 3)
    n, c, h, w = x.shape
    if mode == "DCR":
        want = x.reshape(n, 2, 2, c // 4, h, w).transpose(0, 3, 4, 1, 5, 2)
    else:
        want = x.reshape(n, c // 4, 2, 2, h, w).transpose(0, 1, 4, 2, 5, 3)
    got = run("DepthToSpace", x, blocksize=2, mode=mode)
    np.testing.assert_array_equal(got, want.reshape(n, c // 4, h * 2, w * 2))
    if mode == "DCR":
        np.testing.assert_array_equal(run("SpaceToDepth", got, blocksize=2), x)


def test_depth_and_space_of_symbolic_dims():
    assert facts_of("DepthToSpace", tensor(F, B, 4 * N, S, 3), blocksize=2).type == tensor(F, B, N, 2 * S, 6)
    assert facts_of("SpaceToDepth", tensor(F, B, N, 2 * S, 6), blocksize=2).type == tensor(F, B, 4 * N, S, 3)
    with pytest.raises(
        InferenceError, match="the remainder of 3 channels by blocksize squared and 0 must be equal, got 3 and 0"
    ):
        facts_of("DepthToSpace", tensor(F, B, 3, S, S), blocksize=2)


@pytest.mark.parametrize("k", [-5, -1, 0, 2, 9])
@pytest.mark.parametrize("upper", [False, True])
@pytest.mark.parametrize("dtype", ["f32", "bool", "i4", "c64"])
def test_trilu(k, upper, dtype):
    x = np.ones((2, 3, 4)).astype(dtypes.DType.of(dtype).numpy)
    ones = np.ones((3, 4))
    want = np.broadcast_to(np.triu(ones, k) if upper else np.tril(ones, k), (2, 3, 4))
    np.testing.assert_array_equal(both("Trilu", x, k=k, upper=upper).astype(complex), want)


def test_trilu_of_symbolic_dims():
    got = run("Trilu", np.ones((3, 5), np.float32), types=[tensor(F, S, N)], decompose=True, k=N - S)
    np.testing.assert_array_equal(got, np.triu(np.ones((3, 5)), 2))
    with pytest.raises(InferenceError, match=r"x must have at least two axes, got f32\[S\]"):
        facts_of("Trilu", tensor(F, S))


def test_eye_like():
    for dtype in (F, dtypes.bool_, dtypes.i8):
        np.testing.assert_array_equal(both("EyeLike", dtype=dtype, dims=(3, 4), k=1), np.eye(3, 4, 1, dtype.numpy))
    assert facts_of("EyeLike", dtype=F, dims=(B, S)).type == tensor(F, B, S)


def test_strings_move_too():
    text = np.array([["a", "b"], ["c", "d"]], object)
    assert run("transpose", text, permutation=(1, 0)).tolist() == [["a", "c"], ["b", "d"]]
    assert run("pad", text, np.array("-", object), low=(0, 0), high=(0, 1), interior=(0, 0)).tolist() == [
        ["a", "b", "-"],
        ["c", "d", "-"],
    ]


def test_the_shape_arithmetic_of_exporters_vanishes():
    """Shape, Gather, Mul, Unsqueeze, Concat: what a model computes to flatten all but the batch."""
    whole = shape_fact((B, 3, S, S))
    tail = facts_of("slice", whole, starts=(1,), limits=(4,), strides=(1,))
    first = facts_of("take", whole, Fact(tensor(dtypes.i64), (0,)), axis=0)
    parts = facts_of("Split", tail, axis=0, sizes=(1, 1, 1))
    size = facts_of("multiply", facts_of("multiply", parts[0], parts[1]), parts[2])
    batch = facts_of("reshape", first, dims=(1,))
    assert facts_of("concatenate", (batch, size), axis=0).ints == (B, 3 * S * S)


def test_expand_of_exporters_vanishes():
    """Where(Equal(shape, -1), other, shape), with the comparison carried as a bool."""
    shape = shape_fact((-1, 4, S))
    minus = facts_of("compare", shape, Fact(tensor(dtypes.i64), (-1,)), direction="eq")
    assert facts_of("select", minus, shape_fact((B, 1, 1)), shape).ints == (B, 4, S)
