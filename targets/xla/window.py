"""Reductions over sliding windows and their transpose."""

import numpy as np

from . import types
from .indexing import combine
from .lowering import lower
from .mlir import hlo, ir
from .reduction import accumulated


def _padding(padding):
    return ir.DenseIntElementsAttr.get(np.array(padding, np.int64).reshape(-1, 2))


def _numbers(values):
    return ir.DenseI64ArrayAttr.get(list(values))


@lower("reduce_window")
def reduce_window(ctx, xs, *, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations, body):
    results = ctx.result_types
    if kind == "custom":
        count = len(xs) // 2
        inputs, inits = list(xs[:count]), list(xs[count:])
    else:
        wide, init = accumulated(ctx, xs[0], kind)
        inputs, inits = [wide], [init]
    if not inputs[0].rank:
        return xs[0] if kind != "custom" else ctx.refuse("a custom window on a scalar")
    if 0 in results[0][1]:
        return tuple(ctx.full(0, *r) for r in results)
    operation = hlo.ReduceWindowOp(
        [types.tensor(x.dtype, dims) for x, (_, dims) in zip(inputs, results, strict=True)],
        [x.value for x in inputs],
        [i.value for i in inits],
        _numbers(window_dimensions),
        window_strides=_numbers(window_strides),
        base_dilations=_numbers(base_dilations),
        window_dilations=_numbers(window_dilations),
        padding=_padding(padding),
    )
    if kind == "custom":
        ctx.graph_body(operation, body)
    else:
        ctx.body(operation, [inputs[0].dtype] * 2, lambda a, b: combine(ctx, kind, a, b))
    made = [ctx.wrap(v, x.dtype) for v, x in zip(operation.results, inputs, strict=True)]
    return tuple(ctx.convert(m, dtype) for m, (dtype, _) in zip(made, results, strict=True))


@lower("select_and_scatter")
def select_and_scatter(ctx, x, source, *, select, window_dimensions, window_strides, padding):
    """A NaN once picked stays: nothing compares with it, so the select body asks for it."""
    if 0 in source.dims:
        return ctx.full_like(x, 0)
    wide, zero = accumulated(ctx, x, "sum")
    source = ctx.convert(source, wide.dtype)
    operation = hlo.SelectAndScatterOp(
        wide.value.type,
        wide.value,
        source.value,
        zero.value,
        window_dimensions=_numbers(window_dimensions),
        window_strides=_numbers(window_strides),
        padding=_padding(padding),
    )

    def keep(picked, other):
        better = ctx.compare(picked, other, "ge" if select == "max" else "le")
        return ctx.apply("or_", better, ctx.is_nan(picked)) if picked.dtype.is_float else better

    ctx.body(operation, [wide.dtype] * 2, keep, 0)
    ctx.body(operation, [wide.dtype] * 2, lambda a, b: combine(ctx, "sum", a, b), 1)
    return ctx.convert(ctx.wrap(operation.results[0], wide.dtype), x.dtype)
