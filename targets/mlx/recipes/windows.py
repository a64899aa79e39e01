"""Recipes for windows: interior padding, pairwise combination of strided slices, pooling with indices."""

import math

import mlx.core as mx


def _pad(x, low, high, interior, value):
    """StableHLO's pad: `interior` values between elements, then `low` and `high` at the ends; negative ones remove."""
    for axis, step in enumerate(interior):
        if step and x.shape[axis] > 1:
            parts = mx.expand_dims(x, axis + 1)
            fill = mx.broadcast_to(value, [*x.shape[: axis + 1], step, *x.shape[axis + 1 :]])
            spread = mx.concatenate([parts, fill.astype(x.dtype)], axis=axis + 1)
            shape = [*x.shape[:axis], x.shape[axis] * (step + 1), *x.shape[axis + 1 :]]
            keep = [slice(None)] * axis + [slice(0, shape[axis] - step)]
            x = spread.reshape(shape)[tuple(keep)]
    x = mx.pad(x, [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)], constant_values=value)
    cut = [slice(max(-a, 0), max(n - max(-b, 0), 0)) for a, b, n in zip(low, high, x.shape, strict=True)]
    return x[tuple(cut)]


def _places(window):
    """Every place of a window, row-major."""
    if not window:
        return [()]
    return [(i, *rest) for i in range(window[0]) for rest in _places(window[1:])]


def _slid(x, offset, out, strides):
    """The element at `offset` of each window: a strided slice."""
    return x[tuple(slice(o, o + max(n - 1, 0) * s + (n > 0), s) for o, n, s in zip(offset, out, strides, strict=True))]


def _out_shape(shape, window, strides, dilations):
    """How many windows fit, an axis."""
    rows = zip(shape, window, strides, dilations, strict=True)
    return [max((n - ((w - 1) * d + 1)) // s + 1, 0) for n, w, s, d in rows]


def _reduce_window(x, window, strides, dilations, combine, identity):
    """Windows of the padded x combined pairwise, one axis after the other."""
    for axis in range(x.ndim):
        if window[axis] == 1 and strides[axis] == 1:
            continue
        out = _out_shape(
            x.shape, *([v if i == axis else 1 for i, v in enumerate(a)] for a in (window, strides, dilations))
        )
        step = [strides[axis] if i == axis else 1 for i in range(x.ndim)]
        total = None
        for k in range(window[axis] if out[axis] else 0):
            part = _slid(x, [k * dilations[axis] if i == axis else 0 for i in range(x.ndim)], out, step)
            total = part if total is None else combine(total, part)
        x = mx.broadcast_to(identity, out).astype(x.dtype) if total is None else total
    return x


def _reduce_window_custom(xs, inits, window, strides, dilations, combine):
    """Windows combined by a function of n accumulators and n elements, in row-major order."""
    out = _out_shape(xs[0].shape, window, strides, dilations)
    state = tuple(mx.broadcast_to(i, out) for i in inits)
    if 0 in out:
        return state
    for place in _places(window):
        parts = [_slid(x, [p * d for p, d in zip(place, dilations, strict=True)], out, strides) for x in xs]
        made = combine(*state, *parts)
        state = tuple(mx.broadcast_to(m, out) for m in (made if isinstance(made, tuple) else (made,)))
    return state


def _best_in_window(x, padding, window, strides, dilations, out, sign, fill):
    """The greatest (sign 1) or least (-1) element of each window and its flat index in x, -1 where there is none.

    NaN is preferred, then the first in row-major order.
    """
    flat = mx.arange(x.size, dtype=mx.int64).reshape(x.shape)
    low = [p[0] for p in padding]
    high = [(n - 1) * s + (w - 1) * d + 1 - x.shape[i] - low[i] if n else padding[i][1]
            for i, (n, s, w, d) in enumerate(zip(out, strides, window, dilations, strict=True))]  # fmt: skip
    none = [0] * x.ndim
    padded = _pad(x, low, high, none, fill)
    where = _pad(flat, low, high, none, mx.array(-1, mx.int64))
    best, index = mx.broadcast_to(fill, out).astype(x.dtype), mx.full(out, -1, mx.int64)
    if 0 in out:
        return best, index
    for place in _places(window):
        offset = [p * d for p, d in zip(place, dilations, strict=True)]
        value, at = _slid(padded, offset, out, strides), _slid(where, offset, out, strides)
        better = value > best if sign > 0 else value < best
        better = (better | (value != value)) & (best == best)
        wins = (at >= 0) & ((index < 0) | better)
        best, index = mx.where(wins, value, best), mx.where(wins, at, index)
    return best, index


def _select_and_scatter(x, source, padding, window, strides, sign):
    """Each element of source added to the place of the greatest or least element of its window of x."""
    ones = [1] * x.ndim
    _, index = _best_in_window(x, padding, window, strides, ones, source.shape, sign, mx.array(0, x.dtype))
    place = mx.where(index >= 0, index, x.size).reshape(-1)
    out = mx.zeros(x.size + 1, source.dtype).at[place].add(source.reshape(-1))
    return out[: x.size].reshape(x.shape)


def _held(out, kernel, stride, dilation, low, first, last):
    """How many elements of each of `out` windows lie in [first, last) of an axis; the first window starts at -low."""
    place = mx.arange(out)[:, None] * stride - low + mx.arange(kernel) * dilation
    return ((place >= first) & (place < last)).sum(axis=1).astype(mx.float32)


def _fold(x, axes, combine, init):
    """Elements along axes combined one after the other by a function of accumulators and elements."""
    kept = [a for a in range(x[0].ndim) if a not in axes]
    shape = [x[0].shape[a] for a in kept]
    rows = [v.transpose(*kept, *axes).reshape(*shape, math.prod([v.shape[a] for a in axes])) for v in x]
    state = tuple(mx.broadcast_to(i, shape) for i in init)
    for k in range(rows[0].shape[-1]):
        made = combine(*state, *(r[..., k] for r in rows))
        state = tuple(mx.broadcast_to(m, shape) for m in (made if isinstance(made, tuple) else (made,)))
    return state


def _filled(x, axes, value):
    """x, or where it is empty x with one element of value more along axes (MLX may never end on an empty axis)."""
    if x.size:
        return x
    widths = [(0, 1) if a in axes else (0, 0) for a in range(x.ndim)]
    return mx.pad(x, widths, constant_values=mx.array(value, x.dtype))
