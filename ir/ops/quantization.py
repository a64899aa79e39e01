"""Quantization: linear quantize and dequantize, and exact integer products."""

import numpy as np

from .. import dtypes
from ..dims import Size, ceildiv, equal
from ..dtypes import DType
from ..facts import make
from ..operators import FLOAT, INTEGER, PURE, REAL, TENSOR, Operand, operator
from . import sliding
from .convolution import conv_dims, convolve, per_channel
from .linalg import matmul, matmul_dims
from .reduction import reduced
from .widening import converted, saturated, statistics_type


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
    return x.with_dtype(dtype or scale.dtype)


def _dynamic_type(ctx, x):
    return x.with_dtype(dtypes.u8), make(x.dtype), make(dtypes.u8)


def _matmul_integer_type(ctx, a, b, a_zero_point, b_zero_point):
    return make(dtypes.i32, *matmul_dims(ctx, a, b))


def _conv_integer_type(ctx, x, w, x_zero_point, w_zero_point, *, strides, dilations, pads, group):
    return make(dtypes.i32, *conv_dims(ctx, x, w, strides=strides, dilations=dilations, pads=pads, group=group))


def _qlinear_conv_type(
    ctx, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b, *, strides, dilations, pads, group
):
    dims = conv_dims(ctx, x, w, strides=strides, dilations=dilations, pads=pads, group=group)
    return make(y_zero_point.dtype, *dims)


