"""Walks the graphs of an ONNX model; hands every node to its handler, its function body, or the late operator."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import onnx
import onnx.defs

from ...ir.build import Builder
from ...ir.dims import Assumption
from ...ir.errors import FormatError, InferenceError
from ...ir.facts import NeedsInts
from ...ir.model import Constant, Function, Graph, Location, Model, Node, Value
from ...ir.rewrite import Rewriter
from ...ir.types import NeedsRank, Type
from . import bodies, late, registry
from .check import Findings
from .context import Context, Expanded, Refused
from .reading import MAX_DEPTH, Source
from .registry import MISSING, Entry
from .schemas import check_attributes, check_counts, kind_of, schema_of, type_mismatch
from .scope import POISON, Frame, InvalidNode, Poisoned, Scope, check_names, inner_graphs, label, ordered
from .signature import type_of
from .tensors import data_of, dense

MAX_NODES = 1_000_000
"""Nodes that a model may have after its functions are expanded."""
_IGNORED = frozenset({"consumed_inputs"})  # an execution hint of operator set 1


@dataclass(frozen=True, slots=True)
class Mark:
    """A place to go back to: the last node of a graph, and how many assumptions and drafts there were."""

    graph: Graph
    last: Node | None
    assumed: int
    drafts: int


class Importer:
    """State of one import: the models on both sides, findings, and where assumptions go."""

    def __init__(self, source: Source, model: Model, assumptions: dict[Assumption, None]) -> None:
        self.source = source
        self.model = model
        self.assumptions = assumptions
        self.findings = Findings()
        self.late: dict[str, int] = {}
        self.count = 0
        self.bound_dims = 0
        self.types_late = False
        self.main: Function | None = None
        """The function that the model's graph becomes; None while a late node is typed."""
        self.rounds: list[Value] = []
        """Iteration numbers of the loops whose bodies are being imported, outer ones first."""
        self.read: dict[Value, None] = {}
        self.drafts: list[Graph] = []
        self.frozen: dict[tuple[Graph, Value], Value] = {}
        self.functions: dict[tuple[str, str, str], onnx.FunctionProto] = {}
        for function in source.model.functions:
            key = (domain_of(function.domain), function.name, function.overload)
            if self.functions.setdefault(key, function) is not function:
                raise source.fail(f"the function {function.name!r} of the domain {key[0]!r} is defined twice")
        self.hints = _element_types(source)

    def builder(self, graph: Graph, location: Location | None = None) -> Builder:
        """A builder at the end of `graph` whose assumptions belong to the function."""
        out = Builder(self.model, graph, location=location)
        out._assumptions = self.assumptions
        return out

    # Graphs

    def draft(self) -> Graph:
        """A sub-graph that no node holds yet; `undo` takes its nodes away if none ever does."""
        self.drafts.append(Graph())
        return self.drafts[-1]

    def mark(self, graph: Graph) -> Mark:
        """The state to which `undo` goes back."""
        return Mark(graph, graph.last, len(self.assumptions), len(self.drafts))

    def undo(self, mark: Mark) -> None:
        """Take away what was built since the mark."""
        rewriter = Rewriter(self.model)
        while mark.graph.last is not mark.last and mark.graph.last is not None:
            _discard(rewriter, self.drafts[mark.drafts :])
            rewriter.erase(mark.graph.last)
        _discard(rewriter, self.drafts[mark.drafts :])
        del self.drafts[mark.drafts :]
        while len(self.assumptions) > mark.assumed:
            self.assumptions.popitem()

    def enter(self, frame: Frame, proto: onnx.GraphProto) -> Frame:
        """The frame for the nodes of a sub-graph, its initializers declared."""
        depth = frame.scope.depth + 1
        if depth > MAX_DEPTH:
            raise self.source.fail(f"graphs are nested more than {MAX_DEPTH} deep")
        check_names(proto, self.source)
        scope = Scope(frame.scope, depth=depth)
        declare_initializers(scope, proto)
        return Frame(scope, frame.opsets, frame.attributes, frame.label, frame.expanding)

    def sub_graph(self, frame: Frame, build: Builder, proto: onnx.GraphProto, inputs: Sequence[Type]) -> Graph:
        """A sub-graph as a graph of the IR; Poisoned if it reads or yields what cannot be imported."""
        inner = self.enter(frame, proto)
        graph = self.draft()
        if len(proto.input) != len(inputs):
            raise InferenceError(f"its sub-graph takes {len(proto.input)} inputs, {len(inputs)} are given")
        for value, type_ in zip(proto.input, inputs, strict=True):
            inner.scope.values[value.name] = graph.add_input(type_, value.name)
        self.nodes(inner, self.builder(graph), list(proto.node))
        graph.set_outputs([self.value(inner.scope, o.name, build) for o in proto.output])
        return graph

    def inline_graph(
        self, frame: Frame, build: Builder, proto: onnx.GraphProto, arguments: Sequence[Value]
    ) -> tuple[Value, ...]:
        """A sub-graph written at `build`."""
        inner = self.enter(frame, proto)
        for value, argument in zip(proto.input, arguments, strict=True):
            inner.scope.values[value.name] = argument
        self.nodes(inner, build, list(proto.node))
        return tuple(self.value(inner.scope, o.name, build) for o in proto.output)

    def nodes(self, frame: Frame, build: Builder, nodes: list[onnx.NodeProto]) -> None:
        """Import the nodes of one graph."""
        for node in ordered(nodes, frame.scope, self.source):
            self.count += 1
            if self.count > MAX_NODES:
                raise self.source.fail(f"the model has more than {MAX_NODES} nodes once its functions are expanded")
            self.node(frame, build, node)

    # Values

    def value(self, scope: Scope, name: str, build: Builder) -> Value:
        """The value called `name`; Poisoned if its node could not be imported."""
        owner = scope.find(name)
        if owner is None:
            raise self.source.fail(f"{name!r} is read, but nothing defines it")
        if name not in owner.values:
            proto = owner.initializers[name]
            sparse = isinstance(proto, onnx.SparseTensorProto)
            data = dense(proto, self.source) if sparse else data_of(proto, self.source)
            owner.values[name] = constant(self.model, name, data)
        value = owner.values[name]
        if not isinstance(value, Value):
            raise Poisoned
        return value

    # Nodes

    def node(self, frame: Frame, build: Builder, node: onnx.NodeProto) -> None:
        """Import one node: define its results in the scope."""
        domain = domain_of(node.domain)
        version = frame.opsets.get(domain)
        name = frame.label or label(node)
        where = f"node {name!r} ({domain + '.' if domain else ''}{node.op_type})"
        if version is None and (domain, node.op_type, node.overload) not in self.functions:
            raise self.source.fail(f"{where} is of the domain {domain!r}, which the model does not import")
        version = version or 0
        mark = self.mark(build.graph)
        try:
            operands = [self.value(frame.scope, n, build) if n else None for n in node.input]
        except Poisoned:
            self.survey(frame, node)
            self.poison(frame, node)
            return
        ctx = Context(self, build.at(Location((name,))), frame, node, version, name)
        try:
            results = self.results(ctx, frame, domain, operands)
        except (NeedsRank, NeedsInts) as reason:
            self.undo(mark)
            results = self.postpone(ctx, domain, operands, reason)
            if results is None:
                self.findings.add(domain, node.op_type, version, name, f"needs a run-time value: {reason}")
        except Refused as reason:
            self.undo(mark)
            self.findings.add(domain, node.op_type, version, name, str(reason))
            results = None
        except Poisoned:
            self.undo(mark)
            results = None
        except (InferenceError, ArithmeticError, LookupError, ValueError) as error:
            raise self.invalid(where, node, domain, version, operands, error) from error
        if results is None:
            self.poison(frame, node)
        else:
            self.define(frame, node, results, build.graph)
            self.read.update(dict.fromkeys(v for v in ctx.read if v.node is not None))

    def results(
        self, ctx: Context, frame: Frame, domain: str, operands: list[Value | None]
    ) -> Sequence[Value | None] | None:
        """Results of a node by a model-local function, a handler or a schema's function; None after a finding."""
        node, version = ctx.node, ctx.version
        key = (domain, node.op_type, node.overload)
        if key in self.functions:
            return bodies.expand(self, ctx, self.functions[key], operands, key)
        entry = registry.find(domain, node.op_type, version)
        if entry is not None:
            mark = self.mark(ctx.build.graph)
            try:
                return self.handled(ctx, entry, domain, operands)
            except Expanded:
                self.undo(mark)
        body = bodies.of_schema(ctx, domain, operands)
        if body is not None:
            return bodies.expand(self, ctx, body, operands, key)
        return ctx.refuse(missing(domain, node.op_type, version))

    def handled(self, ctx: Context, entry: Entry, domain: str, operands: list[Value | None]) -> Sequence[Value | None]:
        """Results by a handler."""
        schema = schema_of(domain, ctx.node.op_type, ctx.version)
        attributes = self.attributes(ctx.frame, ctx.node)
        for name in () if entry.open else attributes.keys() - entry.attributes:
            ctx.refuse(f"the attribute {name!r} is not supported")
        if schema is not None:
            check_counts(ctx, schema, operands)
            check_attributes(ctx, schema)
            for name, declared in schema.attributes.items():
                if name in entry.attributes and name not in attributes and declared.default_value.name:
                    attributes[name] = self.attribute(ctx.frame, declared.default_value)
                if declared.required and name not in attributes and name in entry.attributes:
                    ctx.fail(f"the attribute {name!r} is missing")
        else:
            _check_signature(ctx, entry, operands, attributes)
        given = list(operands)
        if not entry.variadic:
            if len(given) > entry.positional and any(v is not None for v in given[entry.positional :]):
                ctx.fail(f"takes at most {entry.positional} inputs, got {len(given)}")
            given = given[: entry.positional] + [None] * (entry.positional - len(given))
        out = entry.function(ctx, *given, **attributes)
        rows = out if isinstance(out, tuple | list) else (out,)
        for i, name in enumerate(ctx.node.output):
            if name and (i >= len(rows) or rows[i] is None):
                ctx.refuse(f"its result {i} is not supported")
        return rows

    def define(self, frame: Frame, node: onnx.NodeProto, results: Sequence[Value | None], graph: Graph) -> None:
        """Bind result names; new values take them as labels."""
        for name, value in zip(node.output, results, strict=False):
            if not name:
                continue
            frame.scope.values[name] = value
            if value is not None and value.name is None and value.node is not None and value.graph is graph:
                value.name = name

    def poison(self, frame: Frame, node: onnx.NodeProto) -> None:
        for name in node.output:
            if name:
                frame.scope.values[name] = POISON

    def postpone(
        self, ctx: Context, domain: str, operands: list[Value | None], reason: Exception
    ) -> Sequence[Value] | None:
        """Results of the generic operator that is typed at run time; None if not even their element types are known."""
        mark = self.mark(ctx.build.graph)
        try:
            results = late.postpone(self, ctx, domain, operands)
        except (Poisoned, InferenceError):
            self.undo(mark)
            return None
        if results is not None:
            self.late[ctx.node.op_type] = self.late.get(ctx.node.op_type, 0) + 1
        return results

    def survey(self, frame: Frame, node: onnx.NodeProto) -> None:
        """Report what of a node that is not imported is unsupported too: its operator, and those of its sub-graphs."""
        domain = domain_of(node.domain)
        stack = [node]
        while stack:
            current = stack.pop()
            domain = domain_of(current.domain)
            version = frame.opsets.get(domain, 0)
            local = (domain, current.op_type, current.overload) in self.functions
            entry = None if local else registry.find(domain, current.op_type, version)
            reasons = []
            if entry is not None and not entry.open:
                odd = (a.name for a in current.attribute if a.name not in entry.attributes | _IGNORED)
                reasons = [f"the attribute {name!r} is not supported" for name in odd]
            elif entry is None and not local and not bodies.has_body(domain, current.op_type, version):
                reasons = [missing(domain, current.op_type, version)]
            for reason in reasons:
                self.findings.add(domain, current.op_type, version, label(current), reason)
            for graph in reversed(inner_graphs(current)):
                stack.extend(reversed(graph.node))

    def invalid(
        self,
        where: str,
        node: onnx.NodeProto,
        domain: str,
        version: int,
        operands: list[Value | None],
        error: Exception,
    ) -> FormatError:
        """The error for a node that the model should not have."""
        schema = schema_of(domain, node.op_type, version)
        fault = re.sub(r"^(\S+ '[^']*': )+", "", str(error))
        if schema is not None and (mismatch := type_mismatch(schema, operands)):
            fault = mismatch
        return InvalidNode(f"{self.source.label}: {where}: {fault}")

    # Attributes

    def attributes(self, frame: Frame, node: onnx.NodeProto) -> dict[str, Any]:
        """Attributes of a node by name; references to attributes of an expanded function are looked up."""
        out: dict[str, Any] = {}
        for proto in node.attribute:
            if proto.name in out:
                raise self.source.fail(f"node {label(node)!r} has the attribute {proto.name!r} twice")
            if proto.ref_attr_name:
                if proto.ref_attr_name in frame.attributes:
                    out[proto.name] = frame.attributes[proto.ref_attr_name]
            elif proto.name not in _IGNORED:
                try:
                    out[proto.name] = self.attribute(frame, proto)
                except FormatError as error:
                    fault = str(error).removeprefix(f"{self.source.label}: ")
                    raise self.source.fail(f"node {label(node)!r} ({node.op_type}): {fault}") from None
        return out

    def attribute(self, frame: Frame, proto: onnx.AttributeProto) -> Any:
        """Strings as str, lists as tuples, tensors as Data, types as types; graphs stay as they are."""
        kinds = onnx.AttributeProto
        try:
            match kind_of(proto):
                case kinds.FLOAT:
                    return proto.f
                case kinds.INT:
                    return proto.i
                case kinds.STRING:
                    return proto.s.decode()
                case kinds.TENSOR:
                    return data_of(proto.t, self.source)
                case kinds.GRAPH:
                    return proto.g
                case kinds.FLOATS:
                    return tuple(proto.floats)
                case kinds.INTS:
                    return tuple(proto.ints)
                case kinds.STRINGS:
                    return tuple(s.decode() for s in proto.strings)
                case kinds.TENSORS:
                    return tuple(data_of(t, self.source) for t in proto.tensors)
                case kinds.GRAPHS:
                    return tuple(proto.graphs)
                case kinds.SPARSE_TENSOR:
                    return dense(proto.sparse_tensor, self.source)
                case kinds.TYPE_PROTO:
                    return type_of(proto.tp, proto.name, None, self.source)
        except UnicodeDecodeError:
            raise self.source.fail(f"the attribute {proto.name!r} is not UTF-8 text") from None
        except ValueError as error:
            raise self.source.fail(f"the attribute {proto.name!r} {error}") from None
        raise self.source.fail(f"the attribute {proto.name!r} has the unknown type {proto.type}")


