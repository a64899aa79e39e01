"""Operators that make elements from positions: iota, dimensions, Range, EyeLike, and Trilu, which masks by them."""

import numpy as np

from ... import dtypes
from ...data import INLINE_LIMIT
from ...dims import Size
from ...dtypes import DType
from ...facts import Fact, shape_fact
from ...ints import wrap
from ...operators import PURE, Operand, operator
from ...types import TensorType
from .. import bucketing, capacities
from ..widening import converted, wide_type
from .positions import checked_sizes, counted, diagonal_numbers, size_scalar


@operator("iota", family="shape", traits=PURE)
class Iota:
    """A tensor whose element is its index along axis.  -> dtype[dims]."""

    dtype: DType
    dims: tuple[Size, ...]
    axis: int

    bucket = bucketing.keep

    def infer(ctx, *, dtype, dims, axis):
        ctx.need(not dtype.is_bool and not dtype.is_string, f"iota makes numbers, not {dtype}")
        ctx.need(0 <= axis < len(dims), f"axis {axis} is out of range for rank {len(dims)}")
        fact = Fact(TensorType(dtype, checked_sizes(ctx, dims)))
        if fact.tensor.is_static and fact.size <= INLINE_LIMIT:
            return fact.with_ints(tuple(wrap(int(i), dtype) for i in counted(fact.dims, axis).reshape(-1)))
        return fact

    def reference(ctx, *, dtype, dims, axis):
        return counted(dims, axis)


@operator("dimensions", family="shape", traits=PURE)
class Dimensions:
    """Sizes as an i64 vector (or, with scalar, the one size as an i64 scalar).  What ONNX Shape and Size become."""

    dims: tuple[Size, ...]
    scalar: bool = False

    bucket = bucketing.dimensions

    def infer(ctx, *, dims, scalar):
        if not scalar:
            return shape_fact(dims)
        ctx.need(len(dims) == 1, f"a scalar has one size, got {len(dims)}")
        return Fact(TensorType(dtypes.i64, ())).with_ints(dims)

    def reference(ctx, *, dims, scalar):
        return np.array(dims[0] if scalar else dims, np.int64)


@operator("Range", family="shape", traits=PURE)
class Range:
    """start + i * delta for i in [0, count).  start and delta are scalars of the result's type."""

    start: Operand
    delta: Operand
    count: Size

    bucket = bucketing.keep

    def infer(ctx, start, delta, *, count):
        dtype = ctx.same_dtype(start, delta)
        for scalar in (start, delta):
            ctx.need(scalar.rank == 0, f"start and delta must be scalars, got {scalar.type}")
        fact = Fact(TensorType(dtype, checked_sizes(ctx, (count,))))
        if (
            not isinstance(count, int)
            or count > INLINE_LIMIT
            or start.known_ints() is None
            or delta.known_ints() is None
        ):
            return fact
        (first,), (step,) = start.known_ints(), delta.known_ints()
        return fact.with_ints(tuple(wrap(first + step * i, dtype) for i in range(count)))

    def reference(ctx, start, delta, *, count):
        start, delta = ctx.wide(start), ctx.wide(delta)
        return start + np.arange(count).astype(start.dtype) * delta

    def decompose(ctx, start, delta, *, count):
        b = ctx.build
        dtype = wide_type(start.dtype)
        steps = b.multiply(b.iota(dtype=dtype, dims=(count,), axis=0), converted(b, delta, dtype))
        return converted(b, b.add(steps, converted(b, start, dtype)), start.dtype)


@operator("EyeLike", family="shape", traits=PURE)
class EyeLike:
    """Ones on diagonal k of a [rows, columns] matrix of `dtype`, zeros elsewhere."""

    dtype: DType
    dims: tuple[Size, ...]
    k: int = 0

    bucket = bucketing.keep

    def infer(ctx, *, dtype, dims, k):
        ctx.need(len(dims) == 2, f"EyeLike makes a matrix, got {len(dims)} dims")
        ctx.need(not dtype.is_string, "EyeLike makes numbers, not strings")
        return Fact(TensorType(dtype, checked_sizes(ctx, dims)))

    def reference(ctx, *, dtype, dims, k):
        return np.eye(*dims, k=k)

    def decompose(ctx, *, dtype, dims, k):
        b = ctx.build
        return converted(b, b.compare(diagonal_numbers(b, dims), k, direction="eq"), dtype)


@operator("Trilu", family="shape", traits=PURE)
class Trilu:
    """Upper (or lower) triangle of the last two axes, zero elsewhere; diagonal k counts upwards, may be symbolic."""

    x: Operand
    k: Size = 0
    upper: bool = True

    bucket = capacities.trilu

    def infer(ctx, x, *, k, upper):
        ctx.need(x.rank >= 2, f"x must have at least two axes, got {x.type}")
        return x.with_dims(x.dims)

    def reference(ctx, x, *, k, upper):
        rows, columns = np.indices(x.shape[-2:])
        return np.where((columns - rows >= k) if upper else (columns - rows <= k), x, np.zeros((), x.dtype))

    def decompose(ctx, x, *, k, upper):
        b = ctx.build
        inside = b.compare(diagonal_numbers(b, x.dims[-2:]), size_scalar(b, k), direction="ge" if upper else "le")
        return b.select(inside, x, b.constant(0, x.dtype))
