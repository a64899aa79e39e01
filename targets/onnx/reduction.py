"""ONNX lowering of reductions, ArgMax/ArgMin and cumulative sums."""

from __future__ import annotations

from ...ir import dtypes
from .lowering import lower

CORE = {"sum": "ReduceSum", "prod": "ReduceProd", "max": "ReduceMax", "min": "ReduceMin"}
COMPOSITES = (
    "ReduceSum",
    "ReduceMean",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceSumSquare",
)


OF_ONE = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
"""What is the element itself for a single element."""


def _claim(kind):
    def claim(ctx, x, *, axes, keepdims):
        if not ctx.dialect.runtime:
            return None
        if not axes and kind not in OF_ONE:
            return "ONNX Runtime returns the elements themselves where no axis is reduced"
        if kind == "ReduceMean" and any(x.dims[a] == 0 for a in axes):
            return "ONNX Runtime gives 0, not NaN, for the mean of nothing"
        if x.dtype.is_bool and any(x.dims[a] == 0 for a in axes):
            return "ONNX Runtime reduces no bools where there are none"
        if kind in ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp") and x.dtype.is_integer:
            return f"ONNX Runtime converts the result to {x.dtype} without saturation"
        return None

    return claim


def _reduce(ctx, kind, x, axes, keepdims):
    if not axes and kind in OF_ONE:
        return ctx.op("Identity", x)
    if not axes:
        return ctx.op(kind, x, ctx.constant([], dtypes.i64), keepdims=1, noop_with_empty_axes=1)
    return ctx.op(kind, x, ctx.constant(list(axes), dtypes.i64), keepdims=int(keepdims))


def _known_kind(ctx, xs, *, axes, kind, body):
    if kind in CORE and not xs[0].dtype.is_bool:
        return None
    if xs[0].dtype.is_bool and kind in ("and", "or", "min", "max"):
        return None
    return f"ONNX has no reduction of kind {kind} for {xs[0].dtype}"


@lower("reduce", when=_known_kind)
def reduce(ctx, xs, *, axes, kind, body):
    (x,) = xs
    if not x.dtype.is_bool:
        return _reduce(ctx, CORE[kind], x, axes, False)
    number = ctx.cast(x, dtypes.u8)
    out = ctx.op(
        "ReduceMin" if kind in ("and", "min") else "ReduceMax",
        number,
        ctx.constant(list(axes), dtypes.i64),
        type=ctx.results[0].with_dtype(dtypes.u8),
        keepdims=0,
    )
    return ctx.cast(out, dtypes.bool_)


for _name in COMPOSITES:
    lower(_name, when=_claim(_name))(
        (lambda kind: lambda ctx, x, *, axes, keepdims: _reduce(ctx, kind, x, axes, keepdims))(_name)
    )


@lower("ArgMax")
def arg_max(ctx, x, *, axis, keepdims, select_last_index):
    return _arg(ctx, "ArgMax", x, axis, keepdims, select_last_index)


@lower("ArgMin")
def arg_min(ctx, x, *, axis, keepdims, select_last_index):
    return _arg(ctx, "ArgMin", x, axis, keepdims, select_last_index)


def _arg(ctx, kind, x, axis, keepdims, select_last_index):
    """NaN, which ONNX Runtime may pass over, is found first: a True among the NaN flags wins if there is one."""
    attributes = {"axis": axis, "keepdims": int(keepdims), "select_last_index": int(select_last_index)}
    plain = ctx.op(kind, x, **attributes)
    if not x.dtype.is_float:
        return plain
    flags = ctx.cast(ctx.op("IsNaN", x, type=x.tensor.with_dtype(dtypes.bool_)), dtypes.i32)
    where = ctx.op("ArgMax", flags, **attributes)
    found = ctx.op(
        "ReduceMax",
        flags,
        ctx.constant([axis], dtypes.i64),
        type=ctx.results[0].with_dtype(dtypes.i32),
        keepdims=int(keepdims),
    )
    return ctx.op("Where", ctx.cast(found, dtypes.bool_), where, plain)


@lower("CumSum")
def cum_sum(ctx, x, *, axis, exclusive, reverse):
    return ctx.op("CumSum", x, ctx.constant(axis, dtypes.i64), exclusive=int(exclusive), reverse=int(reverse))
