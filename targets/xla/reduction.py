"""Reductions along axes."""

from ...ir.ops.combination import identity
from . import types
from .indexing import combine
from .lowering import lower
from .mlir import hlo


def accumulated(ctx, x, kind):
    """x in the type that this kind of combination runs in, and the identity in it."""
    wide = ctx.convert(x, types.accumulator(x.dtype)) if kind in ("sum", "prod") else ctx.carried(x)
    return wide, ctx.full(identity(kind, x.dtype).astype(wide.dtype.numpy), wide.dtype)


@lower("reduce")
def reduce(ctx, xs, *, axes, kind, body):
    if kind == "custom":
        count = len(xs) // 2
        inputs, inits = xs[:count], xs[count:]
        results = ctx.result_types
        operation = hlo.ReduceOp(
            [types.tensor(*r) for r in results], [x.value for x in inputs], [i.value for i in inits], list(axes)
        )
        ctx.graph_body(operation, body)
        return tuple(ctx.wrap(v, d) for v, (d, _) in zip(operation.results, results, strict=True))
    (x,) = xs
    if not axes:
        return x
    wide, init = accumulated(ctx, x, kind)
    dims = [n for a, n in enumerate(x.dims) if a not in axes]
    operation = hlo.ReduceOp([types.tensor(wide.dtype, dims)], [wide.value], [init.value], list(axes))
    ctx.body(operation, [wide.dtype] * 2, lambda a, b: combine(ctx, kind, a, b))
    return ctx.convert(ctx.wrap(operation.results[0], wide.dtype), x.dtype)
