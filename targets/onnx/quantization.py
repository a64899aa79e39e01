"""ONNX lowering of quantization."""

from __future__ import annotations

from ...ir import dtypes
from .lowering import flat_pads, lower


def _quantizes(ctx, x, scale, zero_point, *, dtype, **_):
    if ctx.dialect.runtime and scale.dtype not in (dtypes.f32, dtypes.f16):
        return f"ONNX Runtime has no {scale.dtype} kernel for it"
    if x.dtype is not scale.dtype:
        return f"x is {x.dtype} and the scale {scale.dtype}; ONNX wants one type"
    return f"ONNX quantizes to no {dtype}" if dtype.is_integer and dtype.bits > 16 else None


@lower("QuantizeLinear", when=_quantizes)
def quantize_linear(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    extra = {"block_size": block_size} if block_size else {}
    if zero_point is None:
        extra["output_dtype"] = dtype.onnx
    return ctx.op("QuantizeLinear", x, scale, zero_point, axis=axis, saturate=int(saturate), **extra)


def _default_type(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    if ctx.dialect.runtime and not x.rank and block_size:
        return "ONNX Runtime takes no scalar in blocks"
    wide = x.dtype.bits > (32 if x.dtype.is_integer else 8) or x.dtype.name in ("u32", "bool")
    if wide:
        return f"ONNX dequantizes no {x.dtype}"
    if ctx.dialect.runtime and scale.dtype not in (dtypes.f32, dtypes.f16):
        return f"ONNX Runtime has no {scale.dtype} kernel for it"
    return None if dtype in (None, scale.dtype) else "opset 21's DequantizeLinear gives the scale's type"


@lower("DequantizeLinear", when=_default_type)
def dequantize_linear(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    extra = {"block_size": block_size} if block_size else {}
    return ctx.op("DequantizeLinear", x, scale, zero_point, axis=axis, **extra)


@lower("DynamicQuantizeLinear")
def dynamic_quantize_linear(ctx, x):
    return ctx.ops("DynamicQuantizeLinear", x)


def _bytes(ctx, a, b, a_zero_point, b_zero_point):
    """Why not: kernels take bytes, and zero points of one element or one a row or column."""
    given = [v for v in (a, b, a_zero_point, b_zero_point) if v is not None]
    if odd := [v.dtype for v in given if v.dtype not in (dtypes.i8, dtypes.u8)]:
        return f"ONNX has no product of {odd[0]}"
    if ctx.dialect.runtime and (0 in a.dims or any(p.rank > 1 for p in given[2:])):
        return "ONNX Runtime multiplies nothing that is empty, and takes zero points of rank 0 or 1"
    return None


@lower("MatMulInteger", when=_bytes)
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


def _eight_bits(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    """Why not: ONNX's types, and parameters of the result that are scalars, which ONNX Runtime asks for."""
    odd = next((v.dtype for v in (a, b, y_zero_point) if v.dtype.is_integer and v.dtype.bits != 8), None)
    if odd is not None:
        return f"ONNX has no quantized product of {odd}"
    several = ctx.dialect.runtime and (a_scale.rank > 1 or y_scale.rank > 1 or y_zero_point.rank > 1)
    return "ONNX Runtime takes parameters of rank 0 or 1" if several else None


@lower("QLinearMatMul", when=_eight_bits)
def q_linear_mat_mul(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    return ctx.op("QLinearMatMul", a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point)


def _packed_form(ctx, x, weights, scales, zero_points, *, size, bits, block_size):
    if x.dtype not in (dtypes.f32, dtypes.f16) or scales.dtype is not x.dtype:
        return f"MatMulNBits takes f32 or f16, and scales of that type, not {x.dtype} and {scales.dtype}"
    if block_size < 16 or block_size & (block_size - 1):
        return f"MatMulNBits takes blocks of a power of 2, at least 16, not of {block_size}"
    if x.rank < 2 or not all(isinstance(d, int) for d in weights.dims):
        return "MatMulNBits takes matrices, and weights whose shape is known"
    if bits == 8 and zero_points is not None and zero_points.dtype is not dtypes.u8:
        return "MatMulNBits takes zero points of 8 bits as bytes only"
    return None


@lower("QuantizedMatMul", when=_packed_form)
def quantized_matmul(ctx, x, weights, scales, zero_points, *, size, bits, block_size):
    """ONNX Runtime's operator: ONNX itself has none for weights that are packed."""
    rows, blocks = scales.dims
    packed = ctx.reshape(weights, (rows, blocks, block_size * bits // 8))
    if zero_points is not None and bits != 8:
        zero_points = ctx.cast(zero_points, x.dtype)
    return ctx.op("MatMulNBits", x, packed, scales, zero_points, domain="com.microsoft", K=size, N=rows, bits=bits,
                  block_size=block_size)  # fmt: skip
