"""What rules of several elementwise operators share: derivatives, integer division and power, bits, wide types."""

import numpy as np

from ... import dtypes
from ...operators import ELEMENTWISE, PURE
from ..widening import converted, wide_type

MAP = PURE | ELEMENTWISE

WHOLE = {dtypes.f32: dtypes.c64, dtypes.f64: dtypes.c128}
PART = {whole: part for part, whole in WHOLE.items()}

COMPARE = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


def to_bool(ctx, x):
    """Infer: the same dims, of bool."""
    return x.with_dtype(dtypes.bool_)


def to_part(ctx, x):
    """Infer: the real type of a complex one."""
    return x.with_dtype(PART.get(x.dtype, x.dtype))


def scipy_special():
    """scipy.special, imported when a rule first needs it."""
    import scipy.special

    return scipy.special


def width(ctx) -> int:
    """Bits of the first operand's element type."""
    return int(ctx.node.operands[0].dtype.bits)


def bit_pattern(ctx, x):
    """The bits of integers as u64 (the evaluator hands sub-byte integers over as i64)."""
    return x.astype(np.int64).astype(np.uint64) & np.uint64((1 << width(ctx)) - 1)


def sign_extended(ctx, x):
    """Integers read as signed ones of their width, as i64."""
    unused = np.int64(64 - width(ctx))
    return (bit_pattern(ctx, x).astype(np.int64) << unused) >> unused


def as_signed(pattern):
    """u64 as i64, from where a conversion to any integer type wraps."""
    return pattern.astype(np.int64)


def shift_amount(ctx, y):
    """(whether in [0, width), the amount or 0), the amount as u64."""
    valid = (y >= 0) & (y < width(ctx))
    return valid, np.where(valid, y, 0).astype(np.uint64)


def bit_length(pattern):
    """Position after the highest set bit of u64 numbers."""
    length = np.zeros(pattern.shape, np.int64)
    for step in (32, 16, 8, 4, 2, 1):
        high = pattern >> np.uint64(step)
        length += np.where(high > 0, step, 0)
        pattern = np.where(high > 0, high, pattern)
    return length + (pattern > 0)


def integer_divide(x, y):
    """Towards zero; x / 0 is -1 (all ones); the least integer divided by -1 is itself."""
    by_minus_one = y == -1
    safe = np.where((y == 0) | by_minus_one, 1, y)
    quotient = x // safe
    quotient = quotient + ((x % safe != 0) & ((x < 0) != (safe < 0)))
    quotient = np.where(by_minus_one, np.negative(x), quotient)
    return np.where(y == 0, np.invert(np.zeros_like(x)), quotient)


def integer_power(x, y):
    """x ^ y, wrapping; a negative exponent gives 0, but 1 for base 1 and 1 or -1 for base -1.  In the type of x."""
    x, y = np.broadcast_arrays(x, y)
    out = np.ones_like(x)
    base, rest = x.copy(), np.where(y < 0, 0, y)
    while (rest > 0).any():
        out = np.where(rest & 1 != 0, out * base, out)
        base, rest = base * base, rest >> 1
    odd = np.where(y & 1 != 0, x, 1)
    negative = np.where(x == 1, 1, np.where(x == -1, odd, 0))
    return np.where(y < 0, negative, out).astype(x.dtype)


def power_type(x, y):
    """The type in which Pow of an x and a y type is computed."""
    if x is y:
        return x
    if x.is_float and y.is_float:
        return x if x.bits > y.bits else y if y.bits > x.bits else dtypes.f32
    if x.is_float:
        return x
    if y.is_float:
        return dtypes.f64
    return dtypes.u64 if y.kind == "uint" else dtypes.i64


def in_wide(b, xs, body):
    """body(build, *xs) computed in f32 for narrower floats, in f64 or f32 for integers, and converted back."""
    xs = xs if isinstance(xs, tuple) else (xs,)
    dtype = xs[0].dtype
    wide = wide_type(dtype)
    if dtype.is_integer:
        wide = dtypes.f32 if dtype.bits <= 16 else dtypes.f64
    return converted(b, body(b, *(converted(b, x, wide) for x in xs)), dtype)


def softplus(b, x):
    """log(1 + e^x) as maximum(x, 0) + log(1 + e^-|x|)."""
    return b.add(b.maximum(x, 0.0), b.log_plus_one(b.exponential(b.negate(b.abs(x)))))


def recast_dims(ctx, x, dtype):
    """Infer: dims of bitcast_convert."""
    have, want = x.dtype.bits, dtype.bits
    if x.dtype is not dtype and any(d.is_complex or d.is_bool or d.is_string for d in (x.dtype, dtype)):
        ctx.fail(f"the bits of {x.dtype} cannot be read as {dtype}; both must be integer or floating-point types")
    if have == want:
        return x.dims
    if max(have, want) % min(have, want):
        ctx.fail(f"the width of {x.dtype} and of {dtype} must divide one another")
    if have > want:
        return (*x.dims, have // want)
    ctx.need(x.rank > 0, f"reading {x.type} as the wider {dtype} needs a last axis of size {want // have}")
    ctx.equal(x.dims[-1], want // have, f"the last dim of x, read as the wider {dtype}, and {want // have}")
    return x.dims[:-1]


def derivative(rule):
    """The vjp of a function of one operand: the cotangent times rule(build, x, y), y being the result."""

    def vjp(ctx, x):
        return ctx.build.multiply(ctx.cotangent, rule(ctx.build, x, ctx.result))

    return vjp


def flat(ctx, *operands, **attributes):
    """The vjp of what is constant between its jumps: no cotangent for any operand."""
    return (None,) * len(operands) if len(operands) > 1 else None


def shared(ctx, x, y, direction):
    """The vjp of maximum and minimum: all to the operand that was taken, half to each where they are equal."""
    b, g = ctx.build, ctx.cotangent
    zero, half = b.constant(0.0, g.dtype), b.multiply(g, 0.5)
    equal, first = b.compare(x, y, direction="eq"), b.compare(x, y, direction=direction)
    return (
        b.select(equal, half, b.select(first, g, zero)),
        b.select(equal, half, b.select(first, zero, g)),
    )
