"""Ordering operators."""

from ...ir import dtypes
from .lowering import lower


def _order(ctx, x, axis, descending):
    return ctx.recipe("_order", ctx.wide(x), axis, descending, dtype=dtypes.u32, dims=x.dims)


@lower("sort")
def sort(ctx, xs, *, axis, kind, comparator):
    axis %= xs[0].rank
    results = ctx.node.results
    if kind == "custom":
        grown = [(*x.dims, 1) for x in xs for _ in (0, 1)]
        name = ctx.function(comparator, "before", grown)
        made = ctx.recipe("_sort_custom", [ctx.wide(x) for x in xs], axis, name)
        return ctx.unpack(made, [(r.dtype, r.dims) for r in results], [r.name or "sorted" for r in results])
    order = ctx.bind(_order(ctx, xs[0], axis, kind == "descending"), "order")
    return tuple(ctx.call("mx.take_along_axis", x, order, axis=axis, dims=x.dims, dtype=x.dtype) for x in xs)


@lower("TopK")
def top_k(ctx, x, *, k, axis, largest, ordered):
    axis %= x.rank
    dims = ctx.result_types[0].shape
    order = _order(ctx, x, axis, largest)
    if dims != x.dims:
        order = ctx.index(order, *[":"] * axis, f":{ctx.size(k)}", dims=dims)
    order = ctx.bind(order, "order")
    return ctx.call("mx.take_along_axis", x, order, axis=axis, dims=dims), ctx.convert(order, dtypes.i64)
