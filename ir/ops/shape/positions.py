"""What rules of several shape operators share: checks of sizes and bounds, positions as arrays and values."""

import numpy as np

from ... import dims as sizes
from ... import dtypes
from ...operators import MOVES_DATA, PURE

MOVES = PURE | MOVES_DATA


def checked_sizes(ctx, dims):
    """`dims`, none of which may be negative."""
    for i, dim in enumerate(dims):
        ctx.at_most(0, dim, f"size {i} must not be negative")
    return tuple(dims)


def one_each(ctx, x, **lists):
    """Every list has one entry an axis of x."""
    for name, entries in lists.items():
        ctx.need(
            len(entries) == x.rank,
            f"{name} must have one entry for each axis of {x.type}, got {list(map(str, entries))}",
        )


def ordered(ctx, axis, start, limit, dim):
    """0 <= start <= limit <= dim."""
    ctx.at_most(0, start, f"the slice of axis {axis} starts before 0")
    ctx.at_most(start, limit, f"the slice of axis {axis} ends before it starts")
    ctx.at_most(limit, dim, f"the slice of axis {axis} ends behind the axis")


def slices(starts, limits, strides):
    """NumPy's index for numbers; a limit below 0 of a negative stride is "before 0"."""
    rows = zip(starts, limits, strides, strict=True)
    return tuple(slice(s, None if k < 0 and l < 0 else l, k) if s >= 0 else slice(0, 0) for s, l, k in rows)


def offsets(parts):
    """(start, size) of consecutive parts."""
    start = 0
    for size in parts:
        yield start, size
        start = start + size


def broadcast_in_dim(x, dims, broadcast_dimensions):
    shape = [1] * len(dims)
    for axis, size in zip(broadcast_dimensions, x.shape, strict=True):
        shape[axis] = size
    return np.broadcast_to(x.reshape(shape), dims)


def padded(x, value, low, high, interior):
    """Interior padding, then the ends; negative ends crop."""
    spread = np.full([d + max(d - 1, 0) * i for d, i in zip(x.shape, interior, strict=True)], value, x.dtype)
    spread[tuple(slice(None, None, i + 1) for i in interior)] = x
    out = np.full([d + l + h for d, l, h in zip(spread.shape, low, high, strict=True)], value, x.dtype)
    inside, outside = [], []
    for d, l, h in zip(spread.shape, low, high, strict=True):
        start, stop = max(-l, 0), min(d + h, d)
        inside.append(slice(start, max(stop, start)))
        outside.append(slice(max(l, 0), max(l, 0) + max(stop - start, 0)))
    out[tuple(outside)] = spread[tuple(inside)]
    return out


def counted(dims, axis):
    """i64 indices along an axis."""
    shape = [1] * len(dims)
    shape[axis] = dims[axis]
    return np.broadcast_to(np.arange(dims[axis]).reshape(shape), dims)


def size_scalar(b, size):
    """A size as an i64 scalar value."""
    return b.constant(size, dtypes.i64) if isinstance(size, int) else b.dimensions(dims=(size,), scalar=True)


def diagonal_numbers(b, dims):
    """i64 [rows, columns]: column - row."""
    rows, columns = (b.iota(dtype=dtypes.i64, dims=tuple(dims), axis=axis) for axis in (0, 1))
    return b.subtract(columns, rows)


def sliced(b, x, axis, start, limit):
    """x[start:limit] along one axis; x itself where that is all of it."""
    if start == 0 and sizes.equal(limit, x.dims[axis]):
        return x
    starts, limits = [0] * x.rank, list(x.dims)
    starts[axis], limits[axis] = start, limit
    return b.slice(x, starts=tuple(starts), limits=tuple(limits), strides=(1,) * x.rank)
