"""Windows of gather and scatter: constraints of their dimension numbers, and where a window's elements lie."""

import numpy as np

from ... import dtypes
from ..shape.positions import size_scalar
from .places import as_i64


def gathered_dims(
    ctx, x, indices, offset_dims, collapsed, index_map, vector_dim, slice_sizes, batching, indices_batching
):
    """Dims of gather's result; the ids are those of the StableHLO specification."""
    _check_windows(ctx, x, indices, collapsed, index_map, vector_dim, batching, indices_batching)
    ctx.need(
        len(slice_sizes) == x.rank, f"slice_sizes must have one entry for each axis of {x.type}, got {len(slice_sizes)}"
    )
    for axis, (size, dim) in enumerate(zip(slice_sizes, x.dims, strict=True)):
        ctx.at_most(0, size, f"slice size {axis} must not be negative")
        ctx.at_most(size, dim, f"slice size {axis}")
    for axis in (*collapsed, *batching):
        ctx.at_most(slice_sizes[axis], 1, f"slice size {axis} of a collapsed or batching axis")
    window = [size for axis, size in enumerate(slice_sizes) if axis not in (*collapsed, *batching)]
    scattered = [d for axis, d in enumerate(indices.dims) if axis != vector_dim]
    rank = len(window) + len(scattered)
    _increasing(ctx, offset_dims, rank, "offset_dims")
    ctx.need(
        len(offset_dims) == len(window),
        f"offset_dims must name {len(window)} axes, one for each axis that a slice keeps, got {list(offset_dims)}",
    )
    parts = iter(window), iter(scattered)
    return tuple(next(parts[0] if axis in offset_dims else parts[1]) for axis in range(rank))


def check_scatter(ctx, x, indices, updates, window_dims, inserted, index_map, vector_dim, batching, indices_batching):
    """Operands and dimension numbers of scatter fit together."""
    ctx.same_dtype(x, updates)
    _check_windows(ctx, x, indices, inserted, index_map, vector_dim, batching, indices_batching)
    kept = [axis for axis in range(x.rank) if axis not in (*inserted, *batching)]
    scattered = [d for axis, d in enumerate(indices.dims) if axis != vector_dim]
    ctx.need(
        updates.rank == len(kept) + len(scattered),
        f"updates must have rank {len(kept) + len(scattered)}, got {updates.type}",
    )
    _increasing(ctx, window_dims, updates.rank, "update_window_dims")
    ctx.need(len(window_dims) == len(kept), f"update_window_dims must name {len(kept)} axes, got {list(window_dims)}")
    for axis, window_axis in zip(kept, window_dims, strict=True):
        ctx.at_most(updates.dims[window_axis], x.dims[axis], f"window dim {window_axis} of updates")
    rest = [d for axis, d in enumerate(updates.dims) if axis not in window_dims]
    ctx.equal_dims(scattered, rest, "scatter dims of indices and updates")


def _check_windows(ctx, x, indices, dropped, index_map, vector_dim, batching, indices_batching):
    ctx.need(0 <= vector_dim <= indices.rank, f"index_vector_dim {vector_dim} is out of range for {indices.type}")
    length = indices.dims[vector_dim] if vector_dim < indices.rank else 1
    ctx.equal(length, len(index_map), "the length of an index vector and the number of axes that it addresses")
    _increasing(ctx, dropped, x.rank, "collapsed or inserted dims")
    _increasing(ctx, batching, x.rank, "operand batching dims")
    ctx.axes(index_map, x.rank, "the axes that index vectors address")
    ctx.axes(indices_batching, indices.rank, "batching dims of indices")
    ctx.need(not set(dropped) & set(batching), "no axis may be both collapsed and batching")
    ctx.need(not set(index_map) & set(batching), "index vectors may not address a batching axis")
    ctx.need(vector_dim not in indices_batching, "index_vector_dim may not be a batching axis of indices")
    ctx.need(
        len(batching) == len(indices_batching),
        f"batching dims {list(batching)} and {list(indices_batching)} must pair up",
    )
    for a, b in zip(batching, indices_batching, strict=True):
        ctx.equal(x.dims[a], indices.dims[b], "paired batching dims")


def _increasing(ctx, axes, rank, what):
    ctx.need(list(axes) == sorted(set(axes)), f"{what} {list(axes)} must increase strictly")
    ctx.need(all(0 <= a < rank for a in axes), f"{what} {list(axes)} are out of range for rank {rank}")


def window_starts(indices, rank, index_map, vector_dim, batching, indices_batching):
    """i64 [rank, scattered..]: where each window starts on every axis of the operand, before clamping."""
    indices = as_i64(indices if vector_dim < indices.ndim else indices[..., None])
    vectors = np.moveaxis(indices, vector_dim, 0)
    starts = np.zeros((rank, *vectors.shape[1:]), np.int64)
    for i, axis in enumerate(index_map):
        starts[axis] = vectors[i]
    for axis, of_indices in zip(batching, indices_batching, strict=True):
        at = of_indices - (of_indices > vector_dim)
        shape = [-1 if i == at else 1 for i in range(vectors.ndim - 1)]
        starts[axis] = np.arange(vectors.shape[1 + at]).reshape(shape)
    return starts


def window_places(starts, lengths, dropped, window_dims):
    """NumPy's index of every element of every window; the axes `window_dims` of the result run over the window."""
    kept = [axis for axis in range(len(lengths)) if axis not in dropped]
    rank = starts.ndim - 1 + len(kept)
    out = []
    for axis, length in enumerate(lengths):
        place = np.expand_dims(starts[axis], tuple(window_dims)) if window_dims else starts[axis]
        if axis in kept:
            at = window_dims[kept.index(axis)]
            place = place + np.arange(length).reshape([-1 if i == at else 1 for i in range(rank)])
        out.append(place)
    return tuple(out)


def start_bounds(b, dims, window, index_map, indices, vector_dim):
    """i64 scalars or vectors along the vectors of `indices`: the least and greatest starts of windows that fit."""
    rows = [size_scalar(b, dims[axis] - window[axis]) for axis in index_map]
    if vector_dim == indices.rank:
        return b.constant(0, dtypes.i64), rows[0]
    vector = b.concatenate(tuple(b.reshape(r, dims=(1,)) for r in rows), axis=0) if rows else None
    shape = tuple(len(rows) if i == vector_dim else 1 for i in range(indices.rank))
    high = b.full(0, dtypes.i64, shape) if vector is None else b.reshape(vector, dims=shape)
    return b.constant(0, dtypes.i64), high


def windows_inside(b, dims, window, index_map, indices, vector_dim, updates, window_dims):
    """bool, broadcasting to `updates`: whether the window that an update belongs to lies wholly inside."""
    low, high = start_bounds(b, dims, window, index_map, indices, vector_dim)
    places = b.convert(indices, dtype=low.dtype)
    fits = b.and_(b.compare(places, low, direction="ge"), b.compare(places, high, direction="le"))
    if vector_dim < indices.rank:
        fits = b.reduce(fits, axes=(vector_dim,), kind="and")
    return b.reshape(fits, dims=tuple(1 if i in window_dims else d for i, d in enumerate(updates.dims)))
