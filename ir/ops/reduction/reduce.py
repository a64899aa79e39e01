"""Operators that reduce along axes: the core `reduce` and ONNX's reductions."""

import math

import numpy as np

from ... import dtypes
from ...dims import Size, maximum, product
from ...dtypes import DType
from ...facts import Fact
from ...operators import EXACT, NUMERIC, ORDERED, PURE, Operand, Region, Variadic, operator
from ...types import TensorType
from .. import bucketing, capacities
from ..combination import UFUNCS, combined, identity, reduce_custom, with_known_ints
from ..widening import converted, count, saturated, wide_array, widened


def _reduce_type(ctx, xs, *, axes, kind, body):
    inputs, types = combined(ctx, xs, kind, body)
    dims = inputs[0].dims
    ctx.need(all(a >= 0 for a in axes), f"axes must not be negative, got {list(axes)}")
    gone = ctx.axes(axes, len(dims))
    kept = tuple(d for i, d in enumerate(dims) if i not in gone)
    facts = tuple(Fact(TensorType(t, kept)) for t in types)
    return facts if kind == "custom" else with_known_ints(ctx, facts[0], inputs[0], gone, kind)


def _reduced(ctx, x, *, axes, keepdims):
    return x.with_dims(reduced_dims(x.dims, ctx.axes(axes, x.rank), keepdims))


def reduced_dims(dims: tuple[Size, ...], axes: tuple[int, ...], keepdims: bool) -> tuple[Size, ...]:
    """`dims` without `axes` (all >= 0), or with 1 there."""
    if keepdims:
        return tuple(1 if i in axes else d for i, d in enumerate(dims))
    return tuple(d for i, d in enumerate(dims) if i not in axes)


def _reduce_reference(ctx, xs, *, axes, kind, body):
    if kind == "custom":
        return reduce_custom(ctx, xs, axes, body)
    x = wide_array(xs[0])
    start = identity(kind, DType.from_numpy(xs[0].dtype))
    return UFUNCS[kind].reduce(x, axis=axes, initial=start.astype(x.dtype), dtype=x.dtype) if axes else x


def _reduce_vjp(ctx, xs, *, axes, kind, body):
    """max and min share the cotangent among equal elements."""
    b, x = ctx.build, xs[0]
    kept = tuple(i for i in range(x.rank) if i not in axes)

    def spread(y):
        return b.broadcast_in_dim(y, dims=x.dims, broadcast_dimensions=kept)

    if kind == "sum":
        return (spread(ctx.cotangent),)
    zero, one = b.constant(0.0, x.dtype), b.constant(1.0, x.dtype)
    if kind in ("max", "min"):
        best = b.compare(x, spread(ctx.result), direction="eq")
        ties = b.reduce(b.select(best, one, zero), axes=axes, kind="sum")
        return (b.select(best, spread(b.divide(ctx.cotangent, ties)), zero),)
    if kind != "prod":
        ctx.refuse(f"kind {kind!r} has no derivative here; sum, prod, max and min have")
    # Without zeros the product of the others is y / x; beside a single zero only that zero sees them.
    gone = b.compare(x, zero, direction="eq")
    filled = b.select(gone, one, x)
    others = b.divide(spread(b.reduce(filled, axes=axes, kind="prod")), filled)
    zeros = spread(b.reduce(b.select(gone, one, zero), axes=axes, kind="sum"))
    alone = b.compare(zeros, b.select(gone, one, zero), direction="eq")
    return (b.select(alone, b.multiply(spread(ctx.cotangent), others), zero),)


