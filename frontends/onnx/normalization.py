"""ONNX normalizing operators: Softmax and kin, batch, instance, layer, group and RMS normalization, LRN."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir import dtypes
from .registry import onnx_op

SOFTMAXES = ("Softmax", "LogSoftmax", "Hardmax")


@onnx_op(*SOFTMAXES, since=13)
def softmax(ctx, x, *, axis=-1):
    return ctx.build.apply(ctx.node.op_type, x, axis=ctx.axis(axis, x))


@onnx_op(*SOFTMAXES, until=12)
def softmax_1(ctx, x, *, axis=1):
    return flat_softmax(ctx, ctx.node.op_type, x, axis)


def flat_softmax(ctx, type_, x, axis):
    """Works on x flattened to a matrix at `axis`; one node where all but one of the axes behind it have size 1."""
    at = ctx.axis(axis, x)
    long = [i for i in range(at, x.rank) if sizes.equal(x.dims[i], 1) is not True]
    if len(long) <= 1:
        return ctx.build.apply(type_, x, axis=long[0] if long else at)
    flat = ctx.build.reshape(x, dims=(*x.dims[:at], sizes.product(x.dims[at:])))
    return ctx.build.reshape(ctx.build.apply(type_, flat, axis=at), dims=x.dims)


@onnx_op("BatchNormalization", since=14)
def batch_normalization(ctx, x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, training_mode=0):
    if training_mode:
        return ctx.build.BatchNormalizationTraining(
            x, scale, bias, mean, variance, epsilon=epsilon, momentum=momentum
        )
    return (ctx.build.BatchNormalization(x, scale, bias, mean, variance, epsilon=epsilon),)


@onnx_op("BatchNormalization", since=7, until=13)
def batch_normalization_7(ctx, x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, spatial=1):
    return _old_batch_normalization(ctx, x, scale, bias, mean, variance, epsilon, spatial)


@onnx_op("BatchNormalization", until=6)
def batch_normalization_1(ctx, x, scale, bias, mean, variance, *, epsilon=1e-5, momentum=0.9, spatial=1, is_test=0):
    if not is_test:
        ctx.refuse("is_test is 0: the model is in training mode")
    return _old_batch_normalization(ctx, x, scale, bias, mean, variance, epsilon, spatial)


def _old_batch_normalization(ctx, x, scale, bias, mean, variance, epsilon, spatial):
    if not spatial:
        ctx.refuse("spatial=0 (statistics for each element) is not supported")
    if any(ctx.wants(i) for i in range(1, 5)):
        ctx.refuse("it returns running statistics: the model is in training mode")
    return (ctx.build.BatchNormalization(x, scale, bias, mean, variance, epsilon=epsilon),)


@onnx_op("InstanceNormalization")
def instance_normalization(ctx, x, scale, bias, *, epsilon=1e-5):
    return ctx.build.InstanceNormalization(x, scale, bias, epsilon=epsilon)


@onnx_op("LayerNormalization")
def layer_normalization(ctx, x, scale, bias=None, *, axis=-1, epsilon=1e-5, stash_type=1):
    _need_f32_statistics(ctx, x, stash_type)
    return ctx.build.LayerNormalization(x, scale, bias, axis=ctx.axis(axis, x), epsilon=epsilon)


@onnx_op("RMSNormalization")
def rms_normalization(ctx, x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    _need_f32_statistics(ctx, x, stash_type)
    return (ctx.build.RMSNormalization(x, scale, axis=ctx.axis(axis, x), epsilon=epsilon),)


@onnx_op("SimplifiedLayerNormalization")
def simplified_layer_normalization(ctx, x, scale, *, axis=-1, epsilon=1e-5, stash_type=1):
    """ONNX Runtime's, though in this domain.  Results: of the type of the scale; f32[.., 1], 1 / root mean square."""
    _need_f32_statistics(ctx, x, stash_type)
    b, axis = ctx.build, ctx.axis(axis, x)
    wide = x if scale.dtype.bits <= x.dtype.bits else b.convert(x, dtype=scale.dtype)
    y = b.RMSNormalization(wide, scale, axis=axis, epsilon=epsilon)
    y = y if y.dtype is scale.dtype else b.convert(y, dtype=scale.dtype)
    return y, inverse_of_rms(ctx, x, axis, epsilon) if ctx.wants(1) else None


def inverse_of_rms(ctx, x, axis, epsilon):
    """f32: 1 / sqrt(mean(x^2) + epsilon) over the axes from `axis` on, which keep size 1."""
    b = ctx.build
    wide = x if x.dtype.bits >= 32 else b.convert(x, dtype=dtypes.f32)
    mean = b.ReduceMean(b.multiply(wide, wide), axes=tuple(range(axis, x.rank)))
    inverse = b.rsqrt(b.add(mean, epsilon))
    return inverse if inverse.dtype is dtypes.f32 else b.convert(inverse, dtype=dtypes.f32)


def _need_f32_statistics(ctx, x, stash_type):
    if stash_type != 1 and (x.dtype.bits < 32 or ctx.dtype(stash_type).bits < 32):
        ctx.refuse(f"statistics in {ctx.dtype(stash_type)} (stash_type {stash_type}) are not supported")


@onnx_op("GroupNormalization", since=21)
def group_normalization(ctx, x, scale, bias, *, num_groups, epsilon=1e-5, stash_type=1):
    _need_f32_statistics(ctx, x, stash_type)
    return ctx.build.GroupNormalization(x, scale, bias, num_groups=num_groups, epsilon=epsilon)


@onnx_op("GroupNormalization", since=18, until=20)
def group_normalization_18(ctx, x, scale, bias, *, num_groups, epsilon=1e-5):
    """scale and bias have one element a group; they are repeated for its channels."""
    each = sizes.floordiv(x.dims[1], num_groups)

    def per_channel(v):
        wide = ctx.build.broadcast_in_dim(v, dims=(num_groups, each), broadcast_dimensions=(0,))
        return ctx.build.reshape(wide, dims=(x.dims[1],))

    return ctx.build.GroupNormalization(
        x, per_channel(scale), per_channel(bias), num_groups=num_groups, epsilon=epsilon
    )


@onnx_op("LpNormalization")
def lp_normalization(ctx, x, *, axis=-1, p=2):
    return ctx.build.LpNormalization(x, axis=ctx.axis(axis, x), p=p)


@onnx_op("LRN")
def lrn(ctx, x, *, size, alpha=0.0001, beta=0.75, bias=1.0):
    return ctx.build.LRN(x, size=size, alpha=alpha, beta=beta, bias=bias)


@onnx_op("MeanVarianceNormalization")
def mean_variance_normalization(ctx, x, *, axes=(0, 2, 3)):
    return ctx.build.MeanVarianceNormalization(x, axes=ctx.axes(axes, x))
