"""Operators that pick or place elements by index.  MLX checks no index, so every one is clamped or dropped here."""

import numpy as np

from ...ir import dims as sizes
from ...ir import dtypes
from . import types
from .lowering import lower


def _nonempty(size):
    return sizes.less_equal(1, size) is True


@lower("take")
def take(ctx, x, indices, *, axis):
    axis %= x.rank
    dims = ctx.result_types[0].shape
    if x.dims[axis] == 0:
        return ctx.call("mx.zeros", dims, f"dtype={types.spelling(x.dtype)}", dtype=x.dtype, dims=dims)
    place = _single(indices, x.dims[axis])
    if place is not None and indices.rank == 0:
        return ctx.index(x, *[":"] * axis, str(place), dims=dims)
    return ctx.call("mx.take", x, ctx.clamped(indices, x.dims[axis]), axis=axis, dims=dims)


def _single(indices, size):
    """A constant index that is inside an axis of known size."""
    if indices.data is None or indices.data.size != 1 or not isinstance(size, int):
        return None
    number = int(indices.data.reshape(-1)[0])
    return number if -size <= number < size else None


def _places(ctx, indices):
    """Indices as recipes take them; those that only u64 holds become the greatest i64: wrapped, they were negative."""
    if indices.dtype is not dtypes.u64:
        return ctx.wide(indices)
    return ctx.convert(ctx.call("mx.minimum", indices, int(dtypes.i64.max_value())), dtypes.i64)


@lower("take_along_axis")
def take_along_axis(ctx, x, indices, *, axis):
    axis %= x.rank
    if x.dims[axis] == 0:
        return ctx.call("mx.zeros", indices.dims, f"dtype={types.spelling(x.dtype)}", dtype=x.dtype, dims=indices.dims)
    cut = [
        ":" if a == axis or sizes.equal(i, n) else f":{ctx.size(i)}"
        for a, (i, n) in enumerate(zip(indices.dims, x.dims, strict=True))
    ]
    while cut and cut[-1] == ":":
        cut.pop()
    source = ctx.index(x, *cut) if cut else x
    place = ctx.clamped(indices, x.dims[axis])
    return ctx.call("mx.take_along_axis", source, place, axis=axis, dims=indices.dims)


@lower("put_along_axis")
def put_along_axis(ctx, x, indices, updates, *, axis, kind):
    return combined(ctx, "_put_along", x, _places(ctx, indices), updates, axis % x.rank, kind)


def _starts(ctx, starts, limits):
    """(vector of starts that are not constant 0, the axes they belong to)."""
    rows = [(a, s, n) for a, (s, n) in enumerate(zip(starts, limits, strict=True)) if s.number != 0]
    vector = ctx.recipe(
        "_starts", [_places(ctx, s) for _, s, _ in rows], [n for _, _, n in rows], dtype=dtypes.i32, dims=(len(rows),)
    )
    return vector, [a for a, _, _ in rows]


@lower("dynamic_slice")
def dynamic_slice(ctx, x, starts, *, sizes):
    dims = tuple(sizes)
    vector, axes = _starts(ctx, starts, [n - k for n, k in zip(x.dims, dims, strict=True)])
    if not axes:
        cut = [":" if k == n else f":{ctx.size(k)}" for k, n in zip(dims, x.dims, strict=True)]
        return ctx.index(x, *cut, dims=dims) if any(c != ":" for c in cut) else x
    return ctx.call("mx.slice", x, vector, tuple(axes), dims, dims=dims)


@lower("dynamic_update_slice")
def dynamic_update_slice(ctx, x, update, starts):
    if not x.rank:
        return update
    vector, axes = _starts(ctx, starts, [n - k for n, k in zip(x.dims, update.dims, strict=True)])
    if not axes:
        vector, axes = ctx.array(np.zeros(1, np.int32)), [0]
    return ctx.call("mx.slice_update", x, update, vector, tuple(axes), dims=x.dims)


