"""Quantization: linear quantize and dequantize, and exact integer products."""

import numpy as np

from .. import dtypes
from ..dims import Size, ceildiv, equal
from ..dtypes import DType
from ..facts import make
from ..operators import FLOAT, INTEGER, PURE, REAL, TENSOR, Operand, operator
from .convolution import conv_dims
from .linalg import matmul_dims


def _check_parameter(ctx, x, p, axis: int, block_size: int, what: str) -> None:
    """scale and zero_point: one element, a vector along axis, or blocks along axis."""
    if p is None or p.rank == 0:
        return
    if block_size:
        ctx.need(p.rank == x.rank, f"{what} must have x's rank {x.rank} when blocked, got {p.type}")
        for i, (got, size) in enumerate(zip(p.dims, x.dims, strict=True)):
            ctx.equal(got, ceildiv(size, block_size) if i == axis else size, f"dims of {what} (axis {i})")
        return
    ctx.need(p.rank == 1, f"{what} must be a scalar or a vector, got {p.type}")
    if equal(p.dims[0], 1) is not True:
        ctx.need(axis < x.rank, f"axis {axis} is out of range for rank {x.rank}")
        ctx.equal(p.dims[0], x.dims[axis], f"the dim of {what} and of x along axis {axis}")


def _parameter_axis(ctx, x, axis: int, *parameters) -> int:
    """axis in [0, rank); it does not matter (and may lie outside) where parameters have one element."""
    scalar = all(p is None or p.rank == 0 or (p.rank == 1 and equal(p.dims[0], 1) is True) for p in parameters)
    return 0 if scalar else ctx.axis(axis, x.rank)


def _quantize_type(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    axis = _parameter_axis(ctx, x, axis, scale, zero_point)
    _check_parameter(ctx, x, scale, axis, block_size, "scale")
    _check_parameter(ctx, x, zero_point, axis, block_size, "zero_point")
    if zero_point is not None:
        ctx.need(zero_point.dtype is dtype, f"zero_point must have the result's type {dtype}, got {zero_point.type}")
    return x.with_dtype(dtype)


def _dequantize_type(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    axis = _parameter_axis(ctx, x, axis, scale, zero_point)
    _check_parameter(ctx, x, scale, axis, block_size, "scale")
    _check_parameter(ctx, x, zero_point, axis, block_size, "zero_point")
    return x.with_dtype(dtype or scale.dtype)


def _dynamic_type(ctx, x):
    return x.with_dtype(dtypes.u8), make(x.dtype), make(dtypes.u8)


def _matmul_integer_type(ctx, a, b, a_zero_point, b_zero_point):
    return make(dtypes.i32, *matmul_dims(ctx, a, b))


def _conv_integer_type(ctx, x, w, x_zero_point, w_zero_point, *, strides, dilations, pads, group):
    return make(dtypes.i32, *conv_dims(ctx, x, w, strides=strides, dilations=dilations, pads=pads, group=group))


def _qlinear_conv_type(
    ctx, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b, *, strides, dilations, pads, group
):
    dims = conv_dims(ctx, x, w, strides=strides, dilations=dilations, pads=pads, group=group)
    return make(y_zero_point.dtype, *dims)


def _qlinear_matmul_type(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    return make(y_zero_point.dtype, *matmul_dims(ctx, a, b))


@operator("QuantizeLinear", family="quantization", traits=PURE)
class QuantizeLinear:
    """saturate(round_half_even(x / scale) + zero_point) in `dtype`.

    scale and zero_point are scalars, vectors along axis, or (block_size > 0) blocked along axis.  float8: no rounding to
    integers, `saturate` as in convert.
    """

    x: Operand[REAL]
    scale: Operand[FLOAT]
    zero_point: Operand | None = None
    dtype: DType
    axis: int = 1
    block_size: int = 0
    saturate: bool = True
    infer = _quantize_type


@operator("DequantizeLinear", family="quantization", traits=PURE)
class DequantizeLinear:
    """(x - zero_point) * scale in `dtype` (the scale's type by default).  Shapes as in QuantizeLinear."""

    x: Operand
    scale: Operand[FLOAT]
    zero_point: Operand | None = None
    axis: int = 1
    block_size: int = 0
    dtype: DType | None = None
    infer = _dequantize_type


@operator("DynamicQuantizeLinear", family="quantization", traits=PURE)
class DynamicQuantizeLinear:
    """f32 to u8 with scale and zero point from the tensor's range widened to hold 0.  (y, scale, zero_point)"""

    x: Operand[FLOAT]
    infer = _dynamic_type


@operator("MatMulInteger", family="quantization", traits=PURE)
class MatMulInteger:
    """matmul(a - a_zero_point, b - b_zero_point) in i32.  Zero points: scalars, or one a row of a / column of b."""

    a: Operand[INTEGER]
    b: Operand[INTEGER]
    a_zero_point: Operand[INTEGER] | None = None
    b_zero_point: Operand[INTEGER] | None = None
    infer = _matmul_integer_type


@operator("ConvInteger", family="quantization", traits=PURE)
class ConvInteger:
    """Convolution of x - x_zero_point with w - w_zero_point in i32; padding counts as x_zero_point.  Attributes as in Conv."""

    x: Operand[INTEGER]
    w: Operand[INTEGER]
    x_zero_point: Operand[INTEGER] | None = None
    w_zero_point: Operand[INTEGER] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    group: int = 1
    infer = _conv_integer_type


@operator("QLinearConv", family="quantization", traits=PURE)
class QLinearConv:
    """Conv of quantized x and w with the i32 bias b (scale x_scale * w_scale), requantized to y's scale and zero point."""

    x: Operand[INTEGER]
    x_scale: Operand[FLOAT]
    x_zero_point: Operand[INTEGER]
    w: Operand[INTEGER]
    w_scale: Operand[FLOAT]
    w_zero_point: Operand[INTEGER]
    y_scale: Operand[FLOAT]
    y_zero_point: Operand[INTEGER]
    b: Operand[INTEGER] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    group: int = 1
    infer = _qlinear_conv_type


@operator("QLinearMatMul", family="quantization", traits=PURE)
class QLinearMatMul:
    """matmul of quantized a and b, requantized to y's scale and zero point.  Parameters: scalars, or per row of a / column of b."""

    a: Operand[TENSOR]
    a_scale: Operand[FLOAT]
    a_zero_point: Operand[TENSOR]
    b: Operand[TENSOR]
    b_scale: Operand[FLOAT]
    b_zero_point: Operand[TENSOR]
    y_scale: Operand[FLOAT]
    y_zero_point: Operand[TENSOR]
    infer = _qlinear_matmul_type
