"""Normalizing operators: softmax and kin, batch, layer, group, instance, RMS normalization."""

import numpy as np

from .. import dtypes
from ..dims import equal
from ..facts import Fact
from ..operators import FLOAT, PURE, Operand, operator
from ..types import TensorType
from . import bucketing, capacities, sliding
from .convolution import divided, per_channel
from .linalg import broadcasts_to
from .reduction import reduced
from .widening import converted, statistics_type, wide_array, widened


def _along_axis(ctx, x, *, axis):
    ctx.axis(axis, x.rank)
    return x.with_dims(x.dims)


def _check_channels(ctx, x, *vectors) -> None:
    ctx.need(x.rank >= 2, f"x must be [N, C, ..], got {x.type}")
    for vector in vectors:
        ctx.need(vector.rank == 1, f"parameters must be vectors of C elements, got {vector.type}")
        ctx.equal(vector.dims[0], x.dims[1], "channels of x and of a parameter")


def _batch_type(ctx, x, scale, bias, mean, variance, *, epsilon):
    _check_channels(ctx, x, scale, bias, mean, variance)
    return x.with_dims(x.dims)


def _instance_type(ctx, x, scale, bias, *, epsilon):
    _check_channels(ctx, x, scale, bias)
    return x.with_dims(x.dims)


def _layer_type(ctx, x, scale, bias, *, axis, epsilon):
    axis = ctx.axis(axis, x.rank)
    for what, value in (("scale", scale), ("bias", bias)):
        if value is not None:
            broadcasts_to(ctx, value, x.dims, what)
    statistic = Fact(TensorType(statistics_type(x.dtype), (*x.dims[:axis], *(1 for _ in x.dims[axis:]))))
    return x.with_dims(x.dims), statistic, statistic


def _group_type(ctx, x, scale, bias, *, num_groups, epsilon):
    _check_channels(ctx, x, scale, bias)
    ctx.need(num_groups >= 1, f"num_groups must be at least 1, got {num_groups}")
    divided(ctx, x.dims[1], num_groups, "channels")
    return x.with_dims(x.dims)


def _rms_type(ctx, x, scale, *, axis, epsilon):
    ctx.axis(axis, x.rank)
    broadcasts_to(ctx, scale, x.dims, "scale")
    return x.with_dims(x.dims)


def _lp_type(ctx, x, *, axis, p):
    ctx.need(p in (1, 2), f"p must be 1 or 2, got {p}")
    ctx.axis(axis, x.rank)
    return x.with_dims(x.dims)


def _lrn_type(ctx, x, *, size, alpha, beta, bias):
    ctx.need(x.rank >= 2 and size >= 1, f"x must be [N, C, ..] and size at least 1, got {x.type} and {size}")
    return x.with_dims(x.dims)


def _mean_variance_type(ctx, x, *, axes):
    ctx.axes(axes, x.rank)
    return x.with_dims(x.dims)


def _softmax_reference(ctx, x, *, axis):
    wide = wide_array(x)
    if not wide.size:
        return wide
    powers = np.exp(wide - np.max(wide, axis=axis, keepdims=True))
    return powers / np.sum(powers, axis=axis, keepdims=True)


def _shifted(b, x, axis: int):
    """x less its maximum along axis, in the wide type."""
    wide = widened(b, x)
    return b.subtract(wide, reduced(b, wide, (axis,), True, "max"))


def _softmax(ctx, x, *, axis):
    b = ctx.build
    powers = b.exponential(_shifted(b, x, axis))
    return converted(b, b.divide(powers, reduced(b, powers, (axis,), True, "sum")), x.dtype)


def _log_softmax_reference(ctx, x, *, axis):
    wide = wide_array(x)
    if not wide.size:
        return wide
    shifted = wide - np.max(wide, axis=axis, keepdims=True)
    return shifted - np.log(np.sum(np.exp(shifted), axis=axis, keepdims=True))


def _log_softmax(ctx, x, *, axis):
    b = ctx.build
    shifted = _shifted(b, x, axis)
    total = reduced(b, b.exponential(shifted), (axis,), True, "sum")
    return converted(b, b.subtract(shifted, b.log(total)), x.dtype)


