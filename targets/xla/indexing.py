"""Operators that pick or place elements by index.

XLA clamps the starts of gathers and dynamic slices and drops scattered windows that are not wholly inside, as irc does;
what is added here is negative indices, indices of any width, and one order of duplicates.
"""

from ...ir import dtypes
from . import types
from .lowering import lower
from .mlir import hlo, ir


def _index_type(size):
    return dtypes.i32 if size < 1 << 31 else dtypes.i64


def _wide_index(ctx, x):
    """An index in a type that holds all its values, i32 if it can.  u64 beyond i64 turns into the greatest i64."""
    if x.dtype is dtypes.u64:
        x = ctx.apply("minimum", x, ctx.full_like(x, (1 << 63) - 1))
        return ctx.convert(x, dtypes.i64)
    return ctx.convert(x, dtypes.i64 if x.dtype in (dtypes.i64, dtypes.u32) else dtypes.i32)


def _from_end(ctx, x, size):
    """Negative indices counted from the end, once; unsigned ones have none."""
    wide = _wide_index(ctx, x)
    if wide.dtype is dtypes.i32 and size >= 1 << 31:
        wide = ctx.convert(wide, dtypes.i64)
    if not x.dtype.is_signed:
        return wide
    return ctx.select(ctx.compare(wide, 0, "lt"), ctx.apply("add", wide, ctx.full_like(wide, size)), wide)


def _clamped(ctx, x, low, high):
    """x limited to [low, high] and narrowed to i32 if the bounds fit."""
    wide = _wide_index(ctx, x) if x.dtype not in (dtypes.i32, dtypes.i64) else x
    limited = ctx.apply("minimum", ctx.apply("maximum", wide, ctx.full_like(wide, low)), ctx.full_like(wide, high))
    return ctx.convert(limited, _index_type(high))


def _gather(ctx, x, indices, sizes, *, offset, collapsed, start_map, vector_dim, x_batch=(), index_batch=()):
    numbers = hlo.GatherDimensionNumbers.get(
        list(offset), list(collapsed), list(x_batch), list(index_batch), list(start_map), vector_dim
    )
    value = hlo.gather(x.value, indices.value, numbers, ir.DenseI64ArrayAttr.get(list(sizes)))
    return ctx.wrap(value, x.dtype)


@lower("take")
def take(ctx, x, indices, *, axis):
    axis %= x.rank
    dims = x.dims[:axis] + indices.dims + x.dims[axis + 1 :]
    if 0 in x.dims or 0 in dims:
        return ctx.full(0, x.dtype, dims)
    size = x.dims[axis]
    indices = _clamped(ctx, _from_end(ctx, indices, size), 0, size - 1)
    offset = [i for i in range(len(dims)) if not axis <= i < axis + indices.rank]
    sizes = [*x.dims[:axis], 1, *x.dims[axis + 1 :]]
    return _gather(ctx, x, indices, sizes, offset=offset, collapsed=[axis], start_map=[axis], vector_dim=indices.rank)


@lower("take_along_axis")
def take_along_axis(ctx, x, indices, *, axis):
    axis %= x.rank
    if 0 in x.dims or 0 in indices.dims:
        return ctx.full(0, x.dtype, indices.dims)
    limits = [x.dims[a] if a == axis else n for a, n in enumerate(indices.dims)]
    x = ctx.slice(x, [0] * x.rank, limits)
    size = x.dims[axis]
    wide = _clamped(ctx, _from_end(ctx, indices, size), 0, size - 1)
    batch = [a for a in range(x.rank) if a != axis]
    return _gather(
        ctx, x, wide, [1] * x.rank, offset=[], collapsed=[axis], start_map=[axis], vector_dim=x.rank,
        x_batch=batch, index_batch=batch,
    )  # fmt: skip


@lower("gather")
def gather(
    ctx, x, indices, *, offset_dims, collapsed_slice_dims, start_index_map, index_vector_dim, slice_sizes,
    operand_batching_dims, start_indices_batching_dims,
):  # fmt: skip
    _, dims = ctx.result_types[0]
    if 0 in x.dims or 0 in dims:
        return ctx.full(0, x.dtype, dims)
    return _gather(
        ctx, x, _wide_index(ctx, indices), slice_sizes, offset=offset_dims, collapsed=collapsed_slice_dims,
        start_map=start_index_map, vector_dim=index_vector_dim, x_batch=operand_batching_dims,
        index_batch=start_indices_batching_dims,
    )  # fmt: skip


