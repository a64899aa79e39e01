"""Nodes that irc types at run time, as ONNX nodes: in a file one is what it was, since ONNX types nodes late itself.

It may have been of another operator set than the file's; then it is written as what means the same there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx.defs
import onnx.shape_inference
import onnx.version_converter
from onnx import helper

from ...ir.dtypes import DType
from ...ir.types import TensorType, Type
from .export import value_info

RESPELLED = {"Softmax": 13, "LogSoftmax": 13, "Hardmax": 13, "GroupNormalization": 21}
"""Operators that mean something else since a version although inputs and attributes have the same names."""

MISTAKEN = {"Hardmax": 13}
"""Those of them that onnx.version_converter (1.23) leaves as they are."""


def files_only(ctx: Any, *facts: Any, **attributes: Any) -> str | None:
    """A claim for what a file can say, and what the host does around the programs that ONNX Runtime gets."""
    return "the host does it" if ctx.dialect.runtime else None


def node_of(domain: str, kind: str, attributes: Any, count: int) -> onnx.NodeProto:
    """The node of a payload (see `frontends.onnx.late`) from x0, x1, .. to y0, y1, ..; no tensors and graphs yet."""
    given: dict[str, Any] = dict(attributes)
    node = onnx.NodeProto(op_type=kind, domain=domain)
    node.input.extend("" if p < 0 else f"x{p}" for p in given.pop("$inputs"))
    node.output.extend(f"y{i}" if used else "" for i, used in zip(range(count), given.pop("$outputs"), strict=True))
    while node.output and not node.output[-1]:
        node.output.pop()
    for name, value in given.items():
        if value == ():
            node.attribute.append(onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS))
        elif not is_reference(value, "$operand") and not is_reference(value, "$graph"):
            node.attribute.append(helper.make_attribute(name, value))
    return node


def is_reference(value: Any, kind: str) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and value[0] == kind


def types_in(graph: onnx.GraphProto, results: Sequence[Type]) -> dict[str, Type]:
    """Types by name: of y0, y1, .. those of the results, of what is between what ONNX infers, without dims."""
    found: dict[str, Type] = {}
    for info in graph.value_info:
        found[info.name] = TensorType(DType.from_onnx(info.type.tensor_type.elem_type), None)
    return found | {f"y{i}": type_ for i, type_ in enumerate(results)}


def respelled(
    node: onnx.NodeProto, operands: Sequence[Type], results: Sequence[Type], version: int, opset: int
) -> onnx.GraphProto | None:
    """Nodes of an operator set that compute what a node of another one does; None if there are none."""
    if _means_the_same(node.op_type, version, opset):
        return onnx.GraphProto(node=[node])
    if (version < MISTAKEN.get(node.op_type, 0)) != (opset < MISTAKEN.get(node.op_type, 0)):
        return None
    inputs = [value_info(f"x{i}", t) for i, t in enumerate(operands)]
    outputs = [value_info(n, results[i]) for i, n in enumerate(node.output) if n]
    model = helper.make_model(
        helper.make_graph([node], "late", inputs, outputs), opset_imports=[helper.make_opsetid("", version)]
    )
    try:
        converted = onnx.version_converter.convert_version(model, opset)
        return onnx.shape_inference.infer_shapes(converted).graph
    except RuntimeError:  # what it raises for everything that it cannot do
        return None


def _means_the_same(kind: str, version: int, opset: int) -> bool:
    """Whether two versions of an operator differ at most in the element types that they take."""
    try:
        one, other = (onnx.defs.get_schema(kind, v, "") for v in (version, opset))
    except onnx.defs.SchemaError:
        return False
    if one.since_version == other.since_version:
        return True
    if other.deprecated:
        return False
    changed = RESPELLED.get(kind, 0)
    if min(one.since_version, other.since_version) < changed <= max(one.since_version, other.since_version):
        return False
    return bool(_interface(one) == _interface(other))


def _interface(schema: onnx.defs.OpSchema) -> Any:
    attributes = {
        name: (a.type, a.required, a.default_value.SerializeToString()) for name, a in schema.attributes.items()
    }
    ends = [[(p.name, p.option) for p in side] for side in (schema.inputs, schema.outputs)]
    return attributes, ends
