"""Whether ONNX defines the nodes that a rule makes for their element types: the rule is tried, its nodes looked up.

ONNX's own schemas decide, so no table here repeats them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from ...ir import dtypes
from ...ir.dims import Size
from ...ir.dtypes import DType
from ...ir.graph import Node, Value
from ...ir.model import Constant, Model
from ...ir.types import TensorType, Type
from ..base import Refusal
from .export import GraphExporter
from .initializers import Root
from .lowering import TABLE, Context, Dialect, Ref

_SIZE = TensorType(dtypes.i64, (1,))


class Schemas:
    """Answers for one operator set, each found once for an operator with its types and settings."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self._answers: dict[Any, str | None] = {}

    def refusal(self, node: Node) -> str | None:
        """Why a node cannot be written, or None; nodes with sub-graphs pass any type."""
        if any(node.all_graphs()):
            return None
        key = (node.op.name, *map(_element, (*node.operands, *node.results)), *_settings(node.keywords))
        if key not in self._answers:
            self._answers[key] = self._tried(node)
        return self._answers[key]

    def _tried(self, node: Node) -> str | None:
        trial = _Trial(self.dialect)
        refs = [None if v is None else Ref(f"x{i}", v.type, v.fact.ints) for i, v in enumerate(node.operands)]
        rule = TABLE.find(node.op.name)
        assert rule is not None, "the table was asked before"
        try:
            rule.rule(Context(trial, node), *node.op.group(refs), **node.keywords)
        except Refusal as refusal:
            return str(refusal)
        found = (_undefined(*made, self.dialect.opset) for made in trial.made)
        return next((reason for reason in found if reason is not None), None)


def _settings(keywords: Mapping[str, Any]) -> list[Any]:
    """Attributes that choose among ONNX operators."""
    return [(k, v) for k, v in keywords.items() if isinstance(v, str | bool | DType)]


def _element(value: Value | None) -> str:
    return "" if value is None else str(getattr(value.type, "dtype", value.type))


class _Constants(Root):
    """Constants that `init` would derive are zeros: types do not hang on them."""

    def array(self, value: Constant) -> Any:
        if value.data is not None:
            return value.data.numpy()
        assert isinstance(value.type, TensorType)
        return np.zeros([int(d) for d in value.type.shape if isinstance(d, int)], value.dtype.numpy)


class _Trial(GraphExporter):
    """Makes the nodes of one rule and remembers their types; sizes are whatever they are."""

    def __init__(self, dialect: Dialect) -> None:
        super().__init__(_Constants(Model("trial"), dialect), None)
        self.made: list[tuple[onnx.NodeProto, list[Type | None], list[Type | None]]] = []

    def node(
        self,
        kind: str,
        inputs: Sequence[Ref | None],
        types: Sequence[Type | None],
        domain: str,
        attributes: Mapping[str, Any],
    ) -> tuple[Ref, ...]:
        refs = super().node(kind, inputs, types, domain, attributes)
        self.made.append((self.nodes[-1], [None if x is None else x.type for x in inputs], list(types)))
        return refs

    def sizes(self, values: tuple[Size, ...]) -> Ref:
        if all(isinstance(v, int) for v in values):
            return super().sizes(values)
        return Ref("sizes", TensorType(dtypes.i64, (len(values),)))

    def size(self, value: Size) -> Ref:
        return super().size(value) if isinstance(value, int) else Ref("size", _SIZE)


def _undefined(
    node: onnx.NodeProto, inputs: Sequence[Type | None], outputs: Sequence[Type | None], opset: int
) -> str | None:
    """A reason if the schema of a node does not allow its types."""
    if node.domain:
        return None
    schema = onnx.defs.get_schema(node.op_type, opset, node.domain)
    for formals, types in ((schema.inputs, inputs), (schema.outputs, outputs)):
        for i, type_ in enumerate(types):
            if isinstance(type_, TensorType) and _name(type_.dtype) not in formals[min(i, len(formals) - 1)].types:
                return f"opset {opset} does not define {node.op_type} for {type_.dtype}"
    return None


def _name(dtype: DType) -> str:
    return f"tensor({_NAMES.get(name := onnx.TensorProto.DataType.Name(dtype.onnx), name.lower())})"


_NAMES = {"FLOAT": "float", "DOUBLE": "double"}
