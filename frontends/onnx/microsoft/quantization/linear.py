"""QuantizeLinear and DequantizeLinear of ONNX Runtime, and its QLinear operators: dequantize, compute in f32, quantize.

ONNX Runtime computes some of them by tables or fused multiply-adds; where the exact result lies half between two
integers, or within a rounding of f32 of it, it may give the other one.
"""

from __future__ import annotations

from functools import partial

from .....ir import dims as sizes
from .....ir import dtypes
from .....ir.ops.quantization.products import requantized
from ...normalization import flat_softmax
from ...quantization import dequantize_linear as _dequantize_linear
from ...quantization import qlinear_conv as _qlinear_conv
from ...quantization import quantize_linear as _quantize_linear
from ...registry import onnx_op as _onnx_op
from ...window import pool
from ..convolution import channels_first
from ..convolution import channels_last as last

onnx_op = partial(_onnx_op, domain="com.microsoft")


@onnx_op("QuantizeLinear")
def quantize_linear(ctx, x, scale, zero_point=None, *, axis=1):
    return _quantize_linear(ctx, x, scale, zero_point, axis=axis)


@onnx_op("DequantizeLinear")
def dequantize_linear(ctx, x, scale, zero_point=None, *, axis=1):
    return _dequantize_linear(ctx, x, scale, zero_point, axis=axis)


def one(ctx, parameter, what):
    """A scale or zero point for the whole tensor, as a scalar; None stays."""
    if parameter is None:
        return None
    if any(sizes.equal(d, 1) is not True for d in parameter.dims):
        ctx.refuse(f"{what} must have one element, got {parameter.type}")
    return ctx.scalar(parameter)


def real(ctx, x, scale, zero_point):
    """The numbers that 8-bit integers stand for, in f32."""
    if x.dtype not in (dtypes.u8, dtypes.i8):
        ctx.fail(f"quantized inputs are int8 or uint8, got {x.type}")
    return ctx.build.DequantizeLinear(x, one(ctx, scale, "a scale"), one(ctx, zero_point, "a zero point"), axis=0)


def whole(ctx, y, scale, zero_point, dtype):
    """Quantized to `dtype`."""
    scale, zero_point = one(ctx, scale, "a scale"), one(ctx, zero_point, "a zero point")
    return ctx.build.QuantizeLinear(y, scale, zero_point, dtype=dtype, axis=0)


@onnx_op("QLinearAdd", absent=("a_zero_point", "b_zero_point"))
def qlinear_add(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, c_scale, c_zero_point=None):
    total = ctx.build.add(real(ctx, a, a_scale, a_zero_point), real(ctx, b, b_scale, b_zero_point))
    return whole(ctx, total, c_scale, c_zero_point, a.dtype)


@onnx_op("QLinearMul", absent=("a_zero_point", "b_zero_point"))
def qlinear_mul(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, c_scale, c_zero_point=None):
    """The product of the integers less their zero points is exact; it is scaled by a_scale * b_scale / c_scale."""
    build = ctx.build
    rows = []
    for x, zero_point in ((a, a_zero_point), (b, b_zero_point)):
        if x.dtype is not a.dtype or x.dtype not in (dtypes.u8, dtypes.i8):
            ctx.fail(f"both inputs must be int8 or both uint8, got {a.type} and {b.type}")
        x = build.convert(x, dtype=dtypes.i32)
        if zero_point is not None:
            x = build.subtract(x, build.convert(one(ctx, zero_point, "a zero point"), dtype=dtypes.i32))
        rows.append(x)
    a_scale, b_scale, c_scale = (one(ctx, v, "a scale") for v in (a_scale, b_scale, c_scale))
    zero = ctx.zeros(a.dtype) if c_zero_point is None else one(ctx, c_zero_point, "a zero point")
    return requantized(build, build.multiply(*rows), build.multiply(a_scale, b_scale), c_scale, zero)


@onnx_op("QLinearSigmoid", absent=("x_zero_point",))
def qlinear_sigmoid(ctx, x, x_scale, x_zero_point, y_scale, y_zero_point=None):
    y = ctx.build.logistic(real(ctx, x, x_scale, x_zero_point))
    return whole(ctx, y, y_scale, y_zero_point, x.dtype)


