"""Smaller variants of a model, the boldest first: what `shrink` tries.  Whether one still fails is not decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ..ir.build import Builder
from ..ir.clone import clone_model
from ..ir.data import ArrayData, Data, SplatData
from ..ir.errors import IrcError
from ..ir.facts import Fact
from ..ir.graph import Constant, Graph, Node, Value, graphs_inside
from ..ir.model import Model
from ..ir.operators import Operator
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from ..passes import run_passes
from ..passes.specialize import specialize

Size = tuple[int, int, int, int, int]


def size(model: Model) -> Size:
    """What every step makes smaller: outputs, nodes that do more than make zeros, nodes, operands, elements."""
    nodes = list(model.nodes())
    functions = model.functions.values()
    return (
        sum(len(f.body.outputs) for f in functions if f.public),
        sum(bool(n.operands) and not _is_fill(n) for n in nodes),
        len(nodes),
        sum(len(n.operands) for n in nodes),
        sum(_elements(v.type) for v in _typed(model)) + sum(map(_content, _constants(model))),
    )


def _is_fill(node: Node) -> bool:
    return node.op.name == "broadcast_in_dim" and isinstance(node.operands[0], Constant)


def _typed(model: Model) -> list[Value]:
    """Inputs, and results of all nodes."""
    functions = model.functions.values()
    return [*(v for f in functions for v in f.inputs), *(r for n in model.nodes() for r in n.results)]


def _elements(type_: object) -> int:
    if not isinstance(type_, TensorType) or not isinstance(type_.dims, tuple):
        return 0
    out = 1
    for dim in type_.dims:
        out *= dim if isinstance(dim, int) else 1
    return out


def _content(constant: Constant) -> int:
    """Elements that must be written down: one, where one fills the tensor, besides the sizes themselves."""
    data = constant.data
    if data is None:
        return 0
    return sum(data.shape) + (1 if isinstance(data, SplatData) else data.size)


def _constants(model: Model) -> list[Constant]:
    """Those in use, in the order in which nodes name them first."""
    found = {v: None for n in model.nodes() for v in n.operands if isinstance(v, Constant)}
    return list(found)


def smaller(model: Model) -> Iterator[Model | None]:
    """Variants of a model, or None for one that cannot be made; some may be unsound, or no smaller after all."""
    outputs = len(model.main.outputs)
    if outputs > 1:
        for i in range(outputs):
            yield _with_output(model, i)
    yield from _with_earlier_outputs(model)
    yield from _cuts(model, lambda graphs, main: [main])
    yield from _dissolved(model)
    yield from _without_carries(model)
    yield from _cuts(model, lambda graphs, main: [g for g in graphs if g is not main])
    yield from _with_plain_constants(model)
    yield from _with_smaller_sizes(model)


def _with_output(model: Model, index: int) -> Model | None:
    work = clone_model(model)
    function = work.main
    function.body.set_outputs([function.body.outputs[index]])
    function.output_names = [function.output_names[index]] if function.output_names else []
    return _cleaned(work)


def _with_earlier_outputs(model: Model) -> Iterator[Model | None]:
    """With the first half of the entry's nodes, then more and more of them, the last one's result as only output."""
    nodes = list(model.main.body.nodes)
    if len(model.main.outputs) != 1:
        return
    dropped = len(nodes) // 2
    while dropped >= 1:
        number = len(nodes) - dropped - 1
        index = next((r.index for r in nodes[number].results if isinstance(r.type, TensorType)), None)
        if index is not None:
            work = clone_model(model)
            work.main.body.set_outputs([list(work.main.body.nodes)[number].results[index]])
            yield _cleaned(work)
        dropped //= 2


def _cleaned(work: Model) -> Model | None:
    """Without dead nodes, and functions that only these called."""
    try:
        return run_passes(work, "dce,dce" if len(work.functions) > 1 else "dce")
    except IrcError:
        return None


# ------------------------------------------------------------------------------------------------------- runs of nodes


def _graphs(model: Model) -> list[Graph]:
    """All graphs of functions, inner ones first; a clone has them at the same places."""
    return [g for f in model.functions.values() for g in graphs_inside(f.body)]


def _cuts(model: Model, chosen: Callable[[list[Graph], Graph], list[Graph]]) -> Iterator[Model | None]:
    """Without runs of nodes of the chosen graphs, long runs first."""
    graphs = _graphs(model)
    steering = _steering(model)
    for graph in chosen(graphs, model.main.body):
        place = graphs.index(graph)
        free = [i for i, n in enumerate(graph.nodes) if n not in steering]
        length = max(1, len(free) // 2)
        while free and length >= 1:
            for start in range(0, len(free), length):
                yield _cut(model, place, free[start : start + length])
            length //= 2


def _cut(model: Model, place: int, numbers: list[int]) -> Model | None:
    """These nodes of a graph go; what others use of them becomes what `_stand_in` finds."""
    work = clone_model(model)
    every = list(_graphs(work)[place].nodes)
    nodes = [every[i] for i in numbers]
    gone = set(nodes)
    rewriter = Rewriter(work, "reduce")
    for node in reversed(nodes):
        for result in node.results:
            if not result.has_uses:
                continue
            stand_in = _stand_in(work, node, result, gone)
            if stand_in is None:
                return None
            rewriter.replace_uses(result, stand_in)
        rewriter.erase(node)
    return _cleaned(work)


def _stand_in(model: Model, node: Node, result: Value, gone: set[Node]) -> Value | None:
    """An operand of the same type from before the cut, else zeros, else None."""
    stack = [v for v in node.operands if v is not None]
    while stack:
        value = stack.pop(0)
        if value.type == result.type and value.node not in gone:
            return value
        if value.node in gone:
            stack += [v for v in value.node.operands if v is not None]
    type_ = result.type
    if not isinstance(type_, TensorType) or type_.dims is None or type_.dtype.is_string or node.graph is None:
        return None
    first = node.graph.first
    zeros: Value = Builder(model, node.graph, first).full(0, type_.dtype, type_.shape)
    return zeros


def _steering(model: Model) -> set[Node]:
    """Nodes inside loops that decide how often they run: a loop without them might not end."""
    out: set[Node] = set()
    for loop in [n for n in model.nodes() if n.op.name == "while"]:
        out.update(loop.graphs["cond"][0].walk())
        body = loop.graphs["body"][0]
        stack = [body.outputs[i] for i in sorted(_steering_state(loop))]
        while stack:
            node = stack.pop().node
            if node is None or node in out or node.graph is not body:
                continue
            out.update([node, *(n for g in node.all_graphs() for n in g.walk())])
            stack += _reads(node)
    return out


def _steering_state(loop: Node) -> set[int]:
    """Indices of the state that the condition hangs on, through any number of rounds."""
    (cond,), (body,) = loop.graphs["cond"], loop.graphs["body"]
    places = {v: i for i, v in enumerate(body.inputs)}
    found: set[int] = set()
    pending = [i for i, v in enumerate(cond.inputs) if v.has_uses]
    while pending:
        index = pending.pop()
        if index in found:
            continue
        found.add(index)
        seen: set[Value] = set()
        stack = [body.outputs[index]]
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if value in places:
                pending.append(places[value])
            elif value.node is not None and value.graph is body:
                stack += _reads(value.node)
    return found


def _reads(node: Node) -> list[Value]:
    """Operands, and what the graphs inside capture."""
    return [*(v for v in node.operands if v is not None), *(v for g in node.all_graphs() for v in g.captures())]


# -------------------------------------------------------------------------------------------------------- control flow


def _dissolved(model: Model) -> Iterator[Model | None]:
    """With one branch, or one round of a loop, in the place of its node, outer nodes first; then with calls inlined."""
    holders = [i for i, n in enumerate(model.nodes()) if n.graphs]
    for number in holders:
        node = list(model.nodes())[number]
        groups = [(key, i) for key, group in node.graphs.items() for i in range(len(group))]
        for key, i in [("body", 0)] if node.op.name == "while" else groups:
            graph = node.graphs[key][i]
            same = [v.type for v in graph.outputs] == [r.type for r in node.results]
            if same and len(graph.inputs) in (0, len(node.operands)):
                yield _instead(model, number, key, i)
    if any(n.op.name == "call" for n in model.nodes()):
        try:
            yield run_passes(clone_model(model), "inline,dce")
        except IrcError:
            yield None


def _instead(model: Model, number: int, key: str, index: int) -> Model | None:
    work = clone_model(model)
    node = list(work.nodes())[number]
    graph = node.graphs[key][index]
    arguments = [v for v in node.operands if v is not None] if graph.inputs else []
    if len(arguments) != len(graph.inputs):
        return None
    rewriter = Rewriter(work, "reduce")
    rewriter.replace(node, rewriter.inline_graph(graph, arguments, node))
    return _cleaned(work)


def _without_carries(model: Model) -> Iterator[Model | None]:
    """With one value that a loop carries as it is before the loop."""
    for number, node in enumerate(model.nodes()):
        if node.op.name != "while":
            continue
        for index in sorted({*range(len(node.operands))} - _steering_state(node)):
            work = clone_model(model)
            loop = list(work.nodes())[number]
            before = loop.operands[index]
            if before is None:
                continue
            rewriter = Rewriter(work, "reduce")
            (cond,), (body,) = loop.graphs["cond"], loop.graphs["body"]
            for value in (cond.inputs[index], body.inputs[index], loop.results[index]):
                rewriter.replace_uses(value, before)
            yield _cleaned(work)


# ------------------------------------------------------------------------------------------------- constants and sizes


def _with_plain_constants(model: Model) -> Iterator[Model | None]:
    """With one constant's first element everywhere in it."""
    for place, constant in enumerate(_constants(model)):
        data = constant.data
        if data is None or data.size < 2 or isinstance(data, SplatData) or data.dtype.is_string:
            continue
        work = clone_model(model)
        first = data.numpy().reshape(-1)[0]
        _replace_constant(work, _constants(work)[place], SplatData(first, data.dtype, data.shape))
        yield _cleaned(work)


