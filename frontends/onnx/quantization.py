"""ONNX quantization: QuantizeLinear, DequantizeLinear, integer and quantized products."""

from __future__ import annotations

from ...ir.dtypes import u8
from .convolution import convolution
from .registry import onnx_op


@onnx_op("QuantizeLinear", since=10)
def quantize_linear(
    ctx, x, scale, zero_point=None, *, axis=1, saturate=1, block_size=0, output_dtype=0, precision=0
):  # fmt: skip
    if precision not in (0, scale.dtype.onnx, x.dtype.onnx):
        ctx.refuse(f"precision {ctx.dtype(precision)} of the division differs from the types of x and scale")
    if zero_point is not None:
        dtype = zero_point.dtype
    else:
        dtype = ctx.dtype(output_dtype) if output_dtype else u8
    return ctx.build.QuantizeLinear(
        x,
        scale,
        zero_point,
        dtype=dtype,
        axis=_axis(ctx, axis, x, scale),
        block_size=block_size,
        saturate=bool(saturate),
    )


@onnx_op("DequantizeLinear", since=10)
def dequantize_linear(ctx, x, scale, zero_point=None, *, axis=1, block_size=0, output_dtype=0):
    dtype = ctx.dtype(output_dtype) if output_dtype else None
    return ctx.build.DequantizeLinear(
        x, scale, zero_point, axis=_axis(ctx, axis, x, scale), block_size=block_size, dtype=dtype
    )


def _axis(ctx, axis, x, scale):
    """The axis of the scales; a scalar scale has none, whatever the attribute says."""
    return ctx.axis(axis, x) if scale.rank else 0


@onnx_op("DynamicQuantizeLinear")
def dynamic_quantize_linear(ctx, x):
    return ctx.build.DynamicQuantizeLinear(x)


@onnx_op("MatMulInteger")
def matmul_integer(ctx, a, b, a_zero_point=None, b_zero_point=None):
    return ctx.build.MatMulInteger(a, b, a_zero_point, b_zero_point)


@onnx_op("ConvInteger")
def conv_integer(
    ctx, x, w, x_zero_point=None, w_zero_point=None, *, kernel_shape=(), strides=(), dilations=(), pads=(),
    auto_pad="NOTSET", group=1,
):  # fmt: skip
    window = convolution(ctx, x, w, kernel_shape, strides, dilations, pads, auto_pad, group)
    return ctx.build.ConvInteger(x, w, x_zero_point, w_zero_point, **window)


@onnx_op("QLinearConv")
def qlinear_conv(
    ctx, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b=None, *, kernel_shape=(),
    strides=(), dilations=(), pads=(), auto_pad="NOTSET", group=1,
):  # fmt: skip
    window = convolution(ctx, x, w, kernel_shape, strides, dilations, pads, auto_pad, group)
    return ctx.build.QLinearConv(x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b, **window)


@onnx_op("QLinearMatMul")
def qlinear_matmul(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    return ctx.build.QLinearMatMul(a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)
