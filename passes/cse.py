"""Common subexpressions: equal pure nodes become one where the first dominates the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from ..ir.data import Data
from ..ir.graph import Constant, Graph, Node
from ..ir.model import Model
from ..ir.operators import Trait
from ..ir.rewrite import Rewriter
from .dce import Effects
from .manager import Level, Pass, register

_SMALL = 1 << 16
"""Bytes up to which constants are hashed at once; larger ones only where a few elements are those of another one."""
_SAMPLED = 64
"""Elements, evenly spread, that tell most large constants apart without reading them."""
_UNTOUCHED = frozenset({"optimization_barrier"})


@register
@dataclass(frozen=True)
class Cse(Pass):
    """Merge equal pure nodes.

    %a = exponential(%x); %b = exponential(%x); %y = add(%a, %b)   ->   %a = exponential(%x); %y = add(%a, %a)

    Equal: operator, operands (in either order where the operator commutes), attributes bit by bit, result types.  Nodes
    with effects or graphs of their own stay.  `across-graphs`: inner graphs use what outer ones have computed.
    `constants`: constants of equal type and bits become one first, whichever functions and graphs use them.  Contents
    are hashed once and piece by piece, mapped files included, and large ones only if a sample does not tell them apart.
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
    groups: dict[Hashable, list[Constant]] = {}
    for constant in model.constants.values():
        if constant.data is not None:
            groups.setdefault((constant.data.dtype, constant.data.shape), []).append(constant)
    merged: list[Constant] = []
    for group in groups.values():
        for same in _equal_contents(group):
            kept, *others = same
            for constant in others:
                if constant.has_uses:
                    rewriter.replace_uses(constant, kept)
                    merged.append(constant)
    rewriter.erase_constants(merged)


def _equal_contents(group: list[Constant]) -> Iterable[list[Constant]]:
    """Constants of one type by equal bits, in order.  Each row of keys is asked only where the one before agrees."""
    rows = [group]
    for key in (_sample, _digest):
        rows = [part for row in rows for part in ([row] if len(set(map(_identity, row))) == 1 else _split(row, key))]
    return rows


def _split(row: list[Constant], key: Callable[[Data], Hashable]) -> Iterable[list[Constant]]:
    parts: dict[Hashable, list[Constant]] = {}
    for constant in row:
        assert constant.data is not None
        parts.setdefault(key(constant.data), []).append(constant)
    return parts.values()


def _identity(constant: Constant) -> int:
    return id(constant.data)  # the model keeps the object alive meanwhile


def _sample(data: Data) -> Hashable:
    """A few elements of a large constant: of a mapped file, as many pages are read."""
    if data.nbytes <= _SMALL or data.dtype.is_string:
        return b""
    places = np.unravel_index(np.linspace(0, data.size - 1, _SAMPLED).astype(np.int64), data.shape)
    return data.numpy()[places].tobytes()


def _digest(data: Data) -> Hashable:
    return data.digest


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
        scope.inner = list(reversed(node.all_graphs()))
        found = key_of(node, effects)
        if found is None:
            continue
        kept = scope.table.setdefault(found, node)
        if kept is node:
            scope.added.append(found)
        else:
            rewriter.replace(node, kept.results)


def key_of(node: Node, effects: Effects) -> Hashable | None:
    """What equal nodes have in common; None for a node that must stay."""
    op = node.op
    if not op.is_pure or any(node.all_graphs()) or not node.results or op.name in _UNTOUCHED or effects.of(node):
        return None
    operands: tuple[Hashable, ...] = node.operands
    if Trait.COMMUTATIVE in op.traits:
        operands = (frozenset(node.operands[:2]), *node.operands[2:])
    return op, operands, node.attributes, tuple(r.type for r in node.results)
