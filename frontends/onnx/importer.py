"""`import_onnx` and `check_onnx`: reads a model, types its inputs, imports its graph as the function `main`."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.defs

from ...ir.build import Builder
from ...ir.effects import has_effects
from ...ir.errors import UnsupportedError
from ...ir.model import Function, Model, Node, Value, fresh_name
from ...ir.rewrite import Rewriter
from ...ir.types import TensorType
from .check import Report
from .graph import Importer, declare_initializers, domain_of
from .reading import Source, read
from .scope import Frame, Poisoned, Scope, check_names
from .signature import Symbols, type_of

_SINGLE_OPSET = 1  # models of IR versions 1 and 2 name no operator set


def import_onnx(source: str | Path | onnx.ModelProto | bytes, *, name: str | None = None) -> Model:
    """An ONNX model as a model of the IR with one function `main`.

    `source` is a file (the only form that may have external data), its bytes, or a parsed model.  Inputs of `main` are
    the graph inputs that are not initializers.  Equal symbolic dims of inputs are one symbol; a name that is no
    identifier is respelled, and `main.metadata["onnx.dim.<symbol>"]` has the original.  The rank that the file
    declares for an output whose rank the run decides is in `main.metadata["onnx.rank.<output>"]`.  Raises FormatError
    for a file that is no valid ONNX model, UnsupportedError with one diagnostic for each operator that cannot be
    imported.
    """
    model, report = _imported(read(source), name)
    if report:
        raise UnsupportedError(report.diagnostics())
    return model


def check_onnx(source: str | Path | onnx.ModelProto | bytes) -> Report:
    """Everything of the model that cannot be imported, at once; FormatError if it is not a valid ONNX model."""
    return _imported(read(source), None)[1]


def _imported(source: Source, name: str | None) -> tuple[Model, Report]:
    proto = source.model
    label = name or (source.file.path.stem if source.file else "") or proto.graph.name or "model"
    model = Model(label)
    main = Function("main")
    importer = Importer(source, model, main.assumptions)
    importer.main = main
    frame = Frame(Scope(), _opsets(source, importer))
    check_names(proto.graph, source)
    declare_initializers(frame.scope, proto.graph)
    _check_defaults(source, frame.scope)
    _inputs(source, main, frame.scope)
    build = importer.builder(main.body)
    importer.nodes(frame, build, list(proto.graph.node))
    outputs = _outputs(importer, frame.scope, build)
    report = Report(source.label, importer.findings.rows(), importer.count, importer.late)
    if not report:
        main.body.set_outputs(outputs)
        for output in proto.graph.output:  # a value may be returned twice, but outputs are known by their names
            main.output_names.append(fresh_name(output.name, main.output_names))
            _remember_rank(main, output)
        _drop_shape_arithmetic(model, importer.read)
        model.add_function(main)
        _describe(model, proto)
    return model, report


def _opsets(source: Source, importer: Importer) -> dict[str, int]:
    out: dict[str, int] = {}
    for opset in source.model.opset_import:
        domain = domain_of(opset.domain)
        if not (0 if domain else 1) <= opset.version < 2**31:
            raise source.fail(f"imports the operator set of domain {domain!r} in version {opset.version}: no such set")
        if out.setdefault(domain, opset.version) != opset.version:
            raise source.fail(f"imports the operator set of domain {domain!r} twice: {out[domain]} and {opset.version}")
    if not source.model.opset_import:
        out[""] = _SINGLE_OPSET
    newest = onnx.defs.onnx_opset_version()
    if out.get("", 0) > newest:
        importer.findings.add("", "opset", out[""], "opset_import", f"the newest known operator set is {newest}")
    if source.model.ir_version > onnx.IR_VERSION:
        reason = f"the newest known version of the format is {onnx.IR_VERSION}; a newer onnx package may know it"
        importer.findings.add("", "IR", source.model.ir_version, "ir_version", reason)
    return out


def _check_defaults(source: Source, scope: Scope) -> None:
    """FormatError if an initializer contradicts what is declared for the input whose default it is."""
    for value in source.model.graph.input:
        default = scope.initializers.get(value.name)
        if not isinstance(default, onnx.TensorProto):
            continue
        declared = value.type.tensor_type
        dims = [d.dim_value for d in declared.shape.dim] if declared.HasField("shape") else list(default.dims)
        fits = len(dims) == len(default.dims) and all(not d or d == n for d, n in zip(dims, default.dims, strict=True))
        if not fits or declared.elem_type not in (0, default.data_type):
            raise source.fail(
                f"the initializer {value.name!r} has element type {default.data_type} and shape {list(default.dims)}, "
                f"the input of that name is declared with {declared.elem_type} and {dims}"
            )


def _inputs(source: Source, main: Function, scope: Scope) -> None:
    given = [i for i in source.model.graph.input if i.name not in scope.initializers]
    symbols = Symbols(given)
    for value in given:
        type_ = type_of(value.type, value.name, symbols, source)
        scope.values[value.name] = main.add_input(type_, value.name)
    main.dims = symbols.used
    for symbol, original in symbols.originals.items():
        main.metadata[f"onnx.dim.{symbol}"] = original


def _outputs(importer: Importer, scope: Scope, build: Builder) -> list[Value]:
    out: list[Value] = []
    for output in importer.source.model.graph.output:
        try:
            out.append(importer.value(scope, output.name, build))
        except Poisoned:
            continue
    return out


def _remember_rank(main: Function, output: onnx.ValueInfoProto) -> None:
    """What the file declares where it is needed to write the output again, and nothing else tells it."""
    value, declared = main.body.outputs[len(main.output_names) - 1], output.type.tensor_type
    unranked = isinstance(value.type, TensorType) and value.type.dims is None
    if unranked and output.type.HasField("tensor_type") and declared.HasField("shape"):
        main.metadata[f"onnx.rank.{main.output_names[-1]}"] = str(len(declared.shape.dim))


def _drop_shape_arithmetic(model: Model, read: dict[Value, None]) -> None:
    """Erase nodes that only computed what became an attribute (Shape, Gather, Concat in front of a Reshape)."""
    rewriter = Rewriter(model)
    stack: list[Node] = [v.node for v in read if v.node is not None]
    while stack:
        node = stack.pop()
        if node.graph is None or any(r.has_uses for r in node.results) or has_effects(node, model):
            continue
        operands = [o.node for o in node.operands if o is not None and o.node is not None]
        rewriter.erase(node)
        stack.extend(operands)


def _describe(model: Model, proto: onnx.ModelProto) -> None:
    model.metadata.update({f"onnx.{p.key}": p.value for p in proto.metadata_props})
    if proto.producer_name:
        model.metadata["onnx.producer"] = " ".join(filter(None, (proto.producer_name, proto.producer_version)))
