"""Evaluation of a graph on one row of features: operators that leave all axes but the last ones as they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...ir.dims import Size
from ...ir.graph import Constant, Node, Value
from ..pattern import equal, number

Row = np.ndarray[Any, np.dtype[Any]]

MOVES = (
    "slice",
    "StridedSlice",
    "Split",
    "concatenate",
    "negate",
    "reshape",
    "convert",
    "take",
    "transpose",
    "reverse",
)


class Lanes:
    """Rows of values, from given ones.  `lead` are the dims before the features; `why` says what could not be read."""

    def __init__(self, known: dict[Value, Row], lead: tuple[Size, ...]) -> None:
        self.known = dict(known)
        self.lead = lead
        self.why = ""

    def of(self, value: Value, depth: int = 0) -> Row | None:
        """The row of a value, or None."""
        if value in self.known:
            return self.known[value]
        node = value.node
        constant = number(value)
        if constant is not None:
            return np.asarray(constant)
        if node is None or depth > 40 or node.op.name not in _RULES:
            self.why = f"the features pass through {node.op.name if node else repr(value)}"
            return None
        rows = [None if v is None else self.of(v, depth + 1) for v in node.operands]
        if any(r is None and v is not None for r, v in zip(rows, node.operands, strict=True)) and (
            node.op.name != "take" or rows[0] is None
        ):
            return None
        result = _RULES[node.op.name](self, node, value, rows)
        if result is None:
            self.why = self.why or f"{node.op.name} does more than move features"
            return None
        self.known[value] = result
        return result

    def keeps_lead(self, dims: tuple[Size, ...]) -> bool:
        lead = len(self.lead)
        return len(dims) > lead and all(map(equal, dims[:lead], self.lead))


def _arithmetic(function: Callable[..., Any]) -> Callable[[Lanes, Node, Value, list[Any]], Row | None]:
    return lambda lanes, node, value, rows: function(*rows)


def _slice(lanes: Lanes, node: Node, value: Value, rows: list[Any]) -> Row | None:
    a, lead = node.keywords, len(lanes.lead)
    x = node.operands[0]
    if x is None or not (lanes.keeps_lead(x.dims) and lanes.keeps_lead(value.dims)):
        return None
    index = []
    for start, limit, stride in list(zip(a["starts"], a["limits"], a["strides"], strict=True))[lead:]:
        if not isinstance(start, int) or not isinstance(limit, int):
            return None
        index.append(slice(start, limit if limit >= 0 else None, stride))
    return rows[0][tuple(index)] if rows[0].ndim == len(index) else None


def _split(lanes: Lanes, node: Node, value: Value, rows: list[Any]) -> Row | None:
    axis = node.keywords["axis"] % node.results[0].rank - len(lanes.lead)
    if axis < 0 or not all(isinstance(s, int) for s in node.keywords["sizes"]):
        return None
    cuts = np.cumsum(node.keywords["sizes"])[:-1]
    part: Row = np.split(rows[0], cuts, axis)[value.index]
    return part


def _concatenate(lanes: Lanes, node: Node, value: Value, rows: list[Any]) -> Row | None:
    axis = node.keywords["axis"] - len(lanes.lead)
    return np.concatenate(rows, axis) if axis >= 0 and all(r.ndim == rows[0].ndim > axis for r in rows) else None


def _reshape(lanes: Lanes, node: Node, value: Value, rows: list[Any]) -> Row | None:
    x = node.operands[0]
    if x is None or not (lanes.keeps_lead(x.dims) and lanes.keeps_lead(value.dims)):
        return None
    tail = value.dims[len(lanes.lead) :]
    known = [d for d in tail if isinstance(d, int)]
    return rows[0].reshape(known) if len(known) == len(tail) and rows[0].size == math.prod(known) else None


def _take(lanes: Lanes, node: Node, value: Value, rows: list[Any]) -> Row | None:
    indices, axis = node.operands[1], node.keywords["axis"] - len(lanes.lead)
    if not isinstance(indices, Constant) or indices.data is None or axis < 0:
        return None
    found: Row = np.take(rows[0], indices.data.numpy(), axis)
    return found


def _transpose(lanes: Lanes, node: Node, value: Value, rows: list[Any]) -> Row | None:
    permutation, lead = node.keywords["permutation"], len(lanes.lead)
    if permutation[:lead] != tuple(range(lead)):
        return None
    found: Row = rows[0].transpose([p - lead for p in permutation[lead:]])
    return found


def _reverse(lanes: Lanes, node: Node, value: Value, rows: list[Any]) -> Row | None:
    axes = [a - len(lanes.lead) for a in node.keywords["axes"]]
    return None if min(axes) < 0 else np.flip(rows[0], tuple(axes))


_RULES: dict[str, Callable[[Lanes, Node, Value, list[Any]], Row | None]] = {
    "add": _arithmetic(np.add),
    "subtract": _arithmetic(np.subtract),
    "multiply": _arithmetic(np.multiply),
    "negate": _arithmetic(np.negative),
    "convert": _arithmetic(np.asarray),
    "slice": _slice,
    "StridedSlice": _slice,
    "Split": _split,
    "concatenate": _concatenate,
    "reshape": _reshape,
    "take": _take,
    "transpose": _transpose,
    "reverse": _reverse,
}
