"""What onnx's own definitions say about a node: how many inputs, which element types, which kinds of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx.defs
from google.protobuf.unknown_fields import UnknownFieldSet  # type: ignore[import-untyped]  # protobuf ships no stubs

from ...ir.model import Value
from ...ir.types import TensorType
from .context import Context
from .signature import FROM_ONNX_NAMES


def schema_of(domain: str, type_: str, version: int) -> Any:
    """onnx's definition of the operator in that version of the domain's operator set, or None.

    Any: the stubs of OpSchema lack what it says about functions.
    """
    try:
        return onnx.defs.get_schema(type_, version, domain)
    except onnx.defs.SchemaError:
        return None


def check_counts(ctx: Context, schema: Any, operands: Sequence[Value | None]) -> None:
    """Enough inputs, not too many, none missing that must be there."""
    if not schema.min_input <= len(operands) <= schema.max_input:
        ctx.fail(f"takes {_range(schema.min_input, schema.max_input)} inputs, got {len(operands)}")
    if not schema.min_output <= len(ctx.node.output) <= schema.max_output:
        ctx.fail(f"has {_range(schema.min_output, schema.max_output)} outputs, got {len(ctx.node.output)}")
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    for value, formal in zip(operands, schema.inputs, strict=False):
        if value is None and formal.option != optional:
            ctx.fail(f"the input {formal.name} is missing")


def _range(low: int, high: int) -> str:
    return str(low) if low == high else f"{low} or more" if high >= 2**31 - 1 else f"{low} to {high}"


_FIELDS = {
    "FLOAT": "f", "INT": "i", "STRING": "s", "TENSOR": "t", "GRAPH": "g", "SPARSE_TENSOR": "sparse_tensor",
    "TYPE_PROTO": "tp", "FLOATS": "floats", "INTS": "ints", "STRINGS": "strings", "TENSORS": "tensors",
    "GRAPHS": "graphs",
}  # fmt: skip
"""Kind of an attribute -> the field that holds its value."""


def kind_of(proto: onnx.AttributeProto) -> int:
    """The kind of an attribute; one written before there was a type field has that of its value.

    ValueError if a value of another kind is there, or more than one.  A field that is left out is zero or empty.
    """
    kinds = onnx.AttributeProto
    given = {field.name for field, _ in proto.ListFields()}
    present = [kind for kind, field in _FIELDS.items() if field in given]
    if not proto.type:
        if len(present) > 1:
            raise ValueError(f"has no type, and values of {' and '.join(present)}")
        if len(UnknownFieldSet(proto)):
            raise ValueError("has a kind that this version of onnx does not know")
        return int(kinds.AttributeType.Value(present[0])) if present else int(kinds.INTS)
    named = kinds.AttributeType.Name(proto.type)
    if wrong := [kind for kind in present if kind != named]:
        raise ValueError(f"is of kind {named}, but holds {' and '.join(wrong)}")
    return int(proto.type)


def check_attributes(ctx: Context, schema: Any) -> None:
    """Attributes that are written have the kind that the definition gives them."""
    for proto in ctx.node.attribute:
        declared = schema.attributes.get(proto.name)
        if declared is None or not proto.type or proto.ref_attr_name:
            continue
        if proto.type != declared.type.value:
            kinds = onnx.AttributeProto.AttributeType
            ctx.fail(f"the attribute {proto.name!r} must be of kind {declared.type.name}, got {kinds.Name(proto.type)}")


def type_mismatch(schema: Any, operands: Sequence[Value | None]) -> str | None:
    """What is wrong with the element types of the operands by onnx's own definition, or None."""
    bound: dict[str, TensorType] = {}
    for i, value in enumerate(operands if schema.inputs else ()):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        if value is None or not isinstance(value.type, TensorType):
            continue
        allowed = {t for t in formal.types if t.startswith("tensor(")}
        dtypes = {FROM_ONNX_NAMES.get(t[7:-1]) for t in allowed}
        if value.dtype not in dtypes:
            listed = ", ".join(sorted(t[7:-1] for t in allowed))
            return f"the input {formal.name} has type {value.type}; ONNX allows {listed or 'no tensor'}"
        first = bound.setdefault(formal.type_str, value.type)
        if formal.is_homogeneous and first.dtype is not value.dtype:
            return f"the inputs of type {formal.type_str} must have one element type, got {first} and {value.type}"
    return None
