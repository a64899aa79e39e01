"""Matrix operators: dot_general, cholesky, triangular_solve; MatMul, Gemm, Einsum, Det."""

from typing import Literal

import numpy as np

from ..dtypes import DType
from ..operators import FLOAT, INEXACT, NUMERIC, PURE, TENSOR, Operand, Variadic, operator


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


@operator("cholesky", family="linalg", traits=PURE)
class Cholesky:
    """Lower L with L @ L^H = a (or upper U with U^H @ U = a) for [.., n, n]; the other triangle is zero.  Not positive definite: NaN."""

    a: Operand[INEXACT]
    lower: bool = True


@operator("triangular_solve", family="linalg", traits=PURE)
class TriangularSolve:
    """x with op(a) @ x = b (left_side) or x @ op(a) = b; a[.., n, n] triangular, only its named triangle is read."""

    a: Operand[INEXACT]
    b: Operand[INEXACT]
    left_side: bool = True
    lower: bool = True
    unit_diagonal: bool = False
    transpose_a: Literal["none", "transpose", "adjoint"] = "none"


@operator("MatMul", family="linalg", traits=PURE)
class MatMul:
    """numpy.matmul: batch axes broadcast, rank-1 operands get an axis that disappears again."""

    a: Operand[NUMERIC]
    b: Operand[NUMERIC]


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


@operator("Einsum", family="linalg", traits=PURE)
class Einsum:
    """Einstein summation with ONNX's (NumPy's) equation syntax, ellipsis and repeated indices included."""

    xs: Variadic[NUMERIC]
    equation: str


@operator("Det", family="linalg", traits=PURE)
class Det:
    """Determinant of [.., n, n] -> [..]."""

    x: Operand[FLOAT]
