"""Which nodes no device can run by itself, and which sizes a node mentions: what staging decides by."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir import dims as sizes
from ..ir.dims import Dim
from ..ir.graph import Graph, Node
from ..ir.operators import Trait
from ..ir.types import OptionalType, SequenceType, TensorType, Type, symbols

CONTROL = ("if", "case", "while")


def is_tensor(type_: Type) -> bool:
    """Whether a device can hold values of this type."""
    return isinstance(type_, TensorType) and not type_.dtype.is_string


def is_special(node: Node) -> bool:
    """Whether the node itself, whatever its sub-graphs, is not for a device."""
    if Trait.LATE in node.op.traits or Trait.HOST in node.op.traits or node.op.name == "bind_dim":
        return True
    return not all(is_tensor(v.type) for v in (*node.operands, *node.results) if v is not None)


def special_nodes(graph: Graph) -> Iterable[Node]:
    """All special nodes of a graph and its sub-graphs."""
    return (node for node in graph.walk() if is_special(node))


def has_special_inside(node: Node) -> bool:
    """Whether a sub-graph of the node has a special node."""
    return any(is_special(n) for g in node.all_graphs() for n in g.walk())


def mentioned(node: Node) -> set[str]:
    """Symbols in the attributes of a node and its sub-graphs' nodes, but those that a `bind_dim` inside binds."""
    out: set[str] = set()
    inside = [n for graph in node.all_graphs() for n in graph.walk()]
    for one in (node, *inside):
        for name, kind in one.op.kinds.items():
            if kind.base in ("size", "type"):
                out.update(symbols_of(one.attributes.as_dict()[name]))
    return out.difference(n.keywords["dim"] for n in inside if n.op.name == "bind_dim")


def symbols_of(value: object) -> set[str]:
    """Symbols in an attribute: a size, a type, or a list of these."""
    if isinstance(value, tuple):
        return {s for v in value for s in symbols_of(v)}
    if isinstance(value, Dim):
        return set(sizes.symbols(value))
    return symbols(value) if isinstance(value, TensorType | SequenceType | OptionalType) else set()
