"""Matrix operators: dot_general, cholesky, triangular_solve; MatMul, Gemm, Einsum, Det."""

from typing import Literal

import numpy as np

from ..dims import Size, equal
from ..dtypes import DType
from ..facts import Fact
from ..operators import FLOAT, INEXACT, NUMERIC, PURE, TENSOR, Operand, Variadic, operator
from ..types import TensorType
from . import equations


def _dot_type(
    ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result
):
    if result is None:
        result = ctx.same_dtype(lhs, rhs)
    ctx.need(len(lhs_contracting) == len(rhs_contracting), "lhs_contracting and rhs_contracting must have equal lengths")
    ctx.need(len(lhs_batching) == len(rhs_batching), "lhs_batching and rhs_batching must have equal lengths")
    for axes, x in ((lhs_batching + lhs_contracting, lhs), (rhs_batching + rhs_contracting, rhs)):
        ctx.need(all(a >= 0 for a in axes), f"axes must not be negative, got {list(axes)}")
        ctx.axes(axes, x.rank, "batching and contracting axes")
    for a, b in zip(lhs_contracting, rhs_contracting, strict=True):
        ctx.equal(lhs.dims[a], rhs.dims[b], f"contracting dims (axis {a} of lhs, {b} of rhs)")
    batch = [
        ctx.equal(lhs.dims[a], rhs.dims[b], f"batch dims (axis {a} of lhs, {b} of rhs)")
        for a, b in zip(lhs_batching, rhs_batching, strict=True)
    ]
    left = [lhs.dims[i] for i in free_axes(lhs.rank, lhs_batching, lhs_contracting)]
    right = [rhs.dims[i] for i in free_axes(rhs.rank, rhs_batching, rhs_contracting)]
    return Fact(TensorType(result, (*batch, *left, *right)))


def free_axes(rank: int, *used: tuple[int, ...]) -> list[int]:
    """Axes in order that no group names."""
    gone = {a for axes in used for a in axes}
    return [i for i in range(rank) if i not in gone]


def square(ctx, x, what: str = "x") -> Size:
    """The size n of matrices [.., n, n]."""
    ctx.need(x.rank >= 2, f"{what} must be matrices [.., n, n], got {x.type}")
    return ctx.equal(x.dims[-2], x.dims[-1], f"the last two dims of {what}")


def _cholesky_type(ctx, a, *, lower):
    n = square(ctx, a, "a")
    return a.with_dims((*a.dims[:-2], n, n))


def _triangular_solve_type(ctx, a, b, *, left_side, lower, unit_diagonal, transpose_a):
    ctx.same_dtype(a, b)
    n = square(ctx, a, "a")
    ctx.need(b.rank == a.rank, f"a and b must have equal rank, got {a.type} and {b.type}")
    ctx.equal_dims(a.dims[:-2], b.dims[:-2], "batch dims of a and b")
    ctx.equal(n, b.dims[-2 if left_side else -1], "dims of a and of the solved axis of b")
    return b.with_dims(b.dims)


def matmul_dims(ctx, a, b) -> tuple[Size, ...]:
    """Result dims of numpy.matmul."""
    ctx.need(a.rank >= 1 and b.rank >= 1, f"operands must have rank 1 or more, got {a.type} and {b.type}")
    left = a.dims if a.rank > 1 else (1, *a.dims)
    right = b.dims if b.rank > 1 else (*b.dims, 1)
    ctx.equal(left[-1], right[-2], "inner dims of a and b")
    batch = ctx.broadcast(left[:-2], right[:-2])
    return (*batch, *(left[-2:-1] if a.rank > 1 else ()), *(right[-1:] if b.rank > 1 else ()))


def _matmul_type(ctx, a, b):
    return Fact(TensorType(ctx.same_dtype(a, b), matmul_dims(ctx, a, b)))


