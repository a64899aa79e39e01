"""Writing a legal model as an ONNX model: names, initializers, sizes from input shapes, sub-graphs."""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from ...ir import dims as sizes
from ...ir import dtypes
from ...ir.clone import clone_model
from ...ir.data import SplatData
from ...ir.dims import Size
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.graph import Graph, Value
from ...ir.model import Constant, Model
from ...ir.types import OptionalType, SequenceType, TensorType, Type
from ...passes.legalize import legalize
from .border import carried, cast_attributes
from .initializers import Root
from .lowering import ATTRIBUTES_ONLY, IR_VERSIONS, OPSET, TABLE, Context, Dialect, Ref
from .ranks import add_ranks
from .weights import Weights

_PLAIN = Dialect()

BESIDE_ABOVE = 1 << 30
"""Models with more bytes of constants put them into one file beside the model (protobuf ends at 2 GiB)."""


def export_onnx(
    model: Model, entry: str | None = None, dialect: Dialect = _PLAIN, weights: Weights | None = None
) -> onnx.ModelProto:
    """A legal model (every node claimed by the onnx target in that dialect) as a ModelProto.

    With `weights`, large constants are put there, and the model only says where they are.
    """
    function = model.entry(entry)
    root = Root(model, dialect, weights)
    graph = GraphExporter(root, None)
    results = function.body.outputs
    wide = {v: carried(v.type) for v in (*function.inputs, *results)} if dialect.runtime else {}
    inputs = [
        graph.graph_input(v, n, wide.get(v)) for v, n in zip(function.inputs, function.input_names, strict=True)
    ]
    graph.run(function.body)
    outputs = graph.outputs(results, function.output_names, [wide.get(v) for v in results])
    proto = helper.make_graph(
        [*root.filled, *graph.needed(outputs)], model.name or "main", inputs, outputs, list(root.initializers.values())
    )
    domains = {n.domain for n in _all_nodes(proto)} - {""}
    opsets = [helper.make_opsetid(d, root.versions.get(d, 1)) for d in sorted(domains)]
    opsets.insert(0, helper.make_opsetid("", dialect.opset))
    version = IR_VERSIONS[dialect.opset]
    out = helper.make_model(proto, opset_imports=opsets, ir_version=version, producer_name="irc")
    helper.set_model_props(out, {k: v for k, v in model.metadata.items() if not k.startswith("irc.")})
    return out


def save_onnx(model: Model, path: Path, entry: str | None = None, opset: int = OPSET) -> None:
    """Legalize a copy for ONNX and write it; whole or not at all.  UnsupportedError lists what ONNX cannot express."""
    from .target import OnnxFile

    target = OnnxFile(opset)
    legal = clone_model(model)
    legalize(legal, target)
    held = [c for c in legal.constants.values() if not isinstance(c.data, SplatData)]
    size = sum(_nbytes(c.type) for c in held)
    weights = Weights(f"{path.name}.data") if size > BESIDE_ABOVE else None
    proto = export_onnx(legal, entry, target.dialect, weights)
    add_ranks(proto, legal.entry(entry).metadata)
    write_onnx(proto, weights, path)


