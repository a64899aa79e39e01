"""What rules of several indexing operators share: checks, indices from the end, combination of updates."""

import numpy as np

from ... import dtypes
from ...dims import product
from ...operators import LOGICAL, MOVES_DATA, NUMERIC, ORDERED, PURE
from ..shape.positions import size_scalar
from ..widening import converted

MOVES = PURE | MOVES_DATA

KINDS = ("replace", "sum", "prod", "max", "min")
_NEEDS = {
    "sum": NUMERIC,
    "prod": NUMERIC,
    "max": ORDERED,
    "min": ORDERED,
    "and": LOGICAL,
    "or": LOGICAL,
    "xor": LOGICAL,
}
_COMBINE = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def combinable(ctx, kind, dtype, kinds):
    """The kind is one of `kinds` and has a meaning for the element type."""
    ctx.need(kind in kinds, f"kind must be one of {', '.join(kinds)}, got {kind!r}")
    if kind in _NEEDS:
        ctx.need(_NEEDS[kind].accepts(dtype), f"kind {kind} needs {_NEEDS[kind].name}, got {dtype}")


def combined(ctx, x, index, updates, kind, body=None):
    """x with `updates` placed at `index` in order; equal places combine, the last one wins for replace."""
    if kind == "custom":
        return _combined_by_body(ctx, x, index, updates, body)
    if kind == "replace":
        out = x.copy()
        out[index] = updates
        return out
    out = ctx.wide(x).copy()
    _COMBINE[kind].at(out, index, ctx.wide(updates))
    return out


def _combined_by_body(ctx, x, index, updates, body):
    out = x.copy()
    for place, update in zip(
        zip(*index, strict=True) if index else [()] * updates.size, updates.reshape(-1), strict=True
    ):
        (out[place],) = ctx.run(body, np.asarray(out[place]), np.asarray(update))
    return out


def as_i64(indices):
    """Indices as i64.  Those that only u64 holds become the greatest: wrapped, they would count from the end."""
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.int64)


def wrapped(indices, size):
    """i64 indices, negative ones counted from the end; those out of range stay out of range."""
    wide = as_i64(indices)
    return np.where(wide < 0, np.where(wide < -size, -1, wide + size), wide)


def clamped(indices, size):
    """Indices in [-size, size) with negative ones counted from the end; others clamp to the nearest end."""
    return np.clip(np.where(indices < 0, indices + size, indices), 0, max(size - 1, 0))


def along(ctx, x, indices, axis):
    """Operands of an along-axis form fit together."""
    axis = ctx.axis(axis, x.rank)
    ctx.need(indices.rank == x.rank, f"indices must have the rank of x, got {indices.type} and {x.type}")
    for i, (have, most) in enumerate(zip(indices.dims, x.dims, strict=True)):
        if i != axis:
            ctx.at_most(have, most, f"dim {i} of indices")


def places_along(places, axis):
    """NumPy's index of the elements whose axis-th index is given, the others counting up."""
    index = list(np.indices(places.shape, sparse=True))
    index[axis] = places
    return tuple(index)


def check_starts(ctx, x, starts):
    ctx.need(len(starts) == x.rank, f"there must be one start for each axis of {x.type}, got {len(starts)}")
    for start in starts:
        ctx.need(start.rank == 0, f"starts must be scalars, got {start.type}")


def block(starts, shape, lengths):
    """NumPy's index of a block whose starts clamp so that it fits."""
    rows = ((min(max(int(start), 0), dim - n), n) for start, dim, n in zip(starts, shape, lengths, strict=True))
    return tuple(slice(first, first + n) for first, n in rows)


def tuple_length(ctx, x, indices, batch_dims):
    """The static length of the index tuples, checked against the ranks."""
    ctx.need(indices.rank >= 1, "indices must have a last axis of index tuples, got a scalar")
    count = indices.dims[-1]
    if not isinstance(count, int):
        ctx.fail(f"the last dim of indices is the length of an index tuple and must be a number, got {indices.type}")
    ctx.need(
        0 <= batch_dims < indices.rank, f"batch_dims {batch_dims} must be less than the rank of indices, {indices.rank}"
    )
    ctx.need(
        batch_dims + count <= x.rank,
        f"index tuples of {count} behind {batch_dims} batch dims are too long for {x.type}",
    )
    return count


def in_i64(b, indices):
    """What `as_i64` gives."""
    if indices.dtype is dtypes.u64:
        indices = b.minimum(indices, b.constant(int(dtypes.i64.max_value()), dtypes.u64))
    return converted(b, indices, dtypes.i64)


def from_the_end(ctx, indices, dims):
    """Index tuples as i64, negative ones counted from the end of `dims`; those out of range stay out of range."""
    return from_the_end_of(ctx.build, in_i64(ctx.build, indices), ctx.shape(dims))


def from_the_end_of(b, indices, dims):
    """i64 indices, negative ones counted from the end; `dims` broadcasts to them."""
    return b.select(b.compare(indices, 0, direction="lt"), b.add(indices, dims), indices)


def inside(b, indices, size):
    """Indices as i64, those in [-size, 0) counted from the end, others clamped into [0, size): what `take` reads."""
    size = size_scalar(b, size)
    places = in_i64(b, indices)
    places = b.select(b.compare(places, 0, direction="lt"), b.add(places, size), places)
    return b.clamp(b.constant(0, dtypes.i64), places, b.subtract(size, 1))


def numbered(b, x):
    """i64 of the dims of x: each element's number in row-major order."""
    return b.reshape(b.iota(dtype=dtypes.i64, dims=(product(x.dims),), axis=0), dims=x.dims)
