"""Constants of a written model, and the names of its values and nodes.  Nodes are in `export`."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from ...ir import dtypes
from ...ir.data import SplatData
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.model import Constant, Model
from ...ir.reference import Evaluator
from .dequantized import StoredQuantized, stored_quantized
from .lowering import Dialect, Ref
from .weights import LARGEST, Weights, as_data, tensor_proto

FILL_ABOVE = 1 << 10
"""Bytes from which a constant of one repeated element is made by a node instead of being stored."""


class Root:
    """What all graphs of one export share: names, initializers, the values that give symbols their sizes."""

    def __init__(self, model: Model, dialect: Dialect, weights: Weights | None = None) -> None:
        self.model = model
        self.dialect = dialect
        self.weights = weights
        self.taken: dict[str, int] = {}
        self._node_names: dict[str, int] = {}
        self.initializers: dict[Any, onnx.TensorProto] = {}
        self.filled: list[onnx.NodeProto] = []
        """Nodes that make constants of one repeated element, or of integers; they stand first in the main graph."""
        self.constants: dict[Constant, Ref] = {}
        self.versions: dict[str, int] = {}
        """Versions of operator sets besides ONNX's own; 1 where none is given."""
        self._evaluator = Evaluator(model)

    def fresh(self, base: str) -> str:
        """A value name not used yet."""
        return _fresh(base, self.taken)

    def fresh_node(self, base: str) -> str:
        """A node name not used yet."""
        return _fresh(base, self._node_names)

    def add(self, key: Any, base: str, array: Any, dtype: DType) -> str:
        if key not in self.initializers:
            self.initializers[key] = tensor_proto(self.fresh(base), array, dtype)
        return self.initializers[key].name

    def constant(self, value: Constant) -> Ref:
        """The initializer of a constant, derived ones evaluated; weights of integer products stay dequantizations."""
        if value not in self.constants:
            if isinstance(value.data, SplatData) and value.data.nbytes > FILL_ABOVE and not value.dtype.is_string:
                self.constants[value] = Ref(self._fill(value, value.data), value.type)
                return self.constants[value]
            if (stored := stored_quantized(value)) is not None:
                self.constants[value] = Ref(self._dequantize(value, stored), value.type)
                return self.constants[value]
            data = value.data or as_data(self.array(value), value.dtype)
            _check_size(value, data.nbytes)
            if self.weights is not None and self.weights.takes(data):
                key: Any = ("beside", value.name or data.digest)
                if key not in self.initializers:
                    self.initializers[key] = self.weights.add(self.fresh(value.name or "constant"), data)
                name = self.initializers[key].name
            else:
                array = data.numpy()
                key = (
                    ("named", value.name)
                    if value.name is not None
                    else (array.dtype.str, array.shape, array.tobytes(), value.dtype)
                )
                name = self.add(key, value.name or "constant", array, value.dtype)
            self.constants[value] = Ref(name, value.type, value.fact.ints)
        return self.constants[value]

    def array(self, value: Constant) -> Any:
        """The contents of a constant, derived ones evaluated."""
        return self._evaluator.constant(value)

    def _dequantize(self, value: Constant, stored: StoredQuantized) -> str:
        """The name of a constant that a DequantizeLinear node makes."""
        x = self._turned(stored.x) if stored.turned else self.constant(stored.x).name
        given = [x, *(self.constant(v).name for v in (stored.scale, stored.zero_point) if v is not None)]
        name = self.fresh(value.name or "dequantized")
        made = helper.make_node("DequantizeLinear", given, [name], name=self.fresh_node(name))
        if stored.x.rank:
            made.attribute.append(helper.make_attribute("axis", stored.axis))
        self.filled.append(made)
        return name

    def _turned(self, value: Constant) -> str:
        """The initializer of a matrix with its axes exchanged."""
        assert value.data is not None
        data, key = as_data(np.ascontiguousarray(value.data.numpy().T), value.dtype), ("turned", value)
        if self.weights is None or not self.weights.takes(data):
            return self.add(key, value.name or "constant", data.numpy(), value.dtype)
        if key not in self.initializers:
            self.initializers[key] = self.weights.add(self.fresh(value.name or "constant"), data)
        return self.initializers[key].name

    def _fill(self, value: Constant, data: SplatData) -> str:
        """The name of a constant that a ConstantOfShape node makes."""
        _check_size(value, data.nbytes)
        shape = np.array(data.shape, np.int64)
        name = self.fresh(value.name or "constant")
        element = tensor_proto("", np.asarray(data.splat).reshape(1), data.dtype)
        dims = self.add((shape.dtype.str, shape.shape, shape.tobytes(), dtypes.i64), "constant", shape, dtypes.i64)
        made = helper.make_node("ConstantOfShape", [dims], [name], name=self.fresh_node(name), value=element)
        self.filled.append(made)
        return name


def _check_size(value: Constant, size: int) -> None:
    if size > LARGEST:
        raise IrcError(
            f"onnx: the constant {value.name!r} of type {value.type} takes {size} bytes; "
            f"expected at most {LARGEST}, what one ONNX tensor may hold"
        )


def _fresh(base: str, taken: dict[str, int]) -> str:
    """`base` or `base_1`, ...; linear over many requests for one base, since `taken` counts them."""
    if base not in taken:
        taken[base] = 0
        return base
    name = base
    while name in taken:
        taken[base] += 1
        name = f"{base}_{taken[base]}"
    taken[name] = 0
    return name
