"""The fusion of rotary position embedding: any sum of products that turns pairs of features by angles.

The cone between the result and x, cos, sin is evaluated on one row of random features and compared with the formula of
`RotaryEmbedding`.  It is bilinear in x and the tables, so agreement at random points is agreement everywhere (with
probability 1), whatever slices, splits, concatenations and negations spell it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir.build import Builder
from ...ir.dims import Size
from ...ir.graph import Constant, Node, Value
from ...ir.types import TensorType
from ..pattern import Match, Refused, Tracer, equal, fusion, source
from .lanes import MOVES, Lanes
from .layout import shaped
from .tables import half_of

_LARGEST = 40
"""Nodes of a cone."""


@dataclass
class Plan:
    x: Value
    first: int
    """The first feature of x that the result has; x may hold those of queries, keys and values side by side."""
    cos: Value
    sin: Value
    interleaved: bool
    width: int
    """Rotated features."""
    full: bool
    """The tables have a column for each feature, not for each pair."""


@fusion("rotary", near=4)
class FuseRotary:
    """x * cos + concat(-x[h:], x[:h]) * sin   ->   RotaryEmbedding(x, cos[:h], sin[:h])

    Half-rotating, two-half and interleaved forms; features behind the rotated ones pass; heads before or behind time.
    """

    def pattern(self, p: Tracer) -> Any:
        def product() -> Any:
            made = p.multiply(p.any(), p.any())
            return p.any_of(made, p.negate(made), p.convert(made))

        pairs = [p.concatenate(tuple(p.any() for _ in range(n)), axis=p.attribute("axis")) for n in (2, 3)]
        return p.any_of(p.add(product(), product()), p.subtract(product(), product()), *pairs, p.reshape(pairs[0]))

    def check(self, m: Match) -> None:
        root = m.result
        ranked = isinstance(root.type, TensorType) and root.type.dims is not None
        m.expect(ranked and root.rank in (3, 4), "the result is not [batch, heads, time, features]")
        m.expect(root.dtype.is_float and isinstance(root.dims[-1], int), "the features are not counted")
        products, passed, nodes = _products(m, root)
        m.plan = _plan(m, root, products, passed)
        for node in nodes:
            m.nodes.setdefault(node)

    def rewrite(self, m: Match) -> Any:
        plan: Plan = m.plan
        b, x = m.build, plan.x
        size = m.result.dims[-1]
        if x.dims[-1] != size:
            starts = (*(0,) * (x.rank - 1), plan.first)
            x = b.slice(x, starts=starts, limits=(*x.dims[:-1], plan.first + size), strides=(1,) * x.rank)
            plan.x = x
        layout = _layout(m, plan)
        if x.rank == 3:
            x = b.reshape(x, dims=(x.dims[0], 1, *x.dims[1:]))
        elif layout == "time first":
            x = b.transpose(x, permutation=(0, 2, 1, 3))
        tables = [_table(m, b, t, plan, layout) for t in (plan.cos, plan.sin)]
        y = b.RotaryEmbedding(x, *tables, interleaved=plan.interleaved)
        if y.dtype is not m.result.dtype:
            y = b.convert(y, dtype=m.result.dtype)
        if plan.x.rank == 3:
            y = shaped(b, y, plan.x.dims)
        elif layout == "time first":
            y = b.transpose(y, permutation=(0, 2, 1, 3))
        return shaped(b, y, m.result.dims)


def _products(m: Match, root: Value) -> tuple[list[Node], list[Value], list[Node]]:
    """(multiplications nearest to the root, values that reach it without one, nodes on the way)."""
    products: dict[Node, None] = {}
    passed: dict[Value, None] = {}
    nodes: dict[Node, None] = {}
    stack = [root]
    while stack:
        value = stack.pop()
        node = value.node
        if node is None or node in nodes or node in products:
            if node is None:
                passed[value] = None
            continue
        m.expect(len(nodes) + len(products) < _LARGEST, "too many nodes between the result and the products")
        if node.op.name == "multiply":
            products[node] = None
        elif node.op.name in ("add", "subtract") or (node.op.name in ("concatenate", "negate", "reshape", "convert")):
            nodes[node] = None
            stack.extend(v for v in node.operands if v is not None)
        else:
            passed[value] = None
    m.expect(2 <= len(products) <= 4, f"{len(products)} products make up the result, expected 2 to 4")
    return list(products), list(passed), [*nodes, *products]


def _ancestors(value: Value, limit: int = 12) -> list[Value]:
    """Values that this one takes its elements from, nearest first."""
    out = [value]
    for current in out:
        node = current.node
        if node is not None and node.op.name in MOVES and len(out) < limit:
            out.extend(v for v in node.operands if v is not None and v not in out and not isinstance(v, Constant))
    return out


def _plan(m: Match, root: Value, products: list[Node], passed: list[Value]) -> Plan:
    why = ""
    sides = [[v for v in node.operands if v is not None] for node in products]
    for choice in _assignments(sides):
        xs = [pair[i] for pair, i in zip(sides, choice, strict=True)]
        others = [pair[1 - i] for pair, i in zip(sides, choice, strict=True)]
        tables = list(dict.fromkeys(_unsigned(t) for t in others))
        taken = [*xs, *passed]
        x = _common(taken, root)
        if x is None or len(tables) != 2:
            continue
        found = _verified(m, root, x, _first_feature(x, taken), tables)
        if isinstance(found, Plan):
            return found
        why = found
    m.expect(bool(why), "the products have no common operand and two tables")
    raise Refused(why, root.node)


def _assignments(sides: list[list[Value]]) -> list[tuple[int, ...]]:
    """Which side of each product is x's: at most 16 ways."""
    return [tuple((n >> i) & 1 for i in range(len(sides))) for n in range(1 << len(sides))]


