"""Names of an ONNX graph while it is imported (values, initializers, enclosing graphs), and the order of its nodes."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field
from typing import Any, Final

import onnx

from ...ir.errors import FormatError
from ...ir.model import Value
from .reading import MAX_DEPTH, Source


class _Poison:
    """Stands for the result of a node that cannot be imported; nodes that read it are checked, not imported."""

    def __repr__(self) -> str:
        return "poison"


POISON: Final = _Poison()


class InvalidNode(FormatError):
    """A node that cannot be typed: its operands do not fit it.  In one branch of an If that need not matter."""


class Poisoned(Exception):
    """A value that cannot be imported is needed."""


@dataclass(slots=True)
class Scope:
    """Names of one graph.  Inner graphs see the names of outer ones; a function's body sees none but its own."""

    parent: Scope | None = None
    values: dict[str, Value | _Poison | None] = field(default_factory=dict)
    initializers: dict[str, onnx.TensorProto | onnx.SparseTensorProto] = field(default_factory=dict)
    depth: int = 0

    def find(self, name: str) -> Scope | None:
        """The innermost scope that defines `name`."""
        scope: Scope | None = self
        while scope is not None and name not in scope.values and name not in scope.initializers:
            scope = scope.parent
        return scope


@dataclass(slots=True)
class Frame:
    """Where nodes are read: names, operator sets, attributes bound by a function call, functions being expanded."""

    scope: Scope
    opsets: dict[str, int]
    attributes: dict[str, Any] = field(default_factory=dict)
    label: str | None = None
    expanding: tuple[tuple[str, str, str], ...] = ()


def inner_graphs(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Sub-graphs among the attributes of a node."""
    out: list[onnx.GraphProto] = []
    for a in node.attribute:
        if a.type == onnx.AttributeProto.GRAPH or (not a.type and a.HasField("g")):
            out.append(a.g)
        elif a.type == onnx.AttributeProto.GRAPHS:
            out.extend(a.graphs)
    return out


def free_names(graph: onnx.GraphProto, source: Source, depth: int = 0) -> dict[str, None]:
    """Names that a sub-graph takes from outside, in order of first use."""
    if depth > MAX_DEPTH:
        raise source.fail(f"graphs are nested more than {MAX_DEPTH} deep")
    own = {i.name for i in graph.input} | {i.name for i in graph.initializer}
    own |= {i.values.name for i in graph.sparse_initializer}
    own |= {name for node in graph.node for name in node.output}
    free: dict[str, None] = {}
    for node in graph.node:
        for name in needs(node, source, depth):
            if name not in own:
                free[name] = None
    free.update((o.name, None) for o in graph.output if o.name not in own)
    return free


def needs(node: onnx.NodeProto, source: Source, depth: int = 0) -> list[str]:
    """Names that a node reads, those of its sub-graphs included."""
    out = [name for name in node.input if name]
    for graph in inner_graphs(node):
        out.extend(free_names(graph, source, depth + 1))
    return out


def label(node: onnx.NodeProto) -> str:
    """What to call a node: its name, or else that of its first result."""
    return node.name or next((o for o in node.output if o), "") or node.op_type


def check_names(graph: onnx.GraphProto, source: Source) -> None:
    """FormatError if a name is defined twice in one graph."""
    seen: dict[str, str] = {}
    initializers = [i.name for i in graph.initializer] + [i.values.name for i in graph.sparse_initializer]
    rows = [(i.name, "an input") for i in graph.input]
    rows += [(o, f"node {label(n)!r}") for n in graph.node for o in n.output if o]
    for name, what in rows:
        if name in seen:
            raise source.fail(f"{name!r} is defined twice in one graph: by {seen[name]} and by {what}")
        seen[name] = what
    given: set[str] = set()
    for name in initializers:
        if name in given or seen.get(name, "an input") != "an input":
            raise source.fail(
                f"{name!r} is defined twice in one graph: as an initializer and by {seen.get(name, 'another')}"
            )
        given.add(name)


def ordered(nodes: list[onnx.NodeProto], scope: Scope, source: Source) -> list[onnx.NodeProto]:
    """The nodes in an order that defines before it uses: the given one where it does, else the nearest to it.

    FormatError names an input that nothing defines, or a node of a cycle.
    """
    producer = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    waiting = [0] * len(nodes)
    users: list[list[int]] = [[] for _ in nodes]
    in_order = True
    for i, node in enumerate(nodes):
        for name in dict.fromkeys(needs(node, source, scope.depth)):
            made_by = producer.get(name)
            if made_by is not None:
                users[made_by].append(i)
                waiting[i] += 1
                in_order &= made_by < i
            elif scope.find(name) is None:
                raise source.fail(f"node {label(node)!r} ({node.op_type}) reads {name!r}, which nothing defines")
    if in_order:
        return nodes
    ready = [i for i, count in enumerate(waiting) if not count]
    out: list[onnx.NodeProto] = []
    while ready:
        i = heapq.heappop(ready)
        out.append(nodes[i])
        for user in users[i]:
            waiting[user] -= 1
            if not waiting[user]:
                heapq.heappush(ready, user)
    if len(out) < len(nodes):
        stuck = next(i for i, count in enumerate(waiting) if count)
        raise source.fail(
            f"the graph has a cycle: node {label(nodes[stuck])!r} ({nodes[stuck].op_type}) depends on itself"
        )
    return out
