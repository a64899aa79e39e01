"""Contents of the constants that a program takes as arguments, derived ones evaluated once for all specializations."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.data import ArrayData, Data
from ...ir.model import Constant, Model, Value
from ...ir.reference import Evaluator
from .pjrt import Device
from .program import Placed, place


def placed(device: Device, model: Model, constants: list[Constant], state: dict[str, Any]) -> list[tuple[str, Placed]]:
    """(name, data on the device) of each constant."""
    derived = _Derived(model, state)
    out = []
    for i, constant in enumerate(constants):
        data = constant.data
        key: Any = id(data) if data is not None else ("derived", derived.key(constant))
        known = state.get("xla.placed", {}).get(key)
        if known is None:
            known = place(device, key, data if data is not None else derived.data(constant), state)
        out.append((constant.name or f"constant{i}", known))
    return out


class _Derived:
    """Derived constants of a model by what they compute: equal computations on the same data have one key."""

    def __init__(self, model: Model, state: dict[str, Any]) -> None:
        self._model = model
        self._numbers: dict[Any, int] = state.setdefault("xla.derived", {})
        self._kept: list[Data] = state.setdefault("xla.derived_from", [])
        self._keys: dict[Value, int] | None = None
        self._evaluator = Evaluator(model)

    def key(self, constant: Constant) -> int:
        if self._keys is None:
            self._keys = {}
            for node in self._model.init.nodes:
                operands = tuple(None if v is None else self._of(v) for v in node.operands)
                inside: Any = id(node) if any(True for _ in node.all_graphs()) else None
                what = (node.op.name, node.attributes, operands, inside)
                for i, result in enumerate(node.results):
                    self._keys[result] = self._number((what, i))
        output = self._model.init.outputs[self._model.derived.index(constant)]
        return self._of(output)

    def data(self, constant: Constant) -> Data:
        array = self._evaluator.constant(constant)
        return ArrayData(np.ascontiguousarray(array), constant.dtype)

    def _of(self, value: Value) -> int:
        assert self._keys is not None
        if isinstance(value, Constant):
            data = value.data
            if data is None:
                return self.key(value)
            self._kept.append(data)  # the key is its address, so it must outlive the key
            return self._number(("data", id(data)))
        return self._keys[value]

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
