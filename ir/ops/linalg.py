"""Matrix operators: dot_general, cholesky, triangular_solve; MatMul, Gemm, Einsum, Det."""

import math
from typing import Literal

import numpy as np

from ..dims import Size, broadcast, equal
from ..dtypes import DType
from ..facts import Fact
from ..operators import FLOAT, INEXACT, NUMERIC, PURE, Operand, Variadic, operator
from ..types import TensorType
from . import bucketing, capacities, elimination, equations
from .widening import converted, wide_array


def _dot_type(ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result):
    if result is None:
        result = ctx.same_dtype(lhs, rhs)
    for x in (lhs, rhs):
        same = (x.dtype.is_float, x.dtype.is_complex) == (result.is_float, result.is_complex)
        ctx.need(same, f"a product of {x.type} cannot have the type {result}")
    ctx.need(
        len(lhs_contracting) == len(rhs_contracting), "lhs_contracting and rhs_contracting must have equal lengths"
    )
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
    n: Size = ctx.equal(x.dims[-2], x.dims[-1], f"the last two dims of {what}")
    return n


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
    ctx.need(not dtype.is_integer or (alpha % 1 == 0 and beta % 1 == 0), f"alpha and beta of {dtype} must be whole")
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


def product_array(x: np.ndarray, result: np.dtype) -> np.ndarray:
    """x in the type that its sums of products are computed in: f64 or c128, f64 for small integers, else wrapping."""
    wide = wide_array(x)
    if wide.dtype.kind in "fc":
        return wide
    if x.dtype.itemsize <= 2:
        return x.astype(np.float64)
    return wide.astype(np.uint64) if result == np.uint64 else wide.astype(np.int64)


def whole(x: np.ndarray, dtype: DType) -> np.ndarray:
    """Sums of products as integers again, if the result is one; they are below 2^53, so exact."""
    return x.astype(np.int64) if dtype.is_integer and x.dtype == np.float64 else x


def _dot_vjp(ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result):
    b, g = ctx.build, ctx.cotangent
    batch = tuple(range(len(lhs_batching)))
    left = free_axes(lhs.rank, lhs_batching, lhs_contracting)
    right = free_axes(rhs.rank, rhs_batching, rhs_contracting)
    own = {"left": [len(batch) + i for i in range(len(left))]}
    own["right"] = [len(batch) + len(left) + i for i in range(len(right))]

    def of(x, other, x_axes, other_axes, kept, gone, other_free):
        """The cotangent of x: g with the other operand, whose free axes go; then axes in the order of x."""
        y = b.dot_general(
            g, converted(b, other, g.dtype), lhs_contracting=tuple(own[gone]), rhs_contracting=tuple(other_free),
            lhs_batching=batch, rhs_batching=other_axes[1], precision=precision,
        )  # fmt: skip
        pairs = sorted(zip(other_axes[0], x_axes[0], strict=True))
        order = [*x_axes[1], *kept, *(a for _, a in pairs)]
        return converted(b, b.transpose(y, permutation=tuple(order.index(i) for i in range(x.rank))), x.dtype)

    of_lhs, of_rhs = (lhs_contracting, lhs_batching), (rhs_contracting, rhs_batching)
    return (
        of(lhs, rhs, of_lhs, of_rhs, left, "right", right),
        of(rhs, lhs, of_rhs, of_lhs, right, "left", left),
    )


def _dot_reference(ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result):
    dtype = ctx.result_types[0].dtype
    left = free_axes(lhs.ndim, lhs_batching, lhs_contracting)
    right = free_axes(rhs.ndim, rhs_batching, rhs_contracting)
    batch = [lhs.shape[a] for a in lhs_batching]
    inner = math.prod(lhs.shape[a] for a in lhs_contracting)
    m = math.prod(lhs.shape[a] for a in left)
    n = math.prod(rhs.shape[a] for a in right)
    x = product_array(lhs, dtype.numpy).transpose(*lhs_batching, *left, *lhs_contracting).reshape(*batch, m, inner)
    y = product_array(rhs, dtype.numpy).transpose(*rhs_batching, *rhs_contracting, *right).reshape(*batch, inner, n)
    dims = (*batch, *(lhs.shape[a] for a in left), *(rhs.shape[a] for a in right))
    return whole(np.matmul(x, y), dtype).reshape(dims)


