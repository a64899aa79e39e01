"""Attention and rotary position embedding, in the one canonical form that importers and fusions arrive at."""

import numpy as np

from ..dims import Size, equal
from ..facts import make
from ..operators import FLOAT, PURE, TENSOR, Operand, operator
from .linalg import broadcasts_to


def _attention_type(
    ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows
):
    dtype = ctx.same_dtype(q, k, v)
    for what, x in (("q", q), ("k", k), ("v", v)):
        ctx.need(x.rank == 4, f"{what} must be [batch, heads, time, head size], got {x.type}")
    batch, heads, queries, size = q.dims
    ctx.equal(batch, k.dims[0], "batch of q and k")
    ctx.equal(batch, v.dims[0], "batch of q and v")
    ctx.equal(k.dims[1], v.dims[1], "heads of k and v")
    ctx.equal(k.dims[2], v.dims[2], "time of k and v")
    ctx.equal(size, k.dims[3], "head sizes of q and k")
    if equal(heads, k.dims[1]) is not True:
        ctx.equal(heads % k.dims[1], 0, f"query heads {heads} modulo key heads {k.dims[1]} and 0")
    ctx.need(window >= -1, f"window must be -1 (none) or more, got {window}")
    if mask is not None:
        ctx.need(mask.dtype.is_bool or mask.dtype.is_float, f"mask must be bool or floating-point, got {mask.type}")
        broadcasts_to(ctx, mask, (batch, heads, queries, k.dims[2]), "mask")
    if sinks is not None:
        ctx.need(sinks.rank == 1, f"sinks must be a vector, got {sinks.type}")
        ctx.equal(sinks.dims[0], heads, "the dim of sinks and the query heads")
    return make(dtype, batch, heads, queries, v.dims[3])


def _rotary_type(ctx, x, cos, sin, *, interleaved):
    ctx.need(x.rank == 4, f"x must be [batch, heads, time, head size], got {x.type}")
    ctx.need(cos.rank == 3 and sin.rank == 3, f"cos and sin must be [B or 1, S, R], got {cos.type} and {sin.type}")
    ctx.equal_dims(cos.dims, sin.dims, "dims of cos and sin")
    broadcasts_to(ctx, cos, (x.dims[0], x.dims[2], cos.dims[2]), "cos")
    ctx.at_most(2 * cos.dims[2], x.dims[3], "rotated features")
    return x.with_dims(x.dims)


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
    infer = _attention_type


@operator("RotaryEmbedding", family="attention", traits=PURE)
class RotaryEmbedding:
    """x[B,H,S,D] with its first 2 * R features rotated by angles whose cos and sin ([B or 1, S, R]) are given.

    Pairs are (i, i + R), or (2i, 2i + 1) when interleaved: (a cos - b sin, b cos + a sin).
    """

    x: Operand[FLOAT]
    cos: Operand[FLOAT]
    sin: Operand[FLOAT]
    interleaved: bool = False
    infer = _rotary_type
