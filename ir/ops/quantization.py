"""Quantization: linear quantize and dequantize, and exact integer products."""

import numpy as np

from ..dims import Size
from ..dtypes import DType
from ..operators import FLOAT, INTEGER, PURE, REAL, TENSOR, Operand, operator


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


@operator("DequantizeLinear", family="quantization", traits=PURE)
class DequantizeLinear:
    """(x - zero_point) * scale in `dtype` (the scale's type by default).  Shapes as in QuantizeLinear."""

    x: Operand
    scale: Operand[FLOAT]
    zero_point: Operand | None = None
    axis: int = 1
    block_size: int = 0
    dtype: DType | None = None


@operator("DynamicQuantizeLinear", family="quantization", traits=PURE)
class DynamicQuantizeLinear:
    """f32 to u8 with scale and zero point from the tensor's range widened to hold 0.  (y, scale, zero_point)"""

    x: Operand[FLOAT]


@operator("MatMulInteger", family="quantization", traits=PURE)
class MatMulInteger:
    """matmul(a - a_zero_point, b - b_zero_point) in i32.  Zero points: scalars, or one a row of a / column of b."""

    a: Operand[INTEGER]
    b: Operand[INTEGER]
    a_zero_point: Operand[INTEGER] | None = None
    b_zero_point: Operand[INTEGER] | None = None


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