def _hardmax_reference(ctx, x, *, axis):
    wide = wide_array(x)
    places = np.arange(x.shape[axis]).reshape(-1, *[1] * (x.ndim - axis % x.ndim - 1))
    return places == np.argmax(wide, axis=axis, keepdims=True) if wide.size else wide


def _hardmax(ctx, x, *, axis):
    b = ctx.build
    axis %= x.rank
    if equal(x.dims[axis], 0) is True:
        return x
    places = b.iota(dtype=dtypes.i64, dims=tuple(d if i == axis else 1 for i, d in enumerate(x.dims)), axis=axis)
    return b.convert(b.compare(places, b.ArgMax(x, axis=axis), direction="eq"), dtype=x.dtype)


def _channels(x: np.ndarray, rank: int) -> np.ndarray:
    return wide_array(x).reshape(-1, *[1] * (rank - 2))


def _batch_reference(ctx, x, scale, bias, mean, variance, *, epsilon):
    scale, bias, mean, variance = (_channels(v, x.ndim) for v in (scale, bias, mean, variance))
    return (wide_array(x) - mean) / np.sqrt(variance + epsilon) * scale + bias


def _batch(ctx, x, scale, bias, mean, variance, *, epsilon):
    b, wide = ctx.build, statistics_type(x.dtype)
    scale, bias, mean, variance = (per_channel(b, converted(b, v, wide), x.rank) for v in (scale, bias, mean, variance))
    factor = b.multiply(scale, b.rsqrt(b.add(variance, epsilon)))
    y = b.add(b.multiply(b.subtract(converted(b, x, wide), mean), factor), bias)
    return converted(b, y, x.dtype)


def _standard_array(x: np.ndarray, axes: tuple[int, ...], epsilon: float):
    """(x to mean 0 and variance 1 along axes, mean, inverse standard deviation), axes kept."""
    mean = np.mean(x, axis=axes, keepdims=True)
    inverse = 1 / np.sqrt(np.mean((x - mean) ** 2, axis=axes, keepdims=True) + epsilon)
    return (x - mean) * inverse, mean, inverse


def _standard(b, x, axes: tuple[int, ...], epsilon: float):
    """As `_standard_array`, for a value already in the type of the statistics."""
    mean = b.ReduceMean(x, axes=axes)
    distance = b.subtract(x, mean)
    inverse = b.rsqrt(b.add(b.ReduceMean(b.multiply(distance, distance), axes=axes), epsilon))
    return b.multiply(distance, inverse), mean, inverse


def _instance_reference(ctx, x, scale, bias, *, epsilon):
    y, _, _ = _standard_array(wide_array(x), tuple(range(2, x.ndim)), epsilon)
    return y * _channels(scale, x.ndim) + _channels(bias, x.ndim)


def _scaled(b, y, scale, bias, rank: int):
    """y times scale plus bias along axis 1, in y's type."""
    scale, bias = (per_channel(b, converted(b, v, y.dtype), rank) for v in (scale, bias))
    return b.add(b.multiply(y, scale), bias)


def _instance(ctx, x, scale, bias, *, epsilon):
    b = ctx.build
    y, _, _ = _standard(b, converted(b, x, statistics_type(x.dtype)), tuple(range(2, x.rank)), epsilon)
    return converted(b, _scaled(b, y, scale, bias, x.rank), x.dtype)


def _layer_reference(ctx, x, scale, bias, *, axis, epsilon):
    y, mean, inverse = _standard_array(wide_array(x), tuple(range(axis % x.ndim, x.ndim)), epsilon)
    y = y if scale is None else y * wide_array(scale)
    return y if bias is None else y + wide_array(bias), mean, inverse


def _layer(ctx, x, scale, bias, *, axis, epsilon):
    b, wide = ctx.build, statistics_type(x.dtype)
    y, mean, inverse = _standard(b, converted(b, x, wide), tuple(range(axis % x.rank, x.rank)), epsilon)
    y = y if scale is None else b.multiply(y, converted(b, scale, wide))
    y = y if bias is None else b.add(y, converted(b, bias, wide))
    return converted(b, y, x.dtype), mean, inverse


