"""Recipes for indexing: MLX checks no index, and has no general gather or scatter."""

import math

import mlx.core as mx


def _some(i, size):
    """The indices; an error if there are any and nothing they could point to (MLX would read foreign memory)."""
    if i.size and size < 1:
        raise RuntimeError("an axis of 0 elements has none to take")
    return i


def _clamped(i, size):
    """Indices in [-size, size), negative ones counted from the end; others clamp (MLX would read foreign memory)."""
    return mx.clip(mx.where(_some(i, size) < 0, i + size, i), 0, size - 1)


def _starts(starts, limits):
    """Starts of a block as one vector, clamped so that the block fits."""
    rows = [mx.clip(s, 0, max(limit, 0)).astype(mx.int32) for s, limit in zip(starts, limits, strict=True)]
    return mx.stack(rows)


def _strides(shape):
    """Row-major strides, in elements."""
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _window_index(indices, shape, sizes, vector_dim, index_map, dropped, window_dims, batching, clamp):
    """Flat indices of the elements of windows of gather or scatter, and whether each window lies inside.

    `batching` pairs an axis of the operand with one of the indices.
    """
    indices = indices.astype(mx.int64)
    if vector_dim == indices.ndim:
        indices = mx.expand_dims(indices, -1)
    vectors = mx.moveaxis(indices, vector_dim, -1)
    lead = vectors.shape[:-1]
    strides = _strides(shape)
    base, inside = mx.zeros(lead, mx.int64), mx.ones(lead, mx.bool_)
    for i, axis in enumerate(index_map):
        start, room = vectors[..., i], shape[axis] - sizes[axis]
        inside = inside & (start >= 0) & (start <= room)
        base = base + (mx.clip(_some(start, room + 1), 0, room) if clamp else start) * strides[axis]
    for axis, of_indices in batching:
        at = of_indices - (of_indices > vector_dim)
        count = mx.arange(lead[at], dtype=mx.int64).reshape([-1 if j == at else 1 for j in range(len(lead))])
        base = base + count * strides[axis]
    kept = [a for a in range(len(shape)) if a not in dropped]
    rank = len(lead) + len(kept)
    spread = [d for d in range(rank) if d not in window_dims]
    dims = [1] * rank
    for d, n in zip(spread, lead, strict=True):
        dims[d] = n
    flat, inside = base.reshape(dims), inside.reshape(dims)
    for axis, d in zip(kept, window_dims, strict=True):
        place = mx.arange(sizes[axis], dtype=mx.int64) * strides[axis]
        flat = flat + place.reshape([-1 if j == d else 1 for j in range(rank)])
        dims[d] = sizes[axis]
    return mx.broadcast_to(flat, dims), mx.broadcast_to(inside, dims)


def _gather(x, indices, sizes, vector_dim, index_map, dropped, window_dims, batching):
    """StableHLO's gather: slices of x at index vectors, whose starts clamp so that the slice fits."""
    flat, _ = _window_index(indices, x.shape, sizes, vector_dim, index_map, dropped, window_dims, batching, True)
    if x.size == 0 or flat.size == 0:
        return mx.zeros(flat.shape, x.dtype)
    return mx.take(x.reshape(-1), flat)


def _combine(x, flat, inside, updates, kind):
    """x with updates combined into its flat places; those not inside go to an extra element that is cut off."""
    if updates.size == 0 or x.size == 0:
        return x
    place = mx.where(inside, flat, x.size).reshape(-1)
    updates = updates.reshape(-1)
    out = mx.concatenate([x.reshape(-1), mx.zeros(1, x.dtype)])
    if kind == "replace":
        # Duplicates: the last update of each place, found as the greatest of their numbers.
        number = mx.arange(place.size, dtype=mx.int32)
        last = mx.full(out.shape, -1, mx.int32).at[place].maximum(number)
        out = mx.where(last >= 0, mx.take(updates, mx.maximum(last, 0)), out)
    elif kind == "sum":
        out = out.at[place].add(updates)
    elif kind == "prod":
        out = out.at[place].multiply(updates)
    elif kind in ("max", "min"):
        before = out
        out = out.at[place].maximum(updates) if kind == "max" else out.at[place].minimum(updates)
        if mx.issubdtype(x.dtype, mx.floating):  # a NaN that comes first would be passed over
            odd = mx.isnan(before).astype(mx.int32).at[place].maximum(mx.isnan(updates).astype(mx.int32))
            out = mx.where(odd > 0, mx.array(float("nan"), x.dtype), out)
    return out[: x.size].reshape(x.shape)


def _scatter(x, indices, updates, sizes, vector_dim, index_map, dropped, window_dims, batching, kind):
    """StableHLO's scatter; a window that is not wholly inside is dropped."""
    flat, inside = _window_index(indices, x.shape, sizes, vector_dim, index_map, dropped, window_dims, batching, False)
    return _combine(x, flat, inside, updates, kind)


def _scatter_each(x, indices, updates, sizes, vector_dim, index_map, dropped, window_dims, batching, combine):
    """Scatter by a function of (old, new): one round for the first update of every place, one for the second, ..."""
    flat, inside = _window_index(indices, x.shape, sizes, vector_dim, index_map, dropped, window_dims, batching, False)
    if updates.size == 0 or x.size == 0:
        return x
    place = mx.where(inside, flat, x.size).reshape(-1)
    updates = updates.reshape(-1)
    order = mx.argsort(place)
    place, updates = place[order], updates[order]
    number = mx.arange(place.size)
    first = mx.concatenate([mx.array([True]), place[1:] != place[:-1]])
    turn = number - mx.cummax(mx.where(first, number, 0))
    turn = mx.where(place == x.size, -1, turn)
    out = mx.concatenate([x.reshape(-1), mx.zeros(1, x.dtype)])
    for i in range(mx.max(turn).item() + 1):
        at = mx.where(turn == i, place, x.size)
        out[at] = combine(out[at], updates)
    return out[: x.size].reshape(x.shape)


def _put_along(x, indices, updates, axis, kind):
    """x with updates placed along an axis; those outside [-N, N) are dropped."""
    size = x.shape[axis]
    i = indices.astype(mx.int64)
    i = mx.where(i < 0, i + size, i)
    inside = (i >= 0) & (i < size)
    flat = mx.zeros(indices.shape, mx.int64)
    for a, stride in enumerate(_strides(x.shape)):
        count = mx.arange(indices.shape[a], dtype=mx.int64)
        place = i if a == axis else count.reshape([-1 if j == a else 1 for j in range(x.ndim)])
        flat = flat + place * stride
    return _combine(x, flat, inside, updates, kind)
