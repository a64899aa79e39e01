"""What the dims of a function are for given shapes of its inputs, and whether its assumptions hold for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from . import dims as sizes
from .dims import DimError, Size
from .errors import AssumptionError, InputError
from .model import Function
from .types import TensorType, Type


def bind_dims(
    function: Function,
    shapes: Sequence[Sequence[Size] | None],
    known: Mapping[str, Size] | None = None,
    *,
    partial: bool = False,
) -> dict[str, Size]:
    """What each symbol of the input types is: numbers, or sizes of the caller.

    One shape an input, of a sequence that of its elements; None leaves an input out.  `known` are symbols bound before.
    InputError names the input and the axis that do not fit, and, unless `partial`, the symbols that do not follow.
    """
    pairs: list[tuple[Size, Size]] = []
    places: list[tuple[str, int]] = []
    for value, shape in zip(function.inputs, shapes, strict=True):
        dims = _dims(value.type)
        if shape is None or dims is None:
            continue
        what = f"@{function.name}: input {value.name!r} expects {value.type}"
        got = f"[{', '.join(map(str, shape))}]"
        if len(shape) != len(dims):
            raise InputError(f"{what} (rank {len(dims)}), got shape {got} (rank {len(shape)})")
        pairs += zip(dims, shape, strict=True)
        places += [(f"{what}, got shape {got}", axis) for axis in range(len(shape))]
    bound = dict(known or {})
    solution = sizes.solve_all(pairs, bound)
    if solution.contradiction is not None:
        pattern, size = pairs[solution.contradiction]
        what, axis = places[solution.contradiction]
        others = [f"{s}={bound[s]}" for s in sizes.symbols(pattern) if s in bound]
        where = f" (where {', '.join(others)})" if others else ""
        raise InputError(f"{what}: axis {axis} must be {pattern}{where}, got {size}")
    unsolved = dict.fromkeys(s for i in solution.undecided for s in sizes.symbols(pairs[i][0]) if s not in bound)
    if unsolved and not partial:
        raise InputError(f"@{function.name}: the sizes {', '.join(unsolved)} do not follow from the inputs' shapes")
    return bound


def _dims(type_: Type) -> tuple[Size, ...] | None:
    """The dims of a tensor type, or of the tensors in a sequence or an optional."""
    while not isinstance(type_, TensorType):
        type_ = type_.element
    return type_.dims


def check_assumptions(function: Function, bindings: Mapping[str, Size]) -> None:
    """AssumptionError for the first recorded relation that these sizes break; names the node and the sizes.

    Those of nodes that need not run are left to the nodes.
    """
    for assumption in function.assumptions:
        names = assumption.symbols()
        if assumption.sometimes or not all(n in bindings for n in names):
            continue
        try:
            holds = assumption.substitute(bindings).holds()
        except DimError:
            holds = False
        if holds is False:
            given = ", ".join(f"{n}={bindings[n]}" for n in names)
            sides = " and ".join(_substituted(s, bindings) for s in (assumption.lhs, assumption.rhs))
            raise AssumptionError(
                f"@{function.name} cannot run with {given}: {assumption.node} needs {assumption}, got {sides}"
            )


def _substituted(size: Size, bindings: Mapping[str, Size]) -> str:
    try:
        return str(sizes.substitute(size, bindings))
    except DimError as error:
        return str(error)
