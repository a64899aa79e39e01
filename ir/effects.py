"""What a node does besides computing its results, sub-graphs and called functions included; and dominance of values."""

from __future__ import annotations

from .model import Constant, Function, Graph, Model, Node, Value
from .operators import Trait


def has_effects(node: Node, model: Model | None = None) -> bool:
    """Whether the node, a node in its sub-graphs or a function it calls has effects; such a node stays in order."""
    seen: set[str] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if Trait.EFFECTS in current.op.traits:
            return True
        for graph in current.all_graphs():
            stack.extend(graph.nodes)
        if current.op.name == "call" and model is not None:
            callee = current.keywords["callee"]
            if callee not in seen and callee in model.functions:
                seen.add(callee)
                stack.extend(model.functions[callee].body.nodes)
    return False


def ancestor_in(graph: Graph, node: Node) -> Node | None:
    """The node of `graph` that is `node` or holds it in a sub-graph; None if `graph` does not enclose it."""
    current: Node | None = node
    while current is not None and current.graph is not graph:
        holder = current.graph.parent if current.graph is not None else None
        current = holder if isinstance(holder, Node) else None
    return current


def dominates(value: Value, node: Node) -> bool:
    """Whether `value` is computed whenever and before `node` runs, so that `node` may use it."""
    if isinstance(value, Constant):
        return True
    graph = value.graph
    if graph is None:
        return False
    anchor = ancestor_in(graph, node)
    if anchor is None:
        return False
    return value.node is None or (value.node is not anchor and value.node.comes_before(anchor))


def callees(function: Function) -> list[str]:
    """Names of the functions it calls, in order of first call."""
    return list(dict.fromkeys(n.keywords["callee"] for n in function.body.walk() if n.op.name == "call"))
