"""ONNX lowering of normalizing operators."""

from __future__ import annotations

from .lowering import lower


@lower("Softmax")
def softmax(ctx, x, *, axis):
    return ctx.op("Softmax", x, axis=axis)


@lower("LogSoftmax")
def log_softmax(ctx, x, *, axis):
    return ctx.op("LogSoftmax", x, axis=axis)


@lower("Hardmax")
def hardmax(ctx, x, *, axis):
    return ctx.op("Hardmax", x, axis=axis)


@lower("BatchNormalization")
def batch_normalization(ctx, x, scale, bias, mean, variance, *, epsilon):
    return ctx.op("BatchNormalization", x, scale, bias, mean, variance, epsilon=epsilon)


@lower("InstanceNormalization")
def instance_normalization(ctx, x, scale, bias, *, epsilon):
    return ctx.op("InstanceNormalization", x, scale, bias, epsilon=epsilon)


def _has_scale(ctx, x, scale, bias, *, axis, epsilon):
    return "ONNX's LayerNormalization needs a scale" if scale is None else None


@lower("LayerNormalization", when=_has_scale)
def layer_normalization(ctx, x, scale, bias, *, axis, epsilon):
    return ctx.ops("LayerNormalization", x, scale, bias, axis=axis, epsilon=epsilon)


@lower("GroupNormalization")
def group_normalization(ctx, x, scale, bias, *, num_groups, epsilon):
    return ctx.op("GroupNormalization", x, scale, bias, num_groups=num_groups, epsilon=epsilon)


@lower("LpNormalization")
def lp_normalization(ctx, x, *, axis, p):
    return ctx.op("LpNormalization", x, axis=axis, p=p)


@lower("LRN")
def lrn(ctx, x, *, size, alpha, beta, bias):
    return ctx.op("LRN", x, size=size, alpha=alpha, beta=beta, bias=bias)


@lower("MeanVarianceNormalization")
def mean_variance_normalization(ctx, x, *, axes):
    return ctx.op("MeanVarianceNormalization", x, axes=axes)
