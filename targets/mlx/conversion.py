"""Conversions between element types, with the edges that irc promises and MLX leaves to the platform."""

from __future__ import annotations

from typing import Any

from ...ir import dtypes
from ...ir.dtypes import DType
from . import types
from .context import Context
from .expression import Expr


def convert(ctx: Context, x: Expr, dtype: DType, saturate: bool = False) -> Expr:
    """x in another element type, by the rules of the operator `convert`."""
    if x.dtype is dtype:
        return x
    if x.number is not None and x.rank == 0 and not dtype.is_string and not types.is_code(x.dtype):
        from ...ir.conversion import converted

        return ctx.array(converted(x.data, dtype, saturate=saturate), dtype)  # type: ignore[arg-type]  # number is not None
    if x.dtype.is_complex and not dtype.is_complex:
        if dtype.is_bool:
            return ctx.infix("!=", x, 0)
        x = ctx.attribute(x, "real")
        x = ctx.typed(x, dtypes.f32)
        return convert(ctx, x, dtype, saturate)
    x = ctx.wide(x)
    if dtype.is_bool:
        return ctx.infix("!=", x, 0)
    if dtype.is_integer and x.dtype.is_float:
        return _to_integer(ctx, x, dtype)
    if types.is_code(dtype):
        return ctx.narrow(_single(ctx, x), dtype, saturate)
    held = types.carrier(dtype)
    if x.dtype is dtypes.f64 and dtype in (dtypes.f16, dtypes.bf16):
        x = ctx.recipe("_odd_float32", x, dtype=dtypes.f32)
    if x.dtype.is_integer and dtype is dtypes.bf16 and x.dtype.bits > 16:
        x = ctx.recipe("_sticky", x)
    return ctx.narrow(ctx.convert(x, held), dtype)


def _single(ctx: Context, x: Expr) -> Expr:
    """x as f32, so that rounding again to a narrow float is right."""
    return ctx.recipe("_odd_float32", x, dtype=dtypes.f32) if x.dtype is dtypes.f64 else ctx.convert(x, dtypes.f32)


def _to_integer(ctx: Context, x: Expr, dtype: DType) -> Expr:
    x = ctx.convert(x, types.accumulator(x.dtype))
    held = types.carrier(dtype)
    low, high = int(dtype.min_value()), int(dtype.max_value())
    return ctx.typed(ctx.recipe("_to_integer", x, types.spelling(held), low, high, dtype=held), dtype)


def recast(ctx: Context, x: Expr, dtype: DType) -> Expr:
    """The bits of x read as another element type."""
    if x.dtype is dtype:
        return x
    if x.dtype.bits < 8 or dtype.bits < 8:
        return _narrow_bits(ctx, x, dtype)
    dims: Any = ctx.result_types[0].shape
    held = types.carrier(dtype)
    if x.dtype.bits == dtype.bits:
        return ctx.typed(ctx.method(x, "view", held, dtype=held) if types.carrier(x.dtype) is not held else x, dtype)
    if dtype.bits < x.dtype.bits:
        x = ctx.reshape(x, (*x.dims, 1))
        return ctx.typed(ctx.method(x, "view", held, dtype=held, dims=dims), dtype)
    whole = ctx.method(x, "view", held, dtype=held, dims=(*dims, 1))
    return ctx.typed(ctx.reshape(whole, dims), dtype)


def _narrow_bits(ctx: Context, x: Expr, dtype: DType) -> Expr:
    """Bits of types below a byte, one element a byte on the device."""
    code = ctx.typed(x, types.carrier(x.dtype))
    if x.dtype.kind == "int" or x.dtype.bits >= 8:
        made = DType.of(f"u{max(x.dtype.bits, 8)}")
        code = code if code.dtype is made else ctx.method(code, "view", made, dtype=made)
        code = ctx.infix("&", code, (1 << x.dtype.bits) - 1) if x.dtype.bits < 8 else code
    dims = ctx.result_types[0].shape
    if x.dtype.bits > dtype.bits:
        code = ctx.recipe("_split_bits", code, x.dtype.bits, dtype.bits, dtype=dtypes.u8, dims=dims)
    elif x.dtype.bits < dtype.bits:
        made = DType.of(f"u{max(dtype.bits, 8)}")
        code = ctx.recipe("_join_bits", code, x.dtype.bits, types.spelling(made), dtype=made, dims=dims)
    held = types.carrier(dtype)
    code = code if code.dtype is held else ctx.method(code, "view", held, dtype=held)
    if dtype.kind == "int" and dtype.bits < 8:
        sign = 1 << (dtype.bits - 1)
        code = ctx.infix("-", ctx.infix("^", code, sign), sign)
    return ctx.typed(code, dtype)