def _normal(x, axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(a % len(np.shape(x) if isinstance(x, np.ndarray) else x.dims) for a in axes)


def reduced(b, x, axes: tuple[int, ...], keepdims: bool, kind: str):
    """x reduced along axes (negative ones allowed); they stay with size 1 if keepdims."""
    axes = _normal(x, axes)
    if not axes:
        return x
    y = b.reduce(x, axes=axes, kind=kind)
    return b.reshape(y, dims=reduced_dims(x.dims, axes, True)) if keepdims else y


def _plain(kind: str):
    """Rules of a reduction that is one `reduce`.  Carries ints."""

    def infer(ctx, x, *, axes, keepdims):
        gone = ctx.axes(axes, x.rank)
        return with_known_ints(ctx, x.with_dims(reduced_dims(x.dims, gone, keepdims)), x, gone, kind)

    def reference(ctx, x, *, axes, keepdims):
        wide = wide_array(x)
        start = identity(kind, DType.from_numpy(x.dtype)).astype(wide.dtype)
        return (
            UFUNCS[kind].reduce(wide, axis=axes, keepdims=keepdims, initial=start, dtype=wide.dtype) if axes else wide
        )

    def decompose(ctx, x, *, axes, keepdims):
        return reduced(ctx.build, x, axes, keepdims, kind)

    return infer, reference, decompose


_SUM, _PROD, _MAX, _MIN = (_plain(kind) for kind in ("sum", "prod", "max", "min"))


def _axes_sum(x, axes, keepdims):
    return np.sum(x, axis=axes, keepdims=keepdims, dtype=x.dtype)


def _mean_reference(ctx, x, *, axes, keepdims):
    total = _axes_sum(wide_array(x), axes, keepdims)
    n = math.prod(x.shape[a] for a in _normal(x, axes))
    if not DType.from_numpy(x.dtype).is_integer:
        return total / n
    total = wide_array(total.astype(x.dtype))
    n = total.dtype.type(max(n, 1))
    return total // n + ((total < 0) & (total % n != 0)).astype(total.dtype)


def _mean(ctx, x, *, axes, keepdims):
    b = ctx.build
    lengths = tuple(x.dims[a] for a in axes)
    if not x.dtype.is_integer:
        total = reduced(b, widened(b, x), axes, keepdims, "sum")
        return converted(b, b.divide(total, count(b, lengths, total.dtype)), x.dtype)
    wide = dtypes.i64 if x.dtype.is_signed else dtypes.u64
    total = converted(b, reduced(b, x, axes, keepdims, "sum"), wide)
    return converted(b, b.divide(total, count(b, (maximum(product(lengths), 1),), wide)), x.dtype)


def _l1_reference(ctx, x, *, axes, keepdims):
    return _axes_sum(np.abs(wide_array(x)), axes, keepdims)


def _l1(ctx, x, *, axes, keepdims):
    b = ctx.build
    total = reduced(b, b.abs(widened(b, x)), axes, keepdims, "sum")
    return converted(b, total, x.dtype)


def _square(b, x):
    if x.dtype.is_complex:
        x = b.abs(x)
    return b.multiply(x, x)


def _square_reference(ctx, x, *, axes, keepdims):
    wide = wide_array(x)
    wide = np.abs(wide) if np.iscomplexobj(wide) else wide
    return _axes_sum(wide * wide, axes, keepdims)


def _sum_square(ctx, x, *, axes, keepdims):
    b = ctx.build
    return converted(b, reduced(b, _square(b, widened(b, x)), axes, keepdims, "sum"), x.dtype)


def _l2_reference(ctx, x, *, axes, keepdims):
    total = _square_reference(ctx, x, axes=axes, keepdims=keepdims)
    if not DType.from_numpy(x.dtype).is_integer:
        return np.sqrt(total)
    wrapped = total.astype(x.dtype).reshape(-1)
    return np.array([math.isqrt(max(int(v), 0)) for v in wrapped]).reshape(total.shape)


def _l2(ctx, x, *, axes, keepdims):
    b = ctx.build
    if not x.dtype.is_integer:
        return converted(b, b.sqrt(reduced(b, _square(b, widened(b, x)), axes, keepdims, "sum")), x.dtype)
    # The float root may be off by one: r is too large where r > v / r, too small where r + 1 <= v / (r + 1).
    wide = dtypes.u64 if x.dtype is dtypes.u64 else dtypes.i64
    total = b.maximum(converted(b, reduced(b, b.multiply(x, x), axes, keepdims, "sum"), wide), 0)
    root = b.convert(b.sqrt(b.convert(total, dtype=dtypes.f64 if x.dtype.bits == 64 else dtypes.f32)), dtype=wide)
    above = b.compare(root, b.divide(total, b.maximum(root, 1)), direction="gt")
    root = b.select(above, b.subtract(root, 1), root)
    more = b.add(root, 1)
    return converted(b, b.select(b.compare(more, b.divide(total, more), direction="le"), more, root), x.dtype)


def _floating(b, x):
    """x as something that has a logarithm: integers in f64."""
    return b.convert(x, dtype=dtypes.f64) if x.dtype.is_integer else widened(b, x)


def _log_sum_reference(ctx, x, *, axes, keepdims):
    total = _axes_sum(wide_array(x), axes, keepdims)
    dtype = DType.from_numpy(x.dtype)
    if dtype.is_integer:
        total = total.astype(x.dtype).astype(np.float64)
    return saturated(np.log(total), dtype)


def _log_sum(ctx, x, *, axes, keepdims):
    b = ctx.build
    total = reduced(b, widened(b, x), axes, keepdims, "sum")
    return converted(b, b.log(_floating(b, total)), x.dtype)


def _log_sum_exp_reference(ctx, x, *, axes, keepdims):
    dtype = DType.from_numpy(x.dtype)
    wide = x.astype(np.float64) if not dtype.is_complex else x.astype(np.complex128)
    if dtype.is_complex:
        return np.log(_axes_sum(np.exp(wide), axes, keepdims))
    top = np.max(wide, axis=axes, keepdims=True, initial=-np.inf) if axes else wide
    top = np.where(np.isfinite(top), top, 0)
    total = np.log(_axes_sum(np.exp(wide - top), axes, True)) + top
    return saturated(total.reshape(reduced_dims(x.shape, _normal(x, axes), keepdims)), dtype)


def _log_sum_exp(ctx, x, *, axes, keepdims):
    b = ctx.build
    wide = _floating(b, x)
    if x.dtype.is_complex:
        return b.log(reduced(b, b.exponential(wide), axes, keepdims, "sum"))
    top = reduced(b, wide, axes, True, "max")
    top = b.select(b.is_finite(top), top, b.constant(0, top.dtype))
    total = b.add(b.log(reduced(b, b.exponential(b.subtract(wide, top)), axes, True, "sum")), top)
    y = total if keepdims else b.reshape(total, dims=reduced_dims(x.dims, _normal(x, axes), False))
    return converted(b, y, x.dtype)


@operator("reduce", family="reduction", traits=PURE)
class Reduce:
    """xs combined along axes, which disappear.  kind: sum, prod, max, min, and, or, xor on one operand, or custom.

    An empty reduction gives the identity: 0, 1, the least value, the greatest value, all ones, 0, 0.  max and min give
    NaN if an element is NaN.  Integers wrap; f16/bf16 sums accumulate in f32.  custom: xs are n inputs then n scalar
    inits, and body (accumulators.., elements..) -> n scalars, associative; n results.
    """

    xs: Variadic
    axes: tuple[int, ...]
    kind: str
    body: Region | None = None
    infer = _reduce_type
    reference = _reduce_reference
    vjp = _reduce_vjp
    bucket = bucketing.reduce


@operator("ReduceSum", family="reduction", traits=PURE)
class ReduceSum:
    """Sum along axes.  axes () reduces nothing."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer, reference, decompose = _SUM
    bucket = capacities.reduced_with(0)


@operator("ReduceMean", family="reduction", traits=PURE)
class ReduceMean:
    """Mean along axes.  Integers: the sum (wrapping) divided towards zero.  Empty: NaN for floats, 0 for integers."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer = _reduced
    reference = _mean_reference
    decompose = _mean
    bucket = capacities.exact_axes


@operator("ReduceMax", family="reduction", traits=PURE | EXACT)
class ReduceMax:
    """Greatest along axes; NaN if there is one.  Empty: -inf, least integer, False."""

    x: Operand[ORDERED]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer, reference, decompose = _MAX
    bucket = capacities.reduced_with(capacities.least_of)


@operator("ReduceMin", family="reduction", traits=PURE | EXACT)
class ReduceMin:
    """Least along axes; NaN if there is one.  Empty: +inf, greatest integer, True."""

    x: Operand[ORDERED]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer, reference, decompose = _MIN
    bucket = capacities.reduced_with(capacities.greatest_of)


@operator("ReduceProd", family="reduction", traits=PURE)
class ReduceProd:
    """Product along axes."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer, reference, decompose = _PROD
    bucket = capacities.reduced_with(1)


@operator("ReduceL1", family="reduction", traits=PURE)
class ReduceL1:
    """Sum of absolute values."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer = _reduced
    reference = _l1_reference
    decompose = _l1
    bucket = capacities.reduced_with(0)


@operator("ReduceL2", family="reduction", traits=PURE)
class ReduceL2:
    """Square root of the sum of squares (integers: rounded towards zero)."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer = _reduced
    reference = _l2_reference
    decompose = _l2
    bucket = capacities.reduced_with(0)


@operator("ReduceLogSum", family="reduction", traits=PURE)
class ReduceLogSum:
    """Logarithm of the sum."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer = _reduced
    reference = _log_sum_reference
    decompose = _log_sum
    bucket = capacities.reduced_with(0)


@operator("ReduceLogSumExp", family="reduction", traits=PURE)
class ReduceLogSumExp:
    """log(sum(exp(x))), computed after subtracting the maximum.  A row of -inf gives -inf."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer = _reduced
    reference = _log_sum_exp_reference
    decompose = _log_sum_exp
    bucket = capacities.reduced_log_sum_exp


@operator("ReduceSumSquare", family="reduction", traits=PURE)
class ReduceSumSquare:
    """Sum of squares."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True
    infer = _reduced
    reference = _square_reference
    decompose = _sum_square
    bucket = capacities.reduced_with(0)