def _group_reference(ctx, x, scale, bias, *, num_groups, epsilon):
    channels = x.shape[1] // num_groups
    grouped = wide_array(x).reshape(x.shape[0], num_groups, channels, *x.shape[2:])
    y, _, _ = _standard_array(grouped, tuple(range(2, grouped.ndim)), epsilon)
    return y.reshape(x.shape) * _channels(scale, x.ndim) + _channels(bias, x.ndim)


def _group(ctx, x, scale, bias, *, num_groups, epsilon):
    b = ctx.build
    dims = (x.dims[0], num_groups, x.dims[1] // num_groups, *x.dims[2:])
    wide = b.reshape(converted(b, x, statistics_type(x.dtype)), dims=dims)
    y, _, _ = _standard(b, wide, tuple(range(2, x.rank + 1)), epsilon)
    return converted(b, _scaled(b, b.reshape(y, dims=x.dims), scale, bias, x.rank), x.dtype)


def _rms_reference(ctx, x, scale, *, axis, epsilon):
    wide = wide_array(x)
    mean = np.mean(wide**2, axis=tuple(range(axis % x.ndim, x.ndim)), keepdims=True)
    return wide / np.sqrt(mean + epsilon) * wide_array(scale)


def _rms(ctx, x, scale, *, axis, epsilon):
    b, kind = ctx.build, statistics_type(x.dtype)
    wide = converted(b, x, kind)
    mean = b.ReduceMean(b.multiply(wide, wide), axes=tuple(range(axis % x.rank, x.rank)))
    y = b.multiply(wide, b.rsqrt(b.add(mean, epsilon)))
    return converted(b, b.multiply(y, converted(b, scale, kind)), x.dtype)


def _lp_reference(ctx, x, *, axis, p):
    wide = wide_array(x)
    norm = np.sum(np.abs(wide) ** p, axis=axis, keepdims=True) ** (1 / p)
    return np.where(norm == 0, 0, wide / norm)


def _lp(ctx, x, *, axis, p):
    b = ctx.build
    wide = widened(b, x)
    norm = b.ReduceL1(wide, axes=(axis,)) if p == 1 else b.ReduceL2(wide, axes=(axis,))
    zero = b.constant(0, wide.dtype)
    return converted(b, b.select(b.compare(norm, zero, direction="eq"), zero, b.divide(wide, norm)), x.dtype)


def _lrn_reference(ctx, x, *, size, alpha, beta, bias):
    wide = wide_array(x)
    ends = [(0, 0)] * x.ndim
    ends[1] = ((size - 1) // 2, size // 2)
    total = sliding.along_axis(np.add, sliding.pad(wide**2, ends, 0), 1, x.shape[1], size, 1, 1, 0)
    return wide / (bias + alpha / size * total) ** beta


def _lrn(ctx, x, *, size, alpha, beta, bias):
    b = ctx.build
    wide = widened(b, x)
    ones, none = (1,) * x.rank, ((0, 0),)
    total = b.reduce_window(
        b.multiply(wide, wide), kind="sum", window_dimensions=(1, size, *ones[2:]), window_strides=ones,
        padding=(*none, ((size - 1) // 2, size // 2), *none * (x.rank - 2)), base_dilations=ones, window_dilations=ones,
    )  # fmt: skip
    divisor = b.power(b.add(b.multiply(total, alpha / size), bias), beta)
    return converted(b, b.divide(wide, divisor), x.dtype)


def _mean_variance_reference(ctx, x, *, axes):
    wide = wide_array(x)
    distance = wide - np.mean(wide, axis=axes, keepdims=True)
    return distance / (np.sqrt(np.mean(distance**2, axis=axes, keepdims=True)) + 1e-9)


def _mean_variance(ctx, x, *, axes):
    b = ctx.build
    wide = widened(b, x)
    distance = b.subtract(wide, b.ReduceMean(wide, axes=axes))
    deviation = b.sqrt(b.ReduceMean(b.multiply(distance, distance), axes=axes))
    return converted(b, b.divide(distance, b.add(deviation, 1e-9)), x.dtype)


@operator("Softmax", family="normalization", traits=PURE)
class Softmax:
    """exp(x - max) / sum along axis.  A row of -inf gives NaN; an empty axis gives an empty result."""

    x: Operand[FLOAT]
    axis: int = -1
    infer = _along_axis
    reference = _softmax_reference
    decompose = _softmax
    bucket = bucketing.softmax


@operator("LogSoftmax", family="normalization", traits=PURE)
class LogSoftmax:
    """x - max - log(sum(exp(x - max))) along axis."""

    x: Operand[FLOAT]
    axis: int = -1
    infer = _along_axis
    reference = _log_softmax_reference
    decompose = _log_softmax
    bucket = bucketing.softmax


@operator("Hardmax", family="normalization", traits=PURE)
class Hardmax:
    """1 at the first greatest element along axis, 0 elsewhere."""

    x: Operand[FLOAT]
    axis: int = -1
    infer = _along_axis
    reference = _hardmax_reference
    decompose = _hardmax
    bucket = capacities.hardmax


@operator("BatchNormalization", family="normalization", traits=PURE)
class BatchNormalization:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias along axis 1 of [N, C, ..] (inference form)."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    mean: Operand[FLOAT]
    variance: Operand[FLOAT]
    epsilon: float = 1e-5
    infer = _batch_type
    reference = _batch_reference
    decompose = _batch
    bucket = bucketing.keep


@operator("InstanceNormalization", family="normalization", traits=PURE)
class InstanceNormalization:
    """Each [n, c] plane of [N, C, spatial..] to mean 0 and variance 1, then scale[C] and bias[C]."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    epsilon: float = 1e-5
    infer = _instance_type
    reference = _instance_reference
    decompose = _instance
    bucket = capacities.closed_from(2)


@operator("LayerNormalization", family="normalization", traits=PURE)
class LayerNormalization:
    """Axes from `axis` on to mean 0 and variance 1, then scale and bias (which broadcast).

    Statistics in f32 (f64 for f64).  (y, mean, inverse standard deviation), the latter two with size-1 axes.
    """

    x: Operand[FLOAT]
    scale: Operand[FLOAT] | None = None
    bias: Operand[FLOAT] | None = None
    axis: int = -1
    epsilon: float = 1e-5
    infer = _layer_type
    reference = _layer_reference
    decompose = _layer
    bucket = capacities.closed_from("axis")


@operator("GroupNormalization", family="normalization", traits=PURE)
class GroupNormalization:
    """Channels of [N, C, ..] in groups, each to mean 0 and variance 1, then scale[C] and bias[C].

    Statistics in f32 (f64 for f64).
    """

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    num_groups: int
    epsilon: float = 1e-5
    infer = _group_type
    reference = _group_reference
    decompose = _group
    bucket = capacities.closed_from(1)


@operator("RMSNormalization", family="normalization", traits=PURE)
class RMSNormalization:
    """x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on.  Statistics in f32 (f64 for f64)."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    axis: int = -1
    epsilon: float = 1e-5
    infer = _rms_type
    reference = _rms_reference
    decompose = _rms
    bucket = capacities.closed_from("axis")


@operator("LpNormalization", family="normalization", traits=PURE)
class LpNormalization:
    """x divided by its p-norm (1 or 2) along axis; 0 where the norm is 0."""

    x: Operand[FLOAT]
    axis: int = -1
    p: int = 2
    infer = _lp_type
    reference = _lp_reference
    decompose = _lp
    bucket = capacities.zeros_along


@operator("LRN", family="normalization", traits=PURE)
class LRN:
    """Local response normalization across channels of [N, C, ..], as ONNX has it."""

    x: Operand[FLOAT]
    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    bias: float = 1.0
    infer = _lrn_type
    reference = _lrn_reference
    decompose = _lrn
    bucket = capacities.neighbours


@operator("MeanVarianceNormalization", family="normalization", traits=PURE)
class MeanVarianceNormalization:
    """(x - mean) / (standard deviation + 1e-9) over axes."""

    x: Operand[FLOAT]
    axes: tuple[int, ...] = (0, 2, 3)
    infer = _mean_variance_type
    reference = _mean_variance_reference
    decompose = _mean_variance
    bucket = capacities.exact_axes
