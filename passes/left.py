"""What is left of a graph that runs in stages: nodes still to be run, and what is known so far of values and sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..ir import dims as sizes
from ..ir.data import Data
from ..ir.dims import Size
from ..ir.graph import Graph, Node, Value
from ..ir.model import Model, fresh_name
from ..ir.operators import Trait
from .special import symbols_of

_Key = TypeVar("_Key")


@dataclass(frozen=True)
class Left:
    """What is still to be done of a graph.

    `items` are nodes in order, each with the number of the model it comes from (0: the graph's own; a late node that
    was typed brings its own), `sizes` what the symbols of each of these models are.  `aliases` says which value stands
    for another one, `frozen` holds contents that the host has read, `rounded` the sizes that values stand for which
    the host has read to bind dims: symbols, if what follows is to be the same for many.
    """

    items: tuple[tuple[Node, int], ...]
    outputs: tuple[Value, ...]
    sizes: Mapping[int, Mapping[str, Size]]
    aliases: Mapping[Value, Value] = field(default_factory=dict)
    frozen: Mapping[Value, Data] = field(default_factory=dict)
    models: tuple[Model, ...] = ()
    rounded: Mapping[Value, Size] = field(default_factory=dict)

    def resolve(self, value: Value) -> Value:
        """The value that stands for `value`."""
        while (other := self.aliases.get(value)) is not None:
            value = other
        return value


def start(graph: Graph, known: Mapping[str, Size]) -> Left:
    """The whole of a graph, for these values of its function's symbols."""
    return Left(tuple((n, 0) for n in graph.nodes), graph.outputs, {0: dict(known)})


def after_reading(left: Left, contents: Mapping[Value, Data], rounded: Mapping[Value, Size] | None = None) -> Left:
    """What is left, with contents of values that the host has read, and sizes that others stand for."""
    return replace(left, frozen={**left.frozen, **contents}, rounded={**left.rounded, **(rounded or {})})


def with_sizes(left: Left, numbers: Mapping[str, int]) -> Left:
    """What is left, with numbers for some symbols that sizes stand for."""

    def settled(mapping: Mapping[_Key, Size]) -> dict[_Key, Size]:
        return {key: sizes.substitute(size, numbers) for key, size in mapping.items()}

    return replace(left, sizes={k: settled(v) for k, v in left.sizes.items()}, rounded=settled(left.rounded))


def rounded_sizes(left: Left) -> set[str]:
    """Symbols that sizes stand for."""
    mappings: list[Iterable[Size]] = [left.rounded.values(), *(m.values() for m in left.sizes.values())]
    return {s for mapping in mappings for size in mapping for s in symbols_of(size)}


def only_bind(left: Left, reads: Iterable[Value]) -> dict[Value, str]:
    """Which of the values that the host reads do nothing but bind a dim, and a symbol that no size has yet for each."""
    taken = dict.fromkeys(s for m in left.sizes.values() for s, d in m.items() for s in (s, *symbols_of(d)))
    out: dict[Value, str] = {}
    for value in reads:
        users = [n for n, _ in left.items if any(v is not None and left.resolve(v) is value for v in n.operands)]
        binding = [n for n in users if n.op.name == "bind_dim"]
        if binding and not any(Trait.LATE in n.op.traits for n in users):
            name = fresh_name(f"{binding[0].keywords['dim']}_read", taken)
            taken[name] = None
            out[value] = name
    return out


def needed(left: Left) -> set[Value]:
    """Values that nodes left or the outputs still use."""
    out = {left.resolve(v) for v in left.outputs}
    for node, _ in left.items:
        out.update(left.resolve(v) for v in node.operands if v is not None)
        out.update(left.resolve(v) for graph in node.all_graphs() for v in graph.captures())
    return out
