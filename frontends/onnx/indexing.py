"""ONNX operators that pick or place elements by index: Gather, Scatter and kin, OneHot."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir.dtypes import i64
from .registry import onnx_op

REDUCTIONS = {"none": "replace", "add": "sum", "mul": "prod", "max": "max", "min": "min"}


@onnx_op("Gather")
def gather(ctx, data, indices, *, axis=0):
    return ctx.build.take(data, indices, axis=ctx.axis(axis, data))


@onnx_op("GatherElements")
def gather_elements(ctx, data, indices, *, axis=0):
    return ctx.build.take_along_axis(data, indices, axis=ctx.axis(axis, data))


@onnx_op("GatherND")
def gather_nd(ctx, data, indices, *, batch_dims=0):
    return ctx.build.GatherND(data, indices, batch_dims=batch_dims)


@onnx_op("ScatterElements")
def scatter_elements(ctx, data, indices, updates, *, axis=0, reduction="none"):
    return ctx.build.put_along_axis(data, indices, updates, axis=ctx.axis(axis, data), kind=kind(ctx, reduction))


@onnx_op("Scatter", since=9, until=10)
def scatter(ctx, data, indices, updates, *, axis=0):
    return ctx.build.put_along_axis(data, indices, updates, axis=ctx.axis(axis, data))


@onnx_op("ScatterND")
def scatter_nd(ctx, data, indices, updates, *, reduction="none"):
    return ctx.build.ScatterND(data, indices, updates, kind=kind(ctx, reduction))


def kind(ctx, reduction):
    """Our name for an ONNX reduction."""
    if reduction not in REDUCTIONS:
        ctx.fail(f"reduction must be one of {', '.join(REDUCTIONS)}, got {reduction!r}")
    return REDUCTIONS[reduction]


@onnx_op("OneHot")
def one_hot(ctx, indices, depth, values, *, axis=-1):
    if depth.dtype.is_integer:
        size = ctx.size(depth, "the depth")
    else:
        size = int(ctx.floats(depth, "the depth")[0])
    return ctx.build.OneHot(indices, values, depth=size, axis=ctx.axis(axis, indices, extra=1))


def counted(ctx, count):
    """A new dim that is the value of a scalar."""
    name = ctx.fresh_dim("n")
    ctx.build.bind_dim(ctx.build.convert(count, dtype=i64), dim=name)
    return sizes.symbol(name)


def non_zeros(ctx, x):
    """i64[rank, n]: indices of what is not zero, and the dim n."""
    b = ctx.build
    chosen = x if x.dtype.is_bool else b.compare(x, b.constant(0, x.dtype), direction="ne")
    count = counted(ctx, b.reduce(b.convert(chosen, dtype=i64), axes=tuple(range(x.rank)), kind="sum"))
    return b.NonZero(x, count=count), count


@onnx_op("NonZero")
def non_zero(ctx, x):
    return non_zeros(ctx, x)[0]


@onnx_op("Compress")
def compress(ctx, x, condition, *, axis=None):
    b = ctx.build
    if axis is None:
        x, at = b.reshape(x, dims=(x.tensor.size,)), 0
    else:
        at = ctx.axis(axis, x)
    places, count = non_zeros(ctx, condition)
    return b.take(x, b.reshape(places, dims=(count,)), axis=at)


@onnx_op("Unique")
def unique(ctx, x, *, axis=None, sorted=1):
    at = None if axis is None else ctx.axis(axis, x)
    count = counted(ctx, ctx.build.UniqueCount(x, axis=at))
    return ctx.build.Unique(x, count=count, axis=at, sorted=bool(sorted))


@onnx_op("ReverseSequence")
def reverse_sequence(ctx, x, lengths, *, time_axis=0, batch_axis=1):
    return ctx.build.ReverseSequence(x, lengths, time_axis=time_axis, batch_axis=batch_axis)


@onnx_op("TensorScatter")
def tensor_scatter(ctx, cache, update, starts=None, *, axis=-2, mode="linear"):
    return ctx.build.TensorScatter(cache, update, starts, axis=ctx.axis(axis, cache), circular=mode == "circular")
