"""Operators that move or make elements by position."""

import numpy as np

from ...ir import dims as sizes
from ...ir import dtypes
from . import types
from .expression import LOWEST, Slot
from .lowering import lower


@lower("broadcast_in_dim")
def broadcast_in_dim(ctx, x, *, dims, broadcast_dimensions):
    if x.number is not None and dims:
        return ctx.full(x.number, x.dtype, dims)
    spread = [1] * len(dims)
    for axis, size in zip(broadcast_dimensions, x.dims, strict=True):
        spread[axis] = size
    lead = len(dims) - x.rank
    trailing = tuple(broadcast_dimensions) == tuple(range(lead, len(dims)))
    shaped = x if trailing else ctx.reshape(x, spread)
    if tuple(spread) == tuple(dims):
        return ctx.reshape(shaped, dims)
    return ctx.call("mx.broadcast_to", shaped, tuple(dims), dims=dims)


@lower("reshape")
def reshape(ctx, x, *, dims):
    return ctx.reshape(x, dims)


@lower("transpose")
def transpose(ctx, x, *, permutation):
    return ctx.transpose(x, permutation)


@lower("concatenate")
def concatenate(ctx, xs, *, axis):
    if len(xs) == 1:
        return xs[0]
    views = [ctx.laid_out(x) for x in xs]
    permutation = views[0][1]
    if all(v is not x and p == permutation for (v, p), x in zip(views, xs, strict=True)):
        dims = ctx.result_types[0].shape
        dims = [dims[permutation.index(a)] for a in range(len(dims))]
        return ctx.channels_first(ctx.call("mx.concatenate", [v for v, _ in views], axis=permutation[axis], dims=dims))
    return ctx.call("mx.concatenate", list(xs), axis=axis)


def _slice_text(ctx, start, limit, stride, dim):
    """`start:limit:stride`, without what is the default."""
    first = "" if start == 0 else ctx.size(start)
    last = "" if sizes.equal(limit, dim) else ctx.size(limit)
    return f"{first}:{last}" + (f":{stride}" if stride != 1 else "")


def _indexed(ctx, x, texts, dims):
    while texts and texts[-1] == ":":
        texts.pop()
    return ctx.index(x, *texts, dims=dims) if texts else x


@lower("slice")
def slice_(ctx, x, *, starts, limits, strides):
    rows = zip(starts, limits, strides, x.dims, strict=True)
    return _indexed(ctx, x, [_slice_text(ctx, *row) for row in rows], ctx.result_types[0].shape)


@lower("StridedSlice")
def strided_slice(ctx, x, *, starts, limits, strides):
    texts = []
    for start, limit, stride, dim in zip(starts, limits, strides, x.dims, strict=True):
        if stride > 0:
            texts.append(_slice_text(ctx, start, limit, stride, dim))
            continue
        if not isinstance(limit, int) and sizes.less_equal(0, limit) is not True:
            ctx.refuse("a limit of a negative stride that may or may not be before the start")
        if sizes.less_equal(1, dim) is not True:
            ctx.refuse("a negative stride along an axis that may be empty")
        first = "" if sizes.equal(start, dim - 1) else ctx.size(start)
        last = "" if isinstance(limit, int) and limit < 0 else ctx.size(limit)
        texts.append(f"{first}:{last}:{stride}")
    return _indexed(ctx, x, texts, ctx.result_types[0].shape)


def _not_negative(size):
    return sizes.less_equal(0, size) is True


@lower("pad")
def pad(ctx, x, value, *, low, high, interior):
    dims = ctx.result_types[0].shape
    ends = (*low, *high)
    if any(interior) or not all(_not_negative(p) for p in ends):
        if any(interior) or not all(isinstance(p, int) for p in ends):
            return ctx.recipe("_pad", x, tuple(low), tuple(high), tuple(interior), value, dims=dims)
        cut = [":".join((str(-l) if l < 0 else "", str(h) if h < 0 else "")) for l, h in zip(low, high, strict=True)]
        kept = [d + min(l, 0) + min(h, 0) for d, l, h in zip(x.dims, low, high, strict=True)]
        if any(sizes.less_equal(0, k) is not True for k in kept):
            return ctx.recipe("_pad", x, tuple(low), tuple(high), tuple(interior), value, dims=dims)
        x = _indexed(ctx, x, cut, kept)
        low, high = [max(p, 0) for p in low], [max(p, 0) for p in high]
    widths = [tuple(p) for p in zip(low, high, strict=True)]
    if all(p == (0, 0) for p in widths):
        return x
    keywords = {}
    if value.number is None or value.number != 0 or str(value.number).startswith("-"):
        weak = value.number is not None and not x.dtype.is_bool
        keywords["constant_values"] = Slot(value, LOWEST, True) if weak else value
    return ctx.call("mx.pad", x, widths, dims=dims, **keywords)


