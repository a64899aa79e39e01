"""Contents of the constants that a program takes as arguments, placed once for all programs of an executable.

A derived constant is known by what it computes, so specializations that derive the same one share it.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from ...ir.data import ArrayData, Data
from ...ir.model import Constant, Model, Value
from ...ir.reference import Evaluator
from .pjrt import Device


class Placed:
    """A constant on the device.  Programs hold it, `state` only refers to it: it goes with the last program."""

    __slots__ = ("__weakref__", "buffer", "data", "key", "origin")

    def __init__(self, key: Any, data: Data, buffer: Any) -> None:
        self.key = key
        self.data = data
        self.buffer = buffer
        self.origin = data  # whose address may be in the key


def place(device: Device, key: Any, data: Data, state: dict[str, Any]) -> Placed:
    """The data on the device, put there once for all programs that share `state`."""
    known = _known(state)
    placed = known.get(key)
    if placed is None:
        # Data never changes, so the device may use its memory as it is.
        known[key] = placed = Placed(key, data, device.put(data.numpy(), data.dtype, alias=True))
    return placed


def _known(state: dict[str, Any]) -> weakref.WeakValueDictionary[Any, Placed]:
    known: weakref.WeakValueDictionary[Any, Placed] = state.setdefault("xla.placed", weakref.WeakValueDictionary())
    return known


def place_constant(
    device: Device, contents: Contents, constant: Constant, permutation: tuple[int, ...] | None, state: dict[str, Any]
) -> Placed:
    """A constant on the device, transposed if a permutation is given."""
    key = (contents.key(constant), permutation)
    known = _known(state).get(key)
    if known is not None:
        return known
    data = contents.data(constant)
    if permutation is None:
        return place(device, key, data, state)
    transposed = ArrayData(np.ascontiguousarray(data.numpy().transpose(permutation)), data.dtype)
    placed = place(device, key, transposed, state)
    placed.origin = data
    return placed


class Contents:
    """Keys and contents of a model's constants.  Keys are comparable among all models that share `state`."""

    def __init__(self, model: Model, state: dict[str, Any]) -> None:
        self._model = model
        self._numbers: dict[Any, int] = state.setdefault("xla.keys", {})
        self._kept: dict[int, Any] = state.setdefault("xla.kept", {})
        self._keys: dict[Value, int] | None = None
        self._evaluator = Evaluator(model)

    def key(self, constant: Constant) -> Any:
        """Equal for constants with the same data, and for derived ones with the same computation on the same data.

        The address of data is its key only as long as it lives; `Placed` sees to that for what it has placed.
        """
        if constant.data is not None:
            return ("data", id(constant.data))
        if self._keys is None:
            self._keys = {}
            for node in self._model.init.nodes:
                operands = tuple(None if v is None else self._of(v) for v in node.operands)
                whole = self._identity(node) if node.graphs else None
                for i, result in enumerate(node.results):
                    self._keys[result] = self._number((node.op.name, node.attributes, operands, whole, i))
        return self._of(self._model.init.outputs[self._model.derived.index(constant)])

    def data(self, constant: Constant) -> Data:
        """The contents; derived ones are evaluated."""
        if constant.data is not None:
            return constant.data
        return ArrayData(np.ascontiguousarray(self._evaluator.constant(constant)), constant.dtype)

    def _of(self, value: Value) -> Any:
        if isinstance(value, Constant):
            return self._identity(value.data) if value.data is not None else self.key(value)
        assert self._keys is not None
        return self._keys[value]

    def _identity(self, thing: Any) -> int:
        """The address of something that from now on lives as long as the state."""
        self._kept[id(thing)] = thing
        return id(thing)

    def _number(self, key: Any) -> int:
        return self._numbers.setdefault(key, len(self._numbers))
