"""The way from a softmax back to the product of queries and keys: scales, softcap, masks, sinks met on it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from ...ir import dims as sizes
from ...ir.dims import Size
from ...ir.graph import Node, Value
from ...ir.model import Constant
from ..pattern import Match, Refused, equal, number
from .contraction import Contraction, contraction

HIDES = -1e4
"""A fill at or below this gives a masked key no weight beside scores of the usual size."""
FLOOR = -1e30
"""Clamping masked scores from below at this or less changes no sum of a score and a mask but those that overflow."""
_LONGEST = 24


@dataclass
class Mask:
    """What is added to scores (`factor` times), or a predicate of the keys that count (`fill` is what others get)."""

    value: Value
    factor: float = 1.0
    fill: float | None = None
    inverted: bool = False
    level: tuple[Size, ...] = ()


@dataclass
class Scores:
    """softmax input = mask(softcap(scale * product)); `leads` are the groupings of the axes before the last two."""

    product: Contraction
    dims: tuple[Size, ...]
    """Of the product, in the order of its labels."""
    scale: float
    softcap: float
    masks: list[Mask]
    sinks: Value | None
    leads: list[tuple[Size, ...]]
    floor: float | None = None
    """Scores and masks add up to no less than this."""
    gains: list[Mask] = field(default_factory=list)
    """What the product is multiplied by, one number for each of the axes before the last two."""
    nodes: list[Node] = field(default_factory=list)


def scores_of(m: Match, value: Value) -> Scores:
    """Walk back from a softmax's operand; refuses at the first node that has no place in attention."""
    factor, softcap = 1.0, 0.0
    floor: float | None = None
    masks: list[Mask] = []
    sinks: Value | None = None
    leads: list[tuple[Size, ...]] = []
    gains: list[Mask] = []
    turned: tuple[int, ...] | None = None
    nodes: list[Node] = []
    keys = value.dims[-1]
    for _ in range(_LONGEST):
        node = value.node
        if node is None:
            m.refuse("the softmax's operand is no product of queries and keys", value, m.root)
        product = contraction(node)
        if product is not None:
            order = turned if turned is not None else tuple(range(value.rank))
            dims = tuple(value.dims[i] for i in order)
            product = replace(product, out=tuple(product.out[i] for i in order))
            leads.append(dims[:-2])
            scale = factor * softcap if softcap else factor
            return Scores(product, dims, scale, softcap, masks, sinks, leads, floor, gains, [*nodes, node])
        if node.graph is not m.root.graph:
            m.refuse("the scores are computed in another graph", node)
        nodes.append(node)
        x, y = (*node.operands, None, None)[:2]
        match node.op.name:
            case "convert" if x is not None and x.dtype.is_float and node.result.dtype.is_float:
                value = x
            case "reshape" if x is not None and x.rank >= 2 and turned is None:
                same = equal(x.dims[-1], value.dims[-1]) and equal(x.dims[-2], value.dims[-2])
                m.need(same, "a reshape mixes the queries or the keys with other axes", node)
                leads.append(value.dims[:-2])
                value = x
            case "multiply" | "divide" if (by := _scalar(node)) is not None:
                factor *= by[1]
                value = by[0]
            case "multiply" if turned is None and (gained := _gained(node)) is not None:
                gains.append(Mask(gained[1], level=node.result.dims))
                value = gained[0]
            case "transpose" if x is not None and turned is None:
                turned, value = node.keywords["permutation"], x
                continue
            case _ if turned is not None:
                m.refuse("the scores are transposed between the product and what is added to them", node)
            case _ if gains and node.op.name in ("maximum", "tanh", "add", "subtract", "select"):
                m.refuse("the scores of each head are scaled behind a mask or a softcap", node)
            case "maximum" if x is not None and (least := number(y)) is not None:
                m.need(not masks and not softcap, "scores are clamped between masks", node)
                m.need(-math.inf < least * factor <= FLOOR, f"scores are clamped at {least * factor:g}", node)
                floor, value = least * factor, x
            case "tanh" if x is not None:
                m.need(not softcap and factor > 0, "tanh of the scores stands where no softcap does", node)
                softcap, factor, value = factor, 1.0, x
            case "add" | "subtract" if x is not None and y is not None:
                if node.op.name == "subtract" and (top := _maximum_of(y, x)):
                    nodes.extend(top)
                    value = x
                    continue
                m.need(not softcap, "a mask is added before the softcap", node)
                value, mask, sign = _added(m, node, x, y)
                masks.append(Mask(mask, sign * factor, level=node.result.dims))
            case "select":
                m.need(not softcap, "a mask is applied before the softcap", node)
                value, mask_ = _selected(m, node, factor)
                masks.append(mask_)
            case "concatenate" if sinks is None and len(node.operands) == 2 and not softcap:
                m.need(factor == 1.0 and not masks, "the sinks are scaled or masked with the scores", node)
                assert x is not None
                value, sinks = x, y
            case other:
                m.refuse(f"the scores pass through {other}", node)
        same_keys = turned is not None or equal(value.dims[-1], keys)
        m.need(same_keys or sinks is not None, "the keys change along the way", node)
    raise Refused("the way from the softmax to the product is too long", value.node)