@lower("PadMode")
def pad_mode(ctx, x, *, low, high, mode):
    """`edge` is MLX's own; the other modes are decomposed."""
    if mode != "edge" or not all(_not_negative(p) for p in (*low, *high)):
        ctx.refuse(f"mx.pad has no mode {mode} with these widths")
    for dim, l, h in zip(x.dims, low, high, strict=True):
        if (l != 0 or h != 0) and sizes.less_equal(1, dim) is not True:
            ctx.refuse("edge padding of an axis that may be empty")
    widths = [tuple(p) for p in zip(low, high, strict=True)]
    return ctx.call("mx.pad", x, widths, mode='"edge"', dims=ctx.result_types[0].shape)


@lower("reverse")
def reverse(ctx, x, *, axes):
    axes = {a % x.rank for a in axes}
    return _indexed(ctx, x, ["::-1" if a in axes else ":" for a in range(x.rank)], x.dims)


@lower("iota")
def iota(ctx, *, dtype, dims, axis):
    native = dtype if dtype.bits >= 8 and not dtype.is_float and not dtype.is_complex else dtypes.i64
    numbers = ctx.arange(dims[axis], dtypes.i64 if native.bits < 32 else native)
    if native.bits < 32:
        numbers = ctx.convert(numbers, native)
    if native is not dtype:
        from . import conversion

        numbers = conversion.convert(ctx, numbers, dtype)
    numbers = ctx.reshape(numbers, [d if i == axis else 1 for i, d in enumerate(dims)])
    if all(d == 1 or i == axis for i, d in enumerate(dims)):
        return numbers
    return ctx.call("mx.broadcast_to", numbers, tuple(dims), dims=dims)


@lower("dimensions")
def dimensions(ctx, *, dims, scalar):
    if all(isinstance(d, int) for d in dims):
        return ctx.array(np.array(dims[0] if scalar else dims, np.int64))
    inner = dims[0] if scalar else list(dims)
    return ctx.call("mx.array", inner, dtypes.i64, dtype=dtypes.i64, dims=() if scalar else (len(dims),))


@lower("Split")
def split(ctx, x, *, axis, sizes):
    axis %= x.rank
    if len(sizes) == 1:
        return x
    cuts, at = [], 0
    for size in sizes[:-1]:
        at = at + size
        cuts.append(at)
    equal = all(s == sizes[0] for s in sizes)
    made = ctx.call("mx.split", x, len(sizes) if equal else cuts, axis=axis)
    results = ctx.node.results
    rows = [(r.dtype, r.dims) for r in results]
    return ctx.unpack(made, rows, [r.name or "part" for r in results])


@lower("Tile")
def tile(ctx, x, *, repeats):
    return ctx.call("mx.tile", x, tuple(repeats), dims=ctx.result_types[0].shape)


@lower("EyeLike")
def eye_like(ctx, *, dtype, dims, k):
    if dtype.bits < 8 or types.is_code(dtype):
        ctx.refuse(f"mx.eye of {dtype}")
    made = dtypes.f32 if dtype.is_bool else dtype
    extra = [f"k={k}"] if k else []
    out = ctx.call("mx.eye", *dims, *extra, f"dtype={types.spelling(made)}", dtype=made, dims=dims)
    return ctx.convert(out, dtype)


@lower("Trilu")
def trilu(ctx, x, *, k, upper):
    if types.is_code(x.dtype):
        ctx.refuse(f"mx.triu of {x.dtype}")
    return ctx.call("mx.triu" if upper else "mx.tril", x, **({"k": k} if k else {}))
