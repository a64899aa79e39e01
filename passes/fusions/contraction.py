"""One view of MatMul, dot_general and two-operand Einsum: operands with a label for each axis."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from ...ir.build import Builder
from ...ir.graph import Node, Value
from ...ir.types import TensorType
from ..pattern import equal

CONTRACTIONS = ("MatMul", "dot_general", "Einsum")

Label = Hashable
"""Names an axis; None is an axis of size 1 that only broadcasts."""


@dataclass(frozen=True)
class Contraction:
    """A sum of products.  A label that both operands have and the result has not is summed over."""

    node: Node
    operands: tuple[Value, Value]
    labels: tuple[tuple[Label, ...], tuple[Label, ...]]
    out: tuple[Label, ...]

    def swapped(self) -> Contraction:
        return Contraction(self.node, self.operands[::-1], self.labels[::-1], self.out)


def contraction(node: Node | None) -> Contraction | None:
    """The view of a node, or None."""
    if node is None or node.op.name not in CONTRACTIONS or len(node.operands) != 2:
        return None
    a, b = node.operands
    if a is None or b is None or not all(isinstance(v.type, TensorType) and v.type.dims is not None for v in (a, b)):
        return None
    found = {"MatMul": _matmul, "dot_general": _dot_general, "Einsum": _einsum}[node.op.name](node, a, b)
    return None if found is None else Contraction(node, (a, b), found[:2], found[2])


Labels = tuple[tuple[Label, ...], tuple[Label, ...], tuple[Label, ...]]


def _matmul(node: Node, a: Value, b: Value) -> Labels | None:
    if a.rank < 2 or b.rank < 2:
        return None
    rank = max(a.rank, b.rank) - 2
    rows: list[list[Label]] = [[], []]
    for row, x in zip(rows, (a, b), strict=True):
        for axis in range(x.rank - 2):
            place = axis - (x.rank - 2) + rank
            narrow = equal(x.dims[axis], 1) and not equal(node.result.dims[place], 1)
            row.append(None if narrow else ("batch", place))
    out = (*(("batch", i) for i in range(rank)), "row", "column")
    return (*rows[0], "row", "sum"), (*rows[1], "sum", "column"), out


def _dot_general(node: Node, a: Value, b: Value) -> Labels | None:
    k = node.keywords
    rows: list[list[Label]] = [[("lhs", i) for i in range(a.rank)], [("rhs", i) for i in range(b.rank)]]
    for kind, left, right in (("batch", k["lhs_batching"], k["rhs_batching"]),
                              ("sum", k["lhs_contracting"], k["rhs_contracting"])):  # fmt: skip
        for place, (i, j) in enumerate(zip(left, right, strict=True)):
            rows[0][i] = rows[1][j] = (kind, place)
    free = [x for row in rows for x in row if x[0] in ("lhs", "rhs")]  # type: ignore[index]  # all are pairs
    batch = [("batch", i) for i in range(len(k["lhs_batching"]))]
    return tuple(rows[0]), tuple(rows[1]), (*batch, *free)


def _einsum(node: Node, a: Value, b: Value) -> Labels | None:
    equation = node.keywords["equation"].replace(" ", "")
    left, arrow, out = equation.partition("->")
    terms = left.split(",")
    if not arrow or "." in equation or len(terms) != 2 or any(len(set(t)) != len(t) for t in (*terms, out)):
        return None
    if set(out) - set(left) or any(c not in out and not all(c in t for t in terms) for c in left if c != ","):
        return None
    return tuple(terms[0]), tuple(terms[1]), tuple(out)


def arranged(build: Builder, value: Value, labels: Sequence[Label], wanted: Sequence[Label]) -> Value:
    """A value with its axes in the order of `wanted`; axes that only broadcast are dropped."""
    kept = [i for i, label in enumerate(labels) if label is not None]
    if len(kept) != len(labels):
        value = build.reshape(value, dims=tuple(value.dims[i] for i in kept))
    names = [labels[i] for i in kept]
    permutation = tuple(names.index(label) for label in wanted)
    return value if permutation == tuple(range(len(permutation))) else build.transpose(value, permutation=permutation)
