"""Control flow, calls and traps: Python statements.  Conditions are read on the host."""

from __future__ import annotations

from ...ir.loops import counted_value, trip_count
from .lowering import lower


def _branch(ctx, graph, names):
    """Write a branch that assigns its outputs to names."""
    emitter = ctx.emitter
    with emitter.inlining(graph):
        emitter.block(graph)
    if names:
        emitter.assign(names, [emitter.value(v) for v in graph.outputs])


def _results(ctx):
    """A fresh name for each result of the node."""
    emitter = ctx.emitter
    return [emitter.fresh(r.name or ctx.node.op.name) for r in ctx.node.results]


def _named(ctx, names):
    return tuple(ctx.emitter.named(n, r) for n, r in zip(names, ctx.node.results, strict=True))


@lower("if")
def if_(ctx, predicate, *, then, else_):
    emitter, node = ctx.emitter, ctx.node
    emitter.is_straight = False
    names = _results(ctx)
    condition = emitter.written(ctx.method(predicate, "item"))
    with emitter.indented(f"if {condition}:"):
        _branch(ctx, then, names)
    with emitter.indented("else:"):
        _branch(ctx, else_, names)
    ctx.node = node
    return _named(ctx, names)


@lower("case")
def case(ctx, index, *, branches):
    emitter, node = ctx.emitter, ctx.node
    emitter.is_straight = False
    names = _results(ctx)
    if len(branches) == 1:
        _branch(ctx, branches[0], names)
        return _named(ctx, names)
    number = emitter.fresh("index")
    emitter.line(f"{number} = {emitter.written(ctx.method(index, 'item'))}")
    for i, branch in enumerate(branches):
        head = "else:" if i == len(branches) - 1 else f"{'elif' if i else 'if'} {number} == {i}:"
        with emitter.indented(head):
            _branch(ctx, branch, names)
    ctx.node = node
    return _named(ctx, names)


@lower("while")
def while_(ctx, inits, *, cond, body):
    emitter, node = ctx.emitter, ctx.node
    names = [
        emitter.fresh(r.name or (v.name if v.name else "state")) for r, v in zip(node.results, body.inputs, strict=True)
    ]
    if names:
        emitter.assign(names, list(inits))
    states = list(zip(names, body.inputs, strict=True))
    for name, value in states:
        emitter.define_name(name, value)
    for name, value in zip(names, cond.inputs, strict=True):
        emitter.define_name(name, value)
    count = trip_count(node)
    if count is not None:
        with emitter.indented(f"for _ in range({ctx.size(count)}):"):
            _step(ctx, body, names)
    elif (limit := counted_value(node)) is not None:
        emitter.is_straight = False
        times = emitter.written(ctx.method(emitter.value(limit), "item"))
        with emitter.indented(f"for _ in range({times}):"):
            _step(ctx, body, names)
    else:
        emitter.is_straight = False
        with emitter.inlining(cond), emitter.tentative() as written:
            emitter.block(cond)
            condition = emitter.written(ctx.method(emitter.value(cond.outputs[0]), "item"))
        if not written:
            with emitter.indented(f"while {condition}:"):
                _step(ctx, body, names)
        else:
            with emitter.indented("while True:"):
                emitter.block(cond)
                condition = emitter.written(ctx.method(emitter.value(cond.outputs[0]), "item"))
                with emitter.indented(f"if not {condition}:"):
                    emitter.line("break")
                _step(ctx, body, names)
    ctx.node = node
    return _named(ctx, names)


def _step(ctx, body, names):
    """The body, then all states at once."""
    emitter = ctx.emitter
    emitter.block(body)
    rows = [
        (name, emitter.value(out))
        for name, out, old in zip(names, body.outputs, body.inputs, strict=True)
        if out is not old
    ]
    if rows:
        emitter.assign([n for n, _ in rows], [e for _, e in rows])


@lower("call")
def call(ctx, xs, *, callee):
    node = ctx.node
    out = ctx.emitter.call(callee, xs, node.results)
    ctx.node = node
    return out


@lower("bind_dim")
def bind_dim(ctx, x, *, dim):
    ctx.emitter.bind_symbol(dim, ctx.emitter.written(ctx.method(x, "item")))
    return ()


@lower("trap")
def trap(ctx, *, message, results):
    ctx.emitter.trap(message)
    return tuple(ctx.full(0, t.dtype, t.shape) for t in results)