def _check_signature(ctx: Context, entry: Entry, operands: Sequence[Value | None], attributes: dict[str, Any]) -> None:
    """Without a definition of onnx's, the handler says which inputs and attributes must be there."""
    for i in entry.required:
        if i >= len(operands):
            ctx.fail(f"takes at least {entry.required[-1] + 1} inputs, got {len(operands)}")
        if operands[i] is None:
            ctx.fail(f"the input {i} is missing")
    for name, default in entry.defaults.items():
        if name not in attributes:
            if default is MISSING:
                ctx.fail(f"the attribute {name!r} is missing")
        elif default is not MISSING and default is not None and _kind(default) != _kind(attributes[name]):
            ctx.fail(f"the attribute {name!r} must be {_kind(default)}, got {attributes[name]!r}")


def _kind(value: Any) -> str:
    return "a list" if isinstance(value, tuple) else "text" if isinstance(value, str) else "a number"


def _discard(rewriter: Rewriter, drafts: Sequence[Graph]) -> None:
    """Empty sub-graphs that no node holds, inner ones first, so that outer values lose these uses."""
    for graph in reversed(drafts):
        if graph.parent is None:
            graph.set_outputs(())
            while graph.last is not None:
                rewriter.erase(graph.last)


def declare_initializers(scope: Scope, proto: onnx.GraphProto) -> None:
    """Make the initializers of a graph known; they are read when a node first uses them."""
    scope.initializers.update((t.name, t) for t in proto.initializer)
    scope.initializers.update((t.values.name, t) for t in proto.sparse_initializer)


def constant(model: Model, name: str, data: Any) -> Constant:
    """A weight keeps its name; scalars and small integer tensors (shapes, axes) are printed in place."""
    if data.size <= 1 or (data.is_inline and not data.dtype.is_float):
        return model.inline_constant(data)
    return model.add_constant(name, data)


def domain_of(domain: str) -> str:
    """`ai.onnx` is another spelling of the empty domain."""
    return "" if domain == "ai.onnx" else domain


def missing(domain: str, type_: str, version: int) -> str:
    """Why there is no handler."""
    if broken := registry.broken(domain):
        return f"there is no handler; {'; '.join(map(str, broken))}"
    if registry.known(domain, type_):
        return f"is not supported in version {version} of the operator set"
    if domain in registry.domains():
        return "there is no handler for this operator"
    return f"there are no handlers for the domain {domain!r}"


def _element_types(source: Source) -> dict[str, Type]:
    """Element types that the model declares for values of its main graph, dims dropped: hints for late nodes only."""
    out: dict[str, Type] = {}
    for value in [*source.model.graph.value_info, *source.model.graph.output]:
        try:
            out[value.name] = type_of(value.type, value.name, None, source)
        except FormatError:
            continue
    return out