def _cholesky_reference(ctx, a, *, lower):
    wide = wide_array(a)
    wide = wide if lower else np.conj(np.swapaxes(wide, -1, -2))
    factors = np.zeros(wide.shape, wide.dtype)
    for place in np.ndindex(wide.shape[:-2]):
        try:
            factors[place] = np.linalg.cholesky(wide[place])
        except np.linalg.LinAlgError:
            factors[place] = np.tril(np.full(wide.shape[-2:], np.nan))
    return factors if lower else np.conj(np.swapaxes(factors, -1, -2))


def _triangular_solve_reference(ctx, a, b, *, left_side, lower, unit_diagonal, transpose_a):
    a, b = wide_array(a), wide_array(b)
    if transpose_a != "none":
        a, lower = np.swapaxes(a, -1, -2), not lower
        a = np.conj(a) if transpose_a == "adjoint" else a
    if not left_side:
        a, b, lower = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2), not lower
    n = a.shape[-1]
    x = np.zeros(b.shape, b.dtype)
    for i in range(n) if lower else reversed(range(n)):
        known = slice(0, i) if lower else slice(i + 1, n)
        row = b[..., i, :] - np.matmul(a[..., i : i + 1, known], x[..., known, :])[..., 0, :]
        x[..., i, :] = row if unit_diagonal else row / a[..., i, i, None]
    return x if left_side else np.swapaxes(x, -1, -2)


def _matmul_reference(ctx, a, b):
    dtype = ctx.result_types[0].dtype
    return whole(np.matmul(product_array(a, dtype.numpy), product_array(b, dtype.numpy)), dtype)


def _matmul(ctx, a, b):
    return matmul(ctx.build, a, b)


def matmul(b, x, y, result: DType | None = None):
    """numpy.matmul by dot_general; batch axes that are missing or 1 on one side are not repeated."""
    left = x if x.rank > 1 else b.reshape(x, dims=(1, *x.dims))
    right = y if y.rank > 1 else b.reshape(y, dims=(*y.dims, 1))
    product = _batched(b, left, right, result)
    batch = product.dims[:-2]
    dims = (*batch, *(product.dims[-2:-1] if x.rank > 1 else ()), *(product.dims[-1:] if y.rank > 1 else ()))
    return product if len(dims) == product.rank else b.reshape(product, dims=dims)


def _without_ones(b, x, rank: int):
    """x as a matrix, if its batch dims are all 1 and the result's rank does not need them; else None."""
    if x.rank > rank or any(equal(d, 1) is not True for d in x.dims[:-2]):
        return None
    return x if x.rank == 2 else b.reshape(x, dims=x.dims[-2:])


def _batched(b, x, y, result):
    """matmul of operands of rank 2 or more."""
    if (matrix := _without_ones(b, y, x.rank)) is not None:
        return b.dot_general(x, matrix, lhs_contracting=(x.rank - 1,), rhs_contracting=(0,), result=result)
    if (matrix := _without_ones(b, x, y.rank)) is not None:
        flipped = b.dot_general(y, matrix, lhs_contracting=(y.rank - 2,), rhs_contracting=(1,), result=result)
        return b.transpose(flipped, permutation=(*range(y.rank - 2), y.rank - 1, y.rank - 2))
    batch = _common_batch(x.dims[:-2], y.dims[:-2])
    x, y = _with_batch(b, x, batch), _with_batch(b, y, batch)
    axes = tuple(range(len(batch)))
    return b.dot_general(
        x, y, lhs_batching=axes, rhs_batching=axes, lhs_contracting=(len(batch) + 1,), rhs_contracting=(len(batch),),
        result=result,
    )  # fmt: skip


