"""Structural equality of models, and what differs between two.  Labels of inner values and locations do not count.

Nodes are compared by position after alignment, so that one inserted node does not make all others differ.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any, Final

import numpy as np

from .attributes import bits
from .data import ArrayData, Data, SplatData
from .model import Constant, Function, Graph, Model, Node, Value
from .text import attribute_text, constant_text, label, print_node

_EXACT: Final = 200_000
"""Up to this product of lengths, ranges of nodes are aligned by the exact and quadratic method."""

_AHEAD: Final = 50
"""How far to look for a node of the same operator where nothing else fits."""

_NOTHING: Final = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: where, of what, and how the two models have it (None: that one has it not)."""

    where: str
    what: str
    first: str | None
    second: str | None

    def __str__(self) -> str:
        if self.second is None:
            return f"{self.where}: {self.what} only in the first: {self.first}"
        if self.first is None:
            return f"{self.where}: {self.what} only in the second: {self.second}"
        return f"{self.where}: {self.what}: {self.first} -> {self.second}"


def equal(a: Model, b: Model) -> bool:
    """Whether two models have the same structure, types, attributes, constants and metadata."""
    return next(_models(a, b), None) is None


def diff(a: Model, b: Model) -> list[Difference]:
    """All differences, in the order of the text."""
    return list(_models(a, b))


def same_data(a: Data | None, b: Data | None) -> bool:
    """Equal dtype, shape and bits; splats are not expanded to find out."""
    if a is None or b is None:
        return a is b
    if isinstance(a, SplatData) and isinstance(b, SplatData) and a.type == b.type and a.size:
        a, b = SplatData(a.splat, a.dtype, ()), SplatData(b.splat, b.dtype, ())
    return a.equals(b)


def _models(a: Model, b: Model) -> Iterator[Difference]:
    yield from _plain("model", "name", a.name, b.name)
    yield from _mapping("model", "metadata", a.metadata, b.metadata)
    yield from _constants(a, b)
    mapping: dict[Value, Value] = {}
    yield from _graphs("init", a.init, b.init, mapping)
    for name in _union(a.functions, b.functions):
        first, second = a.functions.get(name), b.functions.get(name)
        if first is None or second is None:
            yield Difference("model", "function", _shown(_signature, first), _shown(_signature, second))
        else:
            yield from _functions(first, second)


def _constants(a: Model, b: Model) -> Iterator[Difference]:
    for name in _union(a.constants, b.constants):
        first, second = a.constants.get(name), b.constants.get(name)
        if first is None or second is None:
            yield Difference("model", f"constant #{name}", _shown(_described, first), _shown(_described, second))
            continue
        if first.type != second.type or not same_data(first.data, second.data):
            yield Difference("model", f"constant #{name}", _described(first), _described(second))
        yield from _mapping(f"constant #{name}", "metadata", first.metadata, second.metadata)
    first_names, second_names = ([c.name or "" for c in m.derived] for m in (a, b))
    yield from _plain("init", "derived constants", _labels(first_names), _labels(second_names))


def _described(constant: Constant) -> str:
    data = constant.data
    if data is None:
        return f"{constant.type} derived in init"
    if isinstance(data, SplatData) or data.size <= 8:
        return constant_text(data)
    return f"{constant.type} sha256:{data.digest[:16]}"


def _signature(function: Function) -> str:
    inputs = ", ".join(f"{n}: {v.type}" for n, v in zip(function.input_names, function.inputs, strict=True))
    kind = f"{'' if function.public else 'private '}{'host ' if function.kind == 'host' else ''}func"
    return f"{kind} @{function.name}({inputs}) -> ({', '.join(str(v.type) for v in function.outputs)})"


def _functions(a: Function, b: Function) -> Iterator[Difference]:
    where = f"@{a.name}"
    yield from _plain(where, "kind", a.kind, b.kind)
    yield from _plain(where, "visibility", "public" if a.public else "private", "public" if b.public else "private")
    yield from _plain(where, "dims", ", ".join(a.dims), ", ".join(b.dims))
    yield from _mapping(where, "metadata", a.metadata, b.metadata)
    first, second = ({f"{x} from {x.node!r}": x for x in f.assumptions} for f in (a, b))
    for text in _union(first, second):
        if text not in first or text not in second:
            yield Difference(where, "assumption", text if text in first else None, text if text in second else None)
    for i, (m, n) in enumerate(zip(a.input_attributes, b.input_attributes, strict=False)):
        yield from _mapping(where, f"mark of input {i}", m, n)
    yield from _plain(where, "input names", _labels(a.input_names), _labels(b.input_names))
    yield from _plain(where, "output names", _labels(a.output_names), _labels(b.output_names))
    yield from _graphs(where, a.body, b.body, {})


def _shown(spell: Callable[[Any], str], thing: Any) -> str | None:
    return None if thing is None else spell(thing)


