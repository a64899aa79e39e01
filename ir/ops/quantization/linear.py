"""QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, and the arithmetic that quantized products share."""

import numpy as np

from ... import dtypes
from ...dims import ceildiv, equal
from ...dtypes import DType
from ...facts import make
from ...operators import FLOAT, PURE, REAL, Operand, operator
from .. import capacities
from ..reduction import reduced
from ..widening import converted, saturated, statistics_type


def _check_parameter(ctx, x, p, axis: int, block_size: int, what: str) -> None:
    """scale and zero_point: one element, a vector along axis, or blocks along axis."""
    if p is None or p.rank == 0:
        return
    if block_size:
        ctx.need(p.rank == x.rank, f"{what} must have x's rank {x.rank} when blocked, got {p.type}")
        for i, (got, size) in enumerate(zip(p.dims, x.dims, strict=True)):
            ctx.equal(got, ceildiv(size, block_size) if i == axis else size, f"dims of {what} (axis {i})")
        return
    ctx.need(p.rank == 1, f"{what} must be a scalar or a vector, got {p.type}")
    if equal(p.dims[0], 1) is not True:
        ctx.need(axis < x.rank, f"axis {axis} is out of range for rank {x.rank}")
        ctx.equal(p.dims[0], x.dims[axis], f"the dim of {what} and of x along axis {axis}")


def _parameter_axis(ctx, x, axis: int, *parameters) -> int:
    """axis in [0, rank); it does not matter (and may lie outside) where parameters have one element."""
    scalar = all(p is None or p.rank == 0 or (p.rank == 1 and equal(p.dims[0], 1) is True) for p in parameters)
    return 0 if scalar else ctx.axis(axis, x.rank)


