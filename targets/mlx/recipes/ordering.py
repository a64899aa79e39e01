"""Recipes for order: sorting with NaN last and equal elements in place, first greatest element with NaN."""

import mlx.core as mx


def _order(x, axis, descending):
    """Indices that sort along an axis: -0 equals +0, NaN is greatest; stable in both directions."""
    if x.dtype == mx.bool_:
        x = x.astype(mx.uint8)
    if not descending:
        return mx.argsort(x, axis=axis)
    n = x.shape[axis]
    if not n:
        return mx.argsort(x, axis=axis)
    order = mx.argsort(mx.take(x, mx.arange(n - 1, -1, -1), axis=axis), axis=axis)
    return n - 1 - mx.take(order, mx.arange(n - 1, -1, -1), axis=axis)


def _argmax(x, axis, keepdims, least, last):
    """The first (or last) index of the greatest or least element; NaN comes before every number."""
    best = mx.min(x, axis=axis, keepdims=True) if least else mx.max(x, axis=axis, keepdims=True)
    hit = (x == best) | (x != x)
    n = x.shape[axis]
    number = mx.arange(n, dtype=mx.int64).reshape([-1 if a == axis else 1 for a in range(x.ndim)])
    if last:
        return mx.max(mx.where(hit, number, -1), axis=axis, keepdims=keepdims)
    return mx.min(mx.where(hit, number, n), axis=axis, keepdims=keepdims)


def _sort_custom(xs, axis, before):
    """xs sorted along an axis by `before(a0, b0, a1, b1, ...)`: each element's rank is how many come before it."""
    n = xs[0].shape[axis]
    rows = [mx.moveaxis(x, axis, -1) for x in xs]
    pairs = [v for r in rows for v in (mx.expand_dims(r, -2), mx.expand_dims(r, -1))]
    first = mx.broadcast_to(before(*pairs), (*rows[0].shape, n))
    number = mx.arange(n)
    tied = ~first & ~mx.swapaxes(first, -1, -2) & (number[None, :] < number[:, None])
    rank = (first | tied).sum(axis=-1)
    order = mx.argsort(rank, axis=-1)
    return tuple(mx.moveaxis(mx.take_along_axis(r, order, axis=-1), -1, axis) for r in rows)
