"""Rules on symbolic dims: who declares one, who binds one, and where it may be mentioned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from .. import dims as sizes
from .. import types
from ..dims import Dim
from ..effects import ancestor_in
from ..model import Function, Graph, Node
from ..types import OptionalType, SequenceType, TensorType
from .table import Context, describe, rule

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@rule("V020", "function")
def declared_dims(ctx: Context, function: Function) -> Iterator[str]:
    """The dims that a function declares are distinct identifiers, and each occurs in the type of an input, where a call
    finds its value."""
    used = {s for v in function.inputs for s in types.symbols(v.type)}
    for name in dict.fromkeys(function.dims):
        if not _NAME.fullmatch(name):
            yield f"{name!r} is not an identifier, so no dim can be called so"
        elif function.dims.count(name) > 1:
            yield f"the dim {name} is declared twice"
        elif name not in used:
            yield f"the dim {name} is declared but occurs in no input's type; remove it or bind it with bind_dim"


@rule("V021", "graph")
def mentioned_dims(ctx: Context, graph: Graph) -> Iterator[str]:
    """A dim that a type, a known integer or an attribute mentions is declared by the function or bound by a `bind_dim`
    that dominates the mention."""
    for value in graph.inputs:
        holder = graph.parent if isinstance(graph.parent, Node) else None
        mentioned = {*types.symbols(value.type), *_symbols(value.ints)}
        yield from _undeclared(ctx, graph, holder, mentioned, f"input {describe(value)}")
    for node in graph.nodes:
        mentioned = _symbols(node.attributes.as_dict().values())
        for value in node.results:
            mentioned |= {*types.symbols(value.type), *_symbols(value.ints)}
        yield from _undeclared(ctx, graph, node, mentioned, node.label)


@rule("V022", "node")
def bound_once(ctx: Context, node: Node) -> Iterator[str]:
    """A `bind_dim` binds a name that is an identifier, that its function does not declare and that no other `bind_dim`
    of the function binds."""
    if node.op.name != "bind_dim":
        return
    function = ctx.graphs[ctx.nodes[node]]
    name = str(getattr(node.attributes, "dim", ""))
    if not _NAME.fullmatch(name):
        yield f"{name!r} is not an identifier, so no dim can be called so"
    elif function is not None and name in function.dims:
        yield f"it binds {name}, which @{function.name} declares"
    elif ctx.binders[function].get(name) is not node:
        yield f"the dim {name} is bound twice"


@rule("V029", "function")
def assumed_dims(ctx: Context, function: Function) -> Iterator[str]:
    """The assumptions of a function mention only dims that it declares or binds."""
    known = {*function.dims, *ctx.binders[function]}
    for assumption in function.assumptions:
        for name in assumption.symbols():
            if name not in known:
                yield f"the assumption {assumption} mentions {name}, which @{function.name} neither declares nor binds"


def _undeclared(ctx: Context, graph: Graph, node: Node | None, names: Iterable[str], what: str) -> Iterator[str]:
    function = ctx.graphs[graph]
    declared = function.dims if function is not None else ()
    for name in sorted(names):
        if name in declared:
            continue
        binder = ctx.binders[function].get(name)
        if binder is None:
            where = (
                f"@{function.name} declares no such dim and no bind_dim binds it" if function else "init has no dims"
            )
            yield f"{what} mentions the dim {name}; {where}"
        elif node is None or not _precedes(binder, node):
            yield f"{what} mentions the dim {name}, which its bind_dim binds only later or in another branch"


def _precedes(binder: Node, node: Node) -> bool:
    anchor = None if binder.graph is None else ancestor_in(binder.graph, node)
    return anchor is not None and anchor is not binder and binder.comes_before(anchor)


def _symbols(value: Any) -> set[str]:
    """Names of the dims inside an attribute's value, however nested."""
    if isinstance(value, Dim):
        return set(sizes.symbols(value))
    if isinstance(value, TensorType | SequenceType | OptionalType):
        return types.symbols(value)
    if isinstance(value, tuple | list) or (hasattr(value, "__iter__") and not isinstance(value, str | bytes)):
        return {s for v in value for s in _symbols(v)}
    return set()
