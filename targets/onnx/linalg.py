"""ONNX lowering of matrix products."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir import dtypes
from .lowering import lower


@lower("MatMul")
def mat_mul(ctx, a, b):
    return ctx.op("MatMul", a, b)


@lower("Gemm")
def gemm(ctx, a, b, c, *, alpha, beta, transpose_a, transpose_b):
    return ctx.op("Gemm", a, b, c, alpha=alpha, beta=beta, transA=int(transpose_a), transB=int(transpose_b))


@lower("Einsum")
def einsum(ctx, xs, *, equation):
    return ctx.op("Einsum", *xs, equation=equation)


@lower("Det")
def det(ctx, x):
    return ctx.op("Det", x)


def _float_product(ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result):
    if _widens(lhs, rhs, result):
        return None
    if ctx.dialect.runtime and lhs.dtype in (dtypes.u32, dtypes.u64) and 0 in [lhs.dims[a] for a in lhs_contracting]:
        return f"ONNX Runtime does not sum nothing of {lhs.dtype}"
    if lhs.dtype.is_float or lhs.dtype in (dtypes.i32, dtypes.i64, dtypes.u32, dtypes.u64):
        return None if result in (None, lhs.dtype) and rhs.dtype is lhs.dtype else "ONNX's MatMul has one element type"
    return f"ONNX Runtime has no MatMul of {lhs.dtype}"


def _widens(lhs, rhs, result):
    """Whether narrower floats are summed up in f32 or f64: they are then multiplied as what they are summed in."""
    return result in (dtypes.f32, dtypes.f64) and all(
        x.dtype.is_float and 16 <= x.dtype.bits <= result.bits for x in (lhs, rhs)
    )


@lower("dot_general", when=_float_product)
def dot_general(ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result):
    """MatMul of [batch, free, contracted] with [batch, contracted, free]; where there are several axes, they merge."""
    if _widens(lhs, rhs, result):
        lhs, rhs = ctx.cast(lhs, result), ctx.cast(rhs, result)
    left_free = [i for i in range(lhs.rank) if i not in (*lhs_batching, *lhs_contracting)]
    right_free = [i for i in range(rhs.rank) if i not in (*rhs_batching, *rhs_contracting)]
    a = ctx.transpose(lhs, [*lhs_batching, *left_free, *lhs_contracting])
    b = ctx.transpose(rhs, [*rhs_batching, *rhs_contracting, *right_free])
    batch = [lhs.dims[i] for i in lhs_batching]
    contracted = sizes.product(lhs.dims[i] for i in lhs_contracting)
    rows = [lhs.dims[i] for i in left_free]
    columns = [rhs.dims[i] for i in right_free]
    a = _shaped(ctx, a, [*batch, sizes.product(rows), contracted])
    b = _shaped(ctx, b, [*batch, contracted, sizes.product(columns)])
    out = ctx.op("MatMul", a, b, type=lhs.tensor.with_dims([*batch, sizes.product(rows), sizes.product(columns)]))
    return _shaped(ctx, out, [*batch, *rows, *columns])


def _shaped(ctx, x, dims):
    return x if tuple(dims) == tuple(x.dims) else ctx.reshape(x, dims)


def _has_kernel(ctx, x):
    return None if x.dtype in (dtypes.f32, dtypes.f64, dtypes.f16) else f"ONNX Runtime has no Inverse of {x.dtype}"


@lower("Inverse", when=_has_kernel)
def inverse(ctx, x):
    """ONNX Runtime's operator: ONNX has none."""
    return ctx.op("Inverse", x, domain="com.microsoft")
