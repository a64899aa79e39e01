"""Tables of cos and sin whose columns come twice: the proof that they do, and the half that is enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.dims import Size
from ...ir.graph import Constant, Node, Value
from ...ir.operators import Trait
from ...ir.types import TensorType
from ..pattern import Match, equal
from .layout import trace


def half_of(m: Match, build: Builder, table: Value, width: int, interleaved: bool) -> Value:
    """The table's columns, one of each pair of equal ones; refuses where they are not provably equal."""
    how = "alternate" if interleaved else "two halves of"
    m.need(_doubled(table, width, interleaved, 0), f"the {how} columns are not provably equal", table)
    return _half(build, table, width, interleaved, 0)


def _columns_are_last(value: Value, width: int) -> bool:
    return isinstance(value.type, TensorType) and bool(value.type.dims) and equal(value.dims[-1], width)


def _doubled(value: Value, width: int, interleaved: bool, depth: int) -> bool:
    """Whether column pairs (i, i + width / 2), or (2i, 2i + 1), are equal."""
    if not _columns_are_last(value, width) or depth > 24:
        return False
    if isinstance(value, Constant):
        if value.data is None:
            return _doubled_derived(value, width, interleaved, depth)
        array = value.data.numpy()
        first, second = _pair(array, interleaved)
        return bool(np.array_equal(first, second))
    node = value.node
    if node is None:
        return False
    if _spelled(node, value, width, interleaved) is not None:
        return True
    x = node.operands[0] if node.operands else None
    if Trait.ELEMENTWISE in node.op.traits:
        return all(_same_columns(v, width, interleaved, depth) for v in node.operands if v is not None)
    if x is None:
        return False
    match node.op.name:
        case "reshape":
            return _columns_are_last(x, width) and _doubled(x, width, interleaved, depth + 1)
        case "broadcast_in_dim" | "transpose" | "slice" | "take":
            keeps = _keeps_columns(node, x)
            return keeps and _doubled(x, width, interleaved, depth + 1)
        case "concatenate":
            apart = node.keywords["axis"] != value.rank - 1
            return apart and all(_doubled(v, width, interleaved, depth + 1) for v in node.operands if v is not None)
    return False


def _doubled_derived(constant: Constant, width: int, interleaved: bool, depth: int) -> bool:
    value = in_init(constant)
    return value is not None and _doubled(value, width, interleaved, depth + 1)


def in_init(constant: Constant) -> Value | None:
    """The value of `init` that a derived constant stands for; None for any other constant."""
    model: Any = constant.owner
    value: Value | None = model.derivation(constant)
    return value


def _pair(array: Any, interleaved: bool) -> tuple[Any, Any]:
    half = array.shape[-1] // 2
    return (array[..., 0::2], array[..., 1::2]) if interleaved else (array[..., :half], array[..., half:])


def _same_columns(value: Value, width: int, interleaved: bool, depth: int) -> bool:
    """An operand of an elementwise operator: doubled as well, or one column for all."""
    if not isinstance(value.type, TensorType) or value.type.dims is None:
        return False
    return not value.rank or equal(value.dims[-1], 1) or _doubled(value, width, interleaved, depth + 1)


def _keeps_columns(node: Node, x: Value) -> bool:
    last = node.result.rank - 1
    match node.op.name:
        case "broadcast_in_dim":
            axes = node.keywords["broadcast_dimensions"]
            return bool(axes) and axes[-1] == last and equal(x.dims[-1], node.result.dims[-1])
        case "transpose":
            return bool(node.keywords["permutation"][-1] == last)
        case "slice":
            a = node.keywords
            return equal(a["starts"][-1], 0) and equal(a["limits"][-1], x.dims[-1]) and a["strides"][-1] == 1
        case "take":
            return bool(node.keywords["axis"] != x.rank - 1)
    return False


def _spelled(node: Node, value: Value, width: int, interleaved: bool) -> Value | None:
    """The half behind concat(f, f), or behind a repetition of each column."""
    if node.op.name == "concatenate" and not interleaved and node.keywords["axis"] == value.rank - 1:
        first, *others = node.operands
        halves = len(others) == 1 and others[0] is first and first is not None and equal(first.dims[-1], width // 2)
        return first if halves else None
    if node.op.name in ("reshape", "concatenate", "Tile", "take"):
        return _repeated(value, width, interleaved)
    return None


def _repeated(value: Value, width: int, interleaved: bool) -> Value | None:
    """The source of columns that are repeated once, where all other axes are as they were."""
    layout = trace(value)
    row = [a for a in layout.axes[-1] if not equal(a.size, 1)]
    if len(row) != 2 or [a.repeat for a in row] != ([False, True] if interleaved else [True, False]):
        return None
    if not equal(row[1 if interleaved else 0].size, 2):
        return None
    source = layout.source
    lead = [a for axis in layout.axes[:-1] for a in axis if not a.repeat and not equal(a.size, 1)]
    own = [a for axis in layout.source_axes for a in axis if not equal(a.size, 1)]
    plain = [*lead, *(a for a in row if not a.repeat)]
    in_order = len(own) == len(plain) and all(a is b for a, b in zip(own, plain, strict=True))
    repeats = any(a.repeat and not equal(a.size, 1) for axis in layout.axes[:-1] for a in axis)
    return source if in_order and not repeats else None


def _half(build: Builder, value: Value, width: int, interleaved: bool, depth: int) -> Value:
    """One of each pair of columns: what is doubled in the graph is taken before it is, else a slice."""
    node = value.node
    half: Size = width // 2
    if node is not None:
        spelled = _spelled(node, value, width, interleaved)
        if spelled is not None:
            out: Value = build.reshape(spelled, dims=(*value.dims[:-1], half))
            return out
        if Trait.ELEMENTWISE in node.op.traits and len(node.results) == 1 and depth < 8:
            operands = [
                v if v is None or not v.rank or equal(v.dims[-1], 1) else _half(build, v, width, interleaved, depth + 1)
                for v in node.operands
            ]
            made: Value = build.create(node.op, operands, node.attributes.as_dict()).result
            return made
        x = node.operands[0] if node.operands else None
        if node.op.name == "reshape" and x is not None and _columns_are_last(x, width):
            inner = _half(build, x, width, interleaved, depth + 1)
            reshaped: Value = build.reshape(inner, dims=(*value.dims[:-1], half))
            return reshaped
    zeros = (0,) * (value.rank - 1)
    sliced: Value = build.slice(
        value, starts=(*zeros, 0), limits=(*value.dims[:-1], width if interleaved else half),
        strides=(*(1,) * (value.rank - 1), 2 if interleaved else 1),
    )  # fmt: skip
    return sliced
