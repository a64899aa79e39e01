"""Outlining: equal regions that follow each other, the layers of a model, become one private function called for each.

Finding the regions is here; writing the function stands in `outlining`.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..ir.errors import IrcError
from ..ir.graph import Constant, Graph, Node, Value
from ..ir.model import Function, Model
from ..ir.operators import Trait
from ..ir.rewrite import Rewriter
from .manager import Level, Pass, register
from .outlining import Chain, write

MAX_PERIOD = 1 << 12
"""Nodes of the largest region that is looked for."""
_TRIED = 12
"""Chains, and places where one may begin, that are tried before the search ends."""


@register
@dataclass(frozen=True)
class Outline(Pass):
    """Make a function of a region that is repeated one behind the other, differing only in constants and inputs.

    %a = tanh(add(%x, #w0)); %y = tanh(add(%a, #w1))
      ->   %a = call(%x, #w0) {callee = @block}; %y = call(%a, #w1) {callee = @block}
           where   private func @block(%x, %w) { %0 = add(%x, %w); %1 = tanh(%0); return %1 }

    Results keep their bits; emitted code shrinks to one layer.  Not in the default pipeline: inside a function weights
    are parameters, which targets cannot lay out ahead.  `min-nodes` and `min-calls`: smaller repetitions stay.
    """

    name: ClassVar[str] = "outline"
    level: ClassVar[Level] = Level.LEGAL
    after: ClassVar[tuple[str, ...]] = ("fuse", "batch-norm")

    min_nodes: int = 8
    min_calls: int = 2

    def __post_init__(self) -> None:
        if self.min_nodes < 1 or self.min_calls < 2:
            got = f"{self.min_nodes} and {self.min_calls}"
            raise IrcError(f"outline: min-nodes must be 1 or more and min-calls 2 or more, got {got}")

    def run(self, model: Model, rewriter: Rewriter) -> None:
        pending = [f for f in model.functions.values() if f.kind == "device" and not f.is_late]
        while pending:
            function = pending.pop()
            made = self._once(function, rewriter)
            if made is not None:
                pending += [function, made]

    def _once(self, function: Function, rewriter: Rewriter) -> Function | None:
        """Outline the chain that saves most; the function made of it."""
        for chain in chains(function, self.min_nodes, self.min_calls):
            made = write(chain, function, rewriter)
            if made is not None:
                return made
        return None


def chains(function: Function, min_nodes: int, min_calls: int) -> Iterator[Chain]:
    """Chains of regions that could become one function, those that save most nodes first."""
    nodes = list(function.body.nodes)
    labels = _labels(nodes)
    rows = []
    for period in range(min_nodes, min(len(nodes) // min_calls, MAX_PERIOD) + 1):
        for start, length in _runs(labels, period, (min_calls - 1) * period):
            count = length // period + 1
            rows.append(((count - 1) * period - count, -period, start, length))
    rows.sort(key=lambda row: (-row[0], -row[1], row[2]))
    position = {node: i for i, node in enumerate(nodes)}
    for _, period, start, length in rows[:_TRIED]:
        yield from _begun_best(nodes, position, start, -period, length, min_calls)


def _begun_best(
    nodes: list[Node], position: dict[Node, int], start: int, period: int, length: int, min_calls: int
) -> Iterator[Chain]:
    """Chains of one repetition: a layer may begin anywhere, best where the least is handed from one to the next."""
    tried = []
    for shift in range(min(period, length - (min_calls - 1) * period + 1)):
        count = (length - shift) // period + 1
        middle = start + shift + period * ((count - 2) // 2)
        found = chain_at(nodes, position, middle, period, 2)
        if found is not None:
            moving = sum(not all(isinstance(v, Constant) for v in row) for row in found.parameters)
            tried.append((moving + len(found.results), -count, shift, count))
    for _, _, shift, count in sorted(tried)[:_TRIED]:
        best: Chain | None = None
        for skip in (0, 1):  # the first layer may differ from the others in what it uses
            for last in (count, count - 1):
                if last - skip >= min_calls and (best is None or last - skip > len(best.starts)):
                    best = chain_at(nodes, position, start + shift + skip * period, period, last - skip) or best
        if best is not None:
            yield best


def _labels(nodes: Sequence[Node]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """A number for each node, equal where nodes differ only in which values of one type they use."""
    numbers: dict[Hashable, int] = {}
    out = np.empty(len(nodes), np.int64)
    for i, node in enumerate(nodes):
        key: Hashable = _shape_of(node) if _may_move(node) else ("alone", i)
        out[i] = numbers.setdefault(key, len(numbers))
    return out


def _may_move(node: Node) -> bool:
    op = node.op
    return op.is_pure and op.name != "call" and not node.graphs and not op.traits & (Trait.LATE | Trait.HOST)


def _shape_of(node: Node) -> Hashable:
    """What nodes at one place of equal regions have in common; known integers decide types, so they belong to it."""
    operands = tuple(None if v is None else (v.type, v.ints, isinstance(v, Constant)) for v in node.operands)
    return node.op, node.attributes, operands, tuple((r.type, r.ints) for r in node.results)


def _runs(labels: np.ndarray[tuple[int], np.dtype[np.int64]], period: int, least: int) -> Iterator[tuple[int, int]]:
    """(start, length) of stretches of at least `least` nodes that are equal to those `period` further on."""
    equal = np.concatenate([[False], labels[:-period] == labels[period:], [False]])
    edges = np.flatnonzero(equal[1:] != equal[:-1])
    for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if stop - start >= least:
            yield start, stop - start


def chain_at(nodes: list[Node], position: dict[Node, int], start: int, period: int, count: int) -> Chain | None:
    """`count` regions of `period` nodes from `start` on, if values flow inside all of them in the same way."""
    starts = [start + i * period for i in range(count)]
    chain = Chain(nodes[start : start + period * count], starts, period)
    parameters: dict[tuple[Value, ...], int] = {}
    for offset in range(period):
        same = [nodes[s + offset] for s in starts]
        slots: list[object] = []
        for values in zip(*(n.operands for n in same), strict=True):
            places = {_inside(v, s, period, position) for v, s in zip(values, starts, strict=True)}
            if len(places) > 1:
                return None
            (place,) = places
            if place is not None:
                slots.append(place)
            elif values[0] is None or (isinstance(values[0], Constant) and all(v is values[0] for v in values)):
                slots.append(values[0])
            else:
                slots.append(parameters.setdefault(values, len(parameters)))
        chain.slots.append(slots)
        for index in range(len(same[0].results)):
            if any(_leaves(n.results[index], s, period, position) for n, s in zip(same, starts, strict=True)):
                chain.results.append((offset, index))
    chain.parameters = list(parameters)
    return chain


def _inside(value: Value | None, start: int, period: int, position: dict[Node, int]) -> tuple[int, int] | None:
    """(place in the region, result number) of a value that the region computes; None for any other."""
    at = position.get(value.node) if value is not None and value.node is not None else None
    return (at - start, value.index) if value is not None and at is not None and start <= at < start + period else None


def _leaves(value: Value, start: int, period: int, position: dict[Node, int]) -> bool:
    """Whether something outside the region uses the value."""
    return any(
        isinstance(user, Graph) or not start <= position.get(user, -1) < start + period for user, _ in value.uses
    )
