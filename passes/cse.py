"""Common subexpressions: equal pure nodes become one where the first dominates the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from ..ir.graph import Constant, Graph, Node
from ..ir.model import Model
from ..ir.operators import Trait
from ..ir.rewrite import Rewriter
from .dce import Effects
from .manager import Level, Pass, register

_MERGED_BY_CONTENT = 1 << 16
"""Bytes up to which constants are compared by content; larger ones only if they share their Data."""
_UNTOUCHED = frozenset({"optimization_barrier"})


@register
@dataclass(frozen=True)
class Cse(Pass):
    """Merge equal pure nodes.

    %a = exponential(%x); %b = exponential(%x); %y = add(%a, %b)   ->   %a = exponential(%x); %y = add(%a, %a)

    Equal: operator, operands (in either order where the operator commutes), attributes bit by bit, result types.  Nodes
    with effects or graphs of their own stay.  `across-graphs`: inner graphs use what outer ones have computed.
    `constants`: equal constants become one first.
    """

    name: ClassVar[str] = "cse"
    level: ClassVar[Level] = Level.LEGAL

    across_graphs: bool = True
    constants: bool = True

    def run(self, model: Model, rewriter: Rewriter) -> None:
        if self.constants:
            _merge_constants(model, rewriter)
        effects = Effects(model)
        for function in model.functions.values():
            _merge_nodes(function.body, rewriter, effects, self.across_graphs)


def _merge_constants(model: Model, rewriter: Rewriter) -> None:
    first: dict[Hashable, Constant] = {}
    merged: list[Constant] = []
    for constant in list(model.constants.values()):
        data = constant.data
        if data is None:
            continue
        key: Hashable = id(data)  # the model keeps the object alive while the table stands
        if data.nbytes <= _MERGED_BY_CONTENT:
            key = (data.dtype, data.shape, data.digest)
        kept = first.setdefault(key, constant)
        if kept is not constant and constant.has_uses:
            rewriter.replace_uses(constant, kept)
            merged.append(constant)
    rewriter.erase_constants(merged)


@dataclass
class _Scope:
    """A graph on the way: nodes to come, inner graphs of the last one, the table, and the keys that it added."""

    nodes: Iterator[Node]
    table: dict[Hashable, Node]
    inner: list[Graph] = field(default_factory=list)
    added: list[Hashable] = field(default_factory=list)


def _merge_nodes(root: Graph, rewriter: Rewriter, effects: Effects, across_graphs: bool) -> None:
    """One table of what is computed so far; leaving a graph takes its entries out: only dominating ones stay."""
    stack = [_Scope(root.nodes, {})]
    while stack:
        scope = stack[-1]
        if scope.inner:
            stack.append(_Scope(scope.inner.pop().nodes, scope.table if across_graphs else {}))
            continue
        node = next(scope.nodes, None)
        if node is None:
            for key in scope.added:
                del scope.table[key]
            stack.pop()
            continue
        scope.inner = list(node.all_graphs())[::-1]
        found = _key(node, effects)
        if found is None:
            continue
        kept = scope.table.setdefault(found, node)
        if kept is node:
            scope.added.append(found)
        else:
            rewriter.replace(node, kept.results)


def _key(node: Node, effects: Effects) -> Hashable | None:
    """What equal nodes have in common; None for a node that must stay."""
    op = node.op
    if not op.is_pure or any(node.all_graphs()) or not node.results or op.name in _UNTOUCHED or effects.of(node):
        return None
    operands: tuple[Hashable, ...] = node.operands
    if Trait.COMMUTATIVE in op.traits:
        operands = (frozenset(node.operands[:2]), *node.operands[2:])
    return op, operands, node.attributes, tuple(r.type for r in node.results)
