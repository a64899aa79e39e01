"""`bucket` rules of indexing operators: places count from the true end, and updates that do not count are dropped."""

from ... import dims as sizes
from ... import dtypes
from ..bucketing import _block, _column, _longer


def _wide(b, places):
    """Places as i64; those that it does not hold are out of range as its greatest number too."""
    if places.dtype is dtypes.u64:
        places = b.minimum(places, b.constant(2**63 - 1, dtypes.u64))
    return b.convert(places, dtype=dtypes.i64)


def _from_the_end(ctx, indices, size):
    """i64 places with negative ones in [-n, -1] counted from the true end n; other negative ones stay negative."""
    b = ctx.build
    places, n = _wide(b, indices), ctx.size(size)
    back = b.add(places, n)
    return b.select(b.compare(places, 0, direction="lt"), back, places)


def _picked(ctx, indices, size):
    """Places clamped to the true size."""
    b = ctx.build
    last = b.subtract(ctx.size(size), 1)
    return b.maximum(b.minimum(_from_the_end(ctx, indices, size), last), 0)


def take(ctx, x, indices, *, axis):
    size = x.dims[axis]
    return ctx.again(x, _picked(ctx, indices, size)) if ctx.is_open(size) else None


def put_along_axis(ctx, x, indices, updates, *, axis, kind):
    b, size = ctx.build, x.dims[axis]
    if not ctx.is_open(size) and not ctx.open_axes(indices):
        return None
    behind = ctx.capacity(size)
    places = _wide(b, indices)
    if ctx.is_open(size):
        places = _from_the_end(ctx, indices, size)
        places = b.select(b.compare(places, 0, direction="lt"), behind, places)
    return ctx.again(x, ctx.filled(places, behind), updates)


def dynamic_slice(ctx, x, starts, *, sizes):
    rows = list(zip(starts, x.dims, sizes, strict=True))
    if not any(ctx.is_open(d) or ctx.is_open(n) for _, d, n in rows):
        return None
    return _block(ctx, x, tuple(_start(ctx, *row) for row in rows), sizes)


def _start(ctx, start, size, block):
    """A start clamped so that the block fits the true size."""
    b = ctx.build
    start = _wide(b, start)
    if not ctx.is_open(size) and not ctx.is_open(block):
        return start
    return b.maximum(b.minimum(start, b.subtract(ctx.size(size), ctx.size(block))), 0)


def dynamic_update_slice(ctx, x, update, starts):
    rows = list(zip(starts, x.dims, update.dims, strict=True))
    parts = [a for a, (_, size, block) in enumerate(rows) if ctx.is_open(block) and not sizes.equal(size, block)]
    if not parts and not any(ctx.is_open(d) and not ctx.is_open(n) for _, d, n in rows):
        return None
    begins = [_start(ctx, *row) for row in rows]
    zero = ctx.build.constant(0, dtypes.i64)
    if parts:
        update = _spread(ctx, x, update, begins, parts)
        begins = [zero if a in parts else start for a, start in enumerate(begins)]
    return ctx.again(x, update, tuple(begins))


def _spread(ctx, x, update, starts, parts):
    """The update as long as x along the axes `parts`: with what x has there around what of the update counts."""
    b, inside = ctx.build, None
    lengths = update.dims
    for axis in parts:
        places = b.subtract(b.iota(dtype=dtypes.i64, dims=(x.dims[axis],), axis=0), starts[axis])
        fits = b.and_(
            b.compare(places, 0, direction="ge"), b.compare(places, ctx.size(lengths[axis]), direction="lt")
        )  # fmt: skip
        update = b.take(_longer(ctx, update, axis), b.maximum(places, 0), axis=axis)
        fits = _column(b, fits, x.rank, axis)
        inside = fits if inside is None else b.and_(inside, fits)
    zero = b.constant(0, dtypes.i64)
    begins = tuple(zero if a in parts else start for a, start in enumerate(starts))
    return b.select(inside, update, b.dynamic_slice(x, begins, sizes=update.dims))


def gather(
    ctx, x, indices, *, offset_dims, collapsed_slice_dims, start_index_map, index_vector_dim, slice_sizes,
    operand_batching_dims, start_indices_batching_dims,
):  # fmt: skip
    b = ctx.build
    high = _last_starts(ctx, x, slice_sizes, start_index_map, indices, index_vector_dim)
    if high is None:
        return None
    return ctx.again(x, b.maximum(b.minimum(_wide(b, indices), high), 0))


def scatter(
    ctx, x, indices, updates, *, update_window_dims, inserted_window_dims, scatter_dims_to_operand_dims,
    index_vector_dim, input_batching_dims, scatter_indices_batching_dims, kind, body,
):  # fmt: skip
    b = ctx.build
    dropped = (*inserted_window_dims, *input_batching_dims)
    window = iter(updates.dims[d] for d in update_window_dims)
    lengths = [1 if axis in dropped else next(window) for axis in range(x.rank)]
    for size, length in zip(x.dims, lengths, strict=True):
        if ctx.is_open(length) and not sizes.equal(size, length):
            ctx.refuse(f"windows of updates {updates.type} count only in part where x goes on")
    high = _last_starts(ctx, x, lengths, scatter_dims_to_operand_dims, indices, index_vector_dim)
    if high is None and not ctx.open_axes(indices):
        return None
    places = _wide(b, indices)
    if high is not None:
        fits = b.compare(places, high, direction="le")
        if index_vector_dim < indices.rank:
            fits = b.reduce(fits, axes=(index_vector_dim,), kind="and")
            fits = b.reshape(fits, dims=tuple(1 if i == index_vector_dim else d for i, d in enumerate(indices.dims)))
        places = b.select(fits, places, b.constant(-1, dtypes.i64))
    return ctx.again(x, ctx.filled(places, -1), updates)


def _last_starts(ctx, x, lengths, index_map, indices, vector_dim):
    """i64, broadcasting to `indices`: the last starts at which windows fit the true sizes; None if capacities tell."""
    ctx.closed(indices, [vector_dim] if vector_dim < indices.rank else [], "an index vector")
    if not any(ctx.is_open(x.dims[axis]) for axis in index_map):
        return None
    b = ctx.build
    rows = [b.subtract(ctx.size(x.dims[axis]), ctx.size(lengths[axis])) for axis in index_map]
    if vector_dim == indices.rank:
        return rows[0]
    vector = b.concatenate(tuple(b.reshape(r, dims=(1,)) for r in rows), axis=0)
    return b.reshape(vector, dims=tuple(len(rows) if i == vector_dim else 1 for i in range(indices.rank)))
