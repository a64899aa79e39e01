"""`bucket` rules of composites: where they stay whole although sizes are rounded up; see `ir.buckets`.

Where a rule refuses, the composite is decomposed.  Defines no operators.
"""

import numpy as np

from .. import dims as sizes
from .. import dtypes
from .bucketing import least
from .combination import identity


def exact_axes(ctx, x, *, axes, **attributes):
    """Right if these axes are exact."""
    ctx.closed(x, axes, "what is taken together")


def closed_from(first):
    """Right if all axes from one on are exact: a number, or the name of an attribute.  Other operands broadcast."""

    def rule(ctx, x, *operands, **attributes):
        axis = attributes[first] if isinstance(first, str) else first
        ctx.closed(x, range(axis % x.rank, x.rank), "what is taken together")
        if isinstance(first, str):
            ctx.broadcasts(x, *operands)

    return rule


# Moved data


def split(ctx, x, *, axis, sizes):
    ctx.closed(x, (axis,), "the axis that is cut")


def strided_slice(ctx, x, *, starts, limits, strides):
    for start, stride, size in zip(starts, strides, x.dims, strict=True):
        if ctx.is_open(start) or (stride < 0 and ctx.is_open(size)):
            ctx.refuse("the slice starts where only the true size tells", size)


def tile(ctx, x, *, repeats):
    ctx.closed(x, [a for a, r in enumerate(repeats) if r != 1], "an axis that is repeated")


def pad_mode(ctx, x, *, low, high, mode):
    ends = list(zip(low, high, strict=True))
    ctx.closed(x, [a for a, pair in enumerate(ends) if pair != (0, 0)], "an axis that is padded with itself")
    if any(ctx.is_open(n) for pair in ends for n in pair):
        ctx.refuse("how far it is padded is known of the true size only")


def trilu(ctx, x, *, k, upper):
    if ctx.is_open(k):
        ctx.refuse("the diagonal is known of the true size only")


def resize(ctx, x, *, dims, scales, **attributes):
    rows = enumerate(zip(x.dims, dims, scales or (1.0,) * x.rank, strict=True))
    still = [a for a, (old, new, factor) in rows if sizes.equal(old, new) is True and factor == 1.0]
    ctx.closed(x, [a for a in range(x.rank) if a not in still], "an axis of another length")
    if any(ctx.is_open(d) for a, d in enumerate(dims) if a not in still):
        ctx.refuse("the new length is known of the true size only")
    if attributes.get("roi"):
        ctx.closed(x, range(x.rank), "what roi crops")


# Reductions and windows


def reduced_with(fill):
    """A reduction along `axes` which elements of that value do not change: a number, or what gives it of the dtype."""

    def rule(ctx, x, *, axes, keepdims):
        value = fill(x.dtype) if callable(fill) else fill
        return ctx.again(ctx.filled(x, value, axes)) if ctx.open_axes(x, axes) else None

    return rule


def reduced_log_sum_exp(ctx, x, *, axes, keepdims):
    if not ctx.open_axes(x, axes):
        return None
    if not x.dtype.is_float:
        ctx.refuse(f"no {x.dtype} has the exponential 0")
    return ctx.again(ctx.filled(x, x.dtype.min_value(), axes))


def greatest_of(dtype):
    return identity("min", dtype)


def least_of(dtype):
    return identity("max", dtype)


def hardmax(ctx, x, *, axis):
    return ctx.again(ctx.filled(x, least(x.dtype), (axis,))) if ctx.open_axes(x, (axis,)) else None


def zeros_along(ctx, x, *, axis, **attributes):
    """Right with zeros behind what counts of one axis, whose sums of powers they do not change."""
    return ctx.again(ctx.filled(x, 0, (axis,))) if ctx.open_axes(x, (axis,)) else None


def neighbours(ctx, x, **attributes):
    """LRN: sums of squares of neighbouring channels."""
    return ctx.again(ctx.filled(x, 0, (1,))) if ctx.open_axes(x, (1,)) else None


