"""The head of an emitted function: what is known of it while it is written, its signature, the sizes it reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ...ir import dims as sizes
from ...ir.dims import Size
from ...ir.errors import IrcError
from ...ir.model import Constant, Function, Value
from ...ir.types import TensorType
from .expression import Expr
from .wrapping import COLUMNS

Names = Mapping[Value, Expr]


@dataclass
class Frame:
    """A function being written."""

    function: Function | None
    names: set[str] = field(default_factory=set)
    header: dict[str, list[str]] = field(default_factory=dict)
    """Statements that make long constants, by name."""
    symbols: dict[str, str] = field(default_factory=dict)
    bound: set[str] = field(default_factory=set)
    constants: dict[Constant, Expr] = field(default_factory=dict)
    takes_weights: bool = False


def signature(function: Function) -> list[str]:
    inputs = ", ".join(f"{n}: {v.type}" for n, v in zip(function.input_names, function.inputs, strict=True))
    names = function.output_names or [v.name or f"y{i}" for i, v in enumerate(function.outputs)]
    outputs = ", ".join(f"{n}: {v.type}" for n, v in zip(names, function.outputs, strict=True))
    text = f"{inputs} -> {outputs}".replace("\\", "/").replace('"', "'")
    if len(text) + 10 <= COLUMNS:
        return [f'    """{text}"""']
    lines = [""]
    for word in text.split(" "):
        if len(lines[-1]) + len(word) + 6 > COLUMNS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return ['    """' + lines[0], *(f"    {line}" for line in lines[1:]), '    """']


def shape_lines(frame: Frame, names: Names, symbol: Callable[[str], str]) -> list[str]:
    """Assignments of the sizes that the function mentions, read from the shapes of its inputs."""
    assert frame.function is not None
    tensors = [v for v in frame.function.inputs if isinstance(v.type, TensorType)]
    direct: dict[str, tuple[Value, int]] = {}
    for value in tensors:
        for axis, dim in enumerate(value.dims):
            if _is_symbol(dim):
                direct.setdefault(str(dim), (value, axis))
    solved: dict[str, str] = {}
    while missing := [s for s in frame.symbols if s not in frame.bound and s not in direct and s not in solved]:
        solved[missing[0]] = _solved(frame, missing[0], names, symbol)  # may mention further sizes
    lines = []
    for value in tensors:
        places = [(a, s) for s, (v, a) in direct.items() if v is value and s in frame.symbols and s not in frame.bound]
        if places:
            axes, symbols = zip(*sorted(places), strict=True)
            lines.append(_shape_line(frame, names[value].text(), list(axes), list(symbols), value.rank))
    return [*lines, *reversed(solved.values())]


def _shape_line(frame: Frame, x: str, axes: list[int], symbols: list[str], rank: int) -> str:
    names = ", ".join(frame.symbols[s] for s in symbols)
    if len(axes) == 1:
        return f"    {names} = {x}.shape[{axes[0]}]"
    if axes == list(range(rank)):
        return f"    {names} = {x}.shape"
    if axes == list(range(len(axes))):
        return f"    {names} = {x}.shape[:{len(axes)}]"
    if axes == list(range(axes[0], rank)):
        return f"    {names} = {x}.shape[{axes[0]}:]"
    return f"    {names} = {', '.join(f'{x}.shape[{a}]' for a in axes)}"


def _solved(frame: Frame, wanted: str, names: Names, symbol: Callable[[str], str]) -> str:
    """A size that no axis has by itself, such as N of an input of 2*N + 1 elements; the division is exact."""
    assert frame.function is not None
    for value in frame.function.inputs:
        for axis, dim in enumerate(value.dims):
            if wanted not in sizes.symbols(dim):
                continue
            rest = sizes.substitute(dim, {wanted: 0})
            factor = sizes.substitute(dim, {wanted: 1}) - rest
            if not isinstance(factor, int) or dim != rest + sizes.symbol(wanted) * factor:
                continue
            size = f"{names[value].text()}.shape[{axis}]"
            if rest != 0:
                other = sizes.render(rest, symbol)
                size = f"({size} - {other if other.isalnum() else f'({other})'})"
            return f"    {frame.symbols[wanted]} = {size} // {factor}"
    raise IrcError(f"the size {wanted} of @{frame.function.name} does not follow from the shapes of its inputs")


def _is_symbol(dim: Size) -> bool:
    return not isinstance(dim, int) and str(dim).isidentifier()