def _qlinear_matmul_type(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    return make(y_zero_point.dtype, *matmul_dims(ctx, a, b))


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


def _quantized_array(x: np.ndarray, zero_point, dtype: DType) -> np.ndarray:
    """Quotients rounded, moved and saturated."""
    low, high = _bounds(dtype)
    y = np.rint(x)
    y = y if zero_point is None else y + zero_point.astype(y.dtype)
    return saturated(np.clip(y, low, high), dtype)


def _quantized(b, x, zero_point, dtype: DType):
    low, high = _bounds(dtype)
    y = b.round_nearest_even(x)
    y = y if zero_point is None else b.add(y, b.convert(zero_point, dtype=y.dtype))
    y = b.clamp(b.constant(low, y.dtype), y, b.constant(high, y.dtype))
    return b.convert(y, dtype=dtype)


def _quantize_reference(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    scale, zero_point = (_spread_array(p, x, axis, block_size) for p in (scale, zero_point))
    quotient = _float_array(x) / _float_array(scale).astype(_float_array(x).dtype)
    if not dtype.is_float:
        return _quantized_array(quotient, zero_point, dtype)
    limit = dtype.finfo().max
    return np.clip(quotient, -float(limit), float(limit)) if saturate else quotient


def _quantize(ctx, x, scale, zero_point, *, dtype, axis, block_size, saturate):
    b = ctx.build
    scale, zero_point = (_spread(b, p, x, axis, block_size) for p in (scale, zero_point))
    wide = _float(b, x)
    quotient = b.divide(wide, converted(b, scale, wide.dtype))
    if dtype.is_float:
        return b.convert(quotient, dtype=dtype, saturate=saturate)
    return _quantized(b, quotient, zero_point, dtype)


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
    return _quantized_array(wide / scale, zero_point, dtypes.u8), scale, zero_point.astype(np.uint8)


def _dynamic(ctx, x):
    b = ctx.build
    wide, axes = _float(b, x), tuple(range(x.rank))
    zero = b.constant(0, wide.dtype)
    low = b.minimum(reduced(b, wide, axes, False, "min"), zero)
    high = b.maximum(reduced(b, wide, axes, False, "max"), zero)
    some = b.compare(high, low, direction="gt")
    scale = b.select(some, b.divide(b.subtract(high, low), 255.0), b.constant(1, wide.dtype))
    zero_point = _quantized(b, b.divide(b.negate(low), scale), None, dtypes.u8)
    return _quantized(b, b.divide(wide, scale), zero_point, dtypes.u8), converted(b, scale, x.dtype), zero_point


def _row_shape(p, rows: bool):
    """Dims that make a parameter of a matrix (a vector: one a row, or one a column) broadcast to it."""
    dims = p.shape if isinstance(p, np.ndarray) else p.dims
    return (*dims, 1) if rows and len(dims) == 1 and equal(dims[0], 1) is not True else dims


def _moved_array(x: np.ndarray, zero_point) -> np.ndarray:
    """x - zero_point in i64."""
    return x.astype(np.int64) if zero_point is None else x.astype(np.int64) - zero_point.astype(np.int64)


def _moved(b, x, zero_point):
    """x - zero_point in i32; x itself without a zero point."""
    if zero_point is None:
        return x
    return b.subtract(converted(b, x, dtypes.i32), converted(b, zero_point, dtypes.i32))


def _parameters_of_rows(reshape, p, rows: bool):
    if p is None:
        return None
    dims = _row_shape(p, rows)
    return p if len(dims) == (p.ndim if isinstance(p, np.ndarray) else p.rank) else reshape(p, dims)


def _exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """matmul of integers of at most 17 bits: exact in f64."""
    return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.int64)


def _matmul_integer_reference(ctx, a, b, a_zero_point, b_zero_point):
    a_zero_point = _parameters_of_rows(np.reshape, a_zero_point, True)
    return _exact_product(_moved_array(a, a_zero_point), _moved_array(b, b_zero_point))


def _integer_matmul(b, x, y, x_zero_point, y_zero_point):
    """i32 product of the operands less their zero points."""
    x_zero_point = _parameters_of_rows(lambda p, dims: b.reshape(p, dims=dims), x_zero_point, True)
    x, y = _moved(b, x, x_zero_point), _moved(b, y, y_zero_point)
    if x.dtype is not y.dtype:
        x, y = converted(b, x, dtypes.i32), converted(b, y, dtypes.i32)
    return matmul(b, x, y, dtypes.i32)


def _matmul_integer(ctx, a, b, a_zero_point, b_zero_point):
    return _integer_matmul(ctx.build, a, b, a_zero_point, b_zero_point)


def _exact_conv(x, w, x_zero_point, w_zero_point, strides, dilations, pads, group):
    x, w = _moved_array(x, x_zero_point), _moved_array(w, _kernel_parameter(np.reshape, w_zero_point, w.ndim))
    return sliding.correlate(x.astype(float), w.astype(float), strides, pads, dilations, group).astype(np.int64)


def _kernel_parameter(reshape, p, rank: int):
    """A zero point or scale of a kernel, one an output channel, in the shape that broadcasts to it."""
    dims = () if p is None else p.shape if isinstance(p, np.ndarray) else p.dims
    return p if not dims else reshape(p, (dims[0], *(1 for _ in range(rank - 1))))


def _conv_integer_reference(ctx, x, w, x_zero_point, w_zero_point, *, strides, dilations, pads, group):
    return _exact_conv(x, w, x_zero_point, w_zero_point, strides, dilations, pads, group)


def _integer_conv(b, x, w, x_zero_point, w_zero_point, strides, dilations, pads, group):
    """i32 convolution of the operands less their zero points."""
    w_zero_point = _kernel_parameter(lambda p, dims: b.reshape(p, dims=dims), w_zero_point, w.rank)
    x_zero_point = None if x_zero_point is None else b.reshape(x_zero_point, dims=())
    x, w = _moved(b, x, x_zero_point), _moved(b, w, w_zero_point)
    if x.dtype is not w.dtype:
        x, w = converted(b, x, dtypes.i32), converted(b, w, dtypes.i32)
    return convolve(b, x, w, strides=strides, dilations=dilations, pads=pads, group=group, result=dtypes.i32)


def _conv_integer(ctx, x, w, x_zero_point, w_zero_point, *, strides, dilations, pads, group):
    return _integer_conv(ctx.build, x, w, x_zero_point, w_zero_point, strides, dilations, pads, group)


def _requantized_array(total, factor, y_scale, y_zero_point):
    """Integer sums times factor / y_scale, in f32 steps, quantized."""
    factor = factor / y_scale.astype(np.float32)
    return _quantized_array(total.astype(np.float32) * factor, y_zero_point, DType.from_numpy(y_zero_point.dtype))


def _requantized(b, total, factor, y_scale, y_zero_point):
    factor = b.divide(factor, converted(b, y_scale, dtypes.f32))
    return _quantized(b, b.multiply(converted(b, total, dtypes.f32), factor), y_zero_point, y_zero_point.dtype)


def _qlinear_conv_reference(
    ctx, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b, *, strides, dilations, pads, group
):
    total = _exact_conv(x, w, x_zero_point, w_zero_point, strides, dilations, pads, group)
    total = total if b is None else total + b.astype(np.int64).reshape(-1, *[1] * (x.ndim - 2))
    w_scale = _kernel_parameter(np.reshape, w_scale, x.ndim - 1)
    factor = x_scale.astype(np.float32) * w_scale.astype(np.float32)
    return _requantized_array(total.astype(np.int32), factor, y_scale, y_zero_point)


def _qlinear_conv(
    ctx, x, x_scale, x_zero_point, w, w_scale, w_zero_point, y_scale, y_zero_point, b, *, strides, dilations, pads, group
):
    build = ctx.build
    total = _integer_conv(build, x, w, x_zero_point, w_zero_point, strides, dilations, pads, group)
    total = total if b is None else build.add(total, per_channel(build, converted(build, b, dtypes.i32), x.rank))
    w_scale = _kernel_parameter(lambda p, dims: build.reshape(p, dims=dims), w_scale, x.rank - 1)
    factor = build.multiply(converted(build, x_scale, dtypes.f32), converted(build, w_scale, dtypes.f32))
    return _requantized(build, total, factor, y_scale, y_zero_point)


def _qlinear_matmul_reference(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    a_scale, a_zero_point = (_parameters_of_rows(np.reshape, p, True) for p in (a_scale, a_zero_point))
    factor = a_scale.astype(np.float32) * b_scale.astype(np.float32)
    if DType.from_numpy(a.dtype).is_float:
        total = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
        return total * (factor / y_scale.astype(np.float32))
    total = _exact_product(_moved_array(a, a_zero_point), _moved_array(b, b_zero_point))
    return _requantized_array(total.astype(np.int32), factor, y_scale, y_zero_point)


def _qlinear_matmul(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    build = ctx.build
    a_scale = _parameters_of_rows(lambda p, dims: build.reshape(p, dims=dims), a_scale, True)
    factor = build.multiply(converted(build, a_scale, dtypes.f32), converted(build, b_scale, dtypes.f32))
    if a.dtype.is_float:
        total = matmul(build, converted(build, a, dtypes.f32), converted(build, b, dtypes.f32))
        factor = build.divide(factor, converted(build, y_scale, dtypes.f32))
        return build.convert(build.multiply(total, factor), dtype=y_zero_point.dtype)
    total = _integer_matmul(build, a, b, a_zero_point, b_zero_point)
    return _requantized(build, total, factor, y_scale, y_zero_point)


@operator("QuantizeLinear", family="quantization", traits=PURE)
class QuantizeLinear:
    """saturate(round_half_even(x / scale) + zero_point) in `dtype`.

    scale and zero_point are scalars, vectors along axis, or (block_size > 0) blocked along axis.  float8: no rounding to
    integers, `saturate` as in convert.
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


@operator("DynamicQuantizeLinear", family="quantization", traits=PURE)
class DynamicQuantizeLinear:
    """f32 to u8 with scale and zero point from the tensor's range widened to hold 0.  (y, scale, zero_point)"""

    x: Operand[FLOAT]
    infer = _dynamic_type
    reference = _dynamic_reference
    decompose = _dynamic


@operator("MatMulInteger", family="quantization", traits=PURE)
class MatMulInteger:
    """matmul(a - a_zero_point, b - b_zero_point) in i32.  Zero points: scalars, or one a row of a / column of b."""

    a: Operand[INTEGER]
    b: Operand[INTEGER]
    a_zero_point: Operand[INTEGER] | None = None
    b_zero_point: Operand[INTEGER] | None = None
    infer = _matmul_integer_type
    reference = _matmul_integer_reference
    decompose = _matmul_integer


@operator("ConvInteger", family="quantization", traits=PURE)
class ConvInteger:
    """Convolution of x - x_zero_point with w - w_zero_point in i32; padding counts as x_zero_point.  Attributes as in Conv."""

    x: Operand[INTEGER]
    w: Operand[INTEGER]
    x_zero_point: Operand[INTEGER] | None = None
    w_zero_point: Operand[INTEGER] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    group: int = 1
    infer = _conv_integer_type
    reference = _conv_integer_reference
    decompose = _conv_integer


@operator("QLinearConv", family="quantization", traits=PURE)
class QLinearConv:
    """Conv of quantized x and w with the i32 bias b (scale x_scale * w_scale), requantized to y's scale and zero point."""

    x: Operand[INTEGER]
    x_scale: Operand[FLOAT]
    x_zero_point: Operand[INTEGER]
    w: Operand[INTEGER]
    w_scale: Operand[FLOAT]
    w_zero_point: Operand[INTEGER]
    y_scale: Operand[FLOAT]
    y_zero_point: Operand[INTEGER]
    b: Operand[INTEGER] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    group: int = 1
    infer = _qlinear_conv_type
    reference = _qlinear_conv_reference
    decompose = _qlinear_conv


@operator("QLinearMatMul", family="quantization", traits=PURE)
class QLinearMatMul:
    """matmul of quantized a and b, requantized to y's scale and zero point.  Parameters: scalars, or per row of a / column of b."""

    a: Operand[TENSOR]
    a_scale: Operand[FLOAT]
    a_zero_point: Operand[TENSOR]
    b: Operand[TENSOR]
    b_scale: Operand[FLOAT]
    b_zero_point: Operand[TENSOR]
    y_scale: Operand[FLOAT]
    y_zero_point: Operand[TENSOR]
    infer = _qlinear_matmul_type
    reference = _qlinear_matmul_reference
    decompose = _qlinear_matmul
