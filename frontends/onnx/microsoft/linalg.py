"""Matrix products with transposes, factors and activations fused in, and Inverse, of ONNX Runtime."""

from __future__ import annotations

from functools import partial

from ..registry import onnx_op as _onnx_op
from .elementwise import activated

onnx_op = partial(_onnx_op, domain="com.microsoft")


def _arranged(ctx, x, transpose, batch, what):
    """x as a stack of matrices.  `batch`: its rows are axis 0, behind which the batch axes stand."""
    axes = list(range(x.rank))
    if batch:
        if x.rank < 3:
            ctx.fail(f"transBatch{what} needs rank 3 or more, got {x.type}")
        axes = [*axes[1:-1], axes[0], axes[-1]]
    if transpose and x.rank > 1:
        axes[-2:] = axes[:-3:-1]
    return x if axes == sorted(axes) else ctx.build.transpose(x, permutation=tuple(axes))


@onnx_op("FusedMatMul", "TransposeMatMul")
def fused_matmul(ctx, x, y, *, alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0):
    """alpha * op(x) @ op(y).  A vector is not transposed."""
    x = _arranged(ctx, x, transA, transBatchA, "A")
    out = ctx.build.MatMul(x, _arranged(ctx, y, transB, transBatchB, "B"))
    return out if alpha == 1 else ctx.build.multiply(out, alpha)


@onnx_op("FusedMatMulActivation")
def fused_matmul_activation(
    ctx, x, y, *, activation, activation_alpha=None, activation_beta=None, activation_gamma=None, activation_axis=None,
    alpha=1.0, transA=0, transB=0, transBatchA=0, transBatchB=0,
):  # fmt: skip
    out = fused_matmul(
        ctx, x, y, alpha=alpha, transA=transA, transB=transB, transBatchA=transBatchA, transBatchB=transBatchB
    )
    if activation == "Softmax":
        return ctx.build.Softmax(out, axis=ctx.axis(-1 if activation_axis is None else activation_axis, out))
    return activated(ctx, out, activation, _parameters(activation_alpha, activation_beta))


def _parameters(*given):
    """Those in front that are given."""
    out = []
    for value in given:
        if value is None:
            break
        out.append(value)
    return tuple(out)


@onnx_op("FusedGemm")
def fused_gemm(
    ctx, a, b, c=None, *, alpha=1.0, beta=1.0, transA=0, transB=0, activation="", activation_alpha=None,
    activation_beta=None, activation_gamma=None,
):  # fmt: skip
    out = ctx.build.Gemm(a, b, c, alpha=alpha, beta=beta, transpose_a=bool(transA), transpose_b=bool(transB))
    return activated(ctx, out, activation, _parameters(activation_alpha, activation_beta))


@onnx_op("GemmFastGelu")
def gemm_fast_gelu(ctx, x, w, bias=None):
    out = ctx.build.MatMul(x, w)
    return ctx.build.Gelu(out if bias is None else ctx.build.add(out, bias), approximate="tanh")


@onnx_op("Inverse")
def inverse(ctx, x):
    return ctx.build.Inverse(x)
