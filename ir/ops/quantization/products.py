"""Exact products of quantized operands: MatMulInteger, ConvInteger, QLinearConv, QLinearMatMul."""

import numpy as np

from ... import dtypes
from ...dims import Size, equal
from ...dtypes import DType
from ...facts import make
from ...operators import FLOAT, INTEGER, PURE, TENSOR, Operand, operator
from .. import sliding
from ..convolution import conv_dims, convolve, per_channel
from ..linalg import matmul, matmul_dims
from ..widening import converted
from .linear import quantized, quantized_array


def _matmul_integer_type(ctx, a, b, a_zero_point, b_zero_point):
    narrow = a.dtype.bits <= 16 and b.dtype.bits <= 16
    ctx.need(narrow, f"operands must have at most 16 bits, got {a.type} and {b.type}")
    _check_parameters(ctx, a, b, (a_zero_point,), (b_zero_point,))
    return make(dtypes.i32, *matmul_dims(ctx, a, b))


def _check_parameters(ctx, a, b, rows, columns):
    """Parameters of rows of a (a vector, or [.., M, 1]) and of columns of b (a vector, or [.., 1, N]) broadcast."""
    for x, parameters, vertical in ((a, rows, True), (b, columns, False)):
        for p in (p for p in parameters if p is not None):
            dims = (*p.dims, 1) if vertical and p.rank == 1 and equal(p.dims[0], 1) is not True else p.dims
            ctx.equal_dims(ctx.broadcast(x.dims, dims), x.dims, f"dims of {x.type} with its parameter {p.type} and")


def _conv_integer_type(ctx, x, w, x_zero_point, w_zero_point, *, strides, dilations, pads, group):
    narrow = x.dtype.bits <= 8 and w.dtype.bits <= 8
    ctx.need(narrow, f"operands must have at most 8 bits, got {x.type} and {w.type}")
    return make(dtypes.i32, *conv_dims(ctx, x, w, strides=strides, dilations=dilations, pads=pads, group=group))


def _qlinear_conv_type(
    ctx,
    x,
    x_scale,
    x_zero_point,
    w,
    w_scale,
    w_zero_point,
    y_scale,
    y_zero_point,
    b,
    *,
    strides,
    dilations,
    pads,
    group,
):
    dims = conv_dims(ctx, x, w, strides=strides, dilations=dilations, pads=pads, group=group)
    return make(y_zero_point.dtype, *dims)


