"""What is known of a value without running anything: its type, its integer elements, and its contents if constant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from . import dtypes
from .data import INLINE_LIMIT, ArrayData, Data
from .dims import Size
from .dtypes import DType
from .errors import InferenceError
from .types import TensorType, Type

Ints: TypeAlias = tuple[Size | None, ...] | None
"""Row-major elements of a small integer (or bool: 0, 1) tensor: a number, a symbolic Dim, or None where unknown."""


class NeedsInts(InferenceError):
    """A rule asked for integer values (a shape operand, an axis) that are only known at run time."""


@dataclass(frozen=True, slots=True)
class Fact:
    """(type, ints, constant).  Rules get one for each operand and return one for each result.

    `ints` is kept only for integer and bool tensors of at most 64 elements; `data` only for constants.
    """

    type: Type
    ints: Ints = None
    data: Data | None = None

    @property
    def tensor(self) -> TensorType:
        if not isinstance(self.type, TensorType):
            raise InferenceError(f"expected a tensor, got a value of type {self.type}")
        return self.type

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def dims(self) -> tuple[Size, ...]:
        return self.tensor.shape

    @property
    def rank(self) -> int:
        return self.tensor.rank

    @property
    def is_ranked(self) -> bool:
        return isinstance(self.type, TensorType) and self.type.dims is not None

    @property
    def size(self) -> Size:
        return self.tensor.size

    def with_dims(self, dims: Iterable[Size] | None) -> Fact:
        """The same element type with other dims; nothing else is known."""
        return Fact(self.tensor.with_dims(dims))

    def with_dtype(self, dtype: DType) -> Fact:
        return Fact(self.tensor.with_dtype(dtype))

    def with_ints(self, ints: Ints) -> Fact:
        """The same type with known integer elements (dropped if the type cannot carry them)."""
        return Fact(self.type, keep_ints(self.type, ints))

    def known_ints(self) -> tuple[Size, ...] | None:
        """All elements, or None if any is unknown."""
        if self.ints is None or any(i is None for i in self.ints):
            return None
        return self.ints  # type: ignore[return-value]  # no None left

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]] | None:
        """The contents of a constant, or None."""
        return None if self.data is None else self.data.numpy()


def keep_ints(type_: Type, ints: Ints) -> Ints:
    """`ints` if the type is an integer or bool tensor small enough to carry them, else None."""
    if ints is None or not isinstance(type_, TensorType) or len(ints) > INLINE_LIMIT:
        return None
    if not type_.dtype.is_integer and not type_.dtype.is_bool:
        return None
    if all(i is None for i in ints) and ints:
        return None
    return ints


def fact_of_data(data: Data) -> Fact:
    """The fact of a constant."""
    ints: Ints = None
    if (data.dtype.is_integer or data.dtype.is_bool) and data.size <= INLINE_LIMIT:
        ints = tuple(int(v) for v in data.numpy().reshape(-1))
    return Fact(data.type, ints, data)


def data_of_ints(type_: TensorType, ints: Ints) -> Data | None:
    """The constant that fully known numeric ints spell, or None."""
    if ints is None or not type_.is_static or not all(isinstance(i, int) for i in ints):
        return None
    info = np.iinfo(type_.dtype.numpy) if type_.dtype.bits >= 8 else None
    if info is not None and not all(info.min <= i <= info.max for i in ints):  # type: ignore[operator]  # ints are int
        return None
    return ArrayData(np.array(ints, type_.dtype.numpy).reshape(type_.shape), type_.dtype)


def make(dtype: DType, *dims: Size) -> Fact:
    """The fact of a tensor of that type."""
    return Fact(TensorType(dtype, dims))


def shape_fact(dims: Iterable[Size]) -> Fact:
    """An i64 vector that holds the sizes `dims`."""
    ints = tuple(dims)
    type_ = TensorType(dtypes.i64, (len(ints),))
    return Fact(type_, keep_ints(type_, ints), data_of_ints(type_, ints))
