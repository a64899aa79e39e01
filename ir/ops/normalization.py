"""Normalizing operators: softmax and kin, batch, layer, group, instance, RMS normalization."""

import numpy as np

from ..operators import FLOAT, PURE, Operand, operator


@operator("Softmax", family="normalization", traits=PURE)
class Softmax:
    """exp(x - max) / sum along axis.  A row of -inf gives NaN; an empty axis gives an empty result."""

    x: Operand[FLOAT]
    axis: int = -1


@operator("LogSoftmax", family="normalization", traits=PURE)
class LogSoftmax:
    """x - max - log(sum(exp(x - max))) along axis."""

    x: Operand[FLOAT]
    axis: int = -1


@operator("Hardmax", family="normalization", traits=PURE)
class Hardmax:
    """1 at the first greatest element along axis, 0 elsewhere."""

    x: Operand[FLOAT]
    axis: int = -1


@operator("BatchNormalization", family="normalization", traits=PURE)
class BatchNormalization:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias along axis 1 of [N, C, ..] (inference form)."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    mean: Operand[FLOAT]
    variance: Operand[FLOAT]
    epsilon: float = 1e-5


@operator("InstanceNormalization", family="normalization", traits=PURE)
class InstanceNormalization:
    """Each [n, c] plane of [N, C, spatial..] to mean 0 and variance 1, then scale[C] and bias[C]."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    epsilon: float = 1e-5


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


@operator("GroupNormalization", family="normalization", traits=PURE)
class GroupNormalization:
    """Channels of [N, C, ..] in groups, each to mean 0 and variance 1, then scale[C] and bias[C].  Statistics in f32 (f64 for f64)."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    num_groups: int
    epsilon: float = 1e-5


@operator("RMSNormalization", family="normalization", traits=PURE)
class RMSNormalization:
    """x / sqrt(mean(x^2) + epsilon) * scale over the axes from `axis` on.  Statistics in f32 (f64 for f64)."""

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    axis: int = -1
    epsilon: float = 1e-5


@operator("LpNormalization", family="normalization", traits=PURE)
class LpNormalization:
    """x divided by its p-norm (1 or 2) along axis; 0 where the norm is 0."""

    x: Operand[FLOAT]
    axis: int = -1
    p: int = 2


@operator("LRN", family="normalization", traits=PURE)
class LRN:
    """Local response normalization across channels of [N, C, ..], as ONNX has it."""

    x: Operand[FLOAT]
    size: int
    alpha: float = 0.0001
    beta: float = 0.75
    bias: float = 1.0


@operator("MeanVarianceNormalization", family="normalization", traits=PURE)
class MeanVarianceNormalization:
    """(x - mean) / (standard deviation + 1e-9) over axes."""

    x: Operand[FLOAT]
    axes: tuple[int, ...] = (0, 2, 3)
