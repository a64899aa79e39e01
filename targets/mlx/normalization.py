"""Normalizing operators that MLX has a form of; the others are decomposed."""

from ...ir import dims as sizes
from ...ir import dtypes
from . import types
from .lowering import lower


def _wide(ctx, x):
    if types.is_code(x.dtype):
        ctx.refuse(f"of {x.dtype}")
    return ctx.convert(x, types.accumulator(x.dtype))


@lower("Softmax")
def softmax(ctx, x, *, axis):
    extra = ["precise=True"] if x.dtype.bits < 32 else []
    if types.is_code(x.dtype) or x.dtype is dtypes.f64:
        ctx.refuse(f"of {x.dtype}" if types.is_code(x.dtype) else "mx.softmax takes powers of e of f64 in f32")
    return ctx.call("mx.softmax", x, f"axis={axis}", *extra)


def _per_channel(ctx, v, rank):
    return ctx.reshape(v, (v.dims[0], *[1] * (rank - 2)))


@lower("BatchNormalization")
def batch_normalization(ctx, x, scale, bias, mean, variance, *, epsilon):
    dtype = x.dtype
    wide = [_wide(ctx, v) for v in (x, scale, bias, mean, variance)]
    if any(v.dtype is not wide[0].dtype for v in wide):
        ctx.refuse("parameters of another element type")
    x, scale, bias, mean, variance = wide
    source, permutation = ctx.laid_out(x)
    last = permutation[1] == x.rank - 1  # a vector of the channels is then broadcast as it is
    along = (lambda v: v) if last else lambda v: _per_channel(ctx, v, x.rank)
    epsilon = ctx.scalar(epsilon, x.dtype)
    factor = ctx.infix("/", scale, ctx.call("mx.sqrt", ctx.infix("+", variance, epsilon)))
    scaled = ctx.infix("*", ctx.infix("-", source, along(mean)), along(factor))
    out = ctx.typed(ctx.convert(ctx.infix("+", scaled, along(bias)), dtype), dtype, source.dims)
    return out if source is x else ctx.channels_first(out)


def _last_axis(ctx, x, axis, *vectors):
    """mx.fast normalizes the last axis, with vectors of its size and the element type of x."""
    if axis % x.rank != x.rank - 1 or x.dtype is dtypes.f64 or types.is_code(x.dtype):
        ctx.refuse("mx.fast normalizes single precision along the last axis only")
    for v in vectors:
        if v is not None and (v.rank != 1 or v.dtype is not x.dtype or sizes.equal(v.dims[0], x.dims[-1]) is not True):
            ctx.refuse("scale and bias must be vectors of the last axis")
    if any(sizes.less_equal(1, d) is not True and isinstance(d, int) for d in x.dims):
        ctx.refuse("an empty operand")


@lower("LayerNormalization")
def layer_normalization(ctx, x, scale, bias, *, axis, epsilon):
    _last_axis(ctx, x, axis, scale, bias)
    used = [bool(r.uses) for r in ctx.node.results]
    if any(used[1:]):
        ctx.refuse("mean and deviation are results, which mx.fast.layer_norm keeps to itself")
    y = ctx.call("mx.fast.layer_norm", x, scale, bias, epsilon)
    statistic = ctx.result_types[1]
    unused = ctx.full(0, statistic.dtype, statistic.shape)
    return y, unused, unused


@lower("RMSNormalization")
def rms_normalization(ctx, x, scale, *, axis, epsilon):
    _last_axis(ctx, x, axis, scale)
    return ctx.call("mx.fast.rms_norm", x, scale, epsilon)
