"""ONNX lowering of operators that pick or place elements by index.

ONNX leaves indices out of range undefined, so takes clamp unless the indices are known to be in range.
"""

from __future__ import annotations

import numpy as np

from ...ir import dtypes
from ...ir.types import TensorType
from .late import files_only
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


def _combines(ctx, x, indices, updates, *, kind, axis=None):
    return None if kind in REDUCTIONS else f"ONNX cannot combine by {kind}"


def _known_inside(indices, sizes):
    """Whether all indices are known and in range; `sizes` belongs to the last axis, or is one for all."""
    if indices.ints is None or not all(isinstance(n, int) for n in sizes):
        return False
    rows = (sizes[i % len(sizes)] for i in range(len(indices.ints)))
    return all(isinstance(i, int) and -n <= i < n for i, n in zip(indices.ints, rows, strict=True))


def _places(ctx, indices, sizes):
    """(i64 indices counted from the beginning, whether each is in range)."""
    wide = _wide(ctx, indices)
    boolean = wide.tensor.with_dtype(dtypes.bool_)
    many = ctx.ints(sizes)
    above = ctx.op("GreaterOrEqual", wide, ctx.ints([-1 * n for n in sizes]), type=boolean)
    below = ctx.op("Less", wide, many, type=boolean)
    negative = ctx.op("Less", wide, ctx.like(0, wide), type=boolean)
    counted = ctx.op("Where", negative, ctx.op("Add", wide, many, type=wide.type), wide, type=wide.type)
    return counted, ctx.op("And", above, below, type=boolean)


def _room(ctx, x, axis):
    """x with one element more along an axis, where updates go that count for nothing."""
    dims = [1 if a == axis else d for a, d in enumerate(x.dims)]
    filler = ctx.broadcast(ctx.like(False if x.dtype.is_bool else 0, x), dims)
    wide = [d + 1 if a == axis else d for a, d in enumerate(x.dims)]
    return ctx.op("Concat", x, filler, axis=axis, type=x.tensor.with_dims(wide))


def _without_room(ctx, y, axis, size):
    return ctx.op("Slice", y, ctx.ints([0]), ctx.ints([size]), ctx.ints([axis]))


def _scattered(ctx, operator, x, places, updates, **how):
    """The node that updates; ONNX Runtime passes over a NaN that comes before another number."""
    out = ctx.op(operator, x, places, updates, type=x.type, **how)
    if not ctx.dialect.runtime or how["reduction"] not in ("max", "min") or not x.dtype.is_float:
        return out
    boolean, numbers = (x.tensor.with_dtype(d) for d in (dtypes.bool_, dtypes.i32))
    flags = [ctx.cast(ctx.op("IsNaN", v, type=v.tensor.with_dtype(dtypes.bool_)), dtypes.i32) for v in (x, updates)]
    odd = ctx.op(operator, flags[0], places, flags[1], type=numbers, **{**how, "reduction": "max"})
    nan = ctx.like(np.nan, x)
    return ctx.op("Where", ctx.op("Cast", odd, to=dtypes.bool_.onnx, type=boolean), nan, out, type=x.type)


@lower("put_along_axis", when=_combines)
def put_along_axis(ctx, x, indices, updates, *, axis, kind):
    """Updates out of range go to one element more, which is cut off; files leave it at ONNX's word that none is."""
    axis %= x.rank
    size, how = x.dims[axis], {"axis": axis, "reduction": REDUCTIONS[kind]}
    if not ctx.dialect.runtime or _known_inside(indices, [size]):
        return _scattered(ctx, "ScatterElements", x, _wide(ctx, indices), updates, **how)
    places, inside = _places(ctx, indices, [size])
    places = ctx.op("Where", inside, places, ctx.ints([size]), type=places.type)
    room = _room(ctx, x, axis)
    return _without_room(ctx, _scattered(ctx, "ScatterElements", room, places, updates, **how), axis, size)


def _scatters(ctx, x, indices, updates, *, kind):
    if ctx.dialect.runtime and 0 in x.dims[1:]:
        return "ONNX Runtime has no place for updates of nothing"
    return _combines(ctx, x, indices, updates, kind=kind)


@lower("ScatterND", when=_scatters)
def scatter_nd(ctx, x, indices, updates, *, kind):
    """As `put_along_axis`, along the first axis."""
    picked, how = list(x.dims[: indices.dims[-1]]), {"reduction": REDUCTIONS[kind]}
    if not picked:
        ctx.refuse("ONNX's index tuples have an element or more")
    if not ctx.dialect.runtime or _known_inside(indices, picked):
        return _scattered(ctx, "ScatterND", x, _wide(ctx, indices), updates, **how)
    places, inside = _places(ctx, indices, picked)
    row = TensorType(dtypes.i32, (*places.dims[:-1], 1))
    all_inside = ctx.op("ReduceMin", ctx.cast(inside, dtypes.i32), ctx.ints([-1]), keepdims=1, type=row)
    all_inside = ctx.cast(all_inside, dtypes.bool_)
    places = ctx.op("Where", all_inside, places, ctx.ints([picked[0], *[0] * (len(picked) - 1)]), type=places.type)
    room = _room(ctx, x, 0)
    return _without_room(ctx, _scattered(ctx, "ScatterND", room, places, updates, **how), 0, x.dims[0])


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


@lower("UniqueCount", when=lambda ctx, x, *, axis: files_only(ctx))
def unique_count(ctx, x, *, axis):
    y = ctx.op("Unique", x, axis=axis, type=x.type)
    if axis is None:
        return ctx.op("Size", y)
    axis %= x.rank
    size = ctx.op("Shape", y, start=axis, end=axis + 1, type=TensorType(dtypes.i64, (1,)))
    return ctx.reshape(size, ())


@lower("Unique", when=lambda ctx, x, *, count, axis, sorted: files_only(ctx))
def unique(ctx, x, *, count, axis, sorted):
    """In a program for ONNX Runtime, which finds no NaN equal to another, it is decomposed."""
    return ctx.ops("Unique", x, axis=axis, sorted=int(sorted))


def _counts(ctx, x, *, count):
    """Why not: a number may be another than that of the elements, a symbol is what was counted."""
    return files_only(ctx) or (None if x.rank and not isinstance(count, int) else "it takes a part of what it finds")


@lower("NonZero", when=_counts)
def non_zero(ctx, x, *, count):
    return ctx.op("NonZero", x)
