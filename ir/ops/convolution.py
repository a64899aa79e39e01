"""Convolutions: the core operator in any layout, and ONNX's Conv and ConvTranspose in NCHW."""

from typing import Literal

import numpy as np

from ..dims import Size
from ..dtypes import DType
from ..operators import FLOAT, NUMERIC, PURE, Operand, operator


@operator("convolution", family="convolution", traits=PURE)
class Convolution:
    """StableHLO convolution of x with w.  Specs name axes: "b" batch, "f" feature, "i"/"o" kernel in/out, digits spatial.

    e.g. lhs_spec "bf01", rhs_spec "oi01", out_spec "bf01".  padding has one (low, high) pair a spatial axis, may be
    negative.  Result dim: (dilated + low + high - ((k - 1) * rhs_dilation + 1)) // stride + 1.  No kernel flip unless
    window_reversal.  Accumulates as dot_general does; `result` is the result's element type (default: that of x).
    """

    x: Operand[NUMERIC]
    w: Operand[NUMERIC]
    lhs_spec: str
    rhs_spec: str
    out_spec: str
    window_strides: tuple[int, ...]
    padding: tuple[tuple[Size, ...], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    window_reversal: tuple[bool, ...]
    feature_group_count: int = 1
    batch_group_count: int = 1
    precision: Literal["default", "high", "highest"] = "highest"
    result: DType | None = None


@operator("Conv", family="convolution", traits=PURE)
class Conv:
    """ONNX Conv: x[N, C, spatial..], w[M, C/group, kernel..], b[M]; pads are (low, high) pairs, already resolved from auto_pad."""

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    group: int = 1


@operator("ConvTranspose", family="convolution", traits=PURE)
class ConvTranspose:
    """ONNX ConvTranspose: x[N, C, spatial..], w[C, M/group, kernel..], b[M]; pads and output_padding already resolved.

    Result dim: stride * (in - 1) + output_padding + (k - 1) * dilation + 1 - low - high.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    output_padding: tuple[Size, ...]
    group: int = 1