def _replace_constant(work: Model, old: Constant, data: Data) -> None:
    new = work.inline_constant(data) if old.name is None else work.add_constant(old.name, data)
    Rewriter(work, "reduce").replace_uses(old, new)


def _with_smaller_sizes(model: Model) -> Iterator[Model | None]:
    """With one number made 1, or half as large, wherever inputs, constants and attributes have it as a size."""
    if model.derived:
        return  # what `init` computes would have to be typed anew too
    given = {d for v in _typed(model) if isinstance(v.type, TensorType) for d in v.type.dims or ()}
    held = {d for c in _constants(model) if c.data is not None for d in c.data.shape}
    for old in sorted((d for d in given | held if isinstance(d, int) and d > 1), reverse=True):
        for new in dict.fromkeys((1, old // 2)):
            yield _resized(model, old, new)


def _resized(model: Model, old: int, new: int) -> Model | None:
    work = clone_model(model)

    def resized(value: object) -> object:
        if isinstance(value, tuple):
            return tuple(map(resized, value))
        if isinstance(value, TensorType) and value.dims is not None:
            return TensorType(value.dtype, tuple(new if d == old else d for d in value.shape))
        return new if type(value) is int and value == old else value

    for constant in _constants(work):
        data = constant.data
        if data is not None and old in data.shape:
            part = tuple(slice(new if s == old else s) for s in data.shape)
            shape = tuple(new if s == old else s for s in data.shape)
            plain = isinstance(data, SplatData)
            made = SplatData(data.splat, data.dtype, shape) if plain else ArrayData(data.numpy()[part], data.dtype)
            _replace_constant(work, constant, made)
    for node in work.nodes():
        changed = {k: resized(v) for k, v in node.attributes.as_dict().items() if _holds_sizes(node.op, k)}
        node.attributes = node.op.make_attributes({**node.attributes.as_dict(), **changed})
    types = [resized(v.type) for v in work.main.inputs]
    for value, type_ in zip(work.main.inputs, types, strict=True):
        value.set_fact(Fact(type_))  # type: ignore[arg-type]  # a type stays one
    try:
        return _cleaned(specialize(work, work.main.name, types))  # type: ignore[arg-type]  # as above
    except Exception:  # rules that meet sizes which no model has may break in any way
        return None


def _holds_sizes(op: Operator, name: str) -> bool:
    return name in op.kinds and op.kinds[name].base in ("size", "type")
