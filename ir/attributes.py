"""Attributes of nodes: which kinds of values they may hold, how those are checked, compared by bits and hashed."""

from __future__ import annotations

import dataclasses
import struct
import types as python_types
import typing
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .dims import Dim, Size
from .dtypes import DType
from .errors import InferenceError
from .types import OptionalType, SequenceType, TensorType


class Symbol(str):
    """The name of a function of the model, printed `@name`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class AttributeKind:
    """What an attribute may hold: a base kind, nested in `depth` lists, perhaps None, perhaps one of `choices`."""

    base: Literal["int", "float", "bool", "str", "size", "dtype", "type", "symbol", "payload"]
    depth: int = 0
    optional: bool = False
    choices: tuple[str, ...] = ()

    @staticmethod
    def of(annotation: Any) -> AttributeKind:
        """The kind that a Python annotation spells: `int`, `tuple[Size, ...]`, `Literal["a", "b"]`, `DType | None`."""
        if annotation == Size:
            return AttributeKind("size")
        if annotation in _BASES:
            return AttributeKind(_BASES[annotation])
        origin, args = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is Literal:
            return AttributeKind("str", choices=tuple(args))
        if origin in (python_types.UnionType, typing.Union) and type(None) in args:
            rest = [a for a in args if a is not type(None)]
            inner = AttributeKind.of(rest[0] if len(rest) == 1 else typing.Union[tuple(rest)])  # noqa: UP007 (runtime)
            return dataclasses.replace(inner, optional=True)
        if origin is tuple:
            inner = AttributeKind.of(args[0])
            return dataclasses.replace(inner, depth=inner.depth + 1)
        raise TypeError(f"{annotation} is not an annotation that an attribute can have")

    def coerce(self, value: Any, what: str) -> Any:
        """`value` in canonical form (tuples, Python scalars), or InferenceError naming `what`, expected and got."""
        if value is None:
            if self.optional:
                return None
            raise InferenceError(f"{what} must be {self}, got None")
        return self._coerce(value, self.depth, what)

    def _coerce(self, value: Any, depth: int, what: str) -> Any:
        if depth:
            if isinstance(value, str) or not hasattr(value, "__iter__"):
                raise InferenceError(f"{what} must be {self}, got {value!r}")
            return tuple(self._coerce(v, depth - 1, what) for v in value)
        out = _COERCE[self.base](value)
        if out is None or (self.choices and out not in self.choices):
            raise InferenceError(f"{what} must be {self}, got {value!r}")
        return out

    def __str__(self) -> str:
        name = "one of " + ", ".join(map(repr, self.choices)) if self.choices else self.base
        for _ in range(self.depth):
            name = f"list of {name}"
        return name + (" or absent" if self.optional else "")


def _as_int(value: Any) -> int | None:
    if isinstance(value, bool | np.bool_):
        return None
    return int(value) if isinstance(value, int | np.integer) else None


def _as_float(value: Any) -> float | None:
    if isinstance(value, bool | np.bool_):
        return None
    return float(value) if isinstance(value, int | float | np.integer | np.floating) else None


def _as_bool(value: Any) -> bool | None:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    return bool(value) if value in (0, 1) else None


def _as_size(value: Any) -> Size | None:
    return value if isinstance(value, Dim) else _as_int(value)


def _as_str(value: Any) -> str | None:
    return value.decode() if isinstance(value, bytes) else value if isinstance(value, str) else None


_COERCE: dict[str, Any] = {
    "int": _as_int,
    "float": _as_float,
    "bool": _as_bool,
    "str": _as_str,
    "size": _as_size,
    "dtype": lambda v: v if isinstance(v, DType) else DType.of(v) if isinstance(v, str) else None,
    "type": lambda v: v if isinstance(v, TensorType | SequenceType | OptionalType) else None,
    "symbol": lambda v: Symbol(v) if isinstance(v, str) else None,
    "payload": lambda v: v,
}
_BASES: dict[Any, Any] = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    DType: "dtype",
    TensorType: "type",
    Symbol: "symbol",
    object: "payload",
}


def bits(value: Any) -> Any:
    """A hashable stand-in that is equal exactly when the values are equal bit by bit (-0.0 is not 0.0, NaN is NaN)."""
    kind = type(value)
    if kind is int or kind is str:
        return value
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, tuple):
        return tuple(bits(v) for v in value)
    if isinstance(value, dict):
        return tuple((k, bits(v)) for k, v in value.items())
    return value


class Attributes:
    """Base of each operator's frozen attribute dataclass.  Equality and hash go by bits."""

    @cached_property
    def _key(self) -> tuple[Any, ...]:
        return tuple(bits(getattr(self, name)) for name in self.__dataclass_fields__)  # type: ignore[attr-defined]  # set by dataclass

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._key == other._key

    def __hash__(self) -> int:
        return hash((type(self), self._key))

    def as_dict(self) -> dict[str, Any]:
        """Names to values, in declaration order."""
        return {name: getattr(self, name) for name in self.__dataclass_fields__}  # type: ignore[attr-defined]  # set by dataclass
