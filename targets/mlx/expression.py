"""Expressions of the emitted Python: trees of source text with precedence, parentheses only where needed."""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.dims import Size
from ...ir.dtypes import DType
from . import types

LOWEST, TERNARY, COMPARE, BIT_OR, BIT_XOR, BIT_AND, SHIFT, SUM, PRODUCT, UNARY, POWER, POSTFIX, ATOM = range(13)

OPERATORS = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "//": PRODUCT, "%": PRODUCT, "@": PRODUCT, "**": POWER,
    "==": COMPARE, "!=": COMPARE, "<": COMPARE, "<=": COMPARE, ">": COMPARE, ">=": COMPARE,
    "&": BIT_AND, "|": BIT_OR, "^": BIT_XOR, "<<": SHIFT, ">>": SHIFT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Slot:
    """A place of an expression that holds another one, in parentheses if that binds less than `needs`."""

    expr: Expr
    needs: int = LOWEST
    weak: bool = False
    """A constant may stand as a plain Python number, which takes the element type of its neighbour."""


class Expr:
    """One value of the emitted program: what to write for it, its element type and its dims.

    `variable` is the name it was assigned to, if it was.  `hint` is the name it would get.  `data` is the content of a
    small constant, which is written out.
    """

    __slots__ = ("data", "dims", "dtype", "hint", "parts", "precedence", "trivial", "variable")

    def __init__(
        self,
        parts: tuple[str | Slot, ...],
        precedence: int,
        dtype: DType,
        dims: tuple[Size, ...],
        *,
        trivial: bool = False,
        data: np.ndarray[Any, Any] | None = None,
    ) -> None:
        self.parts = parts
        self.precedence = precedence
        self.dtype = dtype
        self.dims = dims
        self.trivial = trivial
        self.data = data
        self.variable: str | None = None
        self.hint: str | None = None

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def core(self) -> Expr:
        """The expression that this one is another view of (the same text with another type), or itself."""
        out = self
        while out.variable is None and len(out.parts) == 1 and isinstance(out.parts[0], Slot):
            out = out.parts[0].expr
        return out

    @property
    def is_plain(self) -> bool:
        """A name, a literal or the like: writing it twice costs nothing."""
        core = self.core
        return core.variable is not None or core.trivial

    @property
    def number(self) -> Any | None:
        """The Python number of a constant of one element that a literal can spell."""
        if self.data is None or self.data.size != 1:
            return None
        value = self.data.reshape(-1)[0].item() if self.dtype.numpy.kind != "V" else float(self.data.reshape(-1)[0])
        if self.dtype.is_complex or types.is_code(self.dtype) or (isinstance(value, int) and value >= 1 << 63):
            return None
        return value

    def children(self) -> Iterator[Expr]:
        """Expressions inside, those that are assigned to names or plain apart."""
        if self.variable is None:
            for part in self.parts:
                if isinstance(part, Slot):
                    yield part.expr

    def text(self, needs: int = LOWEST, weak: bool = False) -> str:
        """Python source, in parentheses if it binds less than `needs`."""
        if self.variable is not None:
            return self.variable
        if weak and (number := self.number) is not None:
            spelled = literal(number, self.dtype)
            return f"({spelled})" if spelled.startswith("-") and needs > UNARY else spelled
        if len(self.parts) == 1 and isinstance(self.parts[0], Slot):
            return self.parts[0].expr.text(needs, weak)
        inner = "".join(p if isinstance(p, str) else p.expr.text(p.needs, p.weak) for p in self.parts)
        return f"({inner})" if self.precedence < needs else inner


def literal(value: Any, dtype: DType) -> str:
    """A Python number that is exactly `value` in `dtype`."""
    if isinstance(value, bool | int):
        return repr(value)
    if math.isnan(value):
        return "math.nan"
    if math.isinf(value):
        return "math.inf" if value > 0 else "-math.inf"
    if dtype is dtypes.f64:
        return repr(value)
    short = repr(float(str(np.float32(value))))
    return short if np.float32(short) == np.float32(value) else repr(value)


_WORD = re.compile(r"[^0-9A-Za-z]+")
RESERVED = frozenset(
    "mx math w range max min len load main prepare tuple list map zip all any sum abs int float bool path".split()
)


def identifier(name: str) -> str:
    """A Python name for a label of the model: `/conv1/Conv_output_0` is `conv1_Conv_output_0`."""
    text = _WORD.sub("_", name).strip("_") or "v"
    if text[0].isdigit():
        text = f"v{text}"
    return f"{text}_" if keyword.iskeyword(text) or keyword.issoftkeyword(text) or text in RESERVED else text
