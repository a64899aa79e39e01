"""Sizes that are rounded up: a function for capacities that takes the true sizes as inputs.

Which operator does what is said by the `bucket` rules of their definitions; see `ir.buckets`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from ..ir import dims as sizes
from ..ir import dtypes, types
from ..ir.buckets import NO_RULE, BucketContext, Refusal, bucketed, has_rule
from ..ir.clone import clone_model
from ..ir.dims import Dim, DimError, Size
from ..ir.errors import InferenceError, InputError
from ..ir.facts import Fact
from ..ir.graph import Node, Value
from ..ir.model import Function, Model
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from .inline import inline_calls
from .legalize import try_legalize
from .manager import Level, Pass, register

SIZE_ROLE = "true_size"
"""The mark of the inputs, behind all others, that take the true sizes; `dim` is the symbol."""


ONES = "bucket.ones"
"""Metadata of a function: sizes, separated by semicolons, whose capacities must be 1 just where they are 1."""

ROOM = "bucket.room"
"""Metadata of a function: sizes, separated by semicolons, whose capacities are not proved to be as great."""


@dataclass(frozen=True)
class Bucketed:
    """`model` takes capacities for the symbols `dims` of its function; `exact` says why others are none."""

    model: Model
    dims: tuple[str, ...]
    exact: dict[str, str] = field(default_factory=dict)


@register
@dataclass(frozen=True)
class BucketDims(Pass):
    """Let symbols of entries stand for capacities: true sizes come as inputs, and what lies behind them never matters.

    bucket-dims{dims="N"}:   func @main<N>(%x: f32[N]) { %y = reduce(%x) {axes = [0], kind = "sum"} }   ->
    func @main<N>(%x: f32[N], %size_N: i64[]) { %p = iota(); %v = compare(%p, %size_N) {direction = "lt"};
    %z = select(%v, %x, 0.0); %y = reduce(%z) {axes = [0], kind = "sum"} }

    A symbol stays as it is where an operator has no `bucket` rule and no decomposition into operators that have one.
    """

    name: ClassVar[str] = "bucket-dims"
    level: ClassVar[Level] = Level.CANONICAL

    dims: str
    """Symbols, separated by commas."""

    def run(self, model: Model, rewriter: Rewriter) -> None:
        names = [n.strip() for n in self.dims.split(",") if n.strip()]
        public = [f for f in model.functions.values() if f.public]
        if unknown := [n for n in names if not any(n in f.dims for f in public)]:
            raise InputError(f"no entry has the dim {', '.join(unknown)}")
        for function in public:
            chosen = [n for n in names if n in function.dims]
            done = bucket_dims(model, function.name, chosen)
            if done.dims:
                _apply(model, model.functions[function.name], done.dims, rewriter)


def bucket_dims(model: Model, entry: str, names: Iterable[str]) -> Bucketed:
    """A copy of `model` whose entry takes capacities for as many of these dims as its operators allow."""
    exact: dict[str, str] = {}
    chosen = list(names)
    while True:
        copy = clone_model(model)
        faults = _apply(copy, copy.entry(entry), chosen, Rewriter(copy, "bucket-dims")) if chosen else {}
        if not faults:
            return Bucketed(copy, tuple(chosen), exact)
        exact.update(faults)
        chosen = [n for n in chosen if n not in faults]


class _Rules:
    """The rules as capabilities: a composite that touches open axes is decomposed where its rule refuses."""

    name = "bucket-dims"

    def __init__(self, model: Model, function: Function, true: Mapping[str, Value]) -> None:
        self._model = model
        self._function = function
        self._true = true

    def claims(self, node: Node) -> str | None:
        if not touches(node, self._true) or _function_of(node) is not self._function:
            return None
        if not has_rule(node):
            return NO_RULE
        return self._refusal(node) if node.op.decompose is not None and node.op.bucket is not None else None

    def _refusal(self, node: Node) -> str | None:
        """Why the rule of a composite refuses; what it makes is thrown away: its operands may change until its turn."""
        scratch, known = Rewriter(self._model, self.name), dict(self._function.assumptions)
        try:
            bucketed(BucketContext(scratch.before(node), self._true, node, {}))
        except (Refusal, InferenceError, DimError) as error:
            return str(error)
        finally:
            self._function.assumptions = known
            made = [c.subject for c in scratch.changes if c.subject is not None]
            for new in reversed([n for n in made if n.graph is node.graph]):
                scratch.erase(new)
        return None


def _apply(model: Model, function: Function, names: Collection[str], rewriter: Rewriter) -> dict[str, str]:
    """Change the function, in place; for each symbol at fault why it cannot be (then the model is of no use)."""
    if any(n.op.name == "call" for n in function.body.walk()):
        inline_calls(model, rewriter)
    function.input_attributes += [{} for _ in function.inputs[len(function.input_attributes) :]]
    true = {n: function.add_input(TensorType(dtypes.i64, ()), f"size_{n}", role=SIZE_ROLE, dim=n) for n in names}
    try_legalize(model, _Rules(model, function, true))
    room: dict[Size, None] = {}
    faults: dict[str, str] = {}
    for name, why in _unfit(function, names, room):
        faults.setdefault(name, why)
    for value in _values(function):
        _forget_sizes(value, names)
    ones: dict[Size, None] = {}
    for node in [n for n in function.body.walk() if touches(n, names)]:
        ctx = BucketContext(rewriter.before(node), true, node, ones)
        try:
            values = bucketed(ctx)
        except (Refusal, InferenceError, DimError) as error:
            blamed = {s for d in getattr(error, "sizes", ()) for s in sizes.symbols(d)}
            for name in blamed.intersection(names) or mentioned(node, names):
                faults.setdefault(name, f"{node.label}: {str(error).removeprefix(f'{node.label}: ')}")
        else:
            if values is not None:
                rewriter.replace(node, values)
    for key, found in ((ONES, ones), (ROOM, room)):
        if found:
            function.metadata[key] = "; ".join(map(str, found))
    return faults


def _unfit(function: Function, names: Collection[str], room: dict[Size, None]) -> Iterator[tuple[str, str]]:
    """Symbols that cannot be rounded up, whatever the operators, and why; `room` gets sizes to check in each call."""
    for value in _values(function):
        dims = value.type.dims if isinstance(value.type, TensorType) else None
        for dim in dims or ():
            if sizes.grows(dim, names):
                continue
            if sizes.seems_to_grow(dim, names):
                room[dim] = None
                continue
            why = f"{value.name or 'a value'} has the size {dim}, which may shrink where it grows"
            yield from ((s, why) for s in sizes.symbols(dim) if s in names)
        if dims is None:
            yield from ((s, f"{value.name or 'a value'} has the type {value.type}") for s in types.symbols(value.type))


def mentioned(node: Node, names: Collection[str]) -> list[str]:
    """Which of these symbols the types and sizes of a node mention, itself, not its sub-graphs."""
    found: dict[str, None] = {}
    for value in (*node.operands, *node.results):
        if value is not None:
            found.update(dict.fromkeys(types.symbols(value.type)))
    for name, kind in node.op.kinds.items():
        if kind.base in ("size", "type"):
            found.update(dict.fromkeys(_symbols(node.attributes.as_dict()[name])))
    return sorted(n for n in found if n in names)


def touches(node: Node, names: Collection[str]) -> bool:
    return bool(mentioned(node, names))


def _symbols(value: object) -> Iterator[str]:
    if isinstance(value, tuple):
        for part in value:
            yield from _symbols(part)
    elif isinstance(value, Dim):
        yield from sizes.symbols(value)
    elif isinstance(value, TensorType):
        yield from types.symbols(value)


def _forget_sizes(value: Value, names: Collection[str]) -> None:
    """Known integers of a value are true sizes, which the symbols are no more."""
    if value.ints is not None:
        kept = tuple(None if isinstance(i, Dim) and not sizes.names_no(i, names) else i for i in value.ints)
        value.set_fact(Fact(value.type, kept))


def _values(function: Function) -> Iterator[Value]:
    """Inputs and results, those in sub-graphs included."""
    yield from function.inputs
    for node in function.body.walk():
        yield from node.results
        for graph in node.all_graphs():
            yield from graph.inputs


def _function_of(node: Node) -> Function | None:
    return None if node.graph is None else node.graph.function
