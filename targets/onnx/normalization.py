"""ONNX lowering of normalizing operators."""

from __future__ import annotations

from ...ir import dtypes
from ...ir.ops.widening import statistics_type
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


def _instance_claim(ctx, x, scale, bias, *, epsilon):
    if ctx.dialect.runtime and x.rank < 3:
        return "ONNX Runtime normalizes no instance without a spatial axis"
    return _one_type(x, scale, bias)


@lower("InstanceNormalization", when=_instance_claim)
def instance_normalization(ctx, x, scale, bias, *, epsilon):
    return ctx.op("InstanceNormalization", x, scale, bias, epsilon=epsilon)


def _one_type(x, *parameters):
    """Why not: ONNX's kernels take parameters of the type of x only."""
    other = next((p for p in parameters if p is not None and p.dtype is not x.dtype), None)
    return None if other is None else f"x is {x.dtype} and a parameter {other.dtype}; ONNX wants one type"


def _layer_claim(ctx, x, scale, bias, *, axis, epsilon):
    if ctx.dialect.runtime and 0 in x.dims:
        return "ONNX Runtime gives 0, not NaN, for the mean of nothing"
    return "ONNX's LayerNormalization needs a scale" if scale is None else _one_type(x, scale, bias)


@lower("LayerNormalization", when=_layer_claim)
def layer_normalization(ctx, x, scale, bias, *, axis, epsilon):
    return ctx.ops("LayerNormalization", x, scale, bias, axis=axis, epsilon=epsilon)


@lower("GroupNormalization", when=lambda ctx, x, scale, bias, *, num_groups, epsilon: _one_type(x, scale, bias))
def group_normalization(ctx, x, scale, bias, *, num_groups, epsilon):
    return ctx.op("GroupNormalization", x, scale, bias, num_groups=num_groups, epsilon=epsilon)


def _rms_claim(ctx, x, scale, *, axis, epsilon):
    if ctx.dialect.opset < 23:
        return f"opset {ctx.dialect.opset} has no RMSNormalization"
    if ctx.dialect.runtime and x.dtype is dtypes.bf16:
        return "ONNX Runtime has no bf16 kernel for it"
    return _one_type(x, scale)


@lower("RMSNormalization", when=_rms_claim)
def rms_normalization(ctx, x, scale, *, axis, epsilon):
    return ctx.op("RMSNormalization", x, scale, axis=axis, epsilon=epsilon, stash_type=statistics_type(x.dtype).onnx)


@lower("LpNormalization")
def lp_normalization(ctx, x, *, axis, p):
    return ctx.op("LpNormalization", x, axis=axis, p=p)


def _lrn_claim(ctx, x, *, size, beta, **_):
    odd = ctx.dialect.runtime and (x.rank != 4 or size % 2 == 0 or beta <= 0)
    return "ONNX Runtime's LRN takes values of rank 4, an odd size and a positive beta" if odd else None


@lower("LRN", when=_lrn_claim)
def lrn(ctx, x, *, size, alpha, beta, bias):
    return ctx.op("LRN", x, size=size, alpha=alpha, beta=beta, bias=bias)


def _varies(ctx, x, **_):
    return "ONNX Runtime divides by 0 where all elements are equal" if ctx.dialect.runtime else None


@lower("MeanVarianceNormalization", when=_varies)
def mean_variance_normalization(ctx, x, *, axes):
    return ctx.op("MeanVarianceNormalization", x, axes=axes)


