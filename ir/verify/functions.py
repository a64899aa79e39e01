"""Rules on functions: their table, calls, host and late code, names of inputs and outputs, levels."""

from __future__ import annotations

from collections.abc import Iterator

from ..effects import callees
from ..model import Function, Graph, Model, Node
from ..operators import Trait
from ..types import TensorType, Type
from .table import Context, rule

STAGED_LEVELS = ("legal", "core")


@rule("V014", "function")
def function_table(ctx: Context, function: Function) -> Iterator[str]:
    """A function stands in the table under its own name, is of kind device or host, and has one record of marks an
    input."""
    if ctx.model.functions.get(function.name) is not function:
        yield f"the model's table does not hold it under the name {function.name!r}"
    if function.kind not in ("device", "host"):
        yield f"its kind is {function.kind!r}; expected 'device' or 'host'"
    if len(function.input_attributes) != len(function.inputs):
        yield f"{len(function.inputs)} inputs, but marks for {len(function.input_attributes)}"


@rule("V015", "node")
def callee_exists(ctx: Context, node: Node) -> Iterator[str]:
    """A call names a function of the model."""
    if node.op.name == "call" and getattr(node.attributes, "callee", None) not in ctx.model.functions:
        known = ", ".join(f"@{n}" for n in ctx.model.functions)
        yield f"no function is called @{getattr(node.attributes, 'callee', '?')}; the model has {known or 'none'}"


@rule("V016", "model")
def acyclic_calls(ctx: Context, model: Model) -> Iterator[str]:
    """Calls are acyclic: no function calls itself, directly or through others."""
    done: set[str] = set()
    for start in model.functions:
        path: list[tuple[str, Iterator[str]]] = []
        if start not in done:
            path.append((start, iter(callees(model.functions[start]))))
        while path:
            name, pending = path[-1]
            callee = next((c for c in pending if c in model.functions and c not in done), None)
            if callee is None:
                done.add(name)
                path.pop()
            elif callee in (on_path := [n for n, _ in path]):
                circle = on_path[on_path.index(callee) :]
                yield f"functions call each other in a circle: {' -> '.join(f'@{n}' for n in [*circle, callee])}"
            else:
                path.append((callee, iter(callees(model.functions[callee]))))


@rule("V017", "node")
def host_work(ctx: Context, node: Node) -> Iterator[str]:
    """Device functions and `init` call no host function; from the level `legal` on they hold no host operator (before
    that, an entry that needs the host is not staged yet)."""
    function = ctx.graphs[ctx.nodes[node]]
    if function is not None and function.kind == "host":
        return
    where = f"device function @{function.name}" if function else "init"
    callee = ctx.model.functions.get(getattr(node.attributes, "callee", "")) if node.op.name == "call" else None
    if callee is not None and callee.kind == "host":
        yield f"{where} calls @{callee.name}, a host function"
    if Trait.HOST in node.op.traits and (function is None or ctx.level in STAGED_LEVELS):
        yield f"{node.op.name} runs on the host only, but stands in {where}"


@rule("V018", "node")
def host_functions(ctx: Context, node: Node) -> Iterator[str]:
    """A host function holds only calls, control flow, reads of integers (bind_dim, freeze), traps and host operators;
    it does no arithmetic on tensors."""
    function = ctx.graphs[ctx.nodes[node]]
    if function is None or function.kind != "host":
        return
    if node.op.family != "control" and Trait.HOST not in node.op.traits:
        yield f"{node.op.name} cannot run in the host function @{function.name}; call a device function for it"


@rule("V019", "graph")
def late_code(ctx: Context, graph: Graph) -> Iterator[str]:
    """Nodes and values that are typed only at run time do not occur in `init`, nor from the level `legal` on in a
    device function."""
    function = ctx.graphs[graph]
    if function is not None and (function.kind == "host" or ctx.level not in STAGED_LEVELS):
        return
    where = f"@{function.name}" if function else "init"
    for value in graph.inputs:
        if _is_unranked(value.type):
            yield f"input %{value.name} of {where} has the unranked type {value.type}"
    for node in graph.nodes:
        if Trait.LATE in node.op.traits:
            yield f"{node.label} in {where} is typed only at run time"
        elif any(_is_unranked(v.type) for v in node.results):
            yield f"{node.label} in {where} has a result without rank"


def _is_unranked(type_: Type) -> bool:
    return isinstance(type_, TensorType) and type_.dims is None


@rule("V023", "function")
def output_names(ctx: Context, function: Function) -> Iterator[str]:
    """A public function has one distinct, non-empty name an output; another function has as many or none."""
    names = function.output_names
    if (names or function.public) and len(names) != len(function.outputs):
        yield f"{len(function.outputs)} outputs, but {len(names)} output names"
    for name in dict.fromkeys(names):
        if not name:
            yield "an output has an empty name"
        elif names.count(name) > 1:
            yield f"{names.count(name)} outputs are called {name!r}"


@rule("V024", "function")
def input_names(ctx: Context, function: Function) -> Iterator[str]:
    """The inputs of a function have distinct names."""
    names = function.input_names
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield f"{names.count(name)} inputs are called {name!r}"


@rule("V028", "node")
def core_level(ctx: Context, node: Node) -> Iterator[str]:
    """At the level `core` only core operators are left."""
    if ctx.level == "core" and node.op.is_composite:
        yield f"{node.op.name} is a composite operator; at the level core it must be decomposed"
