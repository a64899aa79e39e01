"""Specialization: an entry for given input types.  Sizes are replaced and every node is typed again, calls included."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from ..ir import dims as sizes
from ..ir import types
from ..ir.attributes import Attributes, Symbol
from ..ir.binding import bind_dims, check_assumptions
from ..ir.build import Builder
from ..ir.clone import copy_graph
from ..ir.data import Data
from ..ir.dims import DimError, Size
from ..ir.errors import AssumptionError, InferenceError, InputError, IrcError
from ..ir.facts import Ints
from ..ir.graph import Constant, Graph, Node, Value
from ..ir.model import Function, Model, fresh_name
from ..ir.operators import Operator
from ..ir.rewrite import Change, Rewriter
from ..ir.types import TensorType, Type
from .manager import Level, Pass, register

Sizes: TypeAlias = Mapping[str, Size]


def specialize(
    model: Model,
    entry: str | None,
    input_types: Sequence[Type],
    frozen: Mapping[Value, Data] | None = None,
    known: Sizes | None = None,
) -> Model:
    """A model whose entry takes inputs of these types: sizes are numbers or other symbols, one type an input.

    Every node is typed anew from the operand types on, in sub-graphs and in called functions too (one copy of a
    function for each list of argument types); only functions that the entry reaches remain.  `frozen` gives contents to
    inputs of the entry and results of `freeze` nodes of `model`: their users see constants.  `known` are sizes of
    the entry's dims that do not follow from the inputs.  A branch or a loop's body
    that cannot have these sizes need not run: it becomes a `trap` that says why.

    InputError for types that do not fit, AssumptionError for sizes that the model does not allow, InferenceError for a
    node that cannot have them and runs for certain; all name the node.
    """
    worker = _Specializer(model, dict(frozen or {}))
    function = model.entry(entry)
    worker.add_entry(function, input_types, known)
    return worker.model


@register
@dataclass(frozen=True)
class Specialize(Pass):
    """Give sizes to symbols of the entries.

    specialize{dims="B=1"}:   func @main<B>(%x: f32[B,64])   ->   func @main(%x: f32[1,64])

    `dims` lists NAME=SIZE, a size being a number or an expression over symbols (`S=2*T`).  Every public function is
    typed again; a name that none of them has is an error.
    """

    name: ClassVar[str] = "specialize"
    level: ClassVar[Level] = Level.LEGAL

    dims: str

    def run(self, model: Model, rewriter: Rewriter) -> None:
        given = parse_dims(self.dims)
        public = [f for f in model.functions.values() if f.public]
        known = {s for f in public for v in f.inputs for s in types.symbols(v.type)}
        if unknown := sorted(set(given) - known):
            have = ", ".join(sorted(known)) or "none"
            raise InputError(f"no input of an entry has the size {', '.join(unknown)}; the symbols are {have}")
        worker = _Specializer(model, {})
        for function in public:
            worker.add_entry(function, [types.substitute(v.type, dict(given)) for v in function.inputs])
            rewriter.changes.append(Change("update", f"@{function.name}", rewriter.label, self.dims))
        _adopt(model, worker.model)


def parse_dims(text: str) -> dict[str, Size]:
    """`"B=1,S=2*T"` as a mapping; IrcError for text of another kind."""
    out: dict[str, Size] = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, size = part.partition("=")
        try:
            if not equals:
                raise DimError("no '='")
            out[name.strip()] = sizes.parse(size.strip())
        except DimError as error:
            raise IrcError(f"expected NAME=SIZE, got {part!r}: {error}") from None
    return out


def _adopt(model: Model, other: Model) -> None:
    """`model` takes over everything that `other` holds."""
    model.functions, model.constants, model.init, model.derived = (
        other.functions,
        other.constants,
        other.init,
        other.derived,
    )
    model.init.parent = model
    model._inline = other._inline
    for constant in (*model.constants.values(), *model._inline.values()):
        constant.owner = model


Step: TypeAlias = Generator["Step", None, None]
"""A piece of work that hands out the pieces it needs done first; run by `_run` with an explicit stack."""


def _run(step: Step) -> None:
    """Run a step with an explicit stack; a fault is raised in the step that asked for the one at fault."""
    stack: list[Step] = [step]
    fault: IrcError | None = None
    while stack:
        try:
            stack.append(next(stack[-1]) if fault is None else stack[-1].throw(fault))
            fault = None
        except StopIteration:
            stack.pop()
            fault = None
        except IrcError as error:
            stack.pop()
            fault = error
    if fault is not None:
        raise fault


@dataclass
class _Scope:
    """One function being written: old values to new ones, and what its symbols become."""

    function: Function
    sizes: dict[str, Size]
    values: dict[Value, Value] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)


class _Specializer:
    """Writes functions of `source` for given types into `model`."""

    def __init__(self, source: Model, frozen: dict[Value, Data]) -> None:
        self.source = source
        self.model = Model(source.name, metadata=dict(source.metadata))
        self.frozen = frozen
        self.constants: dict[Value, Value] = {}
        self.copies: dict[tuple[str, tuple[Type, ...]], str] = {}
        # Names that copies must not take: entries are added under their own names.
        self.taken: dict[str, None] = {f.name: None for f in source.functions.values() if f.public}
        for name, constant in source.constants.items():
            copy = self.model.constants[name] = Constant(self.model, name, constant.type, constant.data)
            copy.metadata = dict(constant.metadata)
            self.constants[constant] = copy
        for key, constant in source._inline.items():
            self.constants[constant] = self.model._inline[key] = Constant(
                self.model, None, constant.type, constant.data
            )
        self.model.derived = [self.model.constants[c.name or ""] for c in source.derived]
        copy_graph(source.init, self.model.init, dict(self.constants))

    def add_entry(self, function: Function, input_types: Sequence[Type], known: Sizes | None = None) -> None:
        _run(self.function(function, tuple(input_types), function.name, public=True, known=known))

    def function(
        self,
        function: Function,
        input_types: tuple[Type, ...],
        name: str,
        *,
        public: bool,
        known: Sizes | None = None,
    ) -> Step:
        """Write `function` for these input types under `name`."""
        bindings = solve(function, input_types, known)
        check_assumptions(function, bindings)
        new = Function(name, kind=function.kind, public=public)
        new.input_attributes = [dict(a) for a in function.input_attributes]
        new.output_names = list(function.output_names)
        new.metadata = dict(function.metadata)
        new.dims = list(dict.fromkeys(s for t in input_types for s in sorted(types.symbols(t))))
        scope = _Scope(new, bindings)
        self.rename_bound(function, scope)
        for value, type_ in zip(function.inputs, input_types, strict=True):
            made = new.body.add_input(type_, value.name, _ints(value.ints, scope.sizes))
            data = self.frozen.get(value)
            scope.values[value] = made if data is None else self.model.inline_constant(data)
        yield self.graph(function.body, new.body, scope)
        self.model.add_function(new)

    def rename_bound(self, function: Function, scope: _Scope) -> None:
        """Dims that a node of the function binds get another name where an input's size uses it now."""
        taken = dict.fromkeys(scope.function.dims)
        for node in function.body.walk():
            if node.op.name == "bind_dim":
                name = node.keywords["dim"]
                fresh = fresh_name(name, taken)
                taken[fresh] = None
                if fresh != name:
                    scope.sizes[name] = sizes.symbol(fresh)

    def graph(self, old: Graph, new: Graph, scope: _Scope) -> Step:
        build = Builder(self.model, new)
        for node in old.nodes:
            yield from self.whole_node(node, build, scope)
        new.set_outputs([self.value(v, scope) for v in old.outputs])

    def whole_node(self, node: Node, build: Builder, scope: _Scope) -> Step:
        """A node, its sub-graphs and the function that it calls."""
        graphs: dict[str, tuple[Graph, ...]] = {}
        failed: list[tuple[Graph, IrcError]] = []
        for key, group in node.graphs.items():
            graphs[key] = tuple(Graph() for _ in group)
            for inner, copy in zip(group, graphs[key], strict=True):
                # The builder finds assumptions' and dims' function through the graph's parent.
                copy.parent = scope.function
                self.inputs(node, inner, copy, scope)
                optional = node.op.name in ("if", "case", "while") and key != "cond"
                yield (self.optional(node, inner, copy, scope, failed) if optional else self.graph(inner, copy, scope))
        for copy, error in failed:
            self.trap(node, copy, error, [g for group in graphs.values() for g in group if g.outputs])
        if node.op.name == "call":
            yield from self.callee(node, scope)
        self.node(node, build, graphs, scope)

    def optional(
        self, node: Node, old: Graph, new: Graph, scope: _Scope, failed: list[tuple[Graph, IrcError]]
    ) -> Step:
        """A branch or a loop's body, which may never run: a trap if it cannot be typed; later, if types are lacking."""
        assumptions = dict(scope.function.assumptions)
        try:
            yield self.graph(old, new, scope)
            sizes.relax(scope.function.assumptions, len(assumptions))
        except (InferenceError, AssumptionError, InputError) as error:
            if node.op.name == "while":
                wanted = [v.type for v in new.inputs]
            else:
                wanted = [types.substitute(r.type, scope.sizes) for r in node.results]
            ranked = all(isinstance(t, TensorType) and t.dims is not None for t in wanted)
            if ranked and not all(_is_sized(t) for t in wanted):
                raise
            scope.function.assumptions = assumptions
            for made in reversed(list(new.nodes)):
                Rewriter(self.model).erase(made)
            if ranked:
                self.trap_of(node, new, error, wanted)
            else:
                failed.append((new, error))

    def trap(self, node: Node, new: Graph, error: IrcError, others: Sequence[Graph]) -> None:
        """A trap with the types of a branch that could be typed."""
        if not others or not all(_is_sized(v.type) for v in others[0].outputs):
            raise error
        self.trap_of(node, new, error, [v.type for v in others[0].outputs])

    def trap_of(self, node: Node, new: Graph, error: IrcError, wanted: Sequence[Type]) -> None:
        values = Builder(self.model, new).at(node.location).trap(message=str(error), results=tuple(wanted))
        new.set_outputs(values if isinstance(values, tuple) else (values,))

    def inputs(self, node: Node, old: Graph, new: Graph, scope: _Scope) -> None:
        """Inputs of a sub-graph.  What had its operand's type has it again: operands are typed more exactly by now."""
        operands = list(node.operands)
        for i, value in enumerate(old.inputs):
            type_ = types.substitute(value.type, scope.sizes)
            if node.op.name == "while":
                operand = operands[i]
                if operand is not None and operand.type == value.type:
                    type_ = self.value(operand, scope).type
            scope.values[value] = new.add_input(type_, value.name, _ints(value.ints, scope.sizes))

    def callee(self, node: Node, scope: _Scope) -> Step:
        """Have the called function written for the types of this call."""
        name = node.keywords["callee"]
        key = (str(name), tuple(self.value(v, scope).type for v in node.operands if v is not None))
        if key not in self.copies:
            fresh = fresh_name(name, self.taken)
            self.taken[fresh] = None
            self.copies[key] = fresh
            try:
                yield self.function(self.source.functions[name], key[1], fresh, public=False)
            except IrcError:
                del self.copies[key]  # where a trap takes the place of this call, another one may still be made
                raise

    def node(self, node: Node, build: Builder, graphs: dict[str, tuple[Graph, ...]], scope: _Scope) -> None:
        if node.op.name == "freeze" and node.result in self.frozen:
            scope.values[node.result] = self.model.inline_constant(self.frozen[node.result])
            return
        operands = [None if v is None else self.value(v, scope) for v in node.operands]
        attributes = substitute_attributes(node.op, node.attributes, scope.sizes)
        if node.op.name == "call":
            key = (str(node.keywords["callee"]), tuple(v.type for v in operands if v is not None))
            attributes["callee"] = Symbol(self.copies[key])
        if node.op.name == "bind_dim" and (renamed := scope.sizes.get(node.keywords["dim"])) is not None:
            attributes["dim"] = str(renamed)
        try:
            made = build.at(node.location).create(node.op, operands, attributes, graphs, [r.name for r in node.results])
        except InferenceError as error:
            raise _explained(error, node, scope) from error
        made.name = node.name
        scope.values.update(zip(node.results, made.results, strict=True))

    def value(self, value: Value, scope: _Scope) -> Value:
        found = scope.values.get(value)
        return self.constants[value] if found is None else found


