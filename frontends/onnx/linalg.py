"""ONNX matrix operators: MatMul, Gemm, Einsum, Det."""

from __future__ import annotations

from .registry import onnx_op


@onnx_op("MatMul")
def matmul(ctx, a, b):
    return ctx.build.MatMul(a, b)


@onnx_op("Gemm")
def gemm(ctx, a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, broadcast=0):
    return ctx.build.Gemm(a, b, c, alpha=alpha, beta=beta, transpose_a=bool(transA), transpose_b=bool(transB))


@onnx_op("Einsum")
def einsum(ctx, *xs, equation):
    return ctx.build.Einsum(xs, equation=equation)


@onnx_op("Det")
def det(ctx, x):
    return ctx.build.Det(x)
