"""Types of values: a tensor of an element type and dims, a sequence, an optional.  Layout and quantization are none."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from . import dims as sizes
from .dims import Size
from .dtypes import DType
from .errors import InferenceError


class NeedsRank(InferenceError):
    """A rule asked for the dims of a value whose rank is only known at run time (`f32[*]`)."""


@dataclass(frozen=True, slots=True)
class TensorType:
    """A dense tensor.  `dims` has an int or symbolic Dim an axis; None: even the rank is unknown (`f32[*]`)."""

    dtype: DType
    dims: tuple[Size, ...] | None

    @property
    def rank(self) -> int:
        if self.dims is None:
            raise NeedsRank(f"the rank of a value of type {self} is known only at run time")
        return len(self.dims)

    @property
    def shape(self) -> tuple[Size, ...]:
        """The dims; NeedsRank if the type is unranked."""
        if self.dims is None:
            raise NeedsRank(f"the rank of a value of type {self} is known only at run time")
        return self.dims

    @property
    def is_static(self) -> bool:
        """Every dim is a number."""
        return self.dims is not None and all(isinstance(d, int) for d in self.dims)

    @property
    def size(self) -> Size:
        """Number of elements."""
        return sizes.product(self.shape)

    def with_dims(self, dims: Iterable[Size] | None) -> TensorType:
        return TensorType(self.dtype, None if dims is None else tuple(dims))

    def with_dtype(self, dtype: DType) -> TensorType:
        return TensorType(dtype, self.dims)

    def __str__(self) -> str:
        return f"{self.dtype}[{'*' if self.dims is None else ','.join(map(str, self.dims))}]"


@dataclass(frozen=True, slots=True)
class SequenceType:
    """A list of values of one type, of a length known at run time.  Printed `sequence<f32[*]>`."""

    element: Type

    def __str__(self) -> str:
        return f"sequence<{self.element}>"


@dataclass(frozen=True, slots=True)
class OptionalType:
    """A value or nothing.  Printed `optional<f32[B]>`."""

    element: Type

    def __str__(self) -> str:
        return f"optional<{self.element}>"


Type: TypeAlias = TensorType | SequenceType | OptionalType


def tensor(dtype: DType, *dims: Size) -> TensorType:
    """`tensor(f32, B, 64)` is `f32[B,64]`."""
    return TensorType(dtype, dims)


def substitute(type_: Type, mapping: dict[str, Size]) -> Type:
    """The type with symbols replaced."""
    if isinstance(type_, TensorType):
        if type_.dims is None or type_.is_static:
            return type_
        return TensorType(type_.dtype, tuple(sizes.substitute(d, mapping) for d in type_.dims))
    return type(type_)(substitute(type_.element, mapping))


def symbols(type_: Type) -> set[str]:
    """Names of the symbols mentioned."""
    if isinstance(type_, TensorType):
        return {s for d in type_.dims or () if not isinstance(d, int) for s in sizes.symbols(d)}
    return symbols(type_.element)
