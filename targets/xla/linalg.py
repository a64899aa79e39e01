"""Matrix operators: dot_general, cholesky, triangular_solve."""

import math

from ...ir import dtypes
from . import lapack, types
from .lowering import lower
from .mlir import hlo, ir


def product_types(x, w, result, depth):
    """(type of the operands, type of the sums) in which a product with `depth` terms is exact or f32-accumulated.

    Integer products run on XLA's float units where these are exact: `depth` products of two operands below 2**24.
    """
    if result.is_float or result.is_complex:
        wide = types.accumulator(result)
        return (x.dtype if x.dtype is w.dtype and x.dtype in (dtypes.bf16, wide) else wide), wide
    bits = sum(d.bits - (d.kind == "int") for d in (x.dtype, w.dtype))
    if depth << bits <= 1 << 24:
        return dtypes.f32, dtypes.f32
    if depth << bits <= 1 << 53:
        return dtypes.f64, dtypes.f64
    wide = dtypes.i32 if result.is_bool else types.carrier(result)
    return wide, wide


def from_sums(ctx, x, result):
    """Sums in the result's type: bool is whether there was any."""
    if result.is_bool:
        return ctx.compare(x, 0, "ne")
    if result.is_integer and x.dtype.is_float:
        x = ctx.convert(x, dtypes.i64 if x.dtype is dtypes.f64 else dtypes.i32)
    return ctx.convert(x, result)


@lower("dot_general")
def dot_general(ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result):
    result, dims = ctx.result_types[0]
    depth = math.prod(lhs.dims[a] for a in lhs_contracting)
    if 0 in dims or not depth:
        return ctx.full(0, result, dims)
    operand, wide = product_types(lhs, rhs, result, depth)
    contracting, batching = (lhs_contracting, rhs_contracting), (lhs_batching, rhs_batching)
    value = ctx.product(ctx.convert(lhs, operand), ctx.convert(rhs, operand), contracting, batching, wide, precision)
    return from_sums(ctx, value, result)


def triangle(ctx, x, lower_):
    """The triangle of the last two axes, zero elsewhere."""
    row = ctx.iota(dtypes.i32, x.dims, x.rank - 2)
    column = ctx.iota(dtypes.i32, x.dims, x.rank - 1)
    return ctx.select(ctx.compare(row, column, "ge" if lower_ else "le"), x, 0)


@lower("cholesky")
def cholesky(ctx, a, *, lower):
    if 0 in a.dims:
        return a
    wide = ctx.convert(a, types.accumulator(a.dtype))
    if ctx.platform == "cpu":
        factor = lapack.cholesky(ctx, wide, lower)
    else:
        factor = ctx.wrap(hlo.cholesky(wide.value, lower=ir.BoolAttr.get(lower)), wide.dtype)
    return ctx.convert(triangle(ctx, factor, lower), a.dtype)


@lower("triangular_solve")
def triangular_solve(ctx, a, b, *, left_side, lower, unit_diagonal, transpose_a):
    if 0 in b.dims:
        return b
    kind = {"none": "NO_TRANSPOSE", "transpose": "TRANSPOSE", "adjoint": "ADJOINT"}[transpose_a]
    if kind == "ADJOINT" and not a.dtype.is_complex:
        kind = "TRANSPOSE"
    wide = types.accumulator(a.dtype)
    value = hlo.triangular_solve(
        ctx.convert(a, wide).value,
        ctx.convert(b, wide).value,
        left_side=ir.BoolAttr.get(left_side),
        lower=ir.BoolAttr.get(lower),
        unit_diagonal=ir.BoolAttr.get(unit_diagonal),
        transpose_a=hlo.TransposeAttr.get(kind),
    )
    return ctx.convert(ctx.wrap(value, wide), a.dtype)
