"""Masks read as predicates of (query i, key j): proofs that one is a causal or sliding band, from whatever makes it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.dims import Size
from ...ir.graph import Constant, Node, Value
from ...ir.types import TensorType
from ..pattern import equal, number
from .scores import HIDES, Mask


@dataclass(frozen=True)
class Band:
    """Keys that query i sees: j <= i + high and j >= i + low; None is no limit."""

    high: Size | None = None
    low: Size | None = None

    def keywords(self) -> dict[str, Any]:
        """As attributes of Attention, where a window reaches from i + kv_offset - window + 1 on."""
        if self.high is None:
            return {}
        window = -1 if self.low is None else self.high - self.low + 1
        return {"causal": True, "kv_offset": self.high, "window": window}

    def joined(self, other: Band) -> Band | None:
        """Both bands at once, or None if that is no band that Attention can say."""
        high, low = self.high, self.low
        if other.high is not None:
            if high is not None and not equal(high, other.high):
                return None
            high = other.high
        if other.low is not None:
            if low is not None and not equal(low, other.low):
                return None
            low = other.low
        band = Band(high, low)
        if low is not None and (high is None or not isinstance(high - low, int) or high - low < 0):
            return None
        return band


def band_of(mask: Mask, dims: tuple[Size, ...]) -> Band | None:
    """The band that a mask provably is: nothing is hidden in it, everything outside has no weight.

    A finite fill counts only where every query sees a key, so that the fill never competes with itself alone.
    """
    value = mask.value
    if value.rank < 2 or not (equal(value.dims[-2], dims[0]) and equal(value.dims[-1], dims[1])):
        return None
    found = _Reader().read(value)
    if found is None:
        return None
    band, inside, outside = found
    if mask.fill is not None:
        shown, beyond = (bool(v) != mask.inverted for v in (inside, outside))
        if not shown or beyond:
            return None
        hidden = mask.fill
    else:
        if inside != 0:
            return None
        hidden = outside * mask.factor
    if not hidden <= HIDES:
        return None
    if not math.isinf(hidden) and not every_row_sees(band, dims):
        return None
    return band


def every_row_sees(band: Band, dims: tuple[Size, ...]) -> bool:
    """Query 0 sees key 0, and the last query has a key at or after its band's lower end."""
    from ...ir import dims as sizes

    if band.high is None or sizes.less_equal(0, band.high) is not True:
        return False
    return band.low is None or sizes.less_equal(dims[0] - 1 + band.low, dims[1] - 1) is True


Found = tuple[Band, float, float]
"""(band, value inside, value outside)"""


@dataclass(frozen=True)
class _Affine:
    """rows * i + columns * j + shift, of the last two axes of a value."""

    rows: int
    columns: int
    shift: Size


