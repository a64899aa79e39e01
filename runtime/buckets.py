"""The shape policy `bucket`: sizes rounded up to powers of two, so that few programs serve many sizes.

A program for capacities takes inputs with room behind what counts and the true sizes; its results are cut.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..ir import dims as sizes
from ..ir.binding import bind_dims
from ..ir.dims import Size
from ..ir.model import Function, Value
from ..ir.types import TensorType
from ..passes.bucket_dims import ONES, ROOM, SIZE_ROLE
from .backend import Backend, Program

SHAPES = ("exact", "bucket")
"""The policies: a program for each shape, or for sizes rounded up."""

REMEMBERED = 1024
"""How many combinations of shapes a program remembers."""


def capacity(size: int) -> int:
    """The power of two that holds the size.  0 and 1 stay, so that what repeats does so too."""
    return size if size < 2 else 1 << (size - 1).bit_length()


def candidates(function: Function) -> list[str]:
    """Dims whose sizes can be read from inputs: those that an input's type has by themselves."""
    found: dict[str, None] = {}
    for value in function.inputs:
        if isinstance(value.type, TensorType):
            found.update((str(d), None) for d in value.type.dims or () if str(d) in function.dims)
    return list(found)


class Fault(NamedTuple):
    """What capacities would break, and the symbols in it."""

    text: str
    symbols: Sequence[str]


class Rounding:
    """What of a bucketed function's inputs and outputs is cut and filled, and what its true sizes are.

    `limited` gets the dims of which a size was rounded up less than others, or not at all, and why.
    """

    def __init__(self, function: Function, limited: dict[str, str] | None = None) -> None:
        self.function = function
        marks = function.input_attributes
        self._ones, self._room = (
            [sizes.parse(t) for t in function.metadata.get(key, "").split("; ") if t] for key in (ONES, ROOM)
        )
        self.limited = {} if limited is None else limited
        self.dims = tuple(m["dim"] for m in marks if m.get("role") == SIZE_ROLE)
        self.inputs = function.inputs[: len(function.inputs) - len(self.dims)]

    @cached_property
    def outputs(self) -> list[tuple[Size, ...] | None]:
        """Dims of each output that is cut; None for others."""
        return [self.open_dims(v) for v in self.function.outputs]

    def open_dims(self, value: Value) -> tuple[Size, ...] | None:
        """The value's dims if it has room behind what counts."""
        dims = value.type.dims if isinstance(value.type, TensorType) else None
        return dims if dims and not all(sizes.names_no(d, self.dims) for d in dims) else None

    def true(self, bound: Mapping[str, int]) -> list[Any]:
        """The inputs behind all others."""
        return [np.array(bound[n], np.int64) for n in self.dims]

    def rounded(self, bound: Mapping[str, int]) -> dict[str, int]:
        """Capacities of the dims that have some, the others as they are.

        Where they would break a relation that the model needs, broadcast in another way or leave no room, the dims that
        are at fault get the greatest capacities that do not, as a table of 77 places is good for 77.
        """
        most = {n: capacity(v) if n in self.dims else v for n, v in bound.items()}
        out, faulty = dict(most), dict.fromkeys(self.dims, False)
        while (why := self.fault(bound, out)) is not None:
            at_fault = [n for n in why.symbols if n in faulty and not faulty[n]] or list(faulty)
            for name in at_fault:
                if most[name] != bound[name] and not faulty[name]:
                    stays = f"{bound[name]} is not rounded up to {most[name]}"
                    self.limited[name] = f"{stays}, which would break {why.text}"
                faulty[name], out[name] = True, bound[name]
            if out == bound:
                break
        for name in [n for n, yes in faulty.items() if yes]:
            out[name] = self._greatest(bound, out, name, most[name])
        return out

    def _greatest(self, bound: Mapping[str, int], out: Mapping[str, int], name: str, most: int) -> int:
        """The greatest capacity up to `most` that goes with the others; those that go are taken to be a beginning."""
        fits, fails = bound[name], most + 1
        while fails - fits > 1:
            middle = most if fails > most else (fits + fails) // 2
            if self.fault(bound, {**out, name: middle}) is None:
                fits = middle
            else:
                fails = middle
        return fits

    def fault(self, bound: Mapping[str, int], capacities: Mapping[str, int]) -> Fault | None:
        """Why a program for these capacities cannot serve these sizes."""
        for a in self.function.assumptions:
            if all(n in bound for n in a.symbols()):
                true, rounded = _holds(a, bound), _holds(a, capacities)
                if rounded is not true if a.sometimes else rounded is False:
                    return Fault(str(a), a.symbols())
        for d in self._ones:
            if (_value(d, bound) == 1) != (_value(d, capacities) == 1):
                return Fault(f"that {d} is 1 or not", sizes.symbols(d))
        for d in self._room:
            if _value(d, bound) > _value(d, capacities):
                return Fault(f"that {d} grows", sizes.symbols(d))
        return None


