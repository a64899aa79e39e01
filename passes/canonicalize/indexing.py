"""Canonical rewrites of indexing operators: run-time positions that turn out to be known."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ir.rewrite import Rewriter
from .table import ranked, rewrite


@rewrite("dynamic_slice")
def known_starts(rewriter: Rewriter, node: Node) -> Value | None:
    """Starts that are known and need no clamping: a slice."""
    x, starts = node.grouped
    if not ranked(x):
        return None
    limits: list[Size] = []
    known: list[Size] = []
    for start, size, dim in zip(starts, node.keywords["sizes"], x.dims, strict=True):
        ints = start.fact.known_ints()
        if (
            ints is None
            or sizes.less_equal(0, ints[0]) is not True
            or sizes.less_equal(ints[0] + size, dim) is not True
        ):
            return None
        known.append(ints[0])
        limits.append(ints[0] + size)
    value: Value = rewriter.before(node).slice(x, starts=tuple(known), limits=tuple(limits), strides=(1,) * len(known))
    return value
