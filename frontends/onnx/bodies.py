"""Operators defined by other operators: model-local functions and the function bodies of ONNX's own definitions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import onnx

from ...ir.model import Value
from .context import Context
from .reading import MAX_DEPTH
from .schemas import schema_of
from .scope import Frame, Scope
from .signature import onnx_type

if TYPE_CHECKING:
    from .graph import Importer


def expand(
    importer: Importer,
    ctx: Context,
    function: onnx.FunctionProto,
    operands: Sequence[Value | None],
    key: tuple[str, str, str],
) -> Sequence[Value | None]:
    """Write the body of a function in place of a node; new nodes carry the node's location."""
    source, frame = importer.source, ctx.frame
    if key in frame.expanding:
        raise source.fail(f"the function {function.name!r} calls itself")
    if len(frame.expanding) > MAX_DEPTH:
        raise source.fail(f"functions are nested more than {MAX_DEPTH} deep")
    if len(operands) > len(function.input):
        ctx.fail(f"takes {len(function.input)} inputs, got {len(operands)}")
    if key in importer.functions and len(ctx.node.output) > len(function.output):
        ctx.fail(f"has {len(function.output)} outputs, got {len(ctx.node.output)}")
    scope = Scope()
    scope.values.update(dict.fromkeys(function.input))
    scope.values.update(zip(function.input, operands, strict=False))
    attributes = {a.name: importer.attribute(frame, a) for a in function.attribute_proto}
    schema = schema_of(*key[:2], ctx.version)
    if schema is not None:
        for name, declared in schema.attributes.items():
            if declared.default_value.name:
                attributes.setdefault(name, importer.attribute(frame, declared.default_value))
    attributes.update(importer.attributes(frame, ctx.node))
    opsets = {("" if o.domain == "ai.onnx" else o.domain): o.version for o in function.opset_import}
    inner = Frame(scope, {**frame.opsets, **opsets}, attributes, ctx.label, (*frame.expanding, key))
    importer.nodes(inner, ctx.build, _present(function, scope))
    if key in importer.functions and (undefined := [name for name in function.output if not scope.find(name)]):
        ctx.fail(f"the function's output {undefined[0]!r} is defined by none of its nodes")
    return [importer.value(scope, name, ctx.build) if scope.find(name) else None for name in function.output]


def _present(function: onnx.FunctionProto, scope: Scope) -> list[onnx.NodeProto]:
    """The body's nodes with inputs that the caller left out spelled as absent."""
    absent = {name for name in function.input if scope.values[name] is None}
    if not absent:
        return list(function.node)
    out = []
    for node in function.node:
        if absent.intersection(node.input):
            copy = onnx.NodeProto()
            copy.CopyFrom(node)
            copy.input[:] = ["" if name in absent else name for name in node.input]
            node = copy
        out.append(node)
    return out


def has_body(domain: str, type_: str, version: int) -> bool:
    """Whether onnx defines the operator by a function in that version of the operator set."""
    schema = schema_of(domain, type_, version)
    if schema is None or schema.deprecated:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def of_schema(ctx: Context, domain: str, operands: Sequence[Value | None]) -> onnx.FunctionProto | None:
    """The function body that onnx gives for the node, for these operand types, or None."""
    schema = schema_of(domain, ctx.node.op_type, ctx.version)
    if schema is None or schema.deprecated:
        return None
    if schema.has_function:
        usable = [v for v in schema.function_opset_versions if v <= ctx.version]
        if usable:
            return _parsed(schema.get_function_with_opset_version(max(usable)))
    if schema.has_context_dependent_function:
        usable = [v for v in schema.context_dependent_function_opset_versions if v <= ctx.version]
        types = [b"" if v is None else onnx_type(v.type).SerializeToString() for v in operands]
        if usable:
            node = _resolved(ctx).SerializeToString()
            return _parsed(schema.get_context_dependent_function_with_opset_version(max(usable), node, types))
    return None


def _resolved(ctx: Context) -> onnx.NodeProto:
    """The node with attribute references replaced, as the schema's function builders expect it."""
    if not any(a.ref_attr_name for a in ctx.node.attribute):
        return ctx.node
    node = onnx.NodeProto()
    node.CopyFrom(ctx.node)
    del node.attribute[:]
    values = ctx.importer.attributes(ctx.frame, ctx.node)
    node.attribute.extend(
        onnx.helper.make_attribute(k, v) for k, v in values.items() if isinstance(v, int | float | str | tuple)
    )
    return node


def _parsed(serialized: bytes) -> onnx.FunctionProto | None:
    if not serialized:
        return None
    out = onnx.FunctionProto()
    out.ParseFromString(serialized)
    return out
