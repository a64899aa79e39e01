"""Attention and rotary position embedding, in the one canonical form that importers and fusions arrive at."""

import numpy as np

from .. import dtypes
from ..dims import Size, equal
from ..facts import make
from ..operators import FLOAT, PURE, TENSOR, Operand, operator
from . import capacities
from .linalg import broadcasts_to
from .reduction import reduced
from .widening import converted, count, statistics_type, wide_array, widened


def _attention_type(ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
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


def _attention_reference(ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    q, k, v = wide_array(q), wide_array(k), wide_array(v)
    repeats = q.shape[1] // max(k.shape[1], 1)
    k, v = np.repeat(k, repeats, 1), np.repeat(v, repeats, 1)
    scores = scale * np.matmul(q, np.swapaxes(k, -1, -2))
    scores = softcap * np.tanh(scores / softcap) if softcap > 0 else scores
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + wide_array(mask)
    i, j = np.arange(q.shape[2])[:, None] + kv_offset, np.arange(k.shape[2])
    if causal:
        scores = np.where(j <= i, scores, -np.inf)
    if window >= 0:
        scores = np.where(j > i - window, scores, -np.inf)
    extra = np.full((q.shape[1], 1, 1), -np.inf) if sinks is None else wide_array(sinks)[:, None, None]
    top = np.maximum(np.max(scores, axis=-1, keepdims=True, initial=-np.inf), extra)
    top = np.where(np.isneginf(top), 0, top) if zero_masked_rows else top
    powers = np.exp(scores - top)
    total = np.sum(powers, axis=-1, keepdims=True) + np.exp(extra - top) * (sinks is not None)
    total = np.where(total == 0, 1, total) if zero_masked_rows else total
    return np.matmul(powers / total, v)


def _attention(ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    b = ctx.build
    batch, heads, queries, size = q.dims
    keys, wide = k.dims[2], statistics_type(q.dtype)
    grouped = equal(heads, k.dims[1]) is not True
    split = (batch, k.dims[1], heads // k.dims[1]) if grouped else (batch, heads)
    lead = (0, 1)
    q = b.reshape(q, dims=(*split, queries, size)) if grouped else q
    scores = b.dot_general(
        q, k, lhs_batching=lead, rhs_batching=lead, lhs_contracting=(q.rank - 1,), rhs_contracting=(3,), result=wide
    )
    scores = b.reshape(scores, dims=(batch, heads, queries, keys)) if grouped else scores
    scores = b.multiply(scores, scale)
    if softcap > 0:
        scores = b.multiply(b.tanh(b.divide(scores, softcap)), softcap)
    nothing = b.constant(-np.inf, wide)
    if mask is not None:
        hides = mask.dtype.is_bool
        scores = b.select(mask, scores, nothing) if hides else b.add(scores, converted(b, mask, wide))
    if causal or window >= 0:
        scores = b.select(_visible(b, queries, keys, causal, kv_offset, window), scores, nothing)
    total = None
    if v.dtype is wide:
        powers = _probabilities(b, scores, sinks, zero_masked_rows)
    else:
        powers, total = _powers(b, scores, sinks, zero_masked_rows, v.dtype)
    powers = b.reshape(powers, dims=(*split, queries, keys)) if grouped else powers
    y = b.dot_general(
        powers, v, lhs_batching=lead, rhs_batching=lead, lhs_contracting=(powers.rank - 1,), rhs_contracting=(2,),
        result=None if total is None else wide,
    )  # fmt: skip
    y = b.reshape(y, dims=(batch, heads, queries, v.dims[3])) if grouped else y
    return converted(b, y if total is None else b.divide(y, total), v.dtype)


def _visible(b, queries, keys, causal, kv_offset, window):
    """bool[S,T]: which keys a query may see by position."""
    i = b.iota(dtype=dtypes.i32, dims=(queries, 1), axis=0)
    i = b.add(i, count(b, (kv_offset,), dtypes.i32))
    j = b.iota(dtype=dtypes.i32, dims=(1, keys), axis=1)
    seen = b.compare(j, i, direction="le") if causal else None
    if window < 0:
        return seen
    near = b.compare(j, b.subtract(i, window), direction="gt")
    return near if seen is None else b.and_(seen, near)


def _probabilities(b, scores, sinks, zero_masked_rows):
    """Softmax over the last axis with one extra logit a head; see `Attention` for rows that see nothing."""
    if sinks is None and not zero_masked_rows:
        return b.Softmax(scores, axis=-1)
    powers, total = _powers(b, scores, sinks, zero_masked_rows, scores.dtype)
    return b.divide(powers, total)


def _powers(b, scores, sinks, zero_masked_rows, dtype):
    """Probabilities as (powers of e in `dtype`, their sums): rounding the powers leaves shares that add to 1."""
    axis = scores.rank - 1
    top = reduced(b, scores, (axis,), True, "max")
    if sinks is not None:
        sinks = b.reshape(converted(b, sinks, scores.dtype), dims=(sinks.dims[0], 1, 1))
        top = b.maximum(top, sinks)
    if zero_masked_rows:
        hidden = b.compare(top, b.constant(-np.inf, scores.dtype), direction="eq")
        top = b.select(hidden, b.constant(0, scores.dtype), top)
    powers = converted(b, b.exponential(b.subtract(scores, top)), dtype)
    total = reduced(b, converted(b, powers, scores.dtype), (axis,), True, "sum")
    if sinks is not None:
        total = b.add(total, b.exponential(b.subtract(sinks, top)))
    if zero_masked_rows:
        empty = b.compare(total, b.constant(0, scores.dtype), direction="eq")
        total = b.select(empty, b.constant(1, scores.dtype), total)
    return powers, total


def _rotary_reference(ctx, x, cos, sin, *, interleaved):
    wide, rotated = wide_array(x), 2 * cos.shape[2]
    cos, sin = wide_array(cos)[:, None], wide_array(sin)[:, None]
    first = np.s_[..., 0:rotated:2] if interleaved else np.s_[..., : rotated // 2]
    second = np.s_[..., 1:rotated:2] if interleaved else np.s_[..., rotated // 2 : rotated]
    y = wide.copy()
    y[first] = wide[first] * cos - wide[second] * sin
    y[second] = wide[second] * cos + wide[first] * sin
    return y


def _rotary(ctx, x, cos, sin, *, interleaved):
    b = ctx.build
    half, size = cos.dims[2], x.dims[3]
    wide, lead = widened(b, x), x.dims[:3]
    cos, sin = (b.reshape(converted(b, v, wide.dtype), dims=(v.dims[0], 1, *v.dims[1:])) for v in (cos, sin))

    def part(start, limit):
        return b.slice(wide, starts=(0, 0, 0, start), limits=(*lead, limit), strides=(1, 1, 1, 1))

    if interleaved:
        pairs = b.reshape(part(0, 2 * half), dims=(*lead, half, 2))
        first, second = (
            b.reshape(
                b.slice(pairs, starts=(0, 0, 0, 0, i), limits=(*lead, half, i + 1), strides=(1,) * 5),
                dims=(*lead, half),
            )
            for i in (0, 1)
        )
    else:
        first, second = part(0, half), part(half, 2 * half)
    new = (
        b.subtract(b.multiply(first, cos), b.multiply(second, sin)),
        b.add(b.multiply(second, cos), b.multiply(first, sin)),
    )
    if interleaved:
        pairs = b.concatenate(tuple(b.reshape(v, dims=(*lead, half, 1)) for v in new), axis=4)
        new = (b.reshape(pairs, dims=(*lead, 2 * half)),)
    rest = () if equal(2 * half, size) is True else (part(2 * half, size),)
    parts = (*new, *rest)
    return converted(b, parts[0] if len(parts) == 1 else b.concatenate(parts, axis=3), x.dtype)


@operator("Attention", family="attention", traits=PURE)
class Attention:
    """softmax(mask(softcap(scale * q @ k^T))) @ v.   q[B,H,S,D], k[B,G,T,D], v[B,G,T,E] -> [B,H,S,E]; G divides H.

    Query head h reads key head h // (H / G).  softcap c > 0: c * tanh(s / c), before the mask.  mask bool (True
    attends) or additive, broadcasting to [B,H,S,T].  causal: query i sees keys j <= i + kv_offset.  window w >= 0:
    and j > i + kv_offset - w.  sinks[H]: one extra logit a head that takes probability and gives no value.
    zero_masked_rows: a row that sees nothing is 0 (else NaN, as softmax of -inf is).  Softmax in f32 (f64 for f64);
    for narrower v its powers of e are rounded to that type, and the sum over them divides what v is weighted to.
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
    reference = _attention_reference
    decompose = _attention
    bucket = capacities.attention


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
    reference = _rotary_reference
    decompose = _rotary
    bucket = capacities.rotary