def _common_batch(left: tuple[Size, ...], right: tuple[Size, ...]) -> tuple[Size, ...]:
    rank = max(len(left), len(right))
    left, right = (1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right
    return tuple(broadcast(*pair) for pair in zip(left, right, strict=True))


def _with_batch(b, x, batch):
    """x with its leading dims broadcast to `batch`."""
    if x.rank == len(batch) + 2 and all(equal(d, s) is True for d, s in zip(x.dims, batch, strict=False)):
        return x
    new = len(batch) + 2 - x.rank
    return b.broadcast_in_dim(x, dims=(*batch, *x.dims[-2:]), broadcast_dimensions=tuple(range(new, len(batch) + 2)))


def _gemm_reference(ctx, a, b, c, *, alpha, beta, transpose_a, transpose_b):
    dtype = ctx.result_types[0].dtype
    x, y = product_array(a, dtype.numpy), product_array(b, dtype.numpy)
    y = whole(np.matmul(x.T if transpose_a else x, y.T if transpose_b else y), dtype)
    alpha, beta = (int(alpha), int(beta)) if dtype.is_integer else (alpha, beta)
    alpha_, beta_ = (np.asarray(v).astype(y.dtype) for v in (alpha, beta))  # wraps, as -1 of an unsigned type does
    y = y if alpha == 1 else y * alpha_
    if c is None:
        return y
    wide = wide_array(c).astype(y.dtype)
    return y + (wide if beta == 1 else wide * beta_)


def _gemm(ctx, a, b, c, *, alpha, beta, transpose_a, transpose_b):
    build = ctx.build
    y = build.dot_general(a, b, lhs_contracting=(0 if transpose_a else 1,), rhs_contracting=(1 if transpose_b else 0,))
    y = _scaled(build, y, alpha)
    return y if c is None else build.add(y, _scaled(build, c, beta))


def _scaled(b, x, factor: float):
    if factor == 1:
        return x
    return b.multiply(x, b.constant(int(factor) if x.dtype.is_integer else factor, x.dtype))


def _einsum_reference(ctx, xs, *, equation):
    dtype = ctx.result_types[0].dtype
    inputs, output = equations.parse(equation, [x.ndim for x in xs])
    numbers = {label: i for i, label in enumerate(dict.fromkeys(a for labels in inputs for a in labels))}
    operands = []
    for x, labels in zip(xs, inputs, strict=True):
        operands += [wide_array(x), [numbers[a] for a in labels]]
    return np.einsum(*operands, [numbers[a] for a in output], optimize=len(xs) > 2).astype(
        dtype.numpy if dtype.is_integer else None
    )


def _einsum(ctx, xs, *, equation):
    inputs, output = equations.parse(equation, [x.rank for x in xs])
    return equations.contract(ctx.build, list(zip(xs, inputs, strict=True)), output)


def _det_reference(ctx, x):
    return np.linalg.det(wide_array(x)) if x.shape[-1] else np.ones(x.shape[:-2])


def _det(ctx, x):
    return elimination.determinant(ctx.build, x)


def _inverse_type(ctx, x):
    square(ctx, x)
    return x.with_dims(x.dims)


def _inverse_reference(ctx, x):
    return np.linalg.inv(wide_array(x)) if x.size else x


def _inverse(ctx, x):
    return elimination.inverse(ctx.build, x)


@operator("dot_general", family="linalg", traits=PURE)
class DotGeneral:
    """Sum of products over the contracting axes for each index of the batching axes.

    Result dims: batch, free axes of lhs, free axes of rhs.  Batch and contracting dims must be equal pairwise.  Floats
    accumulate in f32 (f16, bf16) or their own type; i8/u8 in i32 when `result` says i32, else integers wrap in their
    type.  `result` is the result's element type (default: the operands' common type).
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
    vjp = _dot_vjp
    reference = _dot_reference
    bucket = bucketing.dot_general


@operator("cholesky", family="linalg", traits=PURE)
class Cholesky:
    """Lower L with L @ L^H = a (or upper U with U^H @ U = a) for [.., n, n]; only that triangle of a is read.

    The other triangle of the result is zero.  Where a is not positive definite the triangle is NaN.
    """

    a: Operand[INEXACT]
    lower: bool = True
    infer = _cholesky_type
    reference = _cholesky_reference
    bucket = bucketing.cholesky


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
    reference = _triangular_solve_reference
    bucket = bucketing.triangular_solve


@operator("MatMul", family="linalg", traits=PURE)
class MatMul:
    """numpy.matmul: batch axes broadcast, rank-1 operands get an axis that disappears again."""

    a: Operand[NUMERIC]
    b: Operand[NUMERIC]
    infer = _matmul_type
    reference = _matmul_reference
    decompose = _matmul
    bucket = capacities.matmul


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
    reference = _gemm_reference
    decompose = _gemm
    bucket = capacities.gemm


@operator("Einsum", family="linalg", traits=PURE)
class Einsum:
    """Einstein summation with ONNX's (NumPy's) equation syntax, ellipsis and repeated indices included."""

    xs: Variadic[NUMERIC]
    equation: str
    infer = _einsum_type
    reference = _einsum_reference
    decompose = _einsum


@operator("Det", family="linalg", traits=PURE)
class Det:
    """Determinant of [.., n, n] -> [..]."""

    x: Operand[FLOAT]
    infer = _det_type
    reference = _det_reference
    decompose = _det


@operator("Inverse", family="linalg", traits=PURE)
class Inverse:
    """Inverses of [.., n, n].  Where a matrix has none, the result is infinite, NaN or meaninglessly large."""

    x: Operand[FLOAT]
    infer = _inverse_type
    reference = _inverse_reference
    decompose = _inverse