class _Reader:
    """Reads a value as "one number inside a band, another outside"; every step is a proof, or gives None."""

    def __init__(self) -> None:
        self.steps = 64

    def read(self, value: Value | None) -> Found | None:
        self.steps -= 1
        if value is None or self.steps < 0 or not isinstance(value.type, TensorType) or value.type.dims is None:
            return None
        if isinstance(value, Constant):
            return _constant(value)
        node = value.node
        reader = _READERS.get(node.op.name) if node is not None else None
        return None if reader is None or node is None else reader(self, node)

    def affine(self, value: Value | None) -> _Affine | None:
        """Integers as a linear form of row and column."""
        self.steps -= 1
        if value is None or self.steps < 0 or not isinstance(value.type, TensorType) or value.type.dims is None:
            return None
        ints = value.fact.known_ints()
        if ints is not None and len(ints) == 1:
            return _Affine(0, 0, ints[0])
        if isinstance(value, Constant):
            return _affine_constant(value)
        node = value.node
        if node is None:
            return None
        x = node.operands[0] if node.operands else None
        match node.op.name:
            case "iota":
                return _along(value, node.keywords["axis"], 1, 0)
            case "Range":
                start, delta = (v.fact.known_ints() if v is not None else None for v in node.operands)
                start_number = start[0] if start else number(node.operands[0])
                step = delta[0] if delta else number(node.operands[1])
                if start_number is None or step not in (1, 1.0) or isinstance(start_number, float):
                    return None
                return _along(value, 0, 1, start_number)
            case "reshape" | "broadcast_in_dim":
                return self._placed(node, value)
            case "convert" if x is not None and (x.dtype.is_integer and value.dtype.is_integer):
                return self.affine(x)
            case "add" | "subtract":
                a, b = (self.affine(v) for v in node.operands)
                if a is None or b is None:
                    return None
                sign = -1 if node.op.name == "subtract" else 1
                return _Affine(a.rows + sign * b.rows, a.columns + sign * b.columns, a.shift + b.shift * sign)
        return None

    def _placed(self, node: Node, value: Value) -> _Affine | None:
        """A vector put along the last or the last but one axis."""
        x = node.operands[0]
        inner = self.affine(x)
        if inner is None or x is None:
            return None
        if inner.rows == 0 and inner.columns == 0:
            return inner
        long = [i for i, d in enumerate(x.dims) if not equal(d, 1)]
        if node.op.name == "broadcast_in_dim":
            axes = node.keywords["broadcast_dimensions"]
            if len(long) == 1:
                return _along(value, axes[long[0]], inner.rows + inner.columns, inner.shift)
            keeps = len(axes) >= 2 and axes[-2:] == (value.rank - 2, value.rank - 1)
            return inner if keeps else None
        out = [i for i, d in enumerate(value.dims) if not equal(d, 1)]
        if len(long) == len(out) == 1:
            return _along(value, out[0], inner.rows + inner.columns, inner.shift)
        same = value.rank >= 2 and x.rank >= 2 and all(map(equal, value.dims[-2:], x.dims[-2:]))
        return inner if same and all(equal(d, 1) for d in (*value.dims[:-2], *x.dims[:-2])) else None


def _along(value: Value, axis: int, step: int, shift: Size) -> _Affine | None:
    if axis == value.rank - 1:
        return _Affine(0, step, shift)
    if axis == value.rank - 2:
        return _Affine(step, 0, shift)
    return None


def _affine_constant(value: Constant) -> _Affine | None:
    """A constant vector 0 1 2 .. (plus a shift) along one of the last two axes."""
    if value.data is None or not value.dtype.is_integer:
        return None
    long = [i for i, d in enumerate(value.dims) if d != 1]
    flat = value.data.numpy().reshape(-1)
    if len(long) != 1 or not len(flat) or not np.array_equal(flat, np.arange(len(flat)) + flat[0]):
        return None
    return _along(value, long[0], 1, int(flat[0]))


def _constant(value: Constant) -> Found | None:
    """A constant matrix of two numbers, compared with every band that its first row and column suggest."""
    if value.data is None or value.rank < 2 or (value.dtype.is_string or value.dtype.is_complex):
        return None
    array = value.data.numpy()
    if not array.size or array.shape[:-2] != (1,) * (array.ndim - 2):
        return None
    matrix = array.reshape(array.shape[-2:])
    matrix = matrix if matrix.dtype == bool else matrix.astype(np.float64)
    rows, columns = matrix.shape
    inside = matrix[-1, -1] if rows >= columns else matrix[0, 0]
    if matrix.size > 1 << 24:
        return None
    equal_inside = matrix == inside
    others = matrix[~equal_inside]
    if not others.size or not (others == others[0]).all():
        return None
    high = int(equal_inside[0].nonzero()[0].max()) if equal_inside[0].any() else None
    if high is None:
        return None
    i, j = np.arange(rows)[:, None], np.arange(columns)
    below = equal_inside[-1].nonzero()[0]
    low = int(below.min()) - (rows - 1) if len(below) else None
    for band in (Band(high), Band(high, low)):
        if band.low is None and low is not None and low > -(rows - 1):
            continue
        seen = (j <= i + high) & ((j >= i + band.low) if band.low is not None else True)
        if np.array_equal(seen, equal_inside):
            return band, float(inside), float(others[0])
    return None