def _unsigned(value: Value) -> Value:
    while value.node is not None and value.node.op.name == "negate":
        below = value.node.operands[0]
        if below is None:
            break
        value = below
    return value


def _common(values: list[Value], root: Value) -> Value | None:
    """The nearest value that all of these are taken from, with the result's shape or more features."""
    rows = [_ancestors(v) for v in values]
    for candidate in rows[0]:
        if all(candidate in row for row in rows[1:]) and _has_features(candidate, root):
            return candidate
    return None


def _has_features(x: Value, root: Value) -> bool:
    if not isinstance(x.type, TensorType) or x.type.dims is None or x.rank != root.rank:
        return False
    have, want = x.dims[-1], root.dims[-1]
    return isinstance(have, int) and have >= want and all(map(equal, x.dims[:-1], root.dims[:-1]))


def _first_feature(x: Value, taken: list[Value]) -> int:
    """The first feature of x among those that are taken from it."""
    count = x.dims[-1]
    assert isinstance(count, int), "_has_features asked for it"
    lanes = Lanes({x: np.arange(1.0, count + 1)}, x.dims[:-1])
    rows = [lanes.of(v) for v in taken]
    return min((int(np.abs(row).min()) - 1 for row in rows if row is not None and row.size), default=0)


def _verified(m: Match, root: Value, x: Value, first: int, tables: list[Value]) -> Plan | str:
    """The plan whose formula the cone computes, or why there is none."""
    size = root.dims[-1]
    assert isinstance(size, int)
    widths = [t.dims[-1] if t.rank else 1 for t in tables]
    if widths[0] != widths[1] or not isinstance(widths[0], int):
        return "cos and sin have different widths"
    rng = np.random.default_rng(0)
    row = rng.standard_normal(x.dims[-1])
    features = row[first : first + size]
    if len(features) != size:
        return "the features are not side by side"
    why = "the sum of products is no rotation"
    for interleaved in (False, True):
        for full in (True, False):
            width = widths[0] if full else 2 * widths[0]
            if width > size or width % 2:
                continue
            halves = [rng.standard_normal(width // 2) for _ in range(2)]
            columns = [_columns(h, interleaved) if full else h for h in halves]
            for cos, sin in ((0, 1), (1, 0)):
                lanes = Lanes({x: row, tables[0]: columns[0], tables[1]: columns[1]}, x.dims[:-1])
                got = lanes.of(root)
                if got is None:
                    return lanes.why
                want = _rotated(features, halves[cos], halves[sin], interleaved)
                if got.shape == want.shape and np.allclose(got, want, rtol=1e-12, atol=1e-12):
                    return Plan(source(x), first, tables[cos], tables[sin], interleaved, width, full)
    return why


def _columns(half: np.ndarray[Any, Any], interleaved: bool) -> np.ndarray[Any, Any]:
    return np.repeat(half, 2) if interleaved else np.concatenate([half, half])


def _rotated(x: Any, cos: Any, sin: Any, interleaved: bool) -> Any:
    """As `RotaryEmbedding` has it."""
    width = 2 * len(cos)
    first = np.s_[0:width:2] if interleaved else np.s_[: width // 2]
    second = np.s_[1:width:2] if interleaved else np.s_[width // 2 : width]
    y = x.copy()
    y[first] = x[first] * cos - x[second] * sin
    y[second] = x[second] * cos + x[first] * sin
    return y


def _layout(m: Match, plan: Plan) -> str:
    """Whether time is axis 2 or, in [batch, time, heads, features], axis 1; by where the tables vary."""
    x = plan.x
    lead = _padded(plan.cos, x.rank)
    if x.rank == 3:
        return "no heads"
    if equal(lead[1], 1):
        return "heads first"
    m.need(equal(lead[2], 1), "cos varies along heads and time", plan.cos)
    return "time first"


def _padded(value: Value, rank: int) -> tuple[Size, ...]:
    """Dims of a table as it broadcasts to x."""
    return (*(1,) * (rank - value.rank), *value.dims)


def _table(m: Match, build: Builder, table: Value, plan: Plan, layout: str) -> Value:
    """[B or 1, time, pairs]"""
    x = plan.x
    dims = _padded(table, x.rank)
    time = x.dims[1] if layout in ("time first", "no heads") else x.dims[2]
    have = dims[1] if layout in ("time first", "no heads") else dims[2]
    m.need(layout != "heads first" or equal(dims[1], 1), "the tables differ between heads", table)
    m.need(layout != "time first" or equal(dims[2], 1), "the tables differ between heads", table)
    m.need(equal(dims[0], 1) or equal(dims[0], x.dims[0]), "the tables have another batch", table)
    m.need(equal(have, time) or equal(have, 1), "the tables have another length", table)
    half = half_of(m, build, table, plan.width, plan.interleaved) if plan.full else table
    half = half if half.dtype is x.dtype or half.dtype.bits >= x.dtype.bits else build.convert(half, dtype=x.dtype)
    out = shaped(build, half, (dims[0], have, plan.width // 2))
    if not equal(have, time):
        out = build.broadcast_in_dim(out, dims=(dims[0], time, plan.width // 2), broadcast_dimensions=(0, 1, 2))
    return out
