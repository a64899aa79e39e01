"""Rules on the data structure itself: node lists, owners, uses, dominance.  No types, no operators."""

from __future__ import annotations

from collections.abc import Iterator

from ..effects import dominates
from ..model import Constant, Graph, Model, Node, Value
from .table import Context, describe, listed_nodes, rule


@rule("V001", "graph", phase=0)
def node_list(ctx: Context, graph: Graph) -> Iterator[str]:
    """The node list of a graph is one chain: forward and backward links agree, its count and order numbers are right,
    and each node knows the graph."""
    previous: Node | None = None
    count = 0
    for node in listed_nodes(graph):
        count += 1
        if node.graph is not graph:
            yield f"{node.label} stands in the list but belongs to {'another graph' if node.graph else 'no graph'}"
        if node.previous is not previous:
            yield f"the backward link of {node.label} does not lead to the node before it"
        if previous is not None and graph._numbered and previous._order >= node._order:
            yield f"the order number of {node.label} is not greater than that of the node before it"
        previous = node
    if previous is not graph.last:
        yield "the last node that the list reaches is not the graph's last node"
    elif previous is not None and previous.next is not None:
        yield f"the list runs in a circle from {previous.label} to {previous.next.label}"
    if count != len(graph):
        yield f"the list has {count} nodes, the graph counts {len(graph)}"


@rule("V002", "model", phase=0)
def owners(ctx: Context, model: Model) -> Iterator[str]:
    """Every graph has one owner and knows it: the body its function, `init` the model, a sub-graph its node; no node
    stands in two lists."""
    seen: set[Graph] = set()
    if model.init.parent is not model:
        yield "the init graph does not belong to the model"
    seen.add(model.init)
    for function in model.functions.values():
        if function.body.parent is not function:
            yield f"the body of @{function.name} does not belong to it"
        if function.body in seen:
            yield f"the body of @{function.name} has a second owner"
        seen.add(function.body)
    for node in ctx.nodes:
        for graph in node.all_graphs():
            if graph.parent is not node:
                yield f"a sub-graph of {node.label} does not belong to it"
            if graph in seen:
                yield f"a sub-graph of {node.label} has a second owner"
            seen.add(graph)
    for graph in ctx.graphs:
        for node in listed_nodes(graph):
            if ctx.nodes[node] is not graph:
                yield f"{node.label} stands in the lists of two graphs"


@rule("V003", "model", phase=0)
def definitions(ctx: Context, model: Model) -> Iterator[str]:
    """Every value knows what defines it and at which position: results their node, inputs their graph, constants the
    model."""
    for node in ctx.nodes:
        for i, value in enumerate(node.results):
            if value.owner is not node or value.index != i:
                yield f"result {i} of {node.label} says that it is result {value.index} of {_owner(value)}"
    for graph in ctx.graphs:
        for i, value in enumerate(graph.inputs):
            if value.owner is not graph or value.index != i:
                yield f"input {i} of {ctx.place(graph)} says that it is number {value.index} of {_owner(value)}"
    for constant in (*model.constants.values(), *model._inline.values()):
        if constant.owner is not model:
            yield f"{describe(constant)} does not belong to the model"


def _owner(value: Value) -> str:
    return value.owner.label if isinstance(value.owner, Node) else "another graph" if value.owner else "nothing"


@rule("V004", "model", phase=0)
def uses(ctx: Context, model: Model) -> Iterator[str]:
    """Use lists are exact: every operand and graph output is a use of its value, and every use is one of those."""
    for node in ctx.nodes:
        for i, value in enumerate(node.operands):
            if value is not None and (node, i) not in value._uses:
                yield f"operand {i} of {node.label} is missing in the uses of {describe(value)}"
    for graph in ctx.graphs:
        for i, value in enumerate(graph._outputs):
            if value is not None and (graph, i) not in value._uses:
                yield f"output {i} of {ctx.place(graph)} is missing in the uses of {describe(value)}"
    for value in ctx.values():
        for user, i in value._uses:
            if isinstance(user, Node):
                if user not in ctx.nodes:
                    yield f"{describe(value)} has a use in {user.label}, which is in no graph of the model"
                elif i >= len(user._operands) or user._operands[i] is not value:
                    yield f"{describe(value)} has a use as operand {i} of {user.label}, which uses another value there"
            elif user not in ctx.graphs:
                yield f"{describe(value)} is the output of a graph that is not in the model"
            elif i >= len(user._outputs) or user._outputs[i] is not value:
                yield f"{describe(value)} has a use as output {i} of {ctx.place(user)}, which returns another value"


@rule("V005", "model")
def ownership_of_operands(ctx: Context, model: Model) -> Iterator[str]:
    """Operands and graph outputs are constants of this model or values of its graphs; no graph output is absent."""
    for node in ctx.nodes:
        for i, value in enumerate(node.operands):
            if value is not None and not ctx.owns(value):
                yield f"operand {i} of {node.label}, {describe(value)}, {_elsewhere(value)}"
    for graph in ctx.graphs:
        for i, value in enumerate(graph._outputs):
            if value is None:
                yield f"output {i} of {ctx.place(graph)} is absent"
            elif not ctx.owns(value):
                yield f"output {i} of {ctx.place(graph)}, {describe(value)}, {_elsewhere(value)}"


def _elsewhere(value: Value) -> str:
    if isinstance(value, Constant):
        return "is not among the constants of this model"
    if value.graph is None:
        return "is defined by a node that is in no graph"
    return "is no longer what its owner defines, or is defined in another model"


@rule("V006", "graph")
def dominance(ctx: Context, graph: Graph) -> Iterator[str]:
    """A value is computed before it is used: it is defined earlier in the same graph, or before the holder of the graph
    in an enclosing one.  A function sees only its parameters and constants."""
    for node in graph.nodes:
        for i, value in enumerate(node.operands):
            if value is not None and ctx.owns(value) and not dominates(value, node):
                yield f"operand {i} of {node.label}, {describe(value)}, {_why_not_dominating(ctx, value, graph)}"
    for i, value in enumerate(graph._outputs):
        if value is None or isinstance(value, Constant) or value.graph is graph or not ctx.owns(value):
            continue
        if not isinstance(graph.parent, Node) or not dominates(value, graph.parent):
            yield f"output {i}, {describe(value)}, {_why_not_dominating(ctx, value, graph)}"


def _why_not_dominating(ctx: Context, value: Value, graph: Graph) -> str:
    home = value.graph
    if home is None or home.encloses(graph):
        return "is computed only after this use"
    there, here = ctx.graphs[home], ctx.graphs[graph]
    if there is not here:
        return f"belongs to {f'@{there.name}' if there else 'init'}; a function sees only its parameters and constants"
    return "is defined in a graph that does not enclose this use"