def _value(size: Size, bound: Mapping[str, int]) -> int:
    """-1 where the size has no value."""
    try:
        return sizes.evaluate(size, bound)
    except sizes.DimError:
        return -1


def _holds(assumption: sizes.Assumption, bound: Mapping[str, int]) -> bool | None:
    try:
        return assumption.substitute(bound).holds()
    except sizes.DimError:
        return False


def fitted(array: Any, shape: Sequence[int], to_numpy: Callable[[Any], Any]) -> Any:
    """The array cut or filled up with zeros to a shape; itself if it has that."""
    if tuple(array.shape) == tuple(shape):
        return array
    array = array if isinstance(array, np.ndarray) else to_numpy(array)
    shared = tuple(slice(0, min(a, b)) for a, b in zip(array.shape, shape, strict=True))
    if all(a >= b for a, b in zip(array.shape, shape, strict=True)):
        return np.ascontiguousarray(array[shared])
    out = np.zeros(shape, array.dtype)
    out[shared] = array[shared]
    return out


def cut(array: Any, shape: Sequence[int]) -> Any:
    """The beginning of an array; itself if that is all of it."""
    if tuple(array.shape) == tuple(shape):
        return array
    part = array[tuple(slice(0, n) for n in shape)]
    return np.array(part) if isinstance(array, np.ndarray) else part


def shape_of(dims: Sequence[Size], bound: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(sizes.evaluate(d, bound) for d in dims)


class BucketedProgram:
    """A program for capacities, as one for true sizes."""

    def __init__(
        self, program: Program, rounding: Rounding, backend: Backend, choose: Callable[[Mapping[str, int]], Any]
    ) -> None:
        self._program = program
        self._rounding = rounding
        self._backend = backend
        self._choose = choose
        self._known: dict[Any, tuple[dict[str, int], list[Any], list[Any]]] = {}

    @property
    def source(self) -> str:
        return self._program.source

    def save(self, folder: Path) -> None:
        self._program.save(folder)

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        """See `runtime.backend.Program`.  Arrays of the target are filled up on the host and cut by themselves."""
        arguments = arguments[: len(self._rounding.inputs)]
        key = tuple([a.shape for a in arguments])
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[key] = self._shapes(key)
        bound, wanted, given = found
        filled = [fitted(a, s, self._backend.to_numpy) for a, s in zip(arguments, wanted, strict=True)]
        results = self._program.run([*filled, *self._rounding.true(bound)], as_numpy)
        return [r if s is None else cut(r, s) for r, s in zip(results, given, strict=True)]

    def _shapes(self, shapes: Sequence[tuple[int, ...]]) -> tuple[dict[str, int], list[Any], list[Any]]:
        """True sizes, shapes that arguments are filled up to, shapes that results are cut to (None: not at all)."""
        function = self._rounding.function
        known = bind_dims(function, [*shapes, *[()] * len(self._rounding.dims)])
        bound = {n: v for n, v in known.items() if isinstance(v, int)}
        capacities = self._choose(bound)
        wanted = [
            shape_of(v.type.dims or (), capacities) if isinstance(v.type, TensorType) else None
            for v in self._rounding.inputs
        ]
        return bound, wanted, [None if d is None else shape_of(d, bound) for d in self._rounding.outputs]
