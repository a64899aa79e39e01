"""Conversions of element types with the edges that irc promises: saturation, NaN, bool, complex, float8."""

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from . import types
from .context import Context, Expr
from .lowering import lower
from .mlir import hlo


@lower("convert")
def convert(ctx: Context, x: Expr, *, dtype: DType, saturate: bool) -> Expr:
    if x.dtype is dtype:
        return x
    if dtype.is_bool:
        carried = ctx.carried(x)
        return ctx.compare(carried, 0, "ne")
    if x.dtype.is_complex and not dtype.is_complex:
        x = ctx.apply("real", x, dtype=types.part(x.dtype))
    if dtype.is_complex:
        return _to_complex(ctx, x, dtype)
    if dtype.is_integer:
        return _float_to_integer(ctx, x, dtype) if x.dtype.is_float else ctx.convert(x, dtype)
    if dtype.is_float and saturate and dtype.bits <= 8:
        return _saturated(ctx, x, dtype)
    return ctx.convert(x, dtype)


def _to_complex(ctx: Context, x: Expr, dtype: DType) -> Expr:
    if x.dtype.is_complex:
        return ctx.convert(x, dtype)
    real = ctx.convert(x, types.part(dtype))
    return ctx.apply("complex", real, ctx.full_like(real, 0), dtype=dtype)


def _float_to_integer(ctx: Context, x: Expr, dtype: DType) -> Expr:
    """Truncates, saturates, NaN gives 0.  Types below 32 bits go through i32, which holds all their values."""
    x = ctx.convert(x, types.accumulator(x.dtype))
    low, high = int(dtype.min_value()), int(dtype.max_value())
    made = dtype if dtype.bits >= 32 else dtypes.i32
    integer = ctx.convert(x, made)
    # The bounds as floats: high + 1 is a power of two, so it and low are exact in f32.
    below = ctx.compare(x, float(low), "le")
    above = ctx.compare(x, float(high + 1), "ge")
    integer = ctx.select(below, ctx.full(low, made), integer)
    integer = ctx.select(above, ctx.full(high, made), integer)
    return ctx.convert(ctx.select(ctx.is_nan(x), 0, integer), dtype)


def _saturated(ctx: Context, x: Expr, dtype: DType) -> Expr:
    """x limited to the finite range of `dtype`; NaN stays.  f8e8m0fnu has no sign and no 0: 0 gives its least value."""
    wide = ctx.convert(x, types.accumulator(x.dtype)) if x.dtype.is_float else ctx.convert(x, dtypes.f32)
    info = dtype.finfo()
    low, high = np.float64(info.min), np.float64(info.max)
    limited = ctx.apply("minimum", wide, ctx.full_like(wide, high))
    if low < 0:
        return ctx.convert(ctx.apply("maximum", limited, ctx.full_like(wide, low)), dtype)
    tiny = ctx.apply("and_", ctx.compare(wide, 0, "ge"), ctx.compare(wide, float(low), "le"))
    return ctx.select(tiny, ctx.full(low, dtype), ctx.convert(limited, dtype))


@lower("bitcast_convert")
def bitcast_convert(ctx: Context, x: Expr, *, dtype: DType) -> Expr:
    if x.dtype.is_bool or dtype.is_bool or x.dtype.is_complex or dtype.is_complex:
        ctx.refuse(f"bits of {x.dtype} read as {dtype}")
    _, dims = ctx.result_types[0]
    return ctx.wrap(hlo.bitcast_convert(types.tensor(dtype, dims), x.value), dtype)