def _gemm_type(ctx, a, b, c, *, alpha, beta, transpose_a, transpose_b):
    dtype = ctx.same_dtype(a, b, c)
    ctx.need(a.rank == 2 and b.rank == 2, f"a and b must be matrices, got {a.type} and {b.type}")
    m, k = reversed(a.dims) if transpose_a else a.dims
    l, n = reversed(b.dims) if transpose_b else b.dims
    ctx.equal(k, l, "inner dims of a and b")
    if c is not None:
        broadcasts_to(ctx, c, (m, n), "c")
    return Fact(TensorType(dtype, (m, n)))


def broadcasts_to(ctx, x, dims: tuple[Size, ...], what: str) -> None:
    """Needs x to broadcast to `dims` and no further."""
    ctx.need(x.rank <= len(dims), f"{what} must broadcast to [{', '.join(map(str, dims))}], got {x.type}")
    for got, wanted in zip(x.dims, dims[len(dims) - x.rank :], strict=True):
        if equal(got, 1) is not True:
            ctx.equal(got, wanted, f"dims of {what} (1 or the result's)")


def _einsum_type(ctx, xs, *, equation):
    dtype = ctx.same_dtype(*xs)
    inputs, output = equations.parse(equation, [x.rank for x in xs])
    dims = equations.label_dims(ctx, inputs, [x.dims for x in xs])
    return Fact(TensorType(dtype, tuple(dims[label] for label in output)))


def _det_type(ctx, x):
    square(ctx, x)
    return x.with_dims(x.dims[:-2])


@operator("dot_general", family="linalg", traits=PURE)
class DotGeneral:
    """Sum of products over the contracting axes for each index of the batching axes.

    Result dims: batch, free axes of lhs, free axes of rhs.  Batch and contracting dims must be equal pairwise.  Floats
    accumulate in f32 (f16, bf16) or their own type; i8/u8 in i32 when `result` says i32, else integers wrap in their type.
    `result` is the result's element type (default: the operands' common type).
    """

    lhs: Operand
    rhs: Operand
    lhs_contracting: tuple[int, ...]
    rhs_contracting: tuple[int, ...]
    lhs_batching: tuple[int, ...] = ()
    rhs_batching: tuple[int, ...] = ()
    precision: Literal["default", "high", "highest"] = "highest"
    result: DType | None = None
    infer = _dot_type


@operator("cholesky", family="linalg", traits=PURE)
class Cholesky:
    """Lower L with L @ L^H = a (or upper U with U^H @ U = a) for [.., n, n]; the other triangle is zero.  Not positive definite: NaN."""

    a: Operand[INEXACT]
    lower: bool = True
    infer = _cholesky_type


@operator("triangular_solve", family="linalg", traits=PURE)
class TriangularSolve:
    """x with op(a) @ x = b (left_side) or x @ op(a) = b; a[.., n, n] triangular, only its named triangle is read."""

    a: Operand[INEXACT]
    b: Operand[INEXACT]
    left_side: bool = True
    lower: bool = True
    unit_diagonal: bool = False
    transpose_a: Literal["none", "transpose", "adjoint"] = "none"
    infer = _triangular_solve_type


@operator("MatMul", family="linalg", traits=PURE)
class MatMul:
    """numpy.matmul: batch axes broadcast, rank-1 operands get an axis that disappears again."""

    a: Operand[NUMERIC]
    b: Operand[NUMERIC]
    infer = _matmul_type


@operator("Gemm", family="linalg", traits=PURE)
class Gemm:
    """alpha * op(a) @ op(b) + beta * c for matrices; c broadcasts to [M, N]."""

    a: Operand[NUMERIC]
    b: Operand[NUMERIC]
    c: Operand[NUMERIC] | None = None
    alpha: float = 1.0
    beta: float = 1.0
    transpose_a: bool = False
    transpose_b: bool = False
    infer = _gemm_type


@operator("Einsum", family="linalg", traits=PURE)
class Einsum:
    """Einstein summation with ONNX's (NumPy's) equation syntax, ellipsis and repeated indices included."""

    xs: Variadic[NUMERIC]
    equation: str
    infer = _einsum_type


@operator("Det", family="linalg", traits=PURE)
class Det:
    """Determinant of [.., n, n] -> [..]."""

    x: Operand[FLOAT]
    infer = _det_type