@onnx_op("QLinearLeakyRelu", absent=("x_zero_point",))
def qlinear_leaky_relu(ctx, x, x_scale, x_zero_point, y_scale, y_zero_point=None, *, alpha=0.01):
    y = ctx.build.LeakyRelu(real(ctx, x, x_scale, x_zero_point), alpha=alpha)
    return whole(ctx, y, y_scale, y_zero_point, x.dtype)


@onnx_op("QLinearSoftmax", absent=("x_zero_point",))
def qlinear_softmax(ctx, x, x_scale, x_zero_point, y_scale, y_zero_point, *, opset, axis=-1):
    """Before opset 13 x is flattened to a matrix at the axis."""
    y = real(ctx, x, x_scale, x_zero_point)
    y = ctx.build.Softmax(y, axis=ctx.axis(axis, x)) if opset >= 13 else flat_softmax(ctx, "Softmax", y, axis)
    return whole(ctx, y, y_scale, y_zero_point, x.dtype)


@onnx_op("QLinearWhere")
def qlinear_where(ctx, condition, x, x_scale, x_zero_point, y, y_scale, y_zero_point, z_scale, z_zero_point):
    chosen = ctx.build.select(condition, real(ctx, x, x_scale, x_zero_point), real(ctx, y, y_scale, y_zero_point))
    return whole(ctx, chosen, z_scale, z_zero_point, x.dtype)


@onnx_op("QLinearConcat")
def qlinear_concat(ctx, y_scale, y_zero_point, *rest, axis):
    if not rest or len(rest) % 3:
        ctx.fail(f"needs a tensor, scale and zero point for each part, got {len(rest)} inputs behind the first two")
    parts = [real(ctx, *rest[i : i + 3]) for i in range(0, len(rest), 3)]
    joined = ctx.build.concatenate(tuple(parts), axis=ctx.axis(axis, parts[0]))
    return whole(ctx, joined, y_scale, y_zero_point, y_zero_point.dtype)


@onnx_op("QLinearReduceMean", absent=("x_zero_point",))
def qlinear_reduce_mean(ctx, x, x_scale, x_zero_point, y_scale, y_zero_point=None, *, axes, keepdims):
    over = tuple(sorted(ctx.axes(axes, x)))
    y = ctx.build.ReduceMean(real(ctx, x, x_scale, x_zero_point), axes=over, keepdims=bool(keepdims))
    return whole(ctx, y, y_scale, y_zero_point, x.dtype)


@onnx_op("QLinearGlobalAveragePool")
def qlinear_global_average_pool(ctx, x, x_scale, x_zero_point, y_scale, y_zero_point, *, channels_last=0):
    y = real(ctx, x, x_scale, x_zero_point)
    axes = tuple(range(1, x.rank - 1)) if channels_last else tuple(range(2, x.rank))
    y = ctx.build.ReduceMean(y, axes=axes, keepdims=True)
    return whole(ctx, y, y_scale, y_zero_point, x.dtype)


@onnx_op("QLinearAveragePool", absent=("x_zero_point",))
def qlinear_average_pool(
    ctx, x, x_scale, x_zero_point, y_scale, y_zero_point=None, *, kernel_shape, strides=(), pads=(), auto_pad="NOTSET",
    ceil_mode=0, count_include_pad=0, channels_last=0,
):  # fmt: skip
    y = real(ctx, x, x_scale, x_zero_point)
    y = channels_first(ctx, y) if channels_last else y
    window = pool(ctx, y, kernel_shape, strides, (), pads, auto_pad)
    y = ctx.build.AveragePool(
        y, **window, ceil_mode=bool(ceil_mode) and auto_pad == "NOTSET", count_include_pad=bool(count_include_pad)
    )
    return whole(ctx, last(ctx, y) if channels_last else y, y_scale, y_zero_point, x.dtype)


@onnx_op("QLinearConv")
def qlinear_conv(
    ctx, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b=None, *, channels_last=0,
    kernel_shape=(), strides=(), dilations=(), pads=(), auto_pad="NOTSET", group=1,
):  # fmt: skip
    """The standard operator; with channels_last x and the result are [N, spatial.., C], and w stays as it is."""
    y = _qlinear_conv(
        ctx, channels_first(ctx, x) if channels_last else x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale,
        y_zero_point, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=pads, auto_pad=auto_pad,
        group=group,
    )  # fmt: skip
    return last(ctx, y) if channels_last else y
