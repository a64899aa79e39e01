"""Products of quantized matrices of ONNX Runtime: exact sums of integers, scaled to floats or quantized again."""

from __future__ import annotations

from functools import partial

from .....ir import dims as sizes
from .....ir import dtypes
from .....ir.ops.quantization.products import requantized
from ...registry import onnx_op as _onnx_op
from .linear import one

onnx_op = partial(_onnx_op, domain="com.microsoft")


def scaled(ctx, total, factor, bias):
    """f32(total) * factor, one a column or one for all, plus the bias."""
    out = ctx.build.multiply(ctx.build.convert(total, dtype=factor.dtype), factor)
    return out if bias is None else ctx.build.add(out, bias)


def per_column(ctx, parameter, what):
    """A scale or zero point, one for all or one a column."""
    if parameter is None or parameter.rank == 0:
        return parameter
    if all(sizes.equal(d, 1) is True for d in parameter.dims):
        return ctx.scalar(parameter)
    if parameter.rank != 1:
        ctx.refuse(f"{what} must have one element or one a column, got {parameter.type}")
    return parameter


@onnx_op("DynamicQuantizeMatMul", absent=("b_zero_point",))
def dynamic_quantize_matmul(ctx, a, b, b_scale, b_zero_point=None, bias=None):
    """a as a whole is quantized as by DynamicQuantizeLinear."""
    build = ctx.build
    q, a_scale, a_zero_point = build.DynamicQuantizeLinear(a)
    total = build.MatMulInteger(q, b, a_zero_point, per_column(ctx, b_zero_point, "the zero point of B"))
    return scaled(ctx, total, build.multiply(a_scale, per_column(ctx, b_scale, "the scale of B")), bias)


@onnx_op("MatMulIntegerToFloat")
def matmul_integer_to_float(ctx, a, b, a_scale, b_scale, a_zero_point=None, b_zero_point=None, bias=None):
    a_zero_point = one(ctx, a_zero_point, "the zero point of A")
    total = ctx.build.MatMulInteger(a, b, a_zero_point, per_column(ctx, b_zero_point, "the zero point of B"))
    factor = ctx.build.multiply(one(ctx, a_scale, "the scale of A"), per_column(ctx, b_scale, "the scale of B"))
    return scaled(ctx, total, factor, bias)


@onnx_op("MatMulInteger16")
def matmul_integer_16(ctx, a, b):
    """The product in i32, or in u32 where both are unsigned; sums wrap."""
    result = dtypes.u32 if a.dtype is dtypes.u16 and b.dtype is dtypes.u16 else dtypes.i32
    return ctx.build.MatMul(*(ctx.build.convert(v, dtype=result) for v in (a, b)))


@onnx_op("QGemm", absent=("c", "y_scale"))
def qgemm(
    ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, c=None, y_scale=None, y_zero_point=None, *, alpha=1.0,
    transA=0, transB=0,
):  # fmt: skip
    """op(A) @ op(B) + C in i32, times alpha * a_scale * b_scale: floats, or quantized where Y has a scale."""
    build = ctx.build
    for v in (a, b):
        if v.rank != 2:
            ctx.fail(f"A and B must be matrices, got {a.type} and {b.type}")
    a, b = (build.transpose(v, permutation=(1, 0)) if t else v for v, t in ((a, transA), (b, transB)))
    b_zero_point, b_scale = (per_column(ctx, v, f"the {what} of B") for v, what in ((b_zero_point, "zero point"),
                                                                                   (b_scale, "scale")))  # fmt: skip
    total = build.MatMulInteger(a, b, one(ctx, a_zero_point, "the zero point of A"), b_zero_point)
    total = total if c is None else build.add(total, c)
    factor = build.multiply(one(ctx, a_scale, "the scale of A"), b_scale)
    factor = factor if alpha == 1 else build.multiply(factor, alpha)
    if y_scale is None:
        return scaled(ctx, total, factor, None)
    zero = ctx.zeros(a.dtype) if y_zero_point is None else one(ctx, y_zero_point, "the zero point of Y")
    return requantized(build, total, factor, one(ctx, y_scale, "the scale of Y"), zero)
