"""Inlining: a call becomes a copy of the called function's nodes, typed for the arguments of that call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir import dims as sizes
from ..ir import types
from ..ir.clone import copy_graph
from ..ir.dims import Size
from ..ir.errors import IrcError
from ..ir.facts import Fact
from ..ir.graph import Graph, Node, Value, graphs_inside
from ..ir.infer import InferContext, infer
from ..ir.model import Function, Model, fresh_name
from ..ir.ops.control import solved
from ..ir.rewrite import Rewriter
from .dce import drop_functions, functions_in_call_order
from .manager import Level, Pass, register
from .specialize import substitute_attributes

LIMIT = 1 << 20
"""Nodes that inlining may make of a model: functions that call each other twice grow exponentially."""


@register
@dataclass(frozen=True)
class Inline(Pass):
    """Put what a function does in the place of its calls.

    %y = call(%x) {callee = @f}   ->   %y = tanh(%x)   where   func @f(%a) { %b = tanh(%a); return %b }

    Calls in host functions and calls of them stay.  Private functions that nothing calls any more go.
    """

    name: ClassVar[str] = "inline"
    level: ClassVar[Level] = Level.LEGAL

    def run(self, model: Model, rewriter: Rewriter) -> None:
        inline_calls(model, rewriter)


def inline_calls(model: Model, rewriter: Rewriter) -> None:
    """Inline every call between device functions; IrcError if the model would grow beyond LIMIT nodes."""
    total = 0
    # Callees first: what is copied holds no call any more.
    for name in functions_in_call_order(model):
        function = model.functions[name]
        if function.kind != "device":
            continue
        for node in [n for n in function.body.walk() if n.op.name == "call"]:
            callee = model.functions[node.keywords["callee"]]
            if callee.kind == "device":
                total += sum(1 for _ in callee.body.walk())
                if total > LIMIT:
                    raise IrcError(f"{node.label}: inlining the calls of the model would make more than {LIMIT} nodes")
                _inline(node, callee, function, rewriter)
    drop_functions(model, rewriter)


def _inline(node: Node, callee: Function, caller: Function, rewriter: Rewriter) -> None:
    arguments = [v for v in node.operands if v is not None]
    ctx = InferContext(rewriter.model, caller, node.label)
    bindings: dict[str, Size] = dict(solved(ctx, callee, [v.fact for v in arguments]))  # type: ignore[no-untyped-call]  # rule tables are untyped
    _rename_bound(callee, caller, bindings)
    copy = Graph()
    mapping: dict[Value, Value] = dict(zip(callee.inputs, arguments, strict=True))
    copy_graph(callee.body, copy, mapping)
    _retype(copy, bindings, ctx)
    ctx.assumptions.update(dict.fromkeys(a.substitute(bindings) for a in callee.assumptions))
    caller.assumptions.update(dict.fromkeys(a for a in ctx.assumptions if a.holds() is not True))
    rewriter.replace(node, rewriter.inline_graph(copy, (), node))


def _rename_bound(callee: Function, caller: Function, bindings: dict[str, Size]) -> None:
    """Dims that a node of the callee binds get names that the caller does not use."""
    bound = [n.keywords["dim"] for n in callee.body.walk() if n.op.name == "bind_dim"]
    if not bound:
        return
    taken = dict.fromkeys([*caller.dims, *(s for size in bindings.values() for s in sizes.symbols(size))])
    taken.update((n.keywords["dim"], None) for n in caller.body.walk() if n.op.name == "bind_dim")
    for name in bound:
        fresh = fresh_name(name, taken)
        taken[fresh] = None
        bindings[name] = sizes.symbol(fresh)


def _retype(copy: Graph, bindings: dict[str, Size], ctx: InferContext) -> None:
    """Replace symbols in the copied nodes, then type them again from the arguments on."""
    for node in copy.walk():
        attributes = substitute_attributes(node.op, node.attributes, bindings)
        if node.op.name == "bind_dim":
            attributes["dim"] = str(bindings[node.keywords["dim"]])
        node.attributes = node.op.make_attributes(attributes)
        for value in (*node.results, *(v for g in node.all_graphs() for v in g.inputs)):
            ints = value.ints and tuple(None if i is None else sizes.substitute(i, bindings) for i in value.ints)
            value.set_fact(Fact(types.substitute(value.type, bindings), ints))
    for graph in graphs_inside(copy):
        for node in graph.nodes:
            found = infer(
                ctx, node.op, [None if v is None else v.fact for v in node.operands], node.attributes, node.graphs
            )
            for value, fact in zip(node.results, (found,) if isinstance(found, Fact) else found, strict=True):
                value.set_fact(fact)