@lower("gather")
def gather(
    ctx, x, indices, *, offset_dims, collapsed_slice_dims, start_index_map, index_vector_dim, slice_sizes,
    operand_batching_dims, start_indices_batching_dims,
):  # fmt: skip
    dims = ctx.result_types[0].shape
    rows = _rows(
        ctx,
        x,
        indices,
        offset_dims,
        collapsed_slice_dims,
        start_index_map,
        index_vector_dim,
        slice_sizes,
        operand_batching_dims,
    )
    if rows is not None:
        return rows
    dropped = sorted((*collapsed_slice_dims, *operand_batching_dims))
    pairs = list(zip(operand_batching_dims, start_indices_batching_dims, strict=True))
    return ctx.recipe(
        "_gather", x, _places(ctx, indices), list(slice_sizes), index_vector_dim, list(start_index_map), dropped,
        list(offset_dims), pairs, dims=dims,
    )  # fmt: skip


def _rows(ctx, x, indices, offset_dims, collapsed, index_map, vector_dim, slice_sizes, batching):
    """`mx.take` where whole slices along one axis are gathered, or None."""
    if len(index_map) != 1 or tuple(collapsed) != tuple(index_map) or batching or not _nonempty(x.dims[index_map[0]]):
        return None
    axis = index_map[0]
    if any(a != axis and not sizes.equal(k, n) for a, (k, n) in enumerate(zip(slice_sizes, x.dims, strict=True))):
        return None
    lead = indices.rank - (vector_dim < indices.rank)
    if slice_sizes[axis] != 1 or tuple(offset_dims) != tuple(
        i for i in range(x.rank - 1 + lead) if not axis <= i < axis + lead
    ):
        return None
    dims = [d for i, d in enumerate(indices.dims) if i != vector_dim]
    place = ctx.call("mx.clip", _signed(ctx, _places(ctx, indices)), 0, x.dims[axis] - 1)
    return ctx.call("mx.take", x, ctx.reshape(place, dims), axis=axis, dims=ctx.result_types[0].shape)


def _signed(ctx, indices):
    if indices.dtype in (dtypes.i32, dtypes.i64):
        return indices
    wide = dtypes.i64 if indices.dtype.bits >= 32 else dtypes.i32
    return ctx.convert(indices, wide)


@lower("scatter")
def scatter(
    ctx, x, indices, updates, *, update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
    index_vector_dim, input_batching_dims, scatter_indices_batching_dims, kind, body,
):  # fmt: skip
    dropped = sorted((*inserted_window_dims, *input_batching_dims))
    window = iter(updates.dims[d] for d in update_window_dims)
    lengths = [1 if axis in dropped else next(window) for axis in range(x.rank)]
    pairs = list(zip(input_batching_dims, scatter_indices_batching_dims, strict=True))
    numbers = (lengths, index_vector_dim, list(scatter_dims_to_operand_dims), dropped, list(update_window_dims), pairs)
    ctx.emitter.is_straight &= kind not in ("and", "or", "xor", "custom")
    if kind in ("and", "or", "xor"):
        name = f"mx.bitwise_{kind}"
        return ctx.recipe("_scatter_each", x, _places(ctx, indices), updates, *numbers, name, dims=x.dims)
    if kind == "custom":
        name = ctx.function(body, "combine", [(1,), (1,)])
        return ctx.recipe("_scatter_each", x, _places(ctx, indices), updates, *numbers, name, dims=x.dims)
    return combined(ctx, "_scatter", x, _places(ctx, indices), updates, *numbers, kind)


def combined(ctx, recipe, x, indices, updates, *numbers_and_kind):
    """A recipe that combines updates; sums and products of narrow floats run in f32 and are rounded once."""
    *numbers, kind = numbers_and_kind
    dtype = x.dtype
    wide = (lambda v: v) if kind == "replace" else ctx.wide
    if kind in ("sum", "prod"):
        wide = lambda v: ctx.convert(ctx.wide(v), types.accumulator(dtype))  # noqa: E731
    x, updates = wide(x), wide(updates)
    out = ctx.recipe(recipe, x, indices, updates, *numbers, f'"{kind}"', dims=x.dims)
    if kind == "replace":
        return ctx.typed(out, dtype)
    return ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)
