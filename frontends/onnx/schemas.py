"""What onnx's own definitions say about a node: how many inputs, which element types, which kinds of attributes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx
import onnx.defs

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
        ctx.fail(f"takes {schema.min_input} to {schema.max_input} inputs, got {len(operands)}")
    if len(ctx.node.output) > schema.max_output:
        ctx.fail(f"has at most {schema.max_output} outputs, got {len(ctx.node.output)}")
    optional = onnx.defs.OpSchema.FormalParameterOption.Optional
    for value, formal in zip(operands, schema.inputs, strict=False):
        if value is None and formal.option != optional:
            ctx.fail(f"the input {formal.name} is missing")


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
