"""Control flow, calls and traps.

A reached trap is not an exception on the device: its number travels beside the results, as one more value of every
branch, loop and function that may reach one, and the program raises it after the call.
"""

from ...ir import dtypes
from . import types
from .context import Expr
from .lowering import lower
from .mlir import hlo


def _branches(ctx, operation, graphs, trapping):
    """Write each graph as a region; regions may use the values around them."""
    for region, graph in zip(operation.regions, graphs, strict=True):
        with ctx.emitter.scope(region.blocks.append(), isolated=False):
            outputs = list(ctx.emitter.inline(graph, ()))
            if trapping:
                outputs.append(ctx.emitter.error)
            hlo.return_([o.value for o in outputs])


def _chosen(ctx, make, graphs):
    """Results of an if or case operation that `make(types)` creates."""
    trapping = any(ctx.emitter.is_trapping(g) for g in graphs)
    results = ctx.result_types
    operation = make([types.tensor(*r) for r in results] + ([types.tensor(dtypes.i32, ())] if trapping else []))
    node = ctx.node
    _branches(ctx, operation, graphs, trapping)
    ctx.node = node
    values = list(operation.results)
    if trapping:
        ctx.emitter.set_error(Expr(values.pop(), dtypes.i32, ()))
    return tuple(Expr(v, *r) for v, r in zip(values, results, strict=True))


@lower("if")
def if_(ctx, predicate, *, then, else_):
    return _chosen(ctx, lambda t: hlo.IfOp(t, predicate.value), [then, else_])


@lower("case")
def case(ctx, index, *, branches):
    """An index outside [0, n) runs the last branch; it is compared before it is narrowed."""
    count = len(branches)
    index = ctx.carried(index)
    outside = ctx.compare(index, min(count, int(index.dtype.max_value())), "ge")
    if count > int(index.dtype.max_value()):
        outside = ctx.full(False, dtypes.bool_)
    if index.dtype.is_signed:
        outside = ctx.apply("or_", outside, ctx.compare(index, 0, "lt"))
    index = ctx.select(outside, count - 1, ctx.convert(index, dtypes.i32))
    return _chosen(ctx, lambda t: hlo.CaseOp(t, index.value, count), list(branches))


@lower("while")
def while_(ctx, inits, *, cond, body):
    emitter = ctx.emitter
    trapping = emitter.is_trapping(body) or emitter.is_trapping(cond)
    state = list(inits) + ([emitter.error] if trapping else [])
    operation = hlo.WhileOp([s.value.type for s in state], [s.value for s in state])
    for region, graph, is_body in ((operation.regions[0], cond, False), (operation.regions[1], body, True)):
        block = region.blocks.append(*[s.value.type for s in state])
        with emitter.scope(block, isolated=False) as scope:
            arguments = [Expr(a, s.dtype, s.dims) for a, s in zip(block.arguments, state, strict=True)]
            if trapping:
                scope.error = arguments.pop()
            outputs = list(emitter.inline(graph, arguments))
            if trapping and is_body:
                outputs.append(emitter.error)
            elif trapping:
                # Zeros from a trap could keep a loop running for ever.
                sound = ctx.compare(emitter.error, 0, "eq")
                outputs = [ctx.apply("and_", outputs[0], sound)]
            hlo.return_([o.value for o in outputs])
    results = [Expr(v, s.dtype, s.dims) for v, s in zip(operation.results, state, strict=True)]
    if trapping:
        emitter.set_error(results.pop())
    return tuple(results)


@lower("call")
def call(ctx, xs, *, callee):
    return ctx.emitter.call(callee, xs)


@lower("trap")
def trap(ctx, *, message, results):
    ctx.emitter.trap(message)
    return tuple(ctx.full(0, dtype, dims) for dtype, dims in ctx.result_types)
