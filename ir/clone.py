"""Copies of models and graphs: structure only; Data, attributes and facts are shared.  Linear, any nesting depth."""

from __future__ import annotations

from collections.abc import Iterable

from .model import Constant, Function, Graph, Model, Node, Value


def clone_model(model: Model) -> Model:
    """A model that can be changed without the original noticing."""
    out = Model(model.name, metadata=dict(model.metadata))
    mapping: dict[Value, Value] = {}
    for name, constant in model.constants.items():
        copy = out.constants[name] = Constant(out, constant.name, constant.type, constant.data)
        copy.metadata = dict(constant.metadata)
        mapping[constant] = copy
    out.derived = [out.constants[c.name or ""] for c in model.derived]
    for key, constant in model._inline.items():
        mapping[constant] = out._inline[key] = Constant(out, None, constant.type, constant.data)
    copy_graph(model.init, out.init, mapping)
    for function in model.functions.values():
        new = Function(function.name, kind=function.kind, public=function.public, dims=function.dims)
        new.assumptions = dict(function.assumptions)
        new.input_attributes = [dict(a) for a in function.input_attributes]
        new.output_names = list(function.output_names)
        new.metadata = dict(function.metadata)
        out.add_function(new)
        copy_graph(function.body, new.body, mapping)
    return out


def copy_graph(source: Graph, target: Graph, mapping: dict[Value, Value]) -> None:
    """Copy inputs, nodes and outputs of `source` to the end of `target`.

    `mapping` takes old values to new ones and grows; values it lacks (captures, constants) stay as they are.  Inputs
    that it already has (arguments of an inlined call) get no new input.
    """
    stack: list[tuple[Graph, Graph, list[Node]]] = []

    def enter(old: Graph, new: Graph) -> None:
        for value in old.inputs:
            if value not in mapping:
                mapping[value] = new.add_input(value.type, value.name, value.ints)
        stack.append((old, new, list(old.nodes)))

    # Sub-graphs are copied before the node that holds them, with an explicit stack instead of recursion.
    pending: dict[Node, dict[str, tuple[Graph, ...]]] = {}
    enter(source, target)
    positions = [0]
    while stack:
        old, new, nodes = stack[-1]
        i = positions[-1]
        if i == len(nodes):
            new.set_outputs([mapping.get(v, v) for v in old.outputs])
            stack.pop()
            positions.pop()
            continue
        node = nodes[i]
        if node not in pending:
            graphs = {name: tuple(Graph() for _ in group) for name, group in node.graphs.items()}
            pending[node] = graphs
            inner = [(o, n) for name in graphs for o, n in zip(node.graphs[name], graphs[name], strict=True)]
            if inner:
                for o, n in reversed(inner):
                    enter(o, n)
                    positions.append(0)
                continue
        _copy_node(node, pending.pop(node), new, mapping)
        positions[-1] += 1


def copy_nodes(nodes: Iterable[Node], target: Graph, mapping: dict[Value, Value]) -> None:
    """Copy these nodes, in this order, to the end of `target`; `mapping` as for `copy_graph`."""
    for node in nodes:
        graphs = {name: tuple(Graph() for _ in group) for name, group in node.graphs.items()}
        for name, group in graphs.items():
            for old, new in zip(node.graphs[name], group, strict=True):
                copy_graph(old, new, mapping)
        _copy_node(node, graphs, target, mapping)


def _copy_node(
    node: Node, graphs: dict[str, tuple[Graph, ...]], target: Graph, mapping: dict[Value, Value]
) -> None:
    operands = [None if v is None else mapping.get(v, v) for v in node.operands]
    copy = Node(node.op, operands, node.attributes, graphs, node.location, node.name)
    results = []
    for value in node.results:
        fresh = Value(value.type, value.name, copy, value.index)
        fresh.ints = value.ints
        mapping[value] = fresh
        results.append(fresh)
    copy.results = tuple(results)
    target._insert(copy, None)