def _is_sized(type_: Type) -> bool:
    """Whether a trap can have results of this type: a tensor whose sizes are not known to be negative."""
    return isinstance(type_, TensorType) and all(sizes.less(d, 0) is not True for d in type_.shape)


def _explained(error: InferenceError, node: Node, scope: _Scope) -> InferenceError:
    """The error with the node's label and the sizes at fault."""
    text = str(error).removeprefix(f"{node.label}: ").removeprefix(f"{node.op.name}: ")
    given = ", ".join(f"{name}={size}" for name, size in scope.sizes.items())
    return type(error)(f"{node.label}: {text}{f' (with {given})' if given else ''}")


def solve(function: Function, input_types: Sequence[Type], known: Sizes | None = None) -> dict[str, Size]:
    """What the function's symbols are for inputs of these types; InputError names the input that does not fit."""
    if len(input_types) != len(function.inputs):
        raise InputError(f"@{function.name} takes {len(function.inputs)} inputs, got {len(input_types)} types")
    shapes = [_shape(function, v, t) for v, t in zip(function.inputs, input_types, strict=True)]
    return bind_dims(function, shapes, known)


def _shape(function: Function, value: Value, given: Type) -> tuple[Size, ...] | None:
    """The dims of the type given for an input; None if the input takes every shape."""
    expected, inner = value.type, given
    while not isinstance(expected, TensorType) and type(expected) is type(inner):
        expected, inner = expected.element, inner.element
    if (
        not isinstance(expected, TensorType)
        or not isinstance(inner, TensorType)
        or expected.dtype is not inner.dtype
        or (expected.dims is not None and inner.dims is None)
    ):
        raise InputError(f"@{function.name}: input {value.name!r} expects {value.type}, got {given}")
    return None if expected.dims is None else inner.dims


def substitute_attributes(op: Operator, attributes: Attributes, mapping: Sizes) -> dict[str, Any]:
    """Attribute values with symbols replaced in sizes and types."""
    out = attributes.as_dict()
    if mapping:
        for name, kind in op.kinds.items():
            if kind.base == "size":
                out[name] = _nested(out[name], lambda size: sizes.substitute(size, mapping))
            elif kind.base == "type":
                out[name] = _nested(out[name], lambda type_: types.substitute(type_, dict(mapping)))
    return out


def _nested(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple):
        return tuple(_nested(v, change) for v in value)
    return None if value is None else change(value)


def _ints(ints: Ints, mapping: Sizes) -> Ints:
    return None if ints is None else tuple(None if i is None else sizes.substitute(i, mapping) for i in ints)
