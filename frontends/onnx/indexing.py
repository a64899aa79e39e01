"""ONNX operators that pick or place elements by index: Gather, Scatter and kin, OneHot."""

from __future__ import annotations

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
