"""ONNX reductions along axes, ArgMax and ArgMin, cumulative sums and products."""

from __future__ import annotations

from .registry import onnx_op

REDUCTIONS = (
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd",
    "ReduceSumSquare",
)  # fmt: skip
"""Their axes are an attribute before operator set 18, an input from there on; ReduceSum changed at 13."""


@onnx_op(*REDUCTIONS, until=17)
@onnx_op("ReduceSum", until=12)
def reduce_1(ctx, x, *, axes=None, keepdims=1):
    return _reduce(ctx, x, axes or None, keepdims)


@onnx_op(*REDUCTIONS, since=18)
@onnx_op("ReduceSum", since=13)
def reduce(ctx, x, axes=None, *, keepdims=1, noop_with_empty_axes=0):
    given = None if axes is None else ctx.numbers(axes, "axes") or None
    if given is None and noop_with_empty_axes:
        given = ()
    return _reduce(ctx, x, given, keepdims)


def _reduce(ctx, x, axes, keepdims):
    """Reduce along axes; None means all of them."""
    over = tuple(range(x.rank)) if axes is None else tuple(sorted(ctx.axes(axes, x)))
    return ctx.build.apply(ctx.node.op_type, x, axes=over, keepdims=bool(keepdims))


@onnx_op("ArgMax", "ArgMin")
def arg(ctx, x, *, axis=0, keepdims=1, select_last_index=0):
    return ctx.build.apply(
        ctx.node.op_type, x, axis=ctx.axis(axis, x), keepdims=bool(keepdims), select_last_index=bool(select_last_index)
    )


@onnx_op("CumSum", "CumProd")
def cumulate(ctx, x, axis, *, exclusive=0, reverse=0):
    at = ctx.axis(ctx.number(axis, "the axis"), x)
    return ctx.build.apply(ctx.node.op_type, x, axis=at, exclusive=bool(exclusive), reverse=bool(reverse))