def _windowed(ctx, x, kernel, pads):
    """The spatial axes along which windows look at what does not count."""
    if any(ctx.is_open(low) for low, _ in pads):
        ctx.refuse("the place of the windows is known of the true size only")
    pairs = zip(kernel, pads, strict=True)
    return ctx.open_axes(x, [a for a, (size, pair) in enumerate(pairs, 2) if size != 1 or tuple(pair) != (0, 0)])


def max_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, with_indices):
    if with_indices:
        ctx.closed(x, range(1, x.rank), "what places in x are counted over")
    axes = _windowed(ctx, x, kernel_shape, pads)
    return ctx.again(ctx.filled(x, least_of(x.dtype), axes)) if axes else None


def average_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad):
    axes = _windowed(ctx, x, kernel_shape, pads)
    if not axes:
        return None
    whole = count_include_pad or all(tuple(p) == (0, 0) for p in pads)
    if not whole or (ceil_mode and any(s > 1 for s in strides)):
        ctx.refuse("windows at the end hold fewer elements")
    return ctx.again(ctx.filled(x, 0, axes))


def lp_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, p):
    axes = _windowed(ctx, x, kernel_shape, pads)
    return ctx.again(ctx.filled(x, 0, axes)) if axes else None


def global_with(fill):
    """A reduction over the spatial axes which elements of that value do not change."""

    def rule(ctx, x, **attributes):
        axes = ctx.open_axes(x, range(2, x.rank))
        return ctx.again(ctx.filled(x, fill(x.dtype) if callable(fill) else fill, axes)) if axes else None

    return rule


# Products


def matmul(ctx, a, b):
    """Rank-1 operands are a row and a column."""
    inner = (-1,), (-2,) if b.rank > 1 else (-1,)
    batches = [list(reversed(x.dims[:-2])) for x in (a, b)]
    ctx.repeats(*map(list, zip(*batches, strict=False)))
    if not ctx.open_axes(a, inner[0]) and not ctx.open_axes(b, inner[1]):
        return None
    return ctx.again(ctx.filled(a, 0, inner[0]), ctx.filled(b, 0, inner[1]))


def gemm(ctx, a, b, c, *, alpha, beta, transpose_a, transpose_b):
    rows, columns = (0,) if transpose_a else (1,), (1,) if transpose_b else (0,)
    if c is not None:
        dims = a.dims[1 - rows[0]], b.dims[1 - columns[0]]
        ctx.repeats(*([have, want] for have, want in zip(c.dims, dims[2 - c.rank :], strict=True)))
    if not ctx.open_axes(a, rows) and not ctx.open_axes(b, columns):
        return None
    return ctx.again(ctx.filled(a, 0, rows), ctx.filled(b, 0, columns), c)


def packed_matmul(ctx, x, weights, scales, zero_points, *, size, bits, block_size):
    ctx.closed(x, (-1,), "what is summed")
    for rest in (scales, zero_points):
        if rest is not None:
            ctx.repeats([weights.dims[0], rest.dims[0]])


def convolved(ctx, x, w, b, *, strides, dilations, pads, group):
    ctx.closed(w, range(2, w.rank), "the kernel")
    axes = _windowed(ctx, x, w.dims[2:], pads)
    return _convolved(ctx, x, w, b, axes, 1, group)


def convolved_back(ctx, x, w, b, *, strides, dilations, pads, output_padding, group):
    ctx.closed(w, range(2, w.rank), "the kernel")
    if any(ctx.is_open(low) for low, _ in pads):
        ctx.refuse("the place of the windows is known of the true size only")
    return _convolved(ctx, x, w, b, ctx.open_axes(x, range(2, x.rank)), 0, group)