def _labels(names: Iterable[str]) -> str:
    return ", ".join(map(label, names))


def _plain(where: str, what: str, first: str, second: str) -> Iterator[Difference]:
    if first != second:
        yield Difference(where, what, first or _NOTHING, second or _NOTHING)


def _mapping(where: str, what: str, first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[Difference]:
    for key in _union(first, second):
        if first.get(key) != second.get(key):
            yield Difference(where, f"{what} {key}", first.get(key), second.get(key))


def _union(first: Mapping[str, Any], second: Mapping[str, Any]) -> list[str]:
    return list(dict.fromkeys([*first, *second]))


# Graphs


def _graphs(where: str, a: Graph, b: Graph, mapping: dict[Value, Value]) -> Iterator[Difference]:
    """Two graphs and those nested in them.  `mapping` takes values of the first to those of the second."""
    pending = [(where, a, b)]
    while pending:
        where, a, b = pending.pop()
        inner: list[tuple[str, Graph, Graph]] = []
        if len(a.inputs) != len(b.inputs):
            yield Difference(where, "number of inputs", str(len(a.inputs)), str(len(b.inputs)))
        for i, (x, y) in enumerate(zip(a.inputs, b.inputs, strict=False)):
            mapping[x] = y
            if x.type != y.type or x.ints != y.ints:
                yield Difference(where, f"input {i}", _typed(x), _typed(y))
        for node, other in aligned(list(a.nodes), list(b.nodes)):
            if node is None or other is None:
                yield Difference(where, "node", _shown(_head, node), _shown(_head, other))
                continue
            mapping.update(zip(node.results, other.results, strict=False))
            yield from _nodes(f"{where}: {_named(node)}", node, other, mapping, inner)
        yield from _uses(where, "output", a.outputs, b.outputs, mapping)
        pending += reversed(inner)


def _typed(value: Value) -> str:
    ints = "" if value.ints is None else f" holding [{', '.join('?' if i is None else str(i) for i in value.ints)}]"
    return f"{value.type}{ints}"


def _named(node: Node) -> str:
    names = ", ".join(f"%{r.name}" for r in node.results if r.name is not None)
    return f"{names} = {node.op.name}" if names else node.op.name


def _head(node: Node) -> str:
    return print_node(node, sub_graphs=False)


def _nodes(
    where: str, a: Node, b: Node, mapping: Mapping[Value, Value], inner: list[tuple[str, Graph, Graph]]
) -> Iterator[Difference]:
    """Two aligned nodes, which have one operator; their sub-graphs are put on `inner`."""
    yield from _uses(where, "operand", _trimmed(a), _trimmed(b), mapping)
    for name, kind, _ in a.op.fields:
        x, y = getattr(a.attributes, name), getattr(b.attributes, name)
        if not same_attribute(x, y):
            yield Difference(where, f"attribute {name}", attribute_text(x, kind), attribute_text(y, kind))
    if len(a.results) != len(b.results):
        yield Difference(where, "number of results", str(len(a.results)), str(len(b.results)))
    for i, (r, s) in enumerate(zip(a.results, b.results, strict=False)):
        if r.type != s.type:
            yield Difference(where, f"type of result {i}", str(r.type), str(s.type))
    for spec in a.op.regions:
        first, second = a.graphs.get(spec.name, ()), b.graphs.get(spec.name, ())
        if len(first) != len(second):
            yield Difference(where, f"number of graphs {spec.name}", str(len(first)), str(len(second)))
        for i, (g, h) in enumerate(zip(first, second, strict=False)):
            inner.append((f"{where} {spec.name.rstrip('_')}{f' {i}' if spec.variadic else ''}", g, h))


def _trimmed(node: Node) -> tuple[Value | None, ...]:
    operands = node.operands
    while operands and operands[-1] is None and not node.op.groups:
        operands = operands[:-1]
    return operands


def _uses(
    where: str, what: str, a: Sequence[Value | None], b: Sequence[Value | None], mapping: Mapping[Value, Value]
) -> Iterator[Difference]:
    if len(a) != len(b):
        yield Difference(where, f"number of {what}s", str(len(a)), str(len(b)))
    for i, (x, y) in enumerate(zip(a, b, strict=False)):
        if not _same_use(x, y, mapping):
            yield Difference(where, f"{what} {i}", _use(x), _use(y))


def _same_use(x: Value | None, y: Value | None, mapping: Mapping[Value, Value]) -> bool:
    if x is None or y is None:
        return x is y
    if isinstance(x, Constant) and isinstance(y, Constant):
        if x.name is not None or y.name is not None:  # what is behind equal names is compared once, with the constants
            return x.name == y.name
        return same_data(x.data, y.data)
    return mapping.get(x) is y


def _use(value: Value | None) -> str:
    if value is None:
        return "_"
    if isinstance(value, Constant):
        return f"#{value.name}" if value.name is not None or value.data is None else constant_text(value.data)
    return f"%{value.name}" if value.name is not None else f"an unnamed value of type {value.type}"


def same_attribute(x: Any, y: Any) -> bool:
    """Equal by bits; constants inside a payload by their contents, lists and tuples alike."""
    x, y = (ArrayData(v) if isinstance(v, np.ndarray) else v for v in (x, y))
    if isinstance(x, list | tuple) and isinstance(y, list | tuple):
        return len(x) == len(y) and all(map(same_attribute, x, y))
    if isinstance(x, dict) and isinstance(y, dict):
        return list(x) == list(y) and all(same_attribute(x[k], y[k]) for k in x)
    if isinstance(x, Data) and isinstance(y, Data):
        return same_data(x, y)
    return type(x) is type(y) and bool(bits(x) == bits(y))


# Alignment

Pair = tuple[Node | None, Node | None]


def aligned(a: Sequence[Node], b: Sequence[Node]) -> Iterator[Pair]:
    """Nodes side by side, in order; None where one side has no counterpart.  Pairs have one operator.

    Equal beginnings and ends are cut off; of the rest, nodes that occur once on each side are anchors, and what is
    between two anchors is aligned exactly if it is short.
    """
    yield from _aligned(a, b, [_look(n) for n in a], [_look(n) for n in b])


def _look(node: Node) -> tuple[Any, ...]:
    """What a node looks like from outside, its operands apart."""
    attributes = tuple(_hashable(getattr(node.attributes, name)) for name, _, _ in node.op.fields)
    return node.op.name, attributes, tuple(r.type for r in node.results), len(node._operands)


def _hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(map(_hashable, value))
    if isinstance(value, dict):
        return tuple((k, _hashable(v)) for k, v in value.items())
    if isinstance(value, Data | np.ndarray):
        return value.shape
    return bits(value)


def _aligned(a: Sequence[Node], b: Sequence[Node], looks: Sequence[Any], others: Sequence[Any]) -> Iterator[Pair]:
    start, stop = 0, 0
    shorter = min(len(a), len(b))
    while start < shorter and looks[start] == others[start]:
        start += 1
    while stop < shorter - start and looks[-1 - stop] == others[-1 - stop]:
        stop += 1
    yield from zip(a[:start], b[:start], strict=True)
    i = j = start
    ends = len(a) - stop, len(b) - stop
    for x, y in [*_anchors(looks[i : ends[0]], others[j : ends[1]]), (ends[0] - start, ends[1] - start)]:
        x, y = x + start, y + start
        yield from _between(a[i:x], b[j:y], looks[i:x], others[j:y])
        if (x, y) != ends:
            yield a[x], b[y]
        i, j = x + 1, y + 1
    yield from zip(a[ends[0] :], b[ends[1] :], strict=True)


def _anchors(looks: Sequence[Any], others: Sequence[Any]) -> list[tuple[int, int]]:
    """Positions of looks that occur once on each side, as many as keep their order (patience sorting)."""
    if len(looks) * len(others) <= _EXACT:
        return []
    first, second = _once(looks), _once(others)
    pairs = [(i, second[look]) for look, i in first.items() if look in second]
    piles: list[int] = []
    tops: list[int] = []
    before: list[int] = []
    for k, (_, j) in enumerate(pairs):
        at = bisect_left(piles, j)
        before.append(tops[at - 1] if at else -1)
        piles[at : at + 1] = [j]
        tops[at : at + 1] = [k]
    chain: list[tuple[int, int]] = []
    k = tops[-1] if tops else -1
    while k >= 0:
        chain.append(pairs[k])
        k = before[k]
    return chain[::-1]


def _once(looks: Sequence[Any]) -> dict[Any, int]:
    found: dict[Any, int] = {}
    for i, look in enumerate(looks):
        found[look] = -1 if look in found else i
    return {look: i for look, i in found.items() if i >= 0}


def _between(a: Sequence[Node], b: Sequence[Node], looks: Sequence[Any], others: Sequence[Any]) -> Iterator[Pair]:
    if len(a) * len(b) > _EXACT:  # long and without anchors: nothing better than position, operator by operator
        yield from _by_operator(a, b)
        return
    for tag, i, k, j, m in SequenceMatcher(None, looks, others, autojunk=False).get_opcodes():
        if tag == "equal":
            yield from zip(a[i:k], b[j:m], strict=True)
        else:
            yield from _by_operator(a[i:k], b[j:m])


def _by_operator(a: Sequence[Node], b: Sequence[Node]) -> Iterator[Pair]:
    """Nodes of one operator in order, wherever attributes or types differ; the rest has no counterpart."""
    at = 0
    for node in a:
        found = next((k for k in range(at, min(len(b), at + _AHEAD)) if b[k].op is node.op), None)
        if found is None:
            yield node, None
            continue
        for other in b[at:found]:
            yield None, other
        yield node, b[found]
        at = found + 1
    for other in b[at:]:
        yield None, other
