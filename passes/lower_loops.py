"""Loops: work that does not change leaves them, short ones are unrolled.  Unused carried values are `dce`'s work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..ir import dims as sizes
from ..ir import types
from ..ir.clone import copy_graph
from ..ir.dims import Dim
from ..ir.errors import IrcError
from ..ir.graph import Constant, Graph, Node, Value, graphs_inside
from ..ir.loops import trip_count
from ..ir.model import Model
from ..ir.rewrite import Rewriter
from .dce import Effects
from .manager import Level, Pass, register

_CHEAP = ("broadcast_in_dim", "reshape", "iota", "dimensions", "Tile")
"""Cheaper to do again than to keep: they leave a loop only before something that leaves it too."""


@register
@dataclass(frozen=True)
class LowerLoops(Pass):
    """Move what does not change out of loops, and unroll short ones.

    while(%x): body(%s) { %w = exponential(%c); %t = add(%s, %w) }   ->   %w = exponential(%c); while(%x): ..
    while(0, %x): cond(%i, ..) { %i < 2 } body(%i, %s) { f(%i, %s) }  ->   %a = f(0, %x); %b = f(1, %a)

    A node moves if it is pure, all its operands come from outside, and its types mention no dim that the loop binds.
    Pure nodes cannot fail, so moving them out of a loop that never runs is harmless; one that holds graphs or calls
    a function might not end, so it moves only out of a condition, or of a loop known to run.  Operators with effects
    (traps, host calls, hooks) never move.

    `unroll`: most nodes that unrolling may write, iterations times nodes of the body, sub-graphs included.  0 never
    unrolls.  Iterations differ in the counter that each one sees, so random keys folded from it stay distinct.
    """

    name: ClassVar[str] = "lower-loops"
    level: ClassVar[Level] = Level.LEGAL

    unroll: int = 32

    def __post_init__(self) -> None:
        if self.unroll < 0:
            raise IrcError(f"lower-loops: unroll must not be negative, got {self.unroll}")

    def run(self, model: Model, rewriter: Rewriter) -> None:
        # Inner loops first: what leaves them may leave the outer one too.
        loops = [
            node
            for function in model.functions.values()
            for graph in graphs_inside(function.body)
            for node in graph.nodes
            if node.op.name == "while"
        ]
        effects = Effects(model) if loops else None
        for loop in loops:
            if effects is not None:
                _hoist(loop, rewriter, effects)
        for loop in loops:
            if loop.graph is not None:  # not inside one that was unrolled
                _unroll(loop, rewriter, self.unroll)


# ------------------------------------------------------------------------------------------------- loop-invariant code


def _hoist(loop: Node, rewriter: Rewriter, effects: Effects) -> None:
    """Move the invariant nodes of condition and body before the loop, in their order."""
    count = trip_count(loop)
    runs = isinstance(count, int) and count > 0
    inside = {g for top in loop.all_graphs() for g in graphs_inside(top)}
    bound = bound_dims(inside)
    rewriter.label = "lower-loops/hoist"
    for graph in loop.all_graphs():
        always = runs or graph is loop.graphs["cond"][0]
        invariant: dict[Node, None] = {}
        for node in graph.nodes:
            holds = any(node.all_graphs()) or node.op.name == "call"
            if effects.of(node) or (holds and not always) or (bound and mentions(node, bound)):
                continue
            if all(_is_outer(v, inside, invariant) for v in _reads(node)):
                invariant[node] = None
        moved: dict[Node, None] = {}
        for node in reversed(invariant):
            if node.op.name not in _CHEAP or any(u in moved for u in _holders(node, graph)):
                moved[node] = None
        for node in reversed(moved):
            rewriter.move_before(node, loop)


def _is_outer(value: Value, inside: set[Graph], invariant: dict[Node, None]) -> bool:
    return value.node in invariant if value.node is not None and value.graph in inside else value.graph not in inside


def _reads(node: Node) -> list[Value]:
    """Operands and captures, constants apart."""
    values = [v for v in node.operands if v is not None and not isinstance(v, Constant)]
    for graph in node.all_graphs():
        values.extend(graph.captures())
    return values


def _holders(node: Node, graph: Graph) -> list[Node]:
    """The nodes of `graph` that use the results, themselves or in their sub-graphs."""
    found = []
    for result in node.results:
        for user, _ in result.uses:
            current: Any = user if isinstance(user, Node) else user.parent
            while isinstance(current, Node) and current.graph is not graph:
                current = current.graph.parent if current.graph is not None else None
            if isinstance(current, Node):
                found.append(current)
    return found


def bound_dims(graphs: set[Graph]) -> set[str]:
    """Dims that nodes of these graphs bind; only nodes behind them may mention them."""
    return {n.keywords["dim"] for g in graphs for n in g.nodes if n.op.name == "bind_dim"}


def mentions(node: Node, dims: set[str]) -> bool:
    """Whether types or attributes of the node, or of one inside it, mention one of these dims."""
    nodes = [node, *(n for g in node.all_graphs() for n in g.walk())]
    for each in nodes:
        if any(not dims.isdisjoint(types.symbols(r.type)) for r in each.results):
            return True
        if any(not dims.isdisjoint(_symbols(a)) for a in each.attributes.as_dict().values()):
            return True
    return False


def _symbols(attribute: Any) -> set[str]:
    if isinstance(attribute, tuple):
        return set().union(*map(_symbols, attribute)) if attribute else set()
    if isinstance(attribute, Dim):
        return set(sizes.symbols(attribute))
    return set(types.symbols(attribute)) if isinstance(attribute, types.TensorType) else set()


# ----------------------------------------------------------------------------------------------------------- unrolling


def _unroll(loop: Node, rewriter: Rewriter, cap: int) -> None:
    """Put the iterations of a loop of known, small length one behind the other."""
    count = trip_count(loop)
    (body,) = loop.graphs["body"]
    if not isinstance(count, int) or cap <= 0 or count > cap:
        return
    columns = zip(loop.operands, body.inputs, body.outputs, loop.results, strict=True)
    if any(v is None or len({v.type, i.type, o.type, r.type}) != 1 for v, i, o, r in columns):
        return  # equal only by an assumption, which the loop's types hide
    size = 0
    for node in body.walk():
        size += count
        if size > cap or node.op.name == "bind_dim":  # a dim is bound once
            return
    rewriter.label = "lower-loops/unroll"
    state: list[Value] = [v for v in loop.operands if v is not None]
    for _ in range(count):
        copy = Graph()
        copy_graph(body, copy, dict(zip(body.inputs, state, strict=True)))
        state = list(rewriter.inline_graph(copy, (), loop))
    rewriter.replace(loop, state)