def _scalar(node: Node) -> tuple[Value, float] | None:
    """(operand, factor) of a multiplication or division by a number."""
    x, y = node.operands
    if x is None or y is None:
        return None
    if (by := number(y)) is not None and by != 0:
        return x, (1 / by if node.op.name == "divide" else by)
    if node.op.name == "multiply" and (by := number(x)) is not None and by != 0:
        return y, by
    return None


def _gained(node: Node) -> tuple[Value, Value] | None:
    """(scores, gain) of a multiplication by what is the same for all queries and keys."""
    for scores, gain in (node.operands, node.operands[::-1]):
        if scores is None or gain is None or gain.rank > scores.rank or _distance(scores) is None:
            continue
        whole = scores.rank == node.result.rank and all(map(equal, scores.dims, node.result.dims))
        if whole and all(equal(d, 1) for d in gain.dims[-2:]):
            return scores, gain
    return None


def _distance(value: Value | None, limit: int = 10) -> int | None:
    """Steps back to the nearest contraction through what may stand on the way; None if there is none."""
    frontier = [value]
    for steps in range(limit):
        below: list[Value | None] = []
        for v in frontier:
            if v is None or v.node is None:
                continue
            if contraction(v.node) is not None:
                return steps
            if v.node.op.name in ("convert", "reshape", "multiply", "divide", "tanh", "add", "subtract", "select"):
                below.extend(v.node.operands)
        frontier = below[:32]
    return None


def _added(m: Match, node: Node, x: Value, y: Value) -> tuple[Value, Value, float]:
    """(scores, mask, its sign) of a sum or difference."""
    first, second = _distance(x), _distance(y)
    # The scores have the full shape; a mask that is itself a product (a learnt bias) is usually further away.
    forward = second is None or (first is not None and first <= second)
    if node.op.name == "subtract":
        m.need(first is not None, "what is subtracted from is no product", node)
        return x, y, -1.0
    scores, mask = (x, y) if forward else (y, x)
    same = scores.rank == node.result.rank and all(map(equal, scores.dims, node.result.dims))
    m.need(same, "the mask has a larger shape than the scores", mask)
    return scores, mask, 1.0


def _maximum_of(value: Value, x: Value) -> list[Node]:
    """The nodes that compute the maximum of x along its last axis, which a softmax does not notice; else none."""
    nodes: list[Node] = []
    node = value.node
    while node is not None:
        nodes.append(node)
        below = node.operands[0]
        is_max = node.op.name == "ReduceMax" or (node.op.name == "reduce" and node.keywords["kind"] == "max")
        if is_max:
            last = tuple(a % x.rank for a in node.keywords["axes"]) == (x.rank - 1,)
            return nodes if below is x and last else []
        passes = node.op.name in ("reshape", "broadcast_in_dim", "maximum")
        node = below.node if passes and below is not None else None
    return []


def _selected(m: Match, node: Node, factor: float) -> tuple[Value, Mask]:
    """Scores where a predicate holds (or does not), a fill elsewhere."""
    predicate, x, y = node.operands
    assert predicate is not None
    assert x is not None
    assert y is not None
    for scores, fill, inverted in ((x, y, False), (y, x, True)):
        filled = number(_splat_source(fill))
        if filled is None:
            continue
        level = node.result.dims
        m.need(scores.rank == len(level) and all(map(equal, scores.dims, level)), "the mask widens the scores", node)
        m.need(filled * factor <= HIDES, f"masked scores become {filled:g}, which hides nothing", node)
        return scores, Mask(predicate, 1.0, filled * factor if math.isfinite(filled) else -math.inf, inverted, level)
    raise Refused("neither side of the select is a number", node)


def _splat_source(value: Value) -> Value:
    """The number behind a broadcast of it."""
    while value.node is not None and value.node.op.name in ("broadcast_in_dim", "reshape", "convert"):
        below = value.node.operands[0]
        if below is None:
            break
        value = below
    return value


def sink_vector(m: Match, sinks: Value, heads: Size) -> tuple[Value, Size]:
    """The vector of one logit a head behind the last column of the scores [B, H, S, 1], and its length."""
    from .layout import trace

    if isinstance(sinks, Constant) and sinks.data is not None and sinks.rank == 4 and sinks.dims[-1] == 1:
        array = sinks.data.numpy()  # a broadcast that folding has carried out
        m.need(bool(np.all(array == array[:1, :, :1])), "the sinks are not one number a head", sinks)
        return m.build.constant(array[0, :, 0, 0], dtype=sinks.dtype), array.shape[1]
    layout = trace(sinks)
    real = [a for row in layout.axes for a in row if not a.repeat]
    size = sizes.product([a.size for a in real])
    m.need(sinks.rank == 4 and equal(sinks.dims[-1], 1), "the sinks are not one column", sinks)
    at_heads = all(not any(not a.repeat and not equal(a.size, 1) for a in layout.axes[i]) for i in (0, 2, 3))
    m.need(at_heads and equal(size, heads), "the sinks are not one number a head", sinks)
    return layout.source, size
