"""Operators that pick or place elements by index: references against NumPy and XLA, decompositions, types, errors."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.facts import Fact, shape_fact
from irc.ir.types import TensorType, tensor
from irc.testing.operators import assumptions_of, facts_of, run

B, S, N = symbol("B"), symbol("S"), symbol("N")
F, I = dtypes.f32, dtypes.i64
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def test_take():
    places = np.array([[0, -1], [2, 1]])
    np.testing.assert_array_equal(run("take", X, places, axis=1), np.take(X, places % 3, 1))
    np.testing.assert_array_equal(run("take", X, np.array(-2), axis=-1), X[:, :, 2])
    assert facts_of("take", tensor(F, B, S), tensor(I, N, 2), axis=0).type == tensor(F, N, 2, S)
    with pytest.raises(InferenceError, match=r"indices i64\[2\] cannot pick from axis 0 of f32\[0\], which is empty"):
        facts_of("take", tensor(F, 0), tensor(I, 2), axis=0)
    with pytest.raises(InferenceError, match="axis 2 is out of range for rank 2"):
        facts_of("take", tensor(F, B, S), tensor(I), axis=2)


def test_take_clamps_what_is_out_of_range():
    x = np.array([10, 20, 30])
    assert run("take", x, np.array([3, 99, -3, -4, -99, 255]), axis=0).tolist() == [30, 30, 10, 10, 10, 30]
    assert run("take", x, np.array([255], np.uint8), axis=0).tolist() == [30]
    assert run("take", x, np.array([-1], ml_dtypes.int4), axis=0).tolist() == [30]


def test_take_carries_known_integers():
    shape = shape_fact((B, S, 7))
    assert facts_of("take", shape, Fact(tensor(I, 2), (1, -1)), axis=0).ints == (S, 7)
    assert facts_of("take", shape, Fact(tensor(I), (0,)), axis=0) == Fact(tensor(I), (B,))
    assert facts_of("take", shape, tensor(I), axis=0).ints is None


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_along_axis(axis):
    rng = np.random.default_rng(axis + 1)
    shape = list(X.shape)
    shape[axis] = 5
    size = X.shape[axis]
    places = rng.integers(-size, size, shape)
    np.testing.assert_array_equal(run("take_along_axis", X, places, axis=axis), np.take_along_axis(X, places, axis))
    shape[axis] = size
    order = np.argsort(rng.random(shape), axis)
    updates = rng.random(shape).astype(np.float32)
    want = X.copy()
    np.put_along_axis(want, order, updates, axis)
    np.testing.assert_array_equal(run("put_along_axis", X, order, updates, axis=axis), want)


def test_along_axis_takes_fewer_rows_than_x_has():
    places = np.array([[2, 0]])
    np.testing.assert_array_equal(run("take_along_axis", X[0], places, axis=0), [[X[0, 2, 0], X[0, 0, 1]]])
    got = run("put_along_axis", X[0], places, np.float32([[-1, -2]]), axis=0)
    want = X[0].copy()
    want[2, 0], want[0, 1] = -1, -2
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "kind, want",
    [("replace", [7, 1, 5]), ("sum", [12, 1, 5]), ("prod", [0, 1, 0]), ("max", [7, 1, 5]), ("min", [0, 1, 2])],
)
def test_put_along_axis_combines_and_drops(kind, want):
    x = np.array([0, 1, 2], np.float32)
    places, updates = (
        np.array([0, 3, 0, -4, 2]),
        np.array([5, 100, 7, 100, 0 if kind == "prod" else 5 if kind != "sum" else 3], np.float32),
    )
    assert run("put_along_axis", x, places, updates, axis=0, kind=kind).tolist() == want


def test_duplicates_keep_the_last_and_sums_are_rounded_once():
    x = np.zeros(1, np.float16)
    updates = np.array([2048, 1, 1], np.float16)
    assert run("put_along_axis", x, np.zeros(3, int), updates, kind="sum").tolist() == [2050], "2048 + 1 is 2048 in f16"
    assert run("put_along_axis", x, np.zeros(3, int), updates[::-1].copy()).tolist() == [2048]
    bits = run(
        "put_along_axis",
        np.zeros(1, ml_dtypes.int4),
        np.zeros(2, int),
        np.array([7, 2]).astype(ml_dtypes.int4),
        kind="sum",
    )
    assert bits.astype(int).tolist() == [-7], "i4 wraps"


def test_along_axis_types():
    assert facts_of("take_along_axis", tensor(F, B, S), tensor(I, B, 3), axis=1).type == tensor(F, B, 3)
    assert assumptions_of("take_along_axis", tensor(F, B, S), tensor(I, N, 3), axis=1) == ["N <= B"]
    with pytest.raises(InferenceError, match="dim 0 of indices: 3 is more than 2"):
        facts_of("take_along_axis", tensor(F, 2, 3), tensor(I, 3, 3), axis=1)
    with pytest.raises(InferenceError, match="kind must be one of replace, sum, prod, max, min, got 'mean'"):
        facts_of("put_along_axis", tensor(F, 2), tensor(I, 2), tensor(F, 2), kind="mean")
    with pytest.raises(InferenceError, match="kind sum needs a numeric type, got bool"):
        facts_of("put_along_axis", tensor(dtypes.bool_, 2), tensor(I, 2), tensor(dtypes.bool_, 2), kind="sum")


# gather and scatter against XLA


def windows(seed, least=0):
    """(x shape, indices, slice sizes, dimension numbers), random, with index vectors of at least `least` elements."""
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(1, 5))
    shape = rng.integers(1, 6, rank)
    axes = rng.permutation(rank)
    batching = sorted(int(a) for a in axes[: rng.integers(0, rank)][: rng.integers(0, 3)])
    rest = [int(a) for a in rng.permutation([a for a in range(rank) if a not in batching])]
    index_map = rest[: rng.integers(least, len(rest) + 1)]
    collapsed = sorted(a for a in rest if rng.random() < 0.4)
    sizes = [1 if a in batching or a in collapsed else int(rng.integers(1, shape[a] + 1)) for a in range(rank)]
    scattered = [int(n) for n in rng.integers(1, 4, rng.integers(0, 3))]
    lead = [int(shape[a]) for a in batching] + scattered
    order = rng.permutation(len(lead))
    lead = [lead[i] for i in order]
    places = [int(np.flatnonzero(order == i)[0]) for i in range(len(batching))]
    vector = int(rng.integers(0, len(lead) + 1))
    indices_shape = lead[:vector] + [len(index_map)] + lead[vector:]
    places = [p + (p >= vector) for p in places]
    kept = [a for a in range(rank) if a not in batching and a not in collapsed]
    out_rank = len(lead) + len(kept)
    offset = sorted(int(a) for a in rng.permutation(out_rank)[: len(kept)])
    indices = rng.integers(-2, 7, indices_shape).astype(np.int32)
    return tuple(int(n) for n in shape), indices, sizes, offset, collapsed, batching, places, index_map, vector, rng


SEEDS = range(40)


@pytest.mark.parametrize("seed", SEEDS)
def test_gather_is_that_of_xla(seed):
    import jax

    shape, indices, sizes, offset, collapsed, batching, places, index_map, vector, rng = windows(seed)
    x = rng.integers(0, 1000, shape).astype(np.int32)
    got = run(
        "gather",
        x,
        indices,
        offset_dims=offset,
        collapsed_slice_dims=collapsed,
        start_index_map=index_map,
        index_vector_dim=vector,
        slice_sizes=sizes,
        operand_batching_dims=batching,
        start_indices_batching_dims=places,
    )
    numbers, moved = jax_numbers(indices, places, vector)
    want = jax.lax.gather(
        x,
        moved,
        dimension_numbers=jax.lax.GatherDimensionNumbers(
            tuple(offset), tuple(collapsed), tuple(index_map), tuple(batching), numbers
        ),
        slice_sizes=tuple(sizes),
        mode="clip",
    )
    np.testing.assert_array_equal(got, want)


def jax_numbers(indices, places, vector):
    """jax wants the index vectors on the last axis: (batching dims, indices)."""
    return tuple(p - (p > vector) for p in places), np.moveaxis(indices, vector, -1)


@pytest.mark.parametrize("seed", SEEDS)
def test_scatter_is_that_of_xla(seed):
    import jax

    kind = ("sum", "max", "min", "prod")[seed % 4]
    # Of several windows at index vectors of length 0, XLA on the CPU places one only; the specification, and irc, all.
    shape, indices, sizes, window, inserted, batching, places, index_map, vector, rng = windows(seed, least=1)
    kept = [n for a, n in enumerate(sizes) if a not in inserted and a not in batching]
    lead = iter([n for i, n in enumerate(indices.shape) if i != vector])
    inside = iter(kept)
    updates_shape = [next(inside) if a in window else next(lead) for a in range(len(kept) + indices.ndim - 1)]
    x, updates = rng.integers(1, 50, shape).astype(np.int32), rng.integers(1, 50, updates_shape).astype(np.int32)
    got = run(
        "scatter",
        x,
        indices,
        updates,
        update_window_dims=window,
        inserted_window_dims=inserted,
        scatter_dims_to_operand_dims=index_map,
        index_vector_dim=vector,
        input_batching_dims=batching,
        scatter_indices_batching_dims=places,
        kind=kind,
    )
    numbers, moved = jax_numbers(indices, places, vector)
    rule = {
        "sum": jax.lax.scatter_add,
        "max": jax.lax.scatter_max,
        "min": jax.lax.scatter_min,
        "prod": jax.lax.scatter_mul,
    }[kind]
    want = rule(
        x,
        moved,
        updates,
        jax.lax.ScatterDimensionNumbers(tuple(window), tuple(inserted), tuple(index_map), tuple(batching), numbers),
        mode="drop",
    )
    np.testing.assert_array_equal(got, want)


SCATTER_ROWS = {
    "update_window_dims": (1,),
    "inserted_window_dims": (0,),
    "scatter_dims_to_operand_dims": (0,),
    "index_vector_dim": 1,
}


def test_scatter_replace_keeps_the_last_update():
    x = np.zeros((3, 2), np.float32)
    updates = np.arange(1, 9, dtype=np.float32).reshape(4, 2)
    got = run("scatter", x, np.array([[1], [1], [5], [-1]]), updates, **SCATTER_ROWS)
    assert got.tolist() == [[0, 0], [3, 4], [0, 0]]


@pytest.mark.parametrize("kind, want", [("and", [2, 6]), ("or", [7, 14]), ("xor", [5, 8])])
def test_scatter_of_bits(kind, want):
    x = np.array([[6, 14]])
    got = run("scatter", x, np.array([[0]]), np.array([[3, 6]]), kind=kind, **SCATTER_ROWS)
    assert got.tolist() == [want]
    flags = run(
        "scatter", np.array([[True, False]]), np.array([[0]]), np.array([[True, True]]), kind=kind, **SCATTER_ROWS
    )
    assert flags.tolist() == [[kind != "xor", kind != "and"]]


def test_scatter_custom_runs_the_body_in_order():
    def body(b):
        return b.region([tensor(F)] * 2, lambda b, old, new: b.subtract(b.multiply(old, 10.0), new))

    got = run(
        "scatter",
        np.ones((2, 1), np.float32),
        np.array([[0], [0]]),
        np.array([[1], [2]], np.float32),
        kind="custom",
        body=body,
        **SCATTER_ROWS,
    )
    assert got.tolist() == [[88.0], [1.0]]


def test_a_window_that_is_not_wholly_inside_is_dropped():
    got = run(
        "scatter",
        np.zeros(5, np.float32),
        np.array([[3], [4], [-1], [0]]),
        np.ones((4, 2), np.float32),
        update_window_dims=(1,),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=(0,),
        index_vector_dim=1,
        kind="sum",
    )
    assert got.tolist() == [1, 1, 0, 1, 1]


def test_windows_at_empty_index_vectors_are_all_placed():
    got = run(
        "scatter",
        np.zeros(2, np.int32),
        np.zeros((3, 0), np.int32),
        np.array([[1, 2], [3, 4], [5, 6]], np.int32),
        update_window_dims=(1,),
        inserted_window_dims=(),
        scatter_dims_to_operand_dims=(),
        index_vector_dim=1,
        kind="sum",
    )
    assert got.tolist() == [9, 12]


def test_gather_and_scatter_of_symbolic_dims():
    keywords = {
        "offset_dims": (2,),
        "collapsed_slice_dims": (1,),
        "start_index_map": (1,),
        "index_vector_dim": 2,
        "operand_batching_dims": (0,),
    }
    fact = facts_of(
        "gather",
        tensor(F, B, S, N),
        tensor(I, B, 5, 1),
        slice_sizes=(1, 1, N),
        start_indices_batching_dims=(0,),
        **keywords,
    )
    assert fact.type == tensor(F, B, 5, N)
    assert facts_of("scatter", tensor(F, B, N), tensor(I, S, 1), tensor(F, S, N), **SCATTER_ROWS).type == tensor(
        F, B, N
    )


@pytest.mark.parametrize(
    "change, message",
    [
        ({"offset_dims": (0, 1)}, r"offset_dims must name 1 axes, one for each axis that a slice keeps, got \[0, 1\]"),
        ({"offset_dims": (5,)}, r"offset_dims \[5\] are out of range for rank 2"),
        ({"slice_sizes": (1, 5)}, "slice size 1: 5 is more than 4"),
        ({"slice_sizes": (2, 4)}, "slice size 0 of a collapsed or batching axis: 2 is more than 1"),
        (
            {"start_index_map": (0, 1)},
            "the length of an index vector and the number of axes that it addresses must be equal, got 1 and 2",
        ),
        ({"index_vector_dim": 3}, r"index_vector_dim 3 is out of range for i64\[6,1\]"),
        (
            {"operand_batching_dims": (0,), "start_indices_batching_dims": (0,)},
            "no axis may be both collapsed and batching",
        ),
    ],
)
def test_gather_rejects(change, message):
    keywords = {
        "offset_dims": (1,),
        "collapsed_slice_dims": (0,),
        "start_index_map": (0,),
        "index_vector_dim": 1,
        "slice_sizes": (1, 4),
    }
    assert facts_of("gather", tensor(F, 3, 4), tensor(I, 6, 1), **keywords).type == tensor(F, 6, 4)
    with pytest.raises(InferenceError, match=message):
        facts_of("gather", tensor(F, 3, 4), tensor(I, 6, 1), **{**keywords, **change})


def test_scatter_rejects():
    x, i = tensor(F, 3, 4), tensor(I, 6, 1)
    with pytest.raises(InferenceError, match=r"updates must have rank 2, got f32\[6\]"):
        facts_of("scatter", x, i, tensor(F, 6), **SCATTER_ROWS)
    with pytest.raises(
        InferenceError, match=r"scatter dims of indices and updates \(axis 0\) must be equal, got 6 and 5"
    ):
        facts_of("scatter", x, i, tensor(F, 5, 4), **SCATTER_ROWS)
    with pytest.raises(InferenceError, match="window dim 1 of updates: 5 is more than 4"):
        facts_of("scatter", x, i, tensor(F, 6, 5), **SCATTER_ROWS)
    with pytest.raises(InferenceError, match="kind custom, and no other, takes a body"):
        facts_of("scatter", x, i, tensor(F, 6, 4), kind="custom", **SCATTER_ROWS)


# Blocks at run-time starts


@pytest.mark.parametrize("start", [-3, 0, 1, 2, 9])
def test_dynamic_slices_clamp(start):
    starts = [np.array(0), np.array(start), np.array(1)]
    first = min(max(start, 0), 1)
    np.testing.assert_array_equal(run("dynamic_slice", X, starts, sizes=(2, 2, 3)), X[:, first : first + 2, 1:4])
    want = X.copy()
    want[:, first : first + 2, 1:4] = -1
    np.testing.assert_array_equal(run("dynamic_update_slice", X, np.full((2, 2, 3), -1, np.float32), starts), want)


def test_dynamic_slice_types():
    zero = tensor(I)
    assert facts_of("dynamic_slice", tensor(F, B, S), (zero, zero), sizes=(1, N)).type == tensor(F, 1, N)
    assert facts_of("dynamic_slice", shape_fact((B, S, N)), (Fact(zero, (1,)),), sizes=(2,)).ints == (S, N)
    assert facts_of("dynamic_update_slice", tensor(F, B, S), tensor(F, B, 1), (zero, zero)).type == tensor(F, B, S)
    assert assumptions_of("dynamic_slice", tensor(F, S), (zero,), sizes=(3,)) == ["3 <= S"]
    with pytest.raises(InferenceError, match=r"there must be one start for each axis of f32\[B,S\], got 1"):
        facts_of("dynamic_slice", tensor(F, B, S), (zero,), sizes=(1, 1))
    with pytest.raises(InferenceError, match=r"starts must be scalars, got i64\[1\]"):
        facts_of("dynamic_slice", tensor(F, B), (tensor(I, 1),), sizes=(1,))


# ONNX's composites


@pytest.mark.parametrize("batch_dims, count", [(0, 1), (0, 3), (1, 1), (1, 2), (2, 1), (2, 2), (0, 0), (1, 0)])
@pytest.mark.parametrize("dtype", ["i64", "i32", "i8", "u8"])
def test_gather_nd(batch_dims, count, dtype):
    rng = np.random.default_rng(7)
    x = rng.random((2, 3, 4, 5)).astype(np.float32)
    low = 0 if dtype == "u8" else -3
    shape = (*x.shape[:batch_dims], 6, count)
    limits = np.array(x.shape[batch_dims : batch_dims + count]).reshape(-1)
    indices = (rng.integers(0, 100, shape) % np.maximum(limits, 1)).astype(np.int64)
    if low:
        indices = np.where(rng.random(shape) < 0.5, indices - limits, indices)
    want = np.empty((*shape[:-1], *x.shape[batch_dims + count :]), np.float32)
    for place in itertools.product(*map(range, shape[:-1])):
        want[place] = x[place[:batch_dims]][tuple(int(i) for i in indices[place])]
    indices = indices.astype(dtypes.DType.of(dtype).numpy)
    for decompose in (False, True):
        np.testing.assert_array_equal(run("GatherND", x, indices, batch_dims=batch_dims, decompose=decompose), want)


def test_gather_nd_clamps():
    x = np.arange(6).reshape(2, 3)
    for decompose in (False, True):
        got = run("GatherND", x, np.array([[5, -9], [-2, 3], [0, -1]]), decompose=decompose)
        assert got.tolist() == [3, 2, 2]


def test_gather_nd_of_strings():
    assert run("GatherND", np.array([["a", "b"], ["c", "d"]], object), np.array([[1, 0]])).tolist() == ["c"]


def test_gather_nd_types():
    assert facts_of("GatherND", tensor(F, B, S, N), tensor(I, B, 7, 1), batch_dims=1).type == tensor(F, B, 7, N)
    with pytest.raises(
        InferenceError,
        match=r"the last dim of indices is the length of an index tuple and must be a number, got i64\[3,S\]",
    ):
        facts_of("GatherND", tensor(F, B), tensor(I, 3, S))
    with pytest.raises(InferenceError, match=r"index tuples of 3 behind 0 batch dims are too long for f32\[B,S\]"):
        facts_of("GatherND", tensor(F, B, S), tensor(I, 3, 3))


@pytest.mark.parametrize("kind", ["replace", "sum", "prod", "max", "min"])
@pytest.mark.parametrize("dtype", ["f32", "i32"])
def test_scatter_nd(kind, dtype):
    rng = np.random.default_rng(3)
    dtype = dtypes.DType.of(dtype)
    x = rng.integers(1, 9, (3, 4, 2)).astype(dtype.numpy)
    indices = np.array([[0, 1], [2, -1], [0, 1], [3, 0], [-4, 0], [0, 4]])
    updates = rng.integers(1, 9, (6, 2)).astype(dtype.numpy)
    rule = {"replace": lambda a, b: b, "sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}[kind]
    want = x.copy()
    for place, update in zip(indices[:3], updates[:3], strict=True):
        want[tuple(place)] = rule(want[tuple(place)], update)
    for decompose in (False, True):
        np.testing.assert_array_equal(run("ScatterND", x, indices, updates, kind=kind, decompose=decompose), want)


def test_scatter_nd_types():
    x = tensor(F, B, S, N)
    assert facts_of("ScatterND", x, tensor(I, 7, 2), tensor(F, 7, N)).type == x
    with pytest.raises(
        InferenceError,
        match=r"dims that indices and x ask of updates, and those of updates, \(axis 0\) must be equal, got 7 and 6",
    ):
        facts_of("ScatterND", x, tensor(I, 7, 2), tensor(F, 6, N))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", ["i64", "i8", "u8", "f32"])
def test_one_hot(axis, dtype):
    dtype = dtypes.DType.of(dtype)
    indices = np.array([[0, 3, 4], [1, 2, 9]] if dtype.kind == "uint" else [[0, -1, 4], [-5, 2, -4]]).astype(
        dtype.numpy
    )
    values = np.array([2, 7], np.float16)
    want = np.full((2, 3, 4), 2, np.float16)
    for (i, j), v in np.ndenumerate(indices):
        if -4 <= v < 4:
            want[i, j, int(v)] = 7
    want = np.moveaxis(want, -1, axis)
    for decompose in (False, True):
        np.testing.assert_array_equal(run("OneHot", indices, values, depth=4, axis=axis, decompose=decompose), want)


def test_one_hot_types():
    assert facts_of("OneHot", tensor(I, B, S), tensor(F, 2), depth=N, axis=1).type == tensor(F, B, N, S)
    got = run(
        "OneHot", np.array([1, -1]), np.array([0, 1]), types=[tensor(I, 2), tensor(I, 2)], depth=3, decompose=True
    )
    assert got.tolist() == [[0, 1, 0], [0, 0, 1]]
    with pytest.raises(InferenceError, match="the length of values and 2 must be equal, got 3 and 2"):
        facts_of("OneHot", tensor(I, B), tensor(F, 3), depth=4)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_every_element_type_moves(dtype):
    x = np.array(["a", "b", "c"], object) if dtype.is_string else np.array([1, 0, 1]).astype(dtype.numpy)
    got = run("take", x, np.array([2, 1]), axis=0)
    assert got.dtype == dtype.numpy
    assert got.tolist() == [x[2], x[1]] or dtype is dtypes.f8e8m0fnu
    assert facts_of("take", TensorType(dtype, (B,)), tensor(I, 2), axis=0).type == tensor(dtype, 2)
