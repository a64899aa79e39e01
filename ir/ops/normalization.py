"""Normalizing operators: softmax and kin, batch, layer, group, instance, RMS normalization."""

import numpy as np

from ..facts import Fact
from ..operators import FLOAT, PURE, Operand, operator
from ..types import TensorType
from .convolution import divided
from .linalg import broadcasts_to
from .widening import statistics_type


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


@operator("Softmax", family="normalization", traits=PURE)
class Softmax:
    """exp(x - max) / sum along axis.  A row of -inf gives NaN; an empty axis gives an empty result."""

    x: Operand[FLOAT]
    axis: int = -1
    infer = _along_axis


@operator("LogSoftmax", family="normalization", traits=PURE)
class LogSoftmax:
    """x - max - log(sum(exp(x - max))) along axis."""

    x: Operand[FLOAT]
    axis: int = -1
    infer = _along_axis


@operator("Hardmax", family="normalization", traits=PURE)
class Hardmax:
    """1 at the first greatest element along axis, 0 elsewhere."""

    x: Operand[FLOAT]
    axis: int = -1
    infer = _along_axis


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


@operator("InstanceNormalization", family="normalization", traits=PURE)
class InstanceNormalization:
    """Each [n, c] plane of [N, C, spatial..] to mean 0 and variance 1, then scale[C] and bias[C]."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    epsilon: float = 1e-5
    infer = _instance_type


@operator("LayerNormalization", family="normalization", traits=PURE)
class LayerNormalization:
    """Axes from `axis` on to mean 0 and variance 1, then scale and bias (which broadcast).  Statistics in f32 (f64 for f64).

    (y, mean, inverse standard deviation), the latter two with size-1 axes.
    """

    x: Operand[FLOAT]
    scale: Operand[FLOAT] | None = None
    bias: Operand[FLOAT] | None = None
    axis: int = -1
    epsilon: float = 1e-5
    infer = _layer_type


@operator("GroupNormalization", family="normalization", traits=PURE)
class GroupNormalization:
    """Channels of [N, C, ..] in groups, each to mean 0 and variance 1, then scale[C] and bias[C].  Statistics in f32 (f64 for f64)."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    num_groups: int
    epsilon: float = 1e-5
    infer = _group_type


@operator("RMSNormalization", family="normalization", traits=PURE)
class RMSNormalization:
    """x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on.  Statistics in f32 (f64 for f64)."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    axis: int = -1
    epsilon: float = 1e-5
    infer = _rms_type


@operator("LpNormalization", family="normalization", traits=PURE)
class LpNormalization:
    """x divided by its p-norm (1 or 2) along axis; 0 where the norm is 0."""

    x: Operand[FLOAT]
    axis: int = -1
    p: int = 2
    infer = _lp_type


@operator("LRN", family="normalization", traits=PURE)
class LRN:
    """Local response normalization across channels of [N, C, ..], as ONNX has it."""

    x: Operand[FLOAT]
    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    bias: float = 1.0
    infer = _lrn_type


@operator("MeanVarianceNormalization", family="normalization", traits=PURE)
class MeanVarianceNormalization:
    """(x - mean) / (standard deviation + 1e-9) over axes."""

    x: Operand[FLOAT]
    axes: tuple[int, ...] = (0, 2, 3)
    infer = _mean_variance_type