def _convolved(ctx, x, w, b, spatial, channels, group):
    """With zeros along spatial axes and channels; w has x's channels along the axis `channels`."""
    if group != 1:
        ctx.closed(x, (1,), "the grouped axis")
        ctx.closed(w, (0, 1), "the grouped axis")
    axes = (*spatial, *ctx.open_axes(x, (1,)))
    if not axes and not ctx.open_axes(w, (channels,)):
        return None
    return ctx.again(ctx.filled(x, 0, axes), ctx.filled(w, 0, (channels,)), b)


# Attention


def attention(ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    """Keys that do not count are hidden: by the mask, or because no query that counts may see so far."""
    b, (batch, heads, queries, _) = ctx.build, q.dims
    keys = k.dims[2]
    ctx.closed(q, (3,), "what is summed")
    ctx.closed(k, (3,), "what is summed")
    if sizes.equal(heads, k.dims[1]) is not True:
        ctx.closed(q, (1,), "grouped heads")
        ctx.closed(k, (1,), "grouped heads")
    if mask is not None:
        dims = (batch, heads, queries, keys)[4 - mask.rank :]
        ctx.repeats(*([have, want] for have, want in zip(mask.dims, dims, strict=True)))
    positions = {"causal": causal, "kv_offset": kv_offset, "window": window}
    seen = None
    if (causal or window >= 0) and ctx.is_open(kv_offset):
        seen = _seen(ctx, queries, keys, **positions)
        positions = {"causal": False, "kv_offset": 0, "window": -1}
    if not ctx.is_open(keys) and seen is None:
        return None
    if ctx.is_open(keys) and not (
        causal and seen is None and sizes.less_equal(queries + kv_offset, keys) is True
    ):  # else query i sees keys up to i + kv_offset only, and those count where the query does
        valid = ctx.inside((1, 1, 1, keys), (3,))
        seen = valid if seen is None else b.and_(seen, valid)
    if seen is not None:
        if mask is None:
            mask = seen
        elif mask.dtype.is_bool:
            mask = b.and_(mask, seen)
        else:  # to what it is added must be no NaN: the scores of keys that do not count become those of the first
            mask = b.select(seen, mask, b.constant(-np.inf, mask.dtype))
            k = _first_behind(ctx, k, 2)
    return ctx.again(q, k, ctx.filled(v, 0, (2,)), mask, sinks, **positions)


def _seen(ctx, queries, keys, *, causal, kv_offset, window):
    """bool[1,1,S,T]: which keys a query may see by position, from the true offset on."""
    b = ctx.build
    i = b.add(b.iota(dtype=dtypes.i64, dims=(1, 1, queries, 1), axis=2), ctx.size(kv_offset))
    j = b.iota(dtype=dtypes.i64, dims=(1, 1, 1, keys), axis=3)
    seen = b.compare(j, i, direction="le") if causal else None
    near = b.compare(j, b.subtract(i, window), direction="gt") if window >= 0 else None
    return seen if near is None else near if seen is None else b.and_(seen, near)


def _first_behind(ctx, x, axis):
    """x with its first element along an axis in the place of what does not count."""
    valid = ctx.inside(x.dims, (axis,))
    if valid is None:
        return x
    place = ctx.build.constant(np.zeros(1, np.int64))
    return ctx.build.select(valid, x, ctx.build.take(x, place, axis=axis))


def rotary(ctx, x, cos, sin, *, interleaved):
    ctx.closed(x, (3,), "the features")
    ctx.closed(cos, (2,), "the features")
    ctx.repeats([x.dims[0], cos.dims[0]], [x.dims[2], cos.dims[1]])


# Quantization


def quantized(ctx, x, scale, zero_point, *, axis, block_size, **attributes):
    """Right with one parameter an element of an axis; blocks of one would not be whole."""
    if block_size:
        ctx.closed(x, (axis,), "the axis of blocks")
        return
    for p in (scale, zero_point):
        if p is not None and p.rank == 1:
            ctx.repeats([p.dims[0], x.dims[axis] if axis < x.rank else 1])


def range_with_zero(ctx, x):
    return ctx.again(ctx.filled(x, 0)) if ctx.open_axes(x) else None