def _quantize_type(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    quantizes = (dtype.is_integer and dtype.bits <= 32) or (dtype.is_float and dtype.bits <= 8)
    ctx.need(quantizes, f"the result must be an integer of at most 32 bits or a float of at most 8, not {dtype}")
    axis = _parameter_axis(ctx, x, axis, scale, zero_point)
    _check_parameter(ctx, x, scale, axis, block_size, "scale")
    _check_parameter(ctx, x, zero_point, axis, block_size, "zero_point")
    if zero_point is not None:
        ctx.need(zero_point.dtype is dtype, f"zero_point must have the result's type {dtype}, got {zero_point.type}")
    return x.with_dtype(dtype)


def _dequantize_type(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    axis = _parameter_axis(ctx, x, axis, scale, zero_point)
    _check_parameter(ctx, x, scale, axis, block_size, "scale")
    _check_parameter(ctx, x, zero_point, axis, block_size, "zero_point")
    ctx.need(dtype is None or dtype.is_float, f"the result must be a float, not {dtype}")
    return x.with_dtype(dtype or scale.dtype)


def _dynamic_type(ctx, x):
    return x.with_dtype(dtypes.u8), make(x.dtype), make(dtypes.u8)


def _bounds(dtype: DType) -> tuple[int, int]:
    return int(dtype.min_value()), int(dtype.max_value())


def _spread_array(p, x: np.ndarray, axis: int, block_size: int):
    """scale or zero_point in the shape that broadcasts to x."""
    if p is None or p.ndim == 0:
        return p
    axis %= max(x.ndim, 1)
    if block_size:
        return np.repeat(p, block_size, axis)[(slice(None),) * axis + (slice(x.shape[axis]),)]
    return p.reshape(()) if p.size == 1 else p.reshape(-1, *[1] * (x.ndim - axis - 1))


def _spread(b, p, x, axis: int, block_size: int):
    """As `_spread_array`."""
    if p is None or p.rank == 0:
        return p
    axis %= max(x.rank, 1)
    if block_size:
        front, back = p.dims[: axis + 1], p.dims[axis + 1 :]
        repeated = b.broadcast_in_dim(
            p, dims=(*front, block_size, *back), broadcast_dimensions=(*range(axis + 1), *range(axis + 2, p.rank + 1))
        )
        repeated = b.reshape(repeated, dims=(*front[:-1], front[-1] * block_size, *back))
        zeros, ones = (0,) * p.rank, (1,) * p.rank
        return b.slice(repeated, starts=zeros, limits=(*front[:-1], x.dims[axis], *back), strides=ones)
    if equal(p.dims[0], 1) is True:
        return b.reshape(p, dims=())
    return b.reshape(p, dims=(p.dims[0], *(1 for _ in range(x.rank - axis - 1))))


def _float_array(x: np.ndarray) -> np.ndarray:
    """f64 stays, everything else is computed in f32: the steps of quantization round as targets' f32 does."""
    return x if x.dtype == np.float64 else x.astype(np.float32)


def _float(b, x):
    return converted(b, x, statistics_type(x.dtype))


def quantized_array(x: np.ndarray, zero_point, dtype: DType) -> np.ndarray:
    """Quotients rounded, moved and saturated."""
    low, high = _bounds(dtype)
    y = np.rint(x)
    y = y if zero_point is None else y + zero_point.astype(y.dtype)
    return saturated(np.clip(y, low, high), dtype)


def quantized(b, x, zero_point, dtype: DType):
    low, high = _bounds(dtype)
    y = b.round_nearest_even(x)
    y = y if zero_point is None else b.add(y, b.convert(zero_point, dtype=y.dtype))
    y = b.clamp(b.constant(low, y.dtype), y, b.constant(high, y.dtype))
    return b.convert(y, dtype=dtype)


def _quantize_reference(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    scale, zero_point = (_spread_array(p, x, axis, block_size) for p in (scale, zero_point))
    quotient = _float_array(x) / _float_array(scale).astype(_float_array(x).dtype)
    if not dtype.is_float:
        return quantized_array(quotient, zero_point, dtype)
    limit = dtype.finfo().max
    return np.clip(quotient, -float(limit), float(limit)) if saturate else quotient


def _quantize(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    b = ctx.build
    scale, zero_point = (_spread(b, p, x, axis, block_size) for p in (scale, zero_point))
    wide = _float(b, x)
    quotient = b.divide(wide, converted(b, scale, wide.dtype))
    if dtype.is_float:
        return b.convert(quotient, dtype=dtype, saturate=saturate)
    return quantized(b, quotient, zero_point, dtype)


def _dequantize_reference(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    scale, zero_point = (_spread_array(p, x, axis, block_size) for p in (scale, zero_point))
    integer = DType.from_numpy(x.dtype).is_integer
    y = x.astype(np.int32) if integer else x.astype(np.float32)
    y = y if zero_point is None else y - zero_point.astype(y.dtype)
    return y.astype(_float_array(scale).dtype) * _float_array(scale)


def _dequantize(ctx, x, scale, zero_point, *, axis, block_size, dtype):
    b = ctx.build
    scale, zero_point = (_spread(b, p, x, axis, block_size) for p in (scale, zero_point))
    exact = dtypes.i32 if x.dtype.is_integer else dtypes.f32
    y = converted(b, x, exact)
    y = y if zero_point is None else b.subtract(y, converted(b, zero_point, exact))
    wide = _float(b, scale)
    return converted(b, b.multiply(converted(b, y, wide.dtype), wide), dtype or scale.dtype)


def _dynamic_reference(ctx, x):
    wide = _float_array(x)
    low, high = np.min(wide, initial=0), np.max(wide, initial=0)
    scale = wide.dtype.type((high - low) / wide.dtype.type(255)) if high > low else wide.dtype.type(1)
    zero_point = np.clip(np.rint(-low / scale), 0, 255)
    return quantized_array(wide / scale, zero_point, dtypes.u8), scale, zero_point.astype(np.uint8)


def _dynamic(ctx, x):
    b = ctx.build
    wide, axes = _float(b, x), tuple(range(x.rank))
    zero = b.constant(0, wide.dtype)
    low = b.minimum(reduced(b, wide, axes, False, "min"), zero)
    high = b.maximum(reduced(b, wide, axes, False, "max"), zero)
    some = b.compare(high, low, direction="gt")
    scale = b.select(some, b.divide(b.subtract(high, low), 255.0), b.constant(1, wide.dtype))
    zero_point = quantized(b, b.divide(b.negate(low), scale), None, dtypes.u8)
    return quantized(b, b.divide(wide, scale), zero_point, dtypes.u8), converted(b, scale, x.dtype), zero_point


@operator("QuantizeLinear", family="quantization", traits=PURE)
class QuantizeLinear:
    """saturate(round_half_even(x / scale) + zero_point) in `dtype`.

    scale and zero_point are scalars, vectors along axis, or (block_size > 0) blocked along axis.  The quotient is
    taken in f32 (f64 for f64).  float8: no rounding to integers, `saturate` as in convert.
    """

    x: Operand[REAL]
    scale: Operand[FLOAT]
    zero_point: Operand | None = None
    dtype: DType
    axis: int = 1
    block_size: int = 0
    saturate: bool = True
    infer = _quantize_type
    reference = _quantize_reference
    decompose = _quantize
    bucket = capacities.quantized


@operator("DequantizeLinear", family="quantization", traits=PURE)
class DequantizeLinear:
    """(x - zero_point) * scale in `dtype` (the scale's type by default).  Shapes as in QuantizeLinear."""

    x: Operand
    scale: Operand[FLOAT]
    zero_point: Operand | None = None
    axis: int = 1
    block_size: int = 0
    dtype: DType | None = None
    infer = _dequantize_type
    reference = _dequantize_reference
    decompose = _dequantize
    bucket = capacities.quantized


@operator("DynamicQuantizeLinear", family="quantization", traits=PURE)
class DynamicQuantizeLinear:
    """f32 to u8 with scale and zero point from the tensor's range widened to hold 0.  (y, scale, zero_point)"""

    x: Operand[FLOAT]
    infer = _dynamic_type
    reference = _dynamic_reference
    decompose = _dynamic
    bucket = capacities.range_with_zero