COMBINE = {
    "sum": ("add", "or_"), "prod": ("multiply", "and_"), "max": ("maximum", "or_"), "min": ("minimum", "and_"),
    "and": ("and_", "and_"), "or": ("or_", "or_"), "xor": ("xor", "xor"),
}  # fmt: skip
"""StableHLO's operator for each kind of combination: on numbers, on bool."""


def combine(ctx, kind, a, b):
    return ctx.apply(COMBINE[kind][a.dtype.is_bool], a, b)


def _scatter(ctx, x, indices, updates, kind, numbers, body=None):
    """One scatter.  Sums and products of narrow floats run in f32 and are rounded once."""
    dtype = x.dtype
    if kind in ("sum", "prod"):
        x, updates = (ctx.convert(v, types.accumulator(dtype)) for v in (x, updates))
    elif kind != "replace" and kind != "custom":
        x, updates = ctx.carried(x), ctx.carried(updates)
    operation = hlo.ScatterOp(
        [x.value.type],
        [x.value],
        indices.value,
        [updates.value],
        numbers,
        indices_are_sorted=False,
        unique_indices=False,
    )
    if kind == "custom":
        ctx.graph_body(operation, body)
    elif kind == "replace":
        ctx.body(operation, [x.dtype] * 2, lambda old, new: new)
    else:
        ctx.body(operation, [x.dtype] * 2, lambda old, new: combine(ctx, kind, old, new))
    return ctx.convert(ctx.wrap(operation.results[0], x.dtype), dtype)


@lower("scatter")
def scatter(
    ctx, x, indices, updates, *, update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
    index_vector_dim, input_batching_dims, scatter_indices_batching_dims, kind, body,
):  # fmt: skip
    if 0 in updates.dims or 0 in x.dims:
        return x
    numbers = hlo.ScatterDimensionNumbers.get(
        list(update_window_dims), list(inserted_window_dims), list(input_batching_dims),
        list(scatter_indices_batching_dims), list(scatter_dims_to_operand_dims), index_vector_dim,
    )  # fmt: skip
    return _scatter(ctx, x, _wide_index(ctx, indices), updates, kind, numbers, body)


@lower("put_along_axis")
def put_along_axis(ctx, x, indices, updates, *, axis, kind):
    """Every update gets a full index, so that XLA's rule on what is outside applies to it alone."""
    axis %= x.rank
    if 0 in updates.dims or 0 in x.dims:
        return x
    wide = _from_end(ctx, indices, x.dims[axis])
    places = [wide if a == axis else ctx.iota(wide.dtype, wide.dims, a) for a in range(x.rank)]
    full = ctx.concatenate([ctx.reshape(p, (*p.dims, 1)) for p in places], x.rank)
    every = list(range(x.rank))
    numbers = hlo.ScatterDimensionNumbers.get([], every, [], [], every, x.rank)
    return _scatter(ctx, x, full, updates, kind, numbers)


def _starts(ctx, starts, dims, sizes):
    """Run-time starts clamped so that the block fits, in one element type."""
    made = _index_type(max(dims, default=0))
    out = [_clamped(ctx, s, 0, n - k) for s, n, k in zip(starts, dims, sizes, strict=True)]
    return [ctx.convert(s, made).value for s in out]


@lower("dynamic_slice")
def dynamic_slice(ctx, x, starts, *, sizes):
    if not x.rank:
        return x
    return ctx.wrap(hlo.dynamic_slice(x.value, _starts(ctx, starts, x.dims, sizes), list(sizes)), x.dtype)


@lower("dynamic_update_slice")
def dynamic_update_slice(ctx, x, update, starts):
    if not x.rank:
        return update
    if 0 in update.dims:
        return x
    return ctx.wrap(hlo.dynamic_update_slice(x.value, update.value, _starts(ctx, starts, x.dims, update.dims)), x.dtype)
