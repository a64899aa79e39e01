"""The fusion that takes repeated keys and values off an attention that is one node already (ONNX's from opset 23)."""

from __future__ import annotations

from typing import Any

from ..pattern import Match, Tracer, equal, fusion
from .attention import Side, built, repeats_of


@fusion("grouped-attention", after="attention", near=99)
class FuseGroupedAttention:
    """Attention(q, repeat(k), repeat(v))   ->   Attention(q, k, v), which shares key heads by itself"""

    def pattern(self, p: Tracer, q: Any, k: Any, v: Any) -> Any:
        mask, sinks = p.any("mask"), p.any("sinks")
        return p.any_of(
            p.Attention(q, k, v), p.Attention(q, k, v, mask), p.Attention(q, k, v, mask, sinks),
            p.Attention(q, k, v, None, sinks),
        )  # fmt: skip

    def check(self, m: Match) -> None:
        batch, heads, _, _ = m.q.dims
        m.expect(equal(m.k.dims[1], heads), "the heads are grouped already")
        sides = [Side(x, ("b", "h", "t", "d"), ("b", "h"), ("t", "d")) for x in (m.k, m.v)]
        found = [repeats_of(side, (batch, heads), (batch, heads)) for side in sides]
        m.expect(equal(found[0], found[1]) and not equal(found[0], 1), "keys and values are not repeated alike")
        m.plan = sides

    def rewrite(self, m: Match) -> Any:
        k, v = m.plan
        keywords = m.root.attributes.as_dict()
        final = (m.q.dims[0], m.q.dims[1])
        keys, values = (built(m.build, side, final) for side in (k, v))
        values = values if v.factor == 1.0 else m.build.multiply(values, v.factor)
        keywords["scale"] *= k.factor
        return m.build.Attention(m.q, keys, values, m.mask, m.sinks, **keywords)