def write_onnx(proto: onnx.ModelProto, weights: Weights | None, path: Path) -> None:
    """A model and its weights as files, which take their names when both are complete."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        work = Path(folder)
        with open(work / "model", "wb") as file:
            file.write(proto.SerializeToString())
        if weights is not None and weights.held:
            with open(work / "weights", "wb") as file:
                weights.write(file)
            os.replace(work / "weights", path.with_name(weights.location))
        os.replace(work / "model", path)


def _all_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    found: list[onnx.NodeProto] = []
    stack = [graph]
    while stack:
        for node in stack.pop().node:
            found.append(node)
            stack.extend(a.g for a in node.attribute if a.type == onnx.AttributeProto.GRAPH)
    return found


def _nbytes(type_: Type) -> int:
    """Bytes of a constant, whose dims are numbers."""
    known = [d for d in getattr(type_, "dims", None) or () if isinstance(d, int)]
    return math.prod(known) * type_.dtype.itemsize if isinstance(type_, TensorType) else 0


class GraphExporter:
    """One GraphProto in the making."""

    def __init__(self, root: Root, outer: GraphExporter | None) -> None:
        self.root = root
        self.outer = outer
        self.nodes: list[onnx.NodeProto] = []
        self.refs: dict[Value, Ref] = {}
        self.sources: dict[Size, tuple[Value, int]] = {}
        """Sizes that are not known ahead, each with the first value of this graph that has it, and the axis."""
        self._sizes: dict[Size, Ref] = {}
        self._bound: dict[Size, Ref] = {}
        """Integer scalars that are sizes."""
        self._made: dict[tuple[str, ...], Ref] = {}
        self._size_names: set[str] = set()
        """Results of size arithmetic, which later nodes may read under the name they have."""

    def ref(self, value: Value | None) -> Ref | None:
        if value is None:
            return None
        if isinstance(value, Constant):
            return self.root.constant(value)
        exporter: GraphExporter | None = self
        while exporter is not None:
            if value in exporter.refs:
                return exporter.refs[value]
            exporter = exporter.outer
        raise IrcError(f"value {value.name!r} is used before it is exported")

    def _held(self, value: Value | None) -> Ref | None:
        """As `ref`, but a constant has no name: its node holds its contents."""
        return Ref("", value.type, value.ints) if isinstance(value, Constant) else self.ref(value)

    def graph_input(self, value: Value, name: str, wide: TensorType | None = None) -> onnx.ValueInfoProto:
        """The declaration of an input; with `wide`, one of that type, which a Cast makes the value."""
        name = self.root.fresh(name)
        ref = Ref(name, wide or value.type)
        if wide is not None:
            assert isinstance(value.type, TensorType)
            ref = self.node("Cast", (ref,), (value.type,), "", cast_attributes(value.type.dtype))[0]
        self._bind(value, ref)
        return value_info(name, wide or value.type)

    def _bind(self, value: Value, ref: Ref) -> None:
        """`ref` is the value from here on, and can tell the sizes of its axes."""
        self.refs[value] = ref
        for axis, dim in enumerate(getattr(value.type, "dims", None) or ()):
            if not isinstance(dim, int):
                self.sources.setdefault(dim, (value, axis))

    def bind_size(self, dim: str, ref: Ref) -> None:
        """An integer scalar is the size `dim` from here on."""
        self._bound[sizes.symbol(dim)] = ref

    def run(self, graph: Graph) -> None:
        """Lower every node; the ONNX node that makes a result gets the result's name as its output name."""
        for node in graph.nodes:
            lowering = TABLE.find(node.op.name)
            if lowering is None:
                raise IrcError(f"{node.label} is not legal for onnx")
            start = len(self.nodes)
            ctx = Context(self, node)
            inside = node.op.name in ATTRIBUTES_ONLY
            operands = node.op.group([self._held(v) if inside else self.ref(v) for v in node.operands])
            out = lowering.rule(ctx, *operands, **node.keywords)
            refs = out if isinstance(out, tuple | list) else (out,)
            made = {o for n in self.nodes[start:] for o in n.output}
            for i, (value, ref) in enumerate(zip(node.results, refs, strict=True)):
                if ref.name in made and ref.name not in self._size_names:
                    made.discard(ref.name)
                    name = self.root.fresh(value.name or (f"{node.op.name}" if i == 0 else f"{node.op.name}_out{i}"))
                    _rename(self.nodes[start:], ref.name, name)
                    ref = Ref(name, value.type, value.ints)
                self._bind(value, ref)
            for made_node in self.nodes[start:]:
                source = node.location.source[0] if node.location.source else made_node.op_type
                made_node.name = self.root.fresh_node(made_node.name or source)

    def node(
        self,
        kind: str,
        inputs: Sequence[Ref | None],
        types: Sequence[Type | None],
        domain: str,
        attributes: Mapping[str, Any],
    ) -> tuple[Ref, ...]:
        names = []
        for i, type_ in enumerate(types):
            names.append("" if type_ is None else self.root.fresh(f"{kind}.{i}" if i else kind))
        given = ["" if x is None else x.name for x in inputs]
        while given and not given[-1]:
            given.pop()
        kept = {k: v for k, v in attributes.items() if v is not None and not (isinstance(v, list | tuple) and not v)}
        proto = helper.make_node(kind, given, names, domain=domain, **kept)
        self.nodes.append(proto)
        return tuple(Ref(n, t) for n, t in zip(names, types, strict=True) if t is not None)

    def constant(self, array: Any, dtype: DType | None) -> Ref:
        dtype = dtype or DType.from_numpy(array.dtype)
        key = (dtype, array.shape, array.tobytes())
        name = self.root.add(key, "constant", array, dtype)
        ints = tuple(int(v) for v in array.reshape(-1)) if dtype.is_integer and array.size <= 64 else None
        return Ref(name, TensorType(dtype, array.shape), ints)

    def sizes(self, values: tuple[Size, ...]) -> Ref:
        """An i64 vector of sizes."""
        type_ = TensorType(dtypes.i64, (len(values),))
        if all(isinstance(v, int) for v in values):
            return self.constant(np.array(values, np.int64), dtypes.i64)
        parts = [self.size(v) for v in values]
        if len(parts) == 1:
            return parts[0]
        return self._once("Concat", tuple(parts), type_, {"axis": 0})

    def size(self, value: Size) -> Ref:
        """One size as an i64 vector of length 1."""
        if isinstance(value, int):
            return self.constant(np.array([value], np.int64), dtypes.i64)
        ref = self._measured(value)
        if ref is None:
            ref = sizes.fold(value, self._symbol_size, self.size, self._arithmetic, self._measured)
        self._sizes[value] = ref
        return ref

    def _measured(self, value: Size) -> Ref | None:
        """The size as Shape of a value that has it: one node, whatever arithmetic made the size."""
        exporter: GraphExporter | None = self
        while exporter is not None:
            if value in exporter._sizes:
                return exporter._sizes[value]
            if value in exporter.sources:
                source, axis = exporter.sources[value]
                ref = exporter.refs[source]
                type_ = TensorType(dtypes.i64, (1,))
                attributes = {"start": axis, "end": axis + 1}
                return self._sizes.setdefault(value, self._size_node("Shape", (ref,), type_, attributes))
            if value in exporter._bound:
                return self._sizes.setdefault(value, self._as_size(exporter._bound[value]))
            exporter = exporter.outer
        return None

    def _as_size(self, scalar: Ref) -> Ref:
        type_ = TensorType(dtypes.i64, ())
        if scalar.dtype is not dtypes.i64:
            scalar = self._once("Cast", (scalar,), type_, {"to": dtypes.i64.onnx})
        vector = self.constant(np.array([1], np.int64), dtypes.i64)
        return self._once("Reshape", (scalar, vector), type_.with_dims((1,)), {})

    def _arithmetic(self, kind: str, a: Ref, b: Ref) -> Ref:
        names = {"max": "Max", "min": "Min", "+": "Add", "*": "Mul", "//": "Div", "%": "Mod"}
        return self._once(names[kind], (a, b), TensorType(dtypes.i64, (1,)), {})

    def _once(self, kind: str, inputs: tuple[Ref, ...], type_: TensorType, attributes: Mapping[str, Any]) -> Ref:
        """A node of size arithmetic, made once in this graph for the same inputs."""
        key = (kind, *(x.name for x in inputs))
        if key not in self._made:
            self._made[key] = self._size_node(kind, inputs, type_, attributes)
        return self._made[key]

    def _size_node(self, kind: str, inputs: tuple[Ref, ...], type_: TensorType, attributes: Mapping[str, Any]) -> Ref:
        ref = self.node(kind, inputs, (type_,), "", attributes)[0]
        self._size_names.add(ref.name)
        return ref

    def _symbol_size(self, name: str) -> Ref:
        ref = self._measured(sizes.symbol(name))
        if ref is None:
            raise IrcError(f"dim {name} is no input's size on its own, so ONNX cannot compute it")
        return ref

    def subgraph(self, graph: Graph, name: str) -> onnx.GraphProto:
        """A sub-graph; captures refer to outer names, as ONNX has it."""
        inner = GraphExporter(self.root, self)
        inputs = [inner.graph_input(v, v.name or f"{name}_in{i}") for i, v in enumerate(graph.inputs)]
        inner.run(graph)
        outputs = inner.outputs(graph.outputs, [self.root.fresh(f"{name}_out{i}") for i in range(len(graph.outputs))])
        return helper.make_graph(inner.needed(outputs), name, inputs, outputs)

    def inline(self, graph: Graph, arguments: Sequence[Ref]) -> list[Ref]:
        """Export a sub-graph's nodes here, with its inputs replaced."""
        for value, ref in zip(graph.inputs, arguments, strict=True):
            self.refs[value] = ref
        self.run(graph)
        return [self.ref(v) for v in graph.outputs]  # type: ignore[misc]  # outputs are never absent

    def loop_body(self, body: Graph, cond: Graph) -> onnx.GraphProto:
        """The body of a Loop: (iteration, condition, state..) -> (condition of the next state, next state..)."""
        inner = GraphExporter(self.root, self)
        flags = [
            value_info(self.root.fresh("iteration"), TensorType(dtypes.i64, ())),
            value_info(self.root.fresh("condition"), TensorType(dtypes.bool_, ())),
        ]
        inputs = [inner.graph_input(v, v.name or f"state{i}") for i, v in enumerate(body.inputs)]
        inner.run(body)
        state = [inner.ref(v) for v in body.outputs]
        again = inner.inline(cond, state)  # type: ignore[arg-type]  # outputs are never absent
        outputs = []
        for ref in [*again, *state]:
            assert ref is not None, "outputs are never absent"
            name = self.root.fresh("next")
            inner.nodes.append(helper.make_node("Identity", [ref.name], [name], name=self.root.fresh_node("Identity")))
            outputs.append(value_info(name, ref.type))
        return helper.make_graph(inner.needed(outputs), "body", [*flags, *inputs], outputs)

    def outputs(
        self, values: Sequence[Value], names: Sequence[str], wide: Sequence[TensorType | None] = ()
    ) -> list[onnx.ValueInfoProto]:
        """Output infos under the wanted names: the producing node is renamed, or an Identity added if it cannot be.

        Where `wide` has a type, a Cast to it makes the output.
        """
        infos = []
        produced = {o for n in self.nodes for o in n.output}
        done: set[str] = set()
        for value, name, cast in zip(values, names, wide or [None] * len(values), strict=True):
            ref = self.ref(value)
            assert ref is not None, "outputs are never absent"
            if cast is not None:
                ref = self.node("Cast", (ref,), (cast,), "", cast_attributes(cast.dtype))[0]
                produced.add(ref.name)
            if ref.name != name:
                if name in self.root.taken:
                    name = self.root.fresh(name) if name in done or name not in produced else self._make_room(name)
                self.root.taken.setdefault(name, 0)
                if ref.name in produced and ref.name not in done:
                    _rename(self.nodes, ref.name, name)
                    for key, old in self.refs.items():
                        if old.name == ref.name:
                            self.refs[key] = Ref(name, old.type, old.ints)
                    produced = produced - {ref.name} | {name}
                else:
                    self.nodes.append(
                        helper.make_node("Identity", [ref.name], [name], name=self.root.fresh_node("Identity"))
                    )
            done.add(name)
            infos.append(value_info(name, cast or value.type))
        return infos

    def needed(self, outputs: Sequence[onnx.ValueInfoProto]) -> list[onnx.NodeProto]:
        """The nodes that outputs hang on; others only told sizes that some value tells as well."""
        used = {info.name for info in outputs}
        kept = []
        for node in reversed(self.nodes):
            if not used.isdisjoint(node.output):
                kept.append(node)
                used.update(_mentioned(node))
        return kept[::-1]

    def _make_room(self, name: str) -> str:
        """Rename an inner value that has the name wanted for an output."""
        other = self.root.fresh(name)
        _rename(self.nodes, name, other)
        for key, old in self.refs.items():
            if old.name == name:
                self.refs[key] = Ref(other, old.type, old.ints)
        return name


def _mentioned(node: onnx.NodeProto) -> Iterator[str]:
    """Names that a node reads, and those that its sub-graphs read, their own among them."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            yield from (info.name for info in attribute.g.output)
            for inner in attribute.g.node:
                yield from _mentioned(inner)


def _rename(nodes: Sequence[onnx.NodeProto], old: str, new: str) -> None:
    """Every mention of `old` in these nodes, sub-graphs included, becomes `new`."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                if name == old:
                    names[i] = new
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                stack.extend(attribute.g.node)
                for info in attribute.g.output:
                    if info.name == old:
                        info.name = new


def value_info(name: str, type_: Type) -> onnx.ValueInfoProto:
    """Name and type; symbolic dims as dim_param."""
    return helper.make_value_info(name, type_proto(type_))


def type_proto(type_: Type) -> onnx.TypeProto:
    if isinstance(type_, SequenceType):
        return helper.make_sequence_type_proto(type_proto(type_.element))
    if isinstance(type_, OptionalType):
        return helper.make_optional_type_proto(type_proto(type_.element))
    dims = None if type_.dims is None else [d if isinstance(d, int) else str(d) for d in type_.dims]
    return helper.make_tensor_type_proto(type_.dtype.onnx, dims)
