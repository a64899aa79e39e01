"""Masks of attention: what is proved about them (causal, sliding window), and what is left as an operand."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.build import Builder
from ...ir.dims import Size
from ...ir.graph import Constant, Value
from ..pattern import Match, equal, number
from .predicates import Band, band_of, every_row_sees
from .scores import FLOOR, Mask


@dataclass
class Visible:
    """A band of keys around the diagonal that is proved, and masks that stay operands."""

    band: Band
    masks: list[Mask] = field(default_factory=list)
    every_row_sees: bool = True
    """No query is left without keys."""
    floor: float | None = None
    """What the masks add up to is no less than this."""


def visible(
    m: Match, masks: list[Mask], lead: tuple[Size, Size], dims: tuple[Size, ...], floor: float | None
) -> Visible:
    """Sort masks into a causal or sliding band where that is proved, and the rest."""
    band = Band()
    rest = []
    masks = [_as_predicate(mask) for mask in masks]
    hiding = [mask for mask in masks if mask.fill is not None or not is_finite(mask.value)]
    for mask in masks:
        m.need(
            mask.value.rank <= max(len(mask.level), 2) and (mask.value.dtype.is_bool or mask.value.dtype.is_float),
            "the mask is neither bool nor floating-point",
            mask.value,
        )
        check_leading(m, mask, lead)
        found = band_of(mask, dims)
        if mask.fill is not None and not math.isinf(mask.fill) and len(hiding) > 1:
            # A query of which every key is hidden by one or the other gives weight to both kinds.
            why = f"what is hidden gets {mask.fill:g}, no more than scores count beside it, and another mask hides too"
            m.need(mask.fill <= FLOOR, why, mask.value)
            found = None
        if found is not None and floor is not None and not every_row_sees(found, dims):
            found = None  # the floor gives a row that sees nothing equal weights
        joined = None if found is None else band.joined(found)
        if joined is None:
            rest.append(mask)
        else:
            band = joined
    return Visible(band, rest, not rest and (band == Band() or every_row_sees(band, dims)), floor)


def _as_predicate(mask: Mask) -> Mask:
    """Adding 0 where a predicate holds and -inf elsewhere is the predicate."""
    node = mask.value.node
    if mask.fill is not None or node is None or node.op.name != "select" or mask.factor <= 0:
        return mask
    predicate, x, y = node.operands
    chosen = number(x), number(y)
    if predicate is None or chosen not in ((0.0, -math.inf), (-math.inf, 0.0)):
        return mask
    return Mask(predicate, 1.0, -math.inf, chosen[0] != 0.0, mask.level)


def check_leading(m: Match, mask: Mask, lead: tuple[Size, Size]) -> None:
    """The axes before the last two can be grouped as [B, H]."""
    own = mask.value.dims[:-2]
    level = mask.level[:-2]
    if all(equal(d, 1) for d in own) or (len(level) == 2 and all(map(equal, level, lead))):
        return
    whole = len(own) == len(level) and all(map(equal, own, level))
    first = len(own) == len(level) > 2 and equal(own[0], level[0]) and equal(level[0], lead[0])
    m.need(whole or (first and all(equal(d, 1) for d in own[1:])), "the mask varies along other groups", mask.value)


def finish_mask(build: Builder, found: Visible, lead: tuple[Size, Size]) -> tuple[Value | None, dict[str, Any]]:
    """(the mask operand or None, attributes causal, kv_offset, window)."""
    if len(found.masks) > 1 and any(m.fill is not None and not math.isinf(m.fill) for m in found.masks):
        return _nested(build, found, lead), found.band.keywords()
    bools: list[Value] = []
    sums: list[Value] = []
    for mask in found.masks:
        value = grouped(build, mask, lead)
        if mask.fill is None:
            sums.append(value if mask.factor == 1.0 else build.multiply(value, mask.factor))
        else:
            value = build.not_(value) if mask.inverted else value
            if math.isinf(mask.fill) and found.floor is None:
                bools.append(value)
            else:
                # A row that sees nothing has equal weights then: every score vanishes beside the least f32.
                least = build.constant(float(np.finfo(np.float32).min), dtypes.f32)
                sums.append(build.select(value, build.constant(0.0, dtypes.f32), least))
    seen = functools.reduce(build.and_, bools) if bools else None
    keywords = found.band.keywords()
    if not sums:
        return seen, keywords
    wide = max((v.dtype for v in sums), key=lambda d: d.bits)
    total = functools.reduce(build.add, [v if v.dtype is wide else build.convert(v, dtype=wide) for v in sums])
    if found.floor is not None:
        total = build.maximum(total, found.floor)
    if seen is not None:
        total = build.select(seen, total, build.constant(-math.inf, wide))
    return total, keywords


def _nested(build: Builder, found: Visible, lead: tuple[Size, Size]) -> Value:
    """Masks in the order in which the scores meet them: what one puts in the place of scores loses what came before."""
    total: Value = build.constant(0.0, dtypes.f32)
    for mask in reversed(found.masks):
        value = grouped(build, mask, lead)
        if mask.fill is not None:
            value = build.not_(value) if mask.inverted else value
            total = build.select(value, total, build.constant(mask.fill, dtypes.f32))
        else:
            value = value if mask.factor == 1.0 else build.multiply(value, mask.factor)
            total = build.add(total, value if value.dtype is dtypes.f32 else build.convert(value, dtype=dtypes.f32))
    return total if found.floor is None else build.maximum(total, found.floor)


def grouped(build: Builder, mask: Mask, lead: tuple[Size, Size]) -> Value:
    """A mask that broadcasts to [B, H, S, T]."""
    value = mask.value
    own, level = value.dims[:-2], mask.level[:-2]
    if len(level) == 2 and all(map(equal, level, lead)):
        return value
    if all(equal(d, 1) for d in own):
        return value if not own else build.reshape(value, dims=value.dims[-2:])
    if all(map(equal, own, level)):
        out: Value = build.reshape(value, dims=(*lead, *value.dims[-2:]))
        return out
    shared: Value = build.reshape(value, dims=(lead[0], 1, *value.dims[-2:]))
    return shared


def is_finite(value: Value, limit: int = 12) -> bool:
    """Whether no element is infinite or NaN: constants, moved about."""
    if isinstance(value, Constant):
        return value.data is not None and value.dtype.is_float and bool(np.isfinite(value.data.numpy()).all())
    node = value.node
    moves = ("take", "reshape", "transpose", "broadcast_in_dim", "slice")
    if node is None or limit == 0 or node.op.name not in moves or node.operands[0] is None:
        return False
    return is_finite(node.operands[0], limit - 1)
