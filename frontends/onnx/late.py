"""Nodes that can be typed only at run time: how they become the generic operator `onnx`, and how that is imported.

Payload of the generic operator: the node's attributes as (name, literal) pairs.  A tensor is `("$operand", i)`, a
graph `("$graph", i)`; the pair `$inputs` has the operand number of each input (-1: absent), `$outputs` which results
are used.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import onnx
import onnx.defs
from onnx import numpy_helper

from ...ir import dtypes, operators
from ...ir.clone import copy_graph
from ...ir.data import INLINE_LIMIT, Data
from ...ir.dtypes import DType
from ...ir.facts import Fact, NeedsInts
from ...ir.late import captures, register_materializer
from ...ir.model import Constant, Function, Graph, Model, Value
from ...ir.types import SequenceType, TensorType, Type, symbols
from .context import Context
from .random import DRAWS
from .reading import Source
from .scope import Frame, Scope
from .signature import FROM_ONNX_NAMES

if TYPE_CHECKING:
    from .graph import Importer


def postpone(importer: Importer, ctx: Context, domain: str, operands: Sequence[Value | None]) -> Sequence[Value] | None:
    """Results of the generic operator for the node, or None where it cannot be postponed either."""
    if importer.rounds and ctx.node.op_type in DRAWS:
        return None
    attributes = importer.attributes(ctx.frame, ctx.node)
    graphs: list[Graph] = []
    payload: list[tuple[str, Any]] = []
    xs: list[Value] = []
    positions: list[int] = []
    for value in operands:
        positions.append(-1 if value is None else len(xs))
        if value is not None:
            frozen = _frozen(importer, ctx, value)
            if frozen is None:
                return None
            xs.append(frozen)
    for name, value in attributes.items():
        if isinstance(value, Data):
            payload.append((name, ("$operand", len(xs))))
            xs.append(importer.model.inline_constant(value))
        elif isinstance(value, onnx.GraphProto):
            if ctx.node.op_type != "If" or value.input:
                return None
            payload.append((name, ("$graph", len(graphs))))
            graphs.append(ctx.graph(value))
        elif isinstance(value, int | float | str) or _plain(value):
            payload.append((name, value))
        else:
            return None
    types = [_result_type(importer, ctx, domain, i, operands, attributes, graphs) for i in range(len(ctx.node.output))]
    if any(t is None for t in types):
        return None
    payload.append(("$inputs", tuple(positions)))
    payload.append(("$outputs", tuple(int(w) for w in ctx.wanted)))
    fields = {
        "domain": domain,
        "type": ctx.node.op_type,
        "version": ctx.version,
        "attributes": tuple(payload),
        "results": tuple(types),
    }
    return ctx.build.create(operators.get("onnx"), xs, fields, {"graphs": tuple(graphs)}).results


def _plain(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(v, int | float | str) for v in value)


def _frozen(importer: Importer, ctx: Context, value: Value) -> Value | None:
    """The value as the host reads it, if the node needs its integers; None if the host cannot read it."""
    needed = value in ctx.unknown if ctx.unknown else _undecided_ints(value)
    if not needed:
        return value
    if not isinstance(value.type, TensorType) or value.type.dtype.is_string:
        return None
    key = (ctx.build.graph, value)
    if key not in importer.frozen:
        importer.frozen[key] = ctx.build.freeze(value, name=value.name)
    return importer.frozen[key]


def _undecided_ints(value: Value) -> bool:
    type_ = value.type
    if not isinstance(type_, TensorType) or not type_.dtype.is_integer or type_.dims is None or len(type_.dims) > 1:
        return False
    if type_.dims and isinstance(type_.dims[0], int) and type_.dims[0] > INLINE_LIMIT:
        return False
    return value.fact.known_ints() is None and value.data is None


def _result_type(
    importer: Importer,
    ctx: Context,
    domain: str,
    index: int,
    operands: Sequence[Value | None],
    attributes: dict[str, Any],
    graphs: Sequence[Graph],
) -> Type | None:
    """The type of a result with unknown rank, from the sub-graphs, the schema, attributes, or the model's own hints."""
    node = ctx.node
    if node.op_type == "If" and graphs:
        return _unranked(graphs[0].outputs[index].type)
    if node.op_type == "SplitToSequence" and operands[0] is not None:
        return SequenceType(_unranked(operands[0].type))
    if node.op_type == "ConstantOfShape":
        fill = attributes.get("value")
        return TensorType(fill.dtype if isinstance(fill, Data) else dtypes.f32, None)
    try:
        schema = onnx.defs.get_schema(node.op_type, ctx.version, domain)
    except onnx.defs.SchemaError:
        return importer.hints.get(node.output[index])
    formal = schema.outputs[min(index, len(schema.outputs) - 1)]
    if len(formal.types) == 1 and (only := FROM_ONNX_NAMES.get(next(iter(formal.types))[7:-1])) is not None:
        return TensorType(only, None)
    for i, value in enumerate(operands):
        if value is not None and schema.inputs[min(i, len(schema.inputs) - 1)].type_str == formal.type_str:
            return _unranked(value.type)
    for name in ("to", "dtype"):
        if isinstance(attributes.get(name), int):
            return TensorType(DType.from_onnx(attributes[name]), None)
    return importer.hints.get(node.output[index])


