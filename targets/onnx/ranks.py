"""Ranks of graph outputs that irc learns only at run time, as far as ONNX's own shape inference tells them.

onnx.checker wants a shape of every output, though runtimes do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
import onnx.shape_inference
from onnx import helper

READ_BELOW = 1 << 10
"""Bytes of an initializer whose elements shape inference may need; of others it gets the type."""


def add_ranks(model: onnx.ModelProto, declared: Mapping[str, str]) -> None:
    """Give the outputs of the model and of its sub-graphs the shapes that are missing and can be inferred.

    `declared` is a function's metadata, where the importer put the ranks of outputs that the model declared.
    """
    if any(_bare(graph) for graph in _graphs(model.graph)):
        inferred = onnx.shape_inference.infer_shapes(_light(model), data_prop=True)
        for graph, told in zip(_graphs(model.graph), _graphs(inferred.graph), strict=True):
            shapes = {info.name: info.type for info in (*told.value_info, *told.output)}
            for info in _bare(graph):
                if _has_shape(found := shapes.get(info.name, info.type)):
                    info.type.tensor_type.shape.CopyFrom(found.tensor_type.shape)
    for info in _bare(model.graph):
        if (rank := declared.get(f"onnx.rank.{info.name}", "")).isdecimal():
            info.type.tensor_type.shape.dim.extend(onnx.TensorShapeProto.Dimension() for _ in range(int(rank)))


def _light(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with inputs in the place of large initializers."""
    graph = onnx.GraphProto(name=model.graph.name, node=model.graph.node, output=model.graph.output)
    graph.input.extend(model.graph.input)
    for tensor in model.graph.initializer:
        if len(tensor.raw_data) < READ_BELOW and tensor.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        else:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    return onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, graph=graph)


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _bare(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    return [o for o in graph.output if o.type.HasField("tensor_type") and not _has_shape(o.type)]


def _has_shape(type_: onnx.TypeProto) -> bool:
    return bool(type_.HasField("tensor_type") and type_.tensor_type.HasField("shape"))
