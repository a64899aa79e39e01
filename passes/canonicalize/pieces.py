"""Canonical rewrites of values cut up and put together: slices, pads and concatenations of one another."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir.build import Builder
from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ir.rewrite import Rewriter
from .table import maker, ranked, rewrite, same

_PIECES = 64
"""Operands of a concatenation up to which a slice of it looks for its own: many slices of a long one stay linear."""


def _at_most(a: Size, b: Size) -> bool:
    return sizes.less_equal(a, b) is True


@rewrite("pad")
def merge_pads(rewriter: Rewriter, node: Node) -> Value | None:
    """Twice the same value put around, nothing taken away or put between: once."""
    x, value = node.operands
    inner = maker(x, "pad")
    if inner is None or inner.operands[1] is not value:
        return None
    a, b = inner.keywords, node.keywords
    if any(a["interior"]) or any(b["interior"]):
        return None
    if not all(_at_most(0, size) for size in (*a["low"], *a["high"], *b["low"], *b["high"])):
        return None
    low = tuple(s + t for s, t in zip(a["low"], b["low"], strict=True))
    high = tuple(s + t for s, t in zip(a["high"], b["high"], strict=True))
    merged: Value = rewriter.before(node, sources=(inner,)).pad(
        inner.operands[0], value, low=low, high=high, interior=a["interior"]
    )
    return merged


@rewrite("slice")
def slice_of_pad(rewriter: Rewriter, node: Node) -> Value | None:
    """All of it inside what was padded: a slice of that.  Only padding goes: less padding."""
    inner = maker(node.operands[0], "pad")
    if inner is None or not ranked(inner.operands[0]) or any(inner.keywords["interior"]):
        return None
    x, value = inner.operands
    assert x is not None
    pad, cut = inner.keywords, node.keywords
    starts = [s - low for s, low in zip(cut["starts"], pad["low"], strict=True)]
    limits = [e - low for e, low in zip(cut["limits"], pad["low"], strict=True)]
    build = rewriter.before(node, sources=(inner,))
    bounds = list(zip(starts, limits, x.dims, strict=True))
    if all(_at_most(0, s) and _at_most(s, e) and _at_most(e, dim) for s, e, dim in bounds):
        inside: Value = build.slice(x, starts=tuple(starts), limits=tuple(limits), strides=cut["strides"])
        return inside
    if all(s == 1 for s in cut["strides"]) and all(_at_most(s, 0) and _at_most(dim, e) for s, e, dim in bounds):
        low = tuple(0 - s for s in starts)
        high = tuple(e - dim for _, e, dim in bounds)
        padded: Value = build.pad(x, value, low=low, high=high, interior=pad["interior"])
        return padded
    return None


@rewrite("slice")
def slice_of_concatenation(rewriter: Rewriter, node: Node) -> Value | None:
    """Of one piece: a slice of that.  Of some whole ones: their concatenation."""
    inner = maker(node.operands[0], "concatenate")
    if inner is None or len(inner.operands) > _PIECES:
        return None
    axis, cut = inner.keywords["axis"], node.keywords
    start, limit = cut["starts"][axis], cut["limits"][axis]
    at: Size = 0
    kept: list[Value] = []
    ends: list[tuple[Size, Size]] = []
    for piece in inner.operands:
        assert piece is not None
        end = at + piece.dims[axis]
        if not _at_most(end, start) and not _at_most(limit, at):
            kept.append(piece)
            ends.append((at, end))
        at = end
    build = rewriter.before(node, sources=(inner,))
    if len(kept) == 1 and _at_most(ends[0][0], start) and _at_most(limit, ends[0][1]):
        offset = ends[0][0]
        starts = (*cut["starts"][:axis], start - offset, *cut["starts"][axis + 1 :])
        limits = (*cut["limits"][:axis], limit - offset, *cut["limits"][axis + 1 :])
        one: Value = build.slice(kept[0], starts=starts, limits=limits, strides=cut["strides"])
        return one
    if not 1 < len(kept) < len(inner.operands) or not same(ends[0][0], start) or not same(ends[-1][1], limit):
        return None
    if any(s != 1 for s in cut["strides"]):
        return None
    others = [i for i in range(node.result.rank) if i != axis]
    if not all(same(cut["starts"][i], 0) and same(cut["limits"][i], kept[0].dims[i]) for i in others):
        return None
    some: Value = build.concatenate(tuple(kept), axis=axis)
    return some


@rewrite("concatenate")
def concatenation_of_a_split(rewriter: Rewriter, node: Node) -> Value | None:
    """All parts of a value in their order: the value."""
    first = node.operands[0]
    split = maker(first, "Split")
    if split is None or split.keywords["axis"] != node.keywords["axis"] or node.operands != split.results:
        return None
    return split.operands[0]


@rewrite("concatenate")
def concatenation_of_adjacent_slices(rewriter: Rewriter, node: Node) -> Value | None:
    """Slices of one value, each beginning where the one before it ends: one slice."""
    axis = node.keywords["axis"]
    pieces: list[Value] = []
    runs: list[tuple[Node, Node]] = []
    for piece in node.operands:
        assert piece is not None
        cut = maker(piece, "slice")
        if cut is not None and runs and runs[-1][1].result is pieces[-1] and _continues(runs[-1][1], cut, axis):
            runs[-1] = (runs[-1][0], cut)
            pieces[-1] = piece
            continue
        pieces.append(piece)
        if cut is not None:
            runs.append((cut, cut))
    if len(pieces) == len(node.operands):
        return None
    if len(pieces) > 1 and any(v is not None and maker(v, "slice") and len(v.uses) > 1 for v in node.operands):
        return None  # the slices would stay beside the new ones
    build = rewriter.before(node, sources=tuple(first for first, _ in runs))
    ends = {last.result: first for first, last in runs if first is not last}
    merged = [_joined(build, ends[v], v, axis) if v in ends else v for v in pieces]
    value: Value = merged[0] if len(merged) == 1 else build.concatenate(tuple(merged), axis=axis)
    return value


def _continues(first: Node, second: Node, axis: int) -> bool:
    """Whether the second slice is the first one moved on along the axis by its length; both take every element."""
    a, b = first.keywords, second.keywords
    if first.operands[0] is not second.operands[0] or a["strides"] != b["strides"] or a["strides"][axis] != 1:
        return False
    if not same(a["limits"][axis], b["starts"][axis]):
        return False
    others = [i for i in range(len(a["starts"])) if i != axis]
    return all(same(a["starts"][i], b["starts"][i]) and same(a["limits"][i], b["limits"][i]) for i in others)


def _joined(build: Builder, first: Node, last: Value, axis: int) -> Value:
    assert last.node is not None
    a = first.keywords
    limits = (*a["limits"][:axis], last.node.keywords["limits"][axis], *a["limits"][axis + 1 :])
    value: Value = build.slice(first.operands[0], starts=a["starts"], limits=limits, strides=a["strides"])
    return value