def _qlinear_matmul_type(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    _check_parameters(ctx, a, b, (a_scale, a_zero_point), (b_scale, b_zero_point))
    for p in (a, b, y_zero_point):
        ctx.need(
            (p.dtype.is_integer and p.dtype.bits <= 32) or (p.dtype.is_float and p.dtype.bits <= 8),
            f"quantized values are integers of at most 32 bits or floats of at most 8, not {p.dtype}",
        )
    dims = matmul_dims(ctx, a, b)
    for p in (y_scale, y_zero_point):
        ctx.equal_dims(ctx.broadcast(dims, p.dims), dims, f"dims of the result with its parameter {p.type} and")
    return make(y_zero_point.dtype, *dims)


def _moved_array(x: np.ndarray, zero_point) -> np.ndarray:
    """x - zero_point in i64."""
    return x.astype(np.int64) if zero_point is None else x.astype(np.int64) - zero_point.astype(np.int64)


def _moved(b, x, zero_point):
    """x - zero_point in i32; x itself without a zero point."""
    if zero_point is None:
        return x
    return b.subtract(converted(b, x, dtypes.i32), converted(b, zero_point, dtypes.i32))


def _column(reshape, p):
    """A parameter of rows, if a vector, as the column that broadcasts to the matrix."""
    if p is None:
        return None
    dims = p.shape if isinstance(p, np.ndarray) else p.dims
    return reshape(p, (*dims, 1)) if len(dims) == 1 and equal(dims[0], 1) is not True else p


def _exact_product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """matmul of integers of at most 17 bits: exact in f64."""
    product: np.ndarray = np.matmul(a.astype(np.float64), b.astype(np.float64))
    return product.astype(np.int64)


def _matmul_integer_reference(ctx, a, b, a_zero_point, b_zero_point):
    a_zero_point = _column(np.reshape, a_zero_point)
    return _exact_product(_moved_array(a, a_zero_point), _moved_array(b, b_zero_point))


def integer_matmul(b, x, y, x_zero_point, y_zero_point):
    """i32 product of the operands less their zero points."""
    x_zero_point = _column(lambda p, dims: b.reshape(p, dims=dims), x_zero_point)
    x, y = _moved(b, x, x_zero_point), _moved(b, y, y_zero_point)
    if x.dtype is not y.dtype:
        x, y = converted(b, x, dtypes.i32), converted(b, y, dtypes.i32)
    return matmul(b, x, y, dtypes.i32)


def _matmul_integer(ctx, a, b, a_zero_point, b_zero_point):
    return integer_matmul(ctx.build, a, b, a_zero_point, b_zero_point)


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
    return quantized_array(total.astype(np.float32) * factor, y_zero_point, DType.from_numpy(y_zero_point.dtype))


def requantized(b, total, factor, y_scale, y_zero_point):
    factor = b.divide(factor, converted(b, y_scale, dtypes.f32))
    return quantized(b, b.multiply(converted(b, total, dtypes.f32), factor), y_zero_point, y_zero_point.dtype)


def _qlinear_conv_reference(
    ctx,
    x,
    x_scale,
    x_zero_point,
    w,
    w_scale,
    w_zero_point,
    y_scale,
    y_zero_point,
    b,
    *,
    strides,
    dilations,
    pads,
    group,
):
    total = _exact_conv(x, w, x_zero_point, w_zero_point, strides, dilations, pads, group)
    total = total if b is None else total + b.astype(np.int64).reshape(-1, *[1] * (x.ndim - 2))
    w_scale = _kernel_parameter(np.reshape, w_scale, x.ndim - 1)
    factor = x_scale.astype(np.float32) * w_scale.astype(np.float32)
    return _requantized_array(total.astype(np.int32), factor, y_scale, y_zero_point)


def _qlinear_conv(
    ctx,
    x,
    x_scale,
    x_zero_point,
    w,
    w_scale,
    w_zero_point,
    y_scale,
    y_zero_point,
    b,
    *,
    strides,
    dilations,
    pads,
    group,
):
    build = ctx.build
    total = _integer_conv(build, x, w, x_zero_point, w_zero_point, strides, dilations, pads, group)
    total = total if b is None else build.add(total, per_channel(build, converted(build, b, dtypes.i32), x.rank))
    w_scale = _kernel_parameter(lambda p, dims: build.reshape(p, dims=dims), w_scale, x.rank - 1)
    factor = build.multiply(converted(build, x_scale, dtypes.f32), converted(build, w_scale, dtypes.f32))
    return requantized(build, total, factor, y_scale, y_zero_point)


def _qlinear_matmul_reference(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    a_scale, a_zero_point = (_column(np.reshape, p) for p in (a_scale, a_zero_point))
    factor = a_scale.astype(np.float32) * b_scale.astype(np.float32)
    if DType.from_numpy(a.dtype).is_float:
        total = np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
        return total * (factor / y_scale.astype(np.float32))
    total = _exact_product(_moved_array(a, a_zero_point), _moved_array(b, b_zero_point))
    return _requantized_array(total.astype(np.int32), factor, y_scale, y_zero_point)


def _qlinear_matmul(ctx, a, a_scale, a_zero_point, b, b_scale, b_zero_point, y_scale, y_zero_point):
    build = ctx.build
    a_scale = _column(lambda p, dims: build.reshape(p, dims=dims), a_scale)
    factor = build.multiply(converted(build, a_scale, dtypes.f32), converted(build, b_scale, dtypes.f32))
    if a.dtype.is_float:
        total = matmul(build, converted(build, a, dtypes.f32), converted(build, b, dtypes.f32))
        factor = build.divide(factor, converted(build, y_scale, dtypes.f32))
        return build.convert(build.multiply(total, factor), dtype=y_zero_point.dtype)
    total = integer_matmul(build, a, b, a_zero_point, b_zero_point)
    return requantized(build, total, factor, y_scale, y_zero_point)


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
    """Convolution of x - x_zero_point with w - w_zero_point in i32; padding counts as x_zero_point.

    w_zero_point is a scalar or one an output channel.  Attributes as in Conv.
    """

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
    """Conv of quantized x and w with the i32 bias b (scale x_scale * w_scale), requantized to y's scale and zero point.

    y = saturate(round_half_even(f32(sum) * (x_scale * w_scale / y_scale)) + y_zero_point), every step in f32.
    """

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
    """matmul of quantized a and b, requantized to y's scale and zero point as in QLinearConv.

    Parameters: scalars, or one a row of a / column of b.  float8: the product in f32, converted.
    """

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
