"""Choices become `if`: case, expensive selects; what all branches compute is hoisted, what one alone needs sunk."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar

from ..ir.build import Builder, decompose
from ..ir.graph import Constant, Graph, Node, Value, graphs_inside
from ..ir.model import Model
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from .cse import key_of
from .dce import Effects
from .lower_loops import bound_dims, mentions
from .manager import Level, Pass, register

_CONTRACTIONS = ("linalg", "convolution", "attention", "recurrent")


@register
@dataclass(frozen=True)
class CondToIf(Pass):
    """Choose branches with `if`, and compute in each only what it alone needs.

    %y = case(%i) { a } { b } { c }                        ->   if(%i == 0) { a } else { if(%i == 1) { b } else { c } }
    %u = MatMul(%x, %w); %y = select(%p, %u, %x)           ->   if(%p) { MatMul(%x, %w) } else { %x }
    %u = exponential(%x); %y = if(%p) { %u } else { %x }   ->   if(%p) { exponential(%x) } else { %x }
    if(%p) { tanh(abs(%x)) } else { abs(%x) }              ->   %u = abs(%x); if(%p) { tanh(%u) } else { %u }

    `case`: whether `case` becomes nested ifs; a target that has it keeps the branches in one place.
    `select`: whether a select with a scalar predicate becomes an `if`, when the nodes that one side alone needs cost at
    least `min-cost`: elements read and written, or for contractions the square root of the product of the sizes of
    operands and result (the multiplications of a matrix product); a symbol counts as 1.  Cheap ones stay selects, which
    fuse with what is around them.
    `sink`: whether pure nodes before an `if` or `case` that only one branch uses move into it.  Never into a loop.
    """

    name: ClassVar[str] = "cond-to-if"
    level: ClassVar[Level] = Level.LEGAL

    case: bool = True
    select: bool = True
    sink: bool = True
    min_cost: int = 1 << 20

    def run(self, model: Model, rewriter: Rewriter) -> None:
        for node in rewriter.worklist(model.nodes()):
            if self.case and node.op.name == "case":
                _nested(node, rewriter)
        effects = Effects(model)
        for function in model.functions.values():
            # Inner graphs first: what all inner branches share may be shared further out too.
            for graph in graphs_inside(function.body):
                for node in graph.nodes:
                    if node.op.name in ("if", "case"):
                        _hoist_shared(node, rewriter, effects)
            # Outer graphs first: what sinks may sink further.
            pending = [function.body]
            while pending:
                graph = pending.pop()
                if self.select:
                    _selects(graph, rewriter, effects, self.min_cost)
                if self.sink:
                    _sink(graph, rewriter, effects)
                pending.extend(inner for node in graph.nodes for inner in node.all_graphs())


def _nested(node: Node, rewriter: Rewriter) -> None:
    rewriter.label = "cond-to-if/case"
    build = rewriter.before(node)
    rewriter.replace(node, decompose(build, node.op, node.operands, node.keywords))


# ------------------------------------------------------------------------------------------------------ what is shared


def _hoist_shared(choice: Node, rewriter: Rewriter, effects: Effects) -> None:
    """Nodes on outer values that every branch computes are computed once, before the choice."""
    graphs = list(choice.all_graphs())
    if len(graphs) < 2:
        return
    rewriter.label = "cond-to-if/hoist"
    bound = bound_dims({g for top in graphs for g in graphs_inside(top)})
    tables = [_Shared(graph, effects, bound) for graph in graphs]
    first, *others = tables
    # In order: a node whose operands have just moved out works on outer values only.
    for node in first.graph.nodes:
        key = first.key(node)
        if key is None:
            continue
        twins = [other.find(key) for other in others]
        if any(twin is None for twin in twins):
            continue
        rewriter.move_before(node, choice)
        for table, twin in zip(others, twins, strict=True):
            assert twin is not None
            table.forget(twin)
            rewriter.replace(twin, node.results)
            table.learn(u for r in node.results for u in r.users)


class _Shared:
    """The nodes of a branch that work on outer values, by what they compute."""

    def __init__(self, graph: Graph, effects: Effects, bound: set[str]) -> None:
        self.graph, self.effects, self.bound = graph, effects, bound
        self.nodes: dict[Hashable, Node] = {}
        self.learn(graph.nodes)

    def key(self, node: Node) -> Hashable | None:
        if node.graph is not self.graph or any(v is not None and v.graph is self.graph for v in node.operands):
            return None
        return None if self.bound and mentions(node, self.bound) else key_of(node, self.effects)

    def learn(self, nodes: Iterable[Node]) -> None:
        for node in nodes:
            key = self.key(node)
            if key is not None:
                self.nodes.setdefault(key, node)

    def find(self, key: Hashable) -> Node | None:
        return self.nodes.get(key)

    def forget(self, node: Node) -> None:
        key = self.key(node)
        if key is not None and self.nodes.get(key) is node:
            del self.nodes[key]


# ----------------------------------------------------------------------------------------------- what one branch needs


def _sink(graph: Graph, rewriter: Rewriter, effects: Effects) -> None:
    """Move each pure node that one branch of a choice alone uses to the start of that branch; users first."""
    rewriter.label = "cond-to-if/sink"
    node = graph.last
    while node is not None:
        previous = node.previous
        if not effects.of(node) and (branch := _only_branch(node, graph)) is not None:
            rewriter.move_to_start(node, branch)
        node = previous


def _only_branch(node: Node, graph: Graph) -> Graph | None:
    """The one graph of an `if` or `case` in `graph` in which all uses of the node lie."""
    found: Graph | None = None
    for result in node.results:
        for user, _ in result.uses:
            inner = user if isinstance(user, Graph) else user.graph
            while inner is not None and isinstance(inner.parent, Node) and inner.parent.graph is not graph:
                inner = inner.parent.graph
            if inner is None or inner is graph or not isinstance(inner.parent, Node):
                return None
            if inner.parent.op.name not in ("if", "case") or found not in (None, inner):
                return None
            found = inner
    return found


# ------------------------------------------------------------------------------------------------------------- selects


def _selects(graph: Graph, rewriter: Rewriter, effects: Effects, min_cost: int) -> None:
    """From the last on: the outer select of a chain first, so that the inner ones sink into its else branch."""
    rewriter.label = "cond-to-if/select"
    node = graph.last
    while node is not None:
        previous = node.previous
        if node.op.name == "select" and _pays(node, effects, min_cost):
            predicate, x, y = node.operands
            assert predicate is not None
            assert x is not None
            assert y is not None
            build = rewriter.before(node)
            then, otherwise = (_branch(build, v, node.result) for v in (x, y))
            effects.add(then)
            effects.add(otherwise)
            rewriter.replace(node, build.if_(predicate, then=then, else_=otherwise))
        node = previous


def _branch(build: Builder, value: Value, result: Value) -> Graph:
    dims = result.tensor.shape

    def body(inner: Builder) -> Value:
        if value.type == result.type:
            return value
        axes = tuple(range(len(dims) - value.rank, len(dims)))
        spread: Value = inner.broadcast_in_dim(value, dims=dims, broadcast_dimensions=axes)
        return spread

    return build.region([], body)


def _pays(node: Node, effects: Effects, min_cost: int) -> bool:
    predicate, x, y = node.operands
    if predicate is None or x is None or y is None or not all(isinstance(v.type, TensorType) for v in (x, y)):
        return False
    if predicate.tensor.dims != () or node.result.tensor.dims is None or x is y:
        return False
    return any(_cost(side, node, effects, min_cost) >= min_cost for side in (x, y))


def _cost(side: Value, select: Node, effects: Effects, enough: int) -> int:
    """The cost of what only this operand of the select needs; stops when that is enough."""
    total = 0
    inside: set[Node | Graph] = {select}
    stack = [side]
    if sum(user is select for user, _ in side.uses) != 1:
        return 0
    while stack and total < enough:
        value = stack.pop()
        node = value.node
        if node is None or isinstance(value, Constant) or node.graph is not select.graph or effects.of(node):
            continue
        if node in inside or not all(u in inside for r in node.results for u, _ in r.uses):
            continue  # another use may lie inside too: the node comes again with it
        inside.add(node)
        total += cost_of(node)
        stack.extend(v for v in node.operands if v is not None)
    return total


def cost_of(node: Node) -> int:
    """Elements read and written; for contractions the geometric mean of a matrix product's multiplications."""
    sizes = [_elements(v) for v in (*node.operands, *node.results) if v is not None]
    if node.op.family in _CONTRACTIONS:
        return math.isqrt(math.prod(sizes))
    return sum(sizes)


def _elements(value: Value) -> int:
    type_ = value.type
    if not isinstance(type_, TensorType) or type_.dims is None:
        return 1
    return math.prod(d if isinstance(d, int) else 1 for d in type_.dims)
