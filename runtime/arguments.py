"""What a caller gives to an entry, put in order and checked: arrays by position or name, sizes by symbol or name."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.binding import bind_dims, check_assumptions
from ..ir.dtypes import DType
from ..ir.errors import InputError, did_you_mean
from ..ir.model import Function, Value
from ..ir.types import TensorType
from .backend import Backend
from .buckets import Rounding

KEY_ROLE = "random_key"
"""The mark of inputs behind all others that the executable fills with a fresh u32[2] at each call."""


class Arguments:
    """The inputs of one entry on one target.  `names` are those that a caller gives, `hidden` counts the keys."""

    def __init__(self, entry: Function, rounding: Rounding, backend: Backend) -> None:
        self._entry = entry
        self._backend = backend
        self._rounded = len(rounding.dims)
        self.inputs = rounding.inputs
        self.hidden = sum(m.get("role") == KEY_ROLE for m in entry.input_attributes)
        self.names = tuple(entry.input_names[: len(self.inputs) - self.hidden])
        self._positions = {n: i for i, n in enumerate(self.names)}
        self._tensors = [isinstance(v.type, TensorType) for v in self.inputs]

    @property
    def are_tensors(self) -> bool:
        """Whether every input is one."""
        return all(self._tensors)

    def ordered(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        """One argument an input, keys apart; InputError names what is missing, unknown or given twice."""
        names = self.names
        if not named and len(arguments) == len(names) and not (arguments and isinstance(arguments[0], Mapping)):
            return list(arguments)
        if len(arguments) == 1 and not named and isinstance(arguments[0], Mapping):
            named, arguments = dict(arguments[0]), ()
        function = f"@{self._entry.name}"
        if len(arguments) > len(names):
            raise InputError(f"{function} takes {len(names)} inputs ({', '.join(names)}), got {len(arguments)}")
        slots: list[Any] = [*arguments, *[_MISSING] * (len(names) - len(arguments))]
        for name, value in named.items():
            position = self._positions.get(name)
            if position is None:
                raise InputError(f"{function} has no input {name!r}{did_you_mean(name, names)}")
            if slots[position] is not _MISSING:
                raise InputError(f"input {name!r} is given twice")
            slots[position] = value
        missing = [n for n, s in zip(names, slots, strict=True) if s is _MISSING]
        if missing:
            raise InputError(f"{function} needs the inputs {', '.join(names)}; missing: {', '.join(missing)}")
        return slots

    def arrays(self, ordered: Sequence[Any]) -> list[Any]:
        """The arguments as arrays of NumPy or of the target, keys included; InputError for what is none."""
        return [self._array(v, a) for v, a in zip(self.inputs, ordered, strict=True)]

    def _array(self, value: Value, argument: Any) -> Any:
        if not isinstance(value.type, TensorType):
            return _content(value, argument)
        if isinstance(argument, np.ndarray | np.generic):
            array = np.asarray(argument)
            return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
        if self._backend.dtype_of(argument) is not None:
            return argument
        if hasattr(argument, "__dlpack__"):
            return np.from_dlpack(argument)
        raise InputError(f"input {value.name!r} expects an array of type {value.type}, got {type(argument).__name__}")

    def sizes(self, arrays: Sequence[Any]) -> dict[str, int]:
        """Values of the entry's dims for these arrays; see `bind`."""
        return self.bind(
            [tuple(a.shape) if t else None for a, t in zip(arrays, self._tensors, strict=True)],
            [self._dtype(a) if t else None for a, t in zip(arrays, self._tensors, strict=True)],
        )

    def _dtype(self, argument: Any) -> DType:
        if isinstance(argument, np.ndarray):
            return DType.from_numpy(argument.dtype)
        dtype = self._backend.dtype_of(argument)
        if dtype is None:
            raise InputError(f"{type(argument).__name__} is not an array of target {self._backend.name}")
        return dtype

    def bind(
        self, shapes: Sequence[tuple[int, ...] | None], dtypes: Sequence[DType | None] | None = None
    ) -> dict[str, int]:
        """Values of the entry's dims for these input shapes; InputError or AssumptionError says what does not fit."""
        for value, dtype in zip(self.inputs, dtypes or (), strict=dtypes is not None):
            type_ = value.type
            if isinstance(type_, TensorType) and dtype is not type_.dtype:
                raise InputError(
                    f"input {value.name!r} expects {type_}, got element type {dtype}; "
                    f"convert it with .astype({type_.dtype.numpy.name!r})"
                )
        shapes = [*shapes, *[()] * self._rounded]
        numbers = {k: v for k, v in bind_dims(self._entry, shapes).items() if isinstance(v, int)}
        check_assumptions(self._entry, numbers)
        return numbers


def dim_symbol(entry: Function, name: str) -> str:
    """The symbol of a dim that the user calls by its symbol or by the source model's name for it."""
    if name in entry.dims:
        return name
    for symbol in entry.dims:
        if entry.metadata.get(f"onnx.dim.{symbol}") == name:
            return symbol
    hint = did_you_mean(name, entry.dims) if entry.dims else "; all its dims are fixed"
    raise InputError(f"@{entry.name} has no dim {name!r}{hint}")


def as_size(name: str, value: Any) -> int:
    """The size that a user gives to a dim; InputError for what is no size."""
    try:
        size = operator.index(value)
    except TypeError:
        raise InputError(f"the dim {name} must be a whole number, got {value!r}") from None
    if size < 0:
        raise InputError(f"the dim {name} must not be negative, got {size}")
    return size


def _content(value: Value, argument: Any) -> Any:
    """A sequence as a list of arrays, an absent optional as None."""
    if isinstance(argument, list | tuple):
        return [np.asarray(a) if not isinstance(a, list | tuple) else _content(value, a) for a in argument]
    if argument is None or isinstance(argument, np.ndarray) or hasattr(argument, "shape"):
        return argument
    raise InputError(f"input {value.name!r} expects a value of type {value.type}, got {type(argument).__name__}")


class _Missing:
    def __repr__(self) -> str:
        return "missing"


_MISSING = _Missing()
