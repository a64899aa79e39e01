"""Attention and rotary position embedding, in the one canonical form that importers and fusions arrive at."""

import numpy as np

from ..dims import Size
from ..operators import FLOAT, PURE, TENSOR, Operand, operator


@operator("Attention", family="attention", traits=PURE)
class Attention:
    """softmax(mask(softcap(scale * q @ k^T))) @ v.   q[B,H,S,D], k[B,G,T,D], v[B,G,T,E] -> [B,H,S,E]; G divides H.

    Query head h reads key head h // (H / G).  softcap c > 0: c * tanh(s / c), before the mask.  mask bool (True attends) or
    additive, broadcasting to [B,H,S,T].  causal: query i sees keys j <= i + kv_offset.  window w >= 0: and j > i + kv_offset - w.
    sinks[H]: one extra logit a head that takes probability and gives no value.  zero_masked_rows: a row that sees nothing is 0
    (else NaN, as softmax of -inf is).  Softmax in f32 (f64 for f64).
    """

    q: Operand[FLOAT]
    k: Operand[FLOAT]
    v: Operand[FLOAT]
    mask: Operand[TENSOR] | None = None
    sinks: Operand[FLOAT] | None = None
    scale: float
    softcap: float = 0.0
    causal: bool = False
    kv_offset: Size = 0
    window: int = -1
    zero_masked_rows: bool = False


@operator("RotaryEmbedding", family="attention", traits=PURE)
class RotaryEmbedding:
    """x[B,H,S,D] with its first 2 * R features rotated by angles whose cos and sin ([B or 1, S, R]) are given.

    Pairs are (i, i + R), or (2i, 2i + 1) when interleaved: (a cos - b sin, b cos + a sin).
    """

    x: Operand[FLOAT]
    cos: Operand[FLOAT]
    sin: Operand[FLOAT]
    interleaved: bool = False
