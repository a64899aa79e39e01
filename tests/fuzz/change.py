"""Rebuilds nodes of a graph elsewhere with other element types, sizes and attributes; `infer` judges them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import numpy as np

from irc.ir import dims as dimensions
from irc.ir.build import Builder
from irc.ir.dims import Dim
from irc.ir.dtypes import DType
from irc.ir.model import Constant, Graph, Node
from irc.ir.types import TensorType


@dataclass
class Change:
    """Element types and sizes to put in the place of others, and an edit of some nodes' attributes."""

    dtypes: dict[DType, DType] = field(default_factory=dict)
    sizes: dict[int, Any] = field(default_factory=dict)
    symbols: dict[str, int] = field(default_factory=dict)
    """Numbers for the symbols of the nodes' function."""
    in_attributes: bool = False
    """Sizes are replaced in attributes too."""
    edit: Callable[[Node, dict[str, Any]], None] = lambda node, attributes: None

    def type(self, type_: Any) -> Any:
        if not isinstance(type_, TensorType) or type_.dims is None:
            return type_
        return TensorType(self.dtypes.get(type_.dtype, type_.dtype), tuple(map(self.size, type_.dims)))

    def size(self, size: Any) -> Any:
        if isinstance(size, Dim):
            size = dimensions.evaluate(size, self.symbols)
        return self.sizes.get(size, size)

    def attribute(self, kind: Any, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(self.attribute(kind, v) for v in value)
        if kind.base == "dtype":
            return self.dtypes.get(value, value)
        if isinstance(value, Dim) or (self.in_attributes and kind.base == "size"):
            return self.size(value)
        return value

    def constant(self, build: Builder, constant: Constant) -> Any:
        array = constant.data.numpy()
        type_ = self.type(constant.type)
        if type_.dims != constant.type.dims:
            array = np.resize(array, type_.dims)
        if type_.dtype is not constant.type.dtype:
            with np.errstate(all="ignore"):
                array = array.astype(type_.dtype.numpy)
        return build.constant(array, type_.dtype)


def rebuild(build: Builder, graph: Graph, mapping: dict[Any, Any], change: Change) -> list[Any]:
    """Write the nodes of `graph` at `build`; `mapping` has its inputs and captures.  The values of its outputs."""
    for node in graph.nodes:
        operands = [None if v is None else _value(build, v, mapping, change) for v in node.operands]
        attributes = {n: change.attribute(k, node.keywords[n]) for n, k in node.op.kinds.items()}
        change.edit(node, attributes)
        graphs = {
            name: tuple(_region(build, inner, mapping, change) for inner in group)
            for name, group in node.graphs.items()
        }
        made = build.create(node.op, operands, attributes, graphs)
        mapping.update(zip(node.results, made.results, strict=True))
    return [_value(build, v, mapping, change) for v in graph.outputs]


def _region(build: Builder, graph: Graph, mapping: dict[Any, Any], change: Change) -> Graph:
    def body(inner: Builder, *values: Any) -> Any:
        mapping.update(zip(graph.inputs, values, strict=True))
        return tuple(rebuild(inner, graph, mapping, change))

    return build.region([change.type(v.type) for v in graph.inputs], body)


def _value(build: Builder, value: Any, mapping: dict[Any, Any], change: Change) -> Any:
    if isinstance(value, Constant) and value not in mapping:
        mapping[value] = change.constant(build, value)
    return mapping[value]


def edited(draw: Random, kind: Any, value: Any) -> Any:
    """Another value of this kind, near the given one."""
    if isinstance(value, tuple):
        if not value or draw.random() < 0.2:
            return draw.choice([value[::-1], value[:-1], (*value, *value[:1])])
        at = draw.randrange(len(value))
        return tuple(edited(draw, kind, v) if i == at else v for i, v in enumerate(value))
    match kind.base:
        case "bool":
            return not value
        case "str":
            return draw.choice(kind.choices) if kind.choices else value
        case "float":
            return draw.choice([0.0, -0.0, 1.0, -1.0, 0.5, 1e-5, 2.0, 100.0, float("inf")])
        case "int" | "size" if isinstance(value, int):
            return draw.choice([value + 1, value - 1, 0, 1, -1, 2, value])
        case _:
            return value