def _unranked(type_: Type) -> Type:
    return TensorType(type_.dtype, None) if isinstance(type_, TensorType) else type_


def materialize(
    domain: str,
    type_: str,
    version: int,
    attributes: Any,
    graphs: Sequence[Graph],
    operands: Sequence[Fact | None],
    model: Model,
) -> Model:
    """What the importer builds for a postponed node now that its operands are typed: `main` of a model of its own.

    `main` takes every operand, constants included (those are used as constants), then the captures of the graphs.
    Results that the node does not use are zeros.  Raises NeedsInts or NeedsRank if too little is still known.
    """
    from .graph import Importer

    given = dict(attributes)
    scratch = Model(type_)
    main = scratch.add_function(Function("main"))
    values = [_operand(scratch, main, i, fact) for i, fact in enumerate(operands) if fact is not None]
    outer = {v: main.add_input(v.type, v.name or "captured") for v in captures(graphs)}
    main.dims = list(dict.fromkeys(s for v in main.inputs for s in sorted(symbols(v.type))))
    node = onnx.NodeProto(op_type=type_, domain=domain, name=type_)
    node.input.extend("" if p < 0 else f"x{p}" for p in given.pop("$inputs"))
    used = given.pop("$outputs")
    node.output.extend(f"y{i}" if u else "" for i, u in enumerate(used))
    importer = Importer(Source(onnx.ModelProto(), f"late {type_}"), scratch, main.assumptions)
    importer.types_late = True
    frame = Frame(Scope(values={f"x{i}": v for i, v in enumerate(values)}), {"": 1, domain: version})
    ctx = Context(importer, importer.builder(main.body), frame, node, version, type_)
    if type_ == "If" and not domain:
        branch = _branch(given, graphs, operands)
        results: Sequence[Value | None] | None = _copied(scratch, main, branch, outer)
    else:
        _put_attributes(node, given, operands)
        results = importer.results(ctx, frame, domain, [frame.scope.values[n] if n else None for n in node.input])  # type: ignore[misc]  # all are values
    assert results is not None
    rows = [r if u and r is not None else ctx.zeros(dtypes.f32) for r, u in zip(results, used, strict=False)]
    main.body.set_outputs(rows)
    return scratch


def _put_attributes(node: onnx.NodeProto, given: dict[str, Any], operands: Sequence[Fact | None]) -> None:
    """Write the payload's attributes back into a node."""
    for name, value in given.items():
        if isinstance(value, tuple) and value and value[0] == "$operand":
            fact = operands[value[1]]
            if fact is None or fact.data is None:
                raise NeedsInts(f"the attribute {name} of {node.op_type} must be a constant")
            node.attribute.append(onnx.helper.make_attribute(name, numpy_helper.from_array(fact.data.numpy())))
        elif isinstance(value, tuple) and not value:
            node.attribute.append(onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS))
        else:
            node.attribute.append(onnx.helper.make_attribute(name, value))


def _branch(given: dict[str, Any], graphs: Sequence[Graph], operands: Sequence[Fact | None]) -> Graph:
    """The branch of a postponed If whose condition is known now."""
    fact = operands[0]
    if fact is None or fact.data is None:
        raise NeedsInts("the condition must be known, because the branches differ in type")
    taken = "then_branch" if bool(fact.data.numpy().reshape(-1)[0]) else "else_branch"
    number: int = given[taken][1]
    return graphs[number]


def _copied(scratch: Model, main: Function, graph: Graph, outer: dict[Value, Value]) -> tuple[Value, ...]:
    """The nodes of a graph of another model at the end of `main`; the values of its outputs."""
    mapping = dict(outer)
    for node in graph.walk():
        for used in [*node.operands, *(o for g in node.all_graphs() for o in g.outputs)]:
            _bring(scratch, used, mapping)
    for output in graph.outputs:
        _bring(scratch, output, mapping)
    copy_graph(graph, main.body, mapping)
    return main.body.outputs


def _bring(scratch: Model, value: Value | None, mapping: dict[Value, Value]) -> None:
    """Constants of the other model become constants of this one."""
    if isinstance(value, Constant) and value not in mapping:
        if value.data is None:
            raise NeedsInts("a branch uses a derived constant")
        named = value.name is not None
        mapping[value] = (
            scratch.add_constant(value.name or "", value.data) if named else scratch.inline_constant(value.data)
        )


def _operand(scratch: Model, main: Function, index: int, fact: Fact) -> Value:
    value = main.add_input(fact.type, f"x{index}")
    value.ints = fact.ints
    if fact.data is not None:
        return scratch.inline_constant(fact.data)
    return value


register_materializer(materialize)
