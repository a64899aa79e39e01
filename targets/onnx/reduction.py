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


def _reduce(ctx, kind, x, axes, keepdims):
    if not axes:
        return (
            ctx.op("Identity", x)
            if kind in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd")
            else ctx.op(kind, x, ctx.constant([], dtypes.i64), keepdims=1, noop_with_empty_axes=1)
        )
    return ctx.op(kind, x, ctx.constant(list(axes), dtypes.i64), keepdims=int(keepdims))


def _known_kind(ctx, xs, *, axes, kind, body):
    if kind in CORE and not xs[0].dtype.is_bool:
        return None
    if kind in ("and", "or") and xs[0].dtype.is_bool:
        return None
    return f"ONNX has no reduction of kind {kind} for {xs[0].dtype}"


@lower("reduce", when=_known_kind)
def reduce(ctx, xs, *, axes, kind, body):
    (x,) = xs
    if kind in CORE:
        return _reduce(ctx, CORE[kind], x, axes, False)
    number = ctx.cast(x, dtypes.u8)
    out = ctx.op(
        "ReduceMin" if kind == "and" else "ReduceMax",
        number,
        ctx.constant(list(axes), dtypes.i64),
        type=ctx.results[0].with_dtype(dtypes.u8),
        keepdims=0,
    )
    return ctx.cast(out, dtypes.bool_)


for _name in COMPOSITES:
    lower(_name)((lambda kind: lambda ctx, x, *, axes, keepdims: _reduce(ctx, kind, x, axes, keepdims))(_name))


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
