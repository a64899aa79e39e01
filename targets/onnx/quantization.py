"""ONNX lowering of quantization."""

from __future__ import annotations

from .lowering import flat_pads, lower


@lower("QuantizeLinear")
def quantize_linear(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    extra = {"block_size": block_size} if block_size else {}
    if zero_point is None:
        extra["output_dtype"] = dtype.onnx
    return ctx.op("QuantizeLinear", x, scale, zero_point, axis=axis, saturate=int(saturate), **extra)


def _default_type(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    return None if dtype in (None, scale.dtype) else "opset 21's DequantizeLinear gives the scale's type"


@lower("DequantizeLinear", when=_default_type)
def dequantize_linear(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    extra = {"block_size": block_size} if block_size else {}
    return ctx.op("DequantizeLinear", x, scale, zero_point, axis=axis, **extra)


@lower("DynamicQuantizeLinear")
def dynamic_quantize_linear(ctx, x):
    return ctx.ops("DynamicQuantizeLinear", x)


@lower("MatMulInteger")
def mat_mul_integer(ctx, a, b, a_zero_point, b_zero_point):
    return ctx.op("MatMulInteger", a, b, a_zero_point, b_zero_point)


def _numeric(ctx, x, w, x_zero_point, w_zero_point, *, strides, dilations, pads, group):
    return ctx.numbers([p for pair in pads for p in pair], "padding")


@lower("ConvInteger", when=_numeric)
def conv_integer(ctx, x, w, x_zero_point, w_zero_point, *, strides, dilations, pads, group):
    return ctx.op(
        "ConvInteger",
        x,
        w,
        x_zero_point,
        w_zero_point,
        strides=strides,
        dilations=dilations,
        pads=flat_pads(pads),
        group=group,
    )


def _numeric_linear(
    ctx,
    x,
    x_scale,
    x_zero_point,
    w,
    w_scale,
    w_zero_point,
    y_scale,
    y_zero_point,
    b,
    *,
    strides,
    dilations,
    pads,
    group,
):
    return ctx.numbers([p for pair in pads for p in pair], "padding")


@lower("QLinearConv", when=_numeric_linear)
def q_linear_conv(
    ctx,
    x,
    x_scale,
    x_zero_point,
    w,
    w_scale,
    w_zero_point,
    y_scale,
    y_zero_point,
    b,
    *,
    strides,
    dilations,
    pads,
    group,
):
    return ctx.op(
        "QLinearConv",
        x,
        x_scale,
        x_zero_point,
        w,
        w_scale,
        w_zero_point,
        y_scale,
        y_zero_point,
        b,
        strides=strides,
        dilations=dilations,
        pads=flat_pads(pads),
        group=group,
    )


@lower("QLinearMatMul")
def q_linear_mat_mul(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    return ctx.op("QLinearMatMul", a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)
