"""ONNX lowering of operators that pick or place elements by index.

ONNX leaves indices out of range undefined, so takes clamp unless the indices are known to be in range.
"""

from __future__ import annotations

from ...ir import dtypes
from .lowering import lower

REDUCTIONS = {"replace": "none", "sum": "add", "prod": "mul", "max": "max", "min": "min"}


def _wide(ctx, indices):
    """Indices as i64; those that only u64 holds become the greatest, since a plain cast would make them negative."""
    if indices.dtype is dtypes.u64:
        most = ctx.constant(int(dtypes.i64.max_value()), dtypes.u64)
        indices = ctx.op("Min", indices, most, type=indices.type)
    return ctx.cast(indices, dtypes.i64)


def _clamped(ctx, indices, size):
    """Indices limited to [-size, size), which ONNX accepts; as they are if the model knows them to be inside."""
    if (
        isinstance(size, int)
        and indices.ints is not None
        and all(isinstance(i, int) and -size <= i < size for i in indices.ints)
    ):
        return indices
    wide = _wide(ctx, indices)
    low, high = ctx.reshape(ctx.ints([-1 * size]), ()), ctx.reshape(ctx.ints([size - 1]), ())
    return ctx.op("Clip", wide, low, high, type=wide.type)


@lower("take")
def take(ctx, x, indices, *, axis):
    return ctx.op("Gather", x, _clamped(ctx, indices, x.dims[axis]), axis=axis)


@lower("take_along_axis")
def take_along_axis(ctx, x, indices, *, axis):
    return ctx.op("GatherElements", x, _clamped(ctx, indices, x.dims[axis]), axis=axis)


def _in_range(ctx, x, indices, updates, *, axis, kind):
    if kind not in REDUCTIONS:
        return f"ONNX cannot combine by {kind}"
    size = x.dims[axis]
    if (
        indices.ints is not None
        and isinstance(size, int)
        and all(isinstance(i, int) and -size <= i < size for i in indices.ints)
    ):
        return None
    return "ONNX does not drop updates whose index is out of range"


@lower("put_along_axis", when=_in_range)
def put_along_axis(ctx, x, indices, updates, *, axis, kind):
    return ctx.op("ScatterElements", x, indices, updates, axis=axis, reduction=REDUCTIONS[kind])


@lower("GatherND")
def gather_nd(ctx, x, indices, *, batch_dims):
    depth = indices.dims[-1]
    picked = x.dims[batch_dims : batch_dims + depth]
    wide = _wide(ctx, indices)
    low, high = ctx.ints([-1 * d for d in picked]), ctx.ints([d - 1 for d in picked])
    clamped = ctx.op("Min", ctx.op("Max", wide, low, type=wide.type), high, type=wide.type)
    return ctx.op("GatherND", x, clamped, batch_dims=batch_dims)


def _indices_fit(ctx, indices, values, *, depth, axis):
    return "u64 indices do not fit i64, the integers that it takes" if indices.dtype is dtypes.u64 else None


@lower("OneHot", when=_indices_fit)
def one_hot(ctx, indices, values, *, depth, axis):
    """ONNX Runtime has kernels for i64 indices, and for f32 and f16 ones of few types of values."""
    if not indices.dtype.is_float or values.dtype.is_float:
        indices = ctx.cast(indices, dtypes.i64)
    return ctx.op("OneHot", indices, ctx.ints([depth]), values, axis=axis)


def _begin(ctx, x, starts, sizes):
    """Starts as an i64 vector, clamped so that the block fits."""
    vector = [ctx.reshape(_wide(ctx, s), (1,)) for s in starts]
    type_ = vector[0].tensor.with_dims([len(vector)])
    joined = ctx.op("Concat", *vector, type=type_, axis=0)
    last = ctx.ints([d - s for d, s in zip(x.dims, sizes, strict=True)])
    return ctx.op(
        "Max", ctx.op("Min", joined, last, type=type_), ctx.constant([0] * len(vector), dtypes.i64), type=type_
    )


@lower("dynamic_slice")
def dynamic_slice(ctx, x, starts, *, sizes):
    if not starts:
        return x
    begin = _begin(ctx, x, starts, sizes)
    end = ctx.op("Add", begin, ctx.ints(sizes), type=begin.type)
    return ctx.op("Slice", x, begin, end, ctx.constant(list(range(x.rank)), dtypes.i64))


@lower("dynamic_update_slice")
def dynamic_update_slice(ctx, x, update, starts):
    """ScatterND at the grid of the block's indices."""
    if not starts:
        return update
    begin = _begin(ctx, x, starts, update.dims)
    grid = begin.tensor.with_dims([*update.dims, 1])
    columns = []
    for axis, size in enumerate(update.dims):
        line = ctx.op(
            "Range",
            ctx.constant(0, dtypes.i64),
            ctx.reshape(ctx.ints([size]), ()),
            ctx.constant(1, dtypes.i64),
            type=begin.tensor.with_dims([size]),
        )
        first = ctx.op("Gather", begin, ctx.constant(axis, dtypes.i64), type=begin.tensor.with_dims([]))
        placed = ctx.reshape(
            ctx.op("Add", line, first, type=line.type), [size if i == axis else 1 for i in range(x.rank)] + [1]
        )
        columns.append(ctx.broadcast(placed, grid.dims))
    indices = ctx.op("Concat", *columns, type=grid.with_dims([*update.dims, x.rank]), axis=-1)
    return ctx.op("ScatterND", x, indices, update)
