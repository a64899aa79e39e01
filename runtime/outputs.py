"""What a call gives back: a tuple of outputs that also knows their names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any


class Outputs(tuple[Any, ...]):
    """The outputs of a call in entry order.  `.by_name` maps output names to the same objects."""

    names: tuple[str, ...]

    def __new__(cls, values: Iterable[Any], names: tuple[str, ...]) -> Outputs:
        out = super().__new__(cls, values)
        out.names = names
        return out

    @property
    def by_name(self) -> Mapping[str, Any]:
        return MappingProxyType(dict(zip(self.names, self, strict=True)))

    def __reduce__(self) -> tuple[Any, ...]:
        return (Outputs, (tuple(self), self.names))