def _compare(reader: _Reader, node: Node) -> Found | None:
    """j + c <= i and the like: a half plane of slope one."""
    direction = node.keywords["direction"]
    x, y = node.operands
    if x is not None and y is not None and direction in ("eq", "ne") and (by := number(y)) is not None:
        found = reader.read(x)
        if found is None or (found[1] == by) == (found[2] == by):
            return None
        inside, outside = ((found[1] == by), (found[2] == by))
        if direction == "ne":
            inside, outside = not inside, not outside
        return found[0], float(inside), float(outside)
    a, b = reader.affine(x), reader.affine(y)
    if a is None or b is None or direction not in ("lt", "le", "gt", "ge"):
        return None
    rows, columns, shift = a.rows - b.rows, a.columns - b.columns, a.shift - b.shift
    if direction in ("gt", "ge"):
        rows, columns, shift = -rows, -columns, -shift
        direction = {"gt": "lt", "ge": "le"}[direction]
    shift = shift + 1 if direction == "lt" else shift  # rows * i + columns * j + shift <= 0
    if (rows, columns) == (-1, 1):
        return Band(high=-shift), 1.0, 0.0
    if (rows, columns) == (1, -1):
        return Band(low=shift), 1.0, 0.0
    return None


def _trilu(reader: _Reader, node: Node) -> Found | None:
    """A triangle of a constant fill: the other triangle is zero."""
    x, k = node.operands[0], node.keywords["k"]
    filled = number(_behind(x)) if x is not None else None
    if filled is None:
        return None
    if node.keywords["upper"]:
        return Band(high=k - 1), 0.0, filled  # kept where j >= i + k
    return Band(high=k), filled, 0.0


def _behind(value: Value) -> Value:
    while value.node is not None and value.node.op.name in ("broadcast_in_dim", "reshape", "convert"):
        below = value.node.operands[0]
        if below is None:
            break
        value = below
    return value


def _same(reader: _Reader, node: Node) -> Found | None:
    """A conversion, or a broadcast that keeps the last two axes."""
    x = node.operands[0]
    if x is None or x.rank < 2 or node.result.rank < 2:
        return None
    if not all(map(equal, x.dims[-2:], node.result.dims[-2:])):
        return None
    return reader.read(x)


def _broadcast(reader: _Reader, node: Node) -> Found | None:
    axes, rank = node.keywords["broadcast_dimensions"], node.result.rank
    return _same(reader, node) if axes[-2:] == (rank - 2, rank - 1) else None


def _reshape(reader: _Reader, node: Node) -> Found | None:
    x = node.operands[0]
    if x is None or not all(equal(d, 1) for d in (*x.dims[:-2], *node.result.dims[:-2])):
        return None
    return _same(reader, node)


def _select(reader: _Reader, node: Node) -> Found | None:
    """Two numbers chosen by a predicate."""
    predicate, x, y = node.operands
    found = reader.read(predicate)
    values = [number(_behind(v)) if v is not None else None for v in (x, y)]
    if found is None or values[0] is None or values[1] is None:
        return None
    return found[0], values[0] if found[1] else values[1], values[0] if found[2] else values[1]


def _and(reader: _Reader, node: Node) -> Found | None:
    a, b = (reader.read(v) for v in node.operands)
    if a is None or b is None or not (a[1] and b[1]) or a[2] or b[2]:
        return None
    band = a[0].joined(b[0])
    return None if band is None else (band, 1.0, 0.0)


def _not(reader: _Reader, node: Node) -> Found | None:
    found = reader.read(node.operands[0])
    return None if found is None else (found[0], float(not found[1]), float(not found[2]))


def _scaled(reader: _Reader, node: Node) -> Found | None:
    """A band times a number; of a band of -inf and 0 times a mask of 0 and 1 nothing is said."""
    x, y = node.operands
    found, by = reader.read(x), number(y)
    if found is None or by is None or by == 0:
        return None
    return found[0], found[1] * by, found[2] * by


def _slice(reader: _Reader, node: Node) -> Found | None:
    """A part of a larger band: rows and columns shift."""
    x = node.operands[0]
    a = node.keywords
    if x is None or any(s != 1 for s in a["strides"]) or not all(equal(d, 1) for d in x.dims[:-2]):
        return None
    found = reader.read(x)
    if found is None:
        return None
    shift = a["starts"][-2] - a["starts"][-1]
    band = found[0]
    return (
        Band(*(None if d is None else d + shift for d in (band.high, band.low))),
        found[1],
        found[2],
    )


_READERS: dict[str, Callable[[_Reader, Node], Found | None]] = {
    "compare": _compare,
    "Trilu": _trilu,
    "convert": _same,
    "broadcast_in_dim": _broadcast,
    "reshape": _reshape,
    "select": _select,
    "and": _and,
    "not": _not,
    "multiply": _scaled,
    "slice": _slice,
}
