"""Sorting."""

from .lowering import lower
from .mlir import hlo, ir


@lower("sort")
def sort(ctx, xs, *, axis, kind, comparator):
    """Stable; types below 8 bits and float8 are sorted in a wider type, which keeps their values."""
    if xs[0].rank == 0:
        return xs
    carried = [ctx.carried(x) for x in xs]
    operation = hlo.SortOp(
        [c.value.type for c in carried],
        [c.value for c in carried],
        dimension=ir.IntegerAttr.get(ir.IntegerType.get_signless(64), axis),
        is_stable=ir.BoolAttr.get(True),
    )
    if kind == "custom":
        if any(c.dtype is not x.dtype for c, x in zip(carried, xs, strict=True)):
            ctx.refuse("a comparator of operands below 8 bits or of float8")
        ctx.graph_body(operation, comparator)
    else:
        scalars = [c.dtype for c in carried for _ in range(2)]
        ctx.body(operation, scalars, lambda a, b, *rest: _before(ctx, a, b, kind == "descending"))
    results = [ctx.wrap(v, c.dtype) for v, c in zip(operation.results, carried, strict=True)]
    return tuple(ctx.convert(r, x.dtype) for r, x in zip(results, xs, strict=True))


def _before(ctx, a, b, descending):
    """a comes before b.  NaN is the greatest, -0 and +0 are equal."""
    if not a.dtype.is_float:
        return ctx.compare(a, b, "gt" if descending else "lt")
    if descending:
        a, b = b, a
    greater_is_nan = ctx.apply("and_", ctx.is_nan(b), ctx.compare(a, a, "eq"))
    return ctx.apply("or_", ctx.compare(a, b, "lt"), greater_is_nan)
