"""ONNX lowering of control flow: If natively, while as Loop without a trip count."""

from __future__ import annotations

from .lowering import lower


@lower("if")
def if_(ctx, predicate, *, then, else_):
    return ctx.ops("If", predicate, then_branch=ctx.graph(then, "then"), else_branch=ctx.graph(else_, "else"))


@lower("while")
def while_(ctx, inits, *, cond, body):
    """Loop's body computes the next state and whether to go on; the first test runs before it."""
    first = ctx.exporter.inline(cond, inits)[0]
    loop = ctx.exporter.loop_body(body, cond)
    return ctx.ops("Loop", None, first, *inits, body=loop)
