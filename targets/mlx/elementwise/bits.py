"""Operators on bits, and conversions between element types."""

from ....ir import dtypes
from .. import conversion, types
from ..lowering import lower
from .computing import both, plain


@lower("not")
@plain
def not_(ctx, x):
    return ctx.call("mx.logical_not" if x.dtype.is_bool else "mx.bitwise_invert", x)


def _unsigned(ctx, x, bits):
    """Bits of integers as an unsigned type: of bytes for sub-byte ones, the unused bits 0."""
    if bits < 8:
        x = ctx.wide(x)
        x = ctx.infix("&", x, (1 << bits) - 1)
        return x if x.dtype is dtypes.u8 else ctx.method(x, "view", dtypes.u8, dtype=dtypes.u8)
    made = dtypes.DType.of(f"u{bits}")
    return x if x.dtype is made else ctx.method(x, "view", made, dtype=made)


def _signed(ctx, x):
    """The same numbers read as signed ones of their width."""
    if x.dtype.kind == "int":
        return ctx.wide(x)
    if x.dtype.bits < 8:
        sign = 1 << (x.dtype.bits - 1)
        wide = ctx.method(ctx.wide(x), "view", dtypes.i8, dtype=dtypes.i8)
        return ctx.infix("-", ctx.infix("^", wide, sign), sign)
    made = dtypes.DType.of(f"i{x.dtype.bits}")
    return ctx.method(x, "view", made, dtype=made)


def _as(ctx, x, dtype):
    """Integers of equal width read as `dtype`, wrapped to its width."""
    held = types.carrier(dtype)
    x = x if x.dtype is held else ctx.method(x, "view", held, dtype=held)
    return ctx.narrow(x, dtype)


def _amount(y, width):
    """A constant shift inside [0, width), or None."""
    number = y.number
    return number if number is not None and 0 <= number < width else None


@lower("shift_left")
def shift_left(ctx, x, y):
    width = x.dtype.bits
    wide, by = ctx.wide(x), ctx.wide(y)
    if _amount(y, width) is not None and y.rank <= x.rank:
        return ctx.narrow(ctx.infix("<<", wide, by), x.dtype)
    return ctx.narrow(ctx.recipe("_shift_left", wide, by, width, dims=both(ctx, x, y)), x.dtype)


@lower("shift_right_logical")
def shift_right_logical(ctx, x, y):
    width = x.dtype.bits
    wide, by = _unsigned(ctx, x, width), ctx.wide(y)
    if (amount := _amount(y, width)) is not None and y.rank <= x.rank:
        return _as(ctx, ctx.infix(">>", wide, amount), x.dtype)
    return _as(ctx, ctx.recipe("_shift_right_zero", wide, by, width, dims=both(ctx, x, y)), x.dtype)


@lower("shift_right_arithmetic")
def shift_right_arithmetic(ctx, x, y):
    width = x.dtype.bits
    wide, by = _signed(ctx, x), ctx.wide(y)
    if (amount := _amount(y, width)) is not None and y.rank <= x.rank:
        return _as(ctx, ctx.infix(">>", wide, amount), x.dtype)
    if x.dtype.kind == "uint" and width < 64:
        by = ctx.convert(by, dtypes.i64)
    by = by if by.dtype.kind == "int" else ctx.convert(ctx.call("mx.minimum", by, 64), dtypes.i64)
    shifted = ctx.recipe("_shift_right", wide, by, width, dims=both(ctx, x, y))
    return _as(ctx, ctx.method(shifted, "astype", wide.dtype), x.dtype)


@lower("popcnt")
def popcnt(ctx, x):
    bits = _unsigned(ctx, x, x.dtype.bits)
    return _as(ctx, ctx.recipe("_count_ones", bits, bits.dtype.bits), x.dtype)


@lower("count_leading_zeros")
def count_leading_zeros(ctx, x):
    bits = _unsigned(ctx, x, x.dtype.bits)
    count = ctx.recipe("_leading_zeros", bits, bits.dtype.bits)
    if x.dtype.bits < 8:
        count = ctx.infix("-", count, bits.dtype.bits - x.dtype.bits)
    return _as(ctx, count, x.dtype)


_LAYOUT = {
    dtypes.f64: ("uint64", 11, 52), dtypes.f32: ("uint32", 8, 23), dtypes.f16: ("uint16", 5, 10),
    dtypes.bf16: ("uint16", 8, 7),
}  # fmt: skip


@lower("reduce_precision")
def reduce_precision(ctx, x, *, exponent_bits, mantissa_bits):
    if x.dtype not in _LAYOUT:
        ctx.refuse(f"reduce_precision of {x.dtype}")
    bits, exponent, mantissa = _LAYOUT[x.dtype]
    return ctx.recipe("_reduce_precision", x, f"mx.{bits}", exponent_bits, mantissa_bits, exponent, mantissa)


@lower("convert")
def convert(ctx, x, *, dtype, saturate):
    return conversion.convert(ctx, x, dtype, saturate)


@lower("bitcast_convert")
def bitcast_convert(ctx, x, *, dtype):
    return conversion.recast(ctx, x, dtype)
