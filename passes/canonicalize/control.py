"""Canonical rewrites of control flow whose choice is known: the chosen graph takes the node's place."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.graph import Graph, Node, Value
from ...ir.rewrite import Rewriter
from .table import rewrite, splat


def _inline(rewriter: Rewriter, graph: Graph, node: Node) -> Sequence[Value]:
    return rewriter.inline_graph(graph, (), node)


def _known(value: Value) -> int | None:
    """The number that an integer or bool scalar is known to hold."""
    constant = splat(value)
    if constant is not None:
        return int(constant)
    ints = value.fact.known_ints()
    return ints[0] if ints is not None and len(ints) == 1 and isinstance(ints[0], int) else None


@rewrite("if")
def known_predicate(rewriter: Rewriter, node: Node) -> Sequence[Value] | None:
    chosen = _known(node.operand("predicate"))
    if chosen is None:
        return None
    return _inline(rewriter, node.keywords["then" if chosen else "else_"], node)


@rewrite("case")
def known_index(rewriter: Rewriter, node: Node) -> Sequence[Value] | None:
    branches = node.keywords["branches"]
    index = _known(node.operand("index")) if len(branches) > 1 else 0
    if index is None:
        return None
    return _inline(rewriter, branches[index if 0 <= index < len(branches) else -1], node)


@rewrite("while")
def never_entered(rewriter: Rewriter, node: Node) -> Sequence[Value] | None:
    """A condition that is the constant false leaves the initial state."""
    (holds,) = node.keywords["cond"].outputs
    constant = splat(holds)
    if constant is None or bool(constant):
        return None
    inits: tuple[Value, ...] = node.operand("inits")
    return inits


@rewrite("while")
def invariant_carry(rewriter: Rewriter, node: Node) -> None:
    """What the body hands on unchanged, or sets to its initial value, is that value inside and after; dce drops it."""
    (cond,), (body,) = node.graphs["cond"], node.graphs["body"]
    for i, (value, result) in enumerate(zip(body.inputs, node.results, strict=True)):
        init = node.operands[i]
        unchanged = body.outputs[i] is value or body.outputs[i] is init
        if not unchanged or init is None or init.type != value.type:
            continue
        if not (value.has_uses or cond.inputs[i].has_uses or result.has_uses):
            continue
        rewriter.set_output(body, i, init)
        for old in (value, cond.inputs[i], result):
            rewriter.replace_uses(old, init)
