"""Dead code: unused pure nodes, values carried by loops for nothing, constants, and private functions nobody calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.effects import callees
from ..ir.graph import Constant, Graph, Node, Value, graphs_inside
from ..ir.model import Model
from ..ir.operators import Trait
from ..ir.rewrite import Rewriter
from .manager import Level, Pass, register


@register
@dataclass(frozen=True)
class Dce(Pass):
    """Drop what nothing uses.

    %a = exponential(%x); %b = negate(%x); return %b   ->   %b = negate(%x); return %b

    Nodes with effects stay.  `while-carries`: values that a loop carries only to compute themselves go too.
    `constants`: so do named constants without use, with what `init` computes for them.  `functions`: and private
    functions that nothing calls.
    """

    name: ClassVar[str] = "dce"
    level: ClassVar[Level] = Level.LEGAL

    while_carries: bool = True
    constants: bool = True
    functions: bool = True

    def run(self, model: Model, rewriter: Rewriter) -> None:
        if self.functions:
            drop_functions(model, rewriter)
        effects = Effects(model)
        for function in model.functions.values():
            for graph in graphs_inside(function.body):
                _drop_nodes(graph, rewriter, effects, self.while_carries)
        if self.constants:
            _drop_constants(model, rewriter, effects)


class Effects:
    """Which nodes must stay, graphs inside and callees included; every graph is looked at once."""

    def __init__(self, model: Model) -> None:
        self._graphs: dict[Graph, bool] = {}
        self._functions: dict[str, bool] = {}
        # Callees first: calls are acyclic, so each function is decided before those that call it.
        for name in functions_in_call_order(model):
            body = model.functions[name].body
            for graph in graphs_inside(body):
                self._graphs[graph] = any(map(self.of, graph.nodes))
            self._functions[name] = self._graphs[body]

    def add(self, graph: Graph) -> None:
        """Take in a graph that a pass has written since; the graphs inside it must be known."""
        self._graphs[graph] = any(map(self.of, graph.nodes))

    def of(self, node: Node) -> bool:
        if Trait.EFFECTS in node.op.traits:
            return True
        if node.op.name == "call":
            return self._functions.get(node.keywords["callee"], True)
        return bool(node.graphs) and any(self._graphs.get(g, True) for g in node.all_graphs())


def functions_in_call_order(model: Model, *starts: str) -> list[str]:
    """Names of the functions that `starts` reach (default: of all), callees before callers; iterative."""
    order: dict[str, None] = {}
    for start in starts or model.functions:
        stack: list[tuple[str, list[str]]] = [(start, callees(model.functions[start]))] if start not in order else []
        while stack:
            name, pending = stack[-1]
            if pending:
                callee = pending.pop(0)
                if callee in model.functions and callee not in order:
                    stack.append((callee, callees(model.functions[callee])))
                continue
            order.setdefault(name)
            stack.pop()
    return list(order)


def drop_functions(model: Model, rewriter: Rewriter) -> None:
    """Erase the functions that no public one reaches."""
    reached = {name: None for name, f in model.functions.items() if f.public}
    queue = list(reached)
    while queue:
        for callee in callees(model.functions[queue.pop()]):
            if callee not in reached and callee in model.functions:
                reached[callee] = None
                queue.append(callee)
    for name in [n for n in model.functions if n not in reached]:
        rewriter.erase_function(name)


def _drop_nodes(graph: Graph, rewriter: Rewriter, effects: Effects, carries: bool) -> None:
    """From the last node to the first, so that users go before what they use."""
    node = graph.last
    while node is not None:
        previous = node.previous
        if not any(r.has_uses for r in node.results) and not effects.of(node):
            rewriter.erase(node)
        elif carries and node.op.name == "while":
            _drop_carries(node, rewriter, effects)
        node = previous


def _drop_constants(model: Model, rewriter: Rewriter, effects: Effects) -> None:
    rewriter.erase_constants([c for c in model.derived if not c.has_uses])
    for graph in graphs_inside(model.init):
        _drop_nodes(graph, rewriter, effects, carries=False)
    rewriter.erase_constants([c for c in model.constants.values() if not c.has_uses])


# ------------------------------------------------------------------------------------------------------ carried values


def _drop_carries(node: Node, rewriter: Rewriter, effects: Effects) -> None:
    """Replace the loop by one that does not carry what neither its condition nor a used result needs."""
    (cond,), (body,) = node.graphs["cond"], node.graphs["body"]
    live = _live_carries(node, cond, body, effects)
    if len(live) == len(node.results):
        return
    dead = [i for i in range(len(node.results)) if i not in live]
    kept = sorted(live)
    body.set_outputs([body.outputs[i] for i in kept])
    # What only the dead carries needed inside goes first: it uses the inputs that are about to go.
    _drop_nodes(body, rewriter, effects, carries=False)
    for graph in (cond, body):
        graph.inputs = [graph.inputs[i] for i in kept]
        for index, value in enumerate(graph.inputs):
            value.index = index
    build = rewriter.before(node).at(node.location)
    new = build.create(
        node.op,
        [node.operands[i] for i in kept],
        {},
        {"cond": (cond,), "body": (body,)},
        [node.results[i].name for i in kept],
    )
    values: list[Value | None] = [None] * len(node.results)
    for index, i in enumerate(kept):
        values[i] = new.results[index]
    assert not any(node.results[i].has_uses for i in dead)
    rewriter.replace(node, values)


def _live_carries(node: Node, cond: Graph, body: Graph, effects: Effects) -> set[int]:
    """Indices of the state that the condition, an effect, or a used result depends on, through any number of rounds."""
    needed: set[Value] = set()
    live = {i for i, r in enumerate(node.results) if r.has_uses}
    # Everything that the condition computes is kept as it is: only values without any use in it can go.
    live |= {i for i, v in enumerate(cond.inputs) if v.has_uses}
    stack: list[Value] = [body.outputs[i] for i in live]
    for inner in body.nodes:
        if effects.of(inner):
            stack.extend(_reads(inner))
    inputs = {v: i for i, v in enumerate(body.inputs)}
    while stack:
        value = stack.pop()
        if value in needed:
            continue
        needed.add(value)
        if (index := inputs.get(value)) is not None:
            if index not in live:
                live.add(index)
                stack.append(body.outputs[index])
        elif value.node is not None and value.graph is body:
            stack.extend(_reads(value.node))
    return live


def _reads(node: Node) -> list[Value]:
    """Operands, and what the graphs inside capture."""
    reads = [v for v in node.operands if v is not None and not isinstance(v, Constant)]
    for graph in node.all_graphs():
        reads.extend(graph.captures())
    return reads
