"""com.microsoft attention and rotary embedding, brought to the composites that ONNX's own operators become."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ....ir import dims as sizes
from ....ir import dtypes
from ..attention import heads, joined
from ..registry import onnx_op as _onnx_op

onnx_op = partial(_onnx_op, domain="com.microsoft")

REFUSED = {
    "DecoderMaskedMultiHeadAttention": "writes to caches that beams share; export the decoder without beam search",
    "DecoderMaskedSelfAttention": "writes to caches that beams share; export the decoder without beam search",
    "DecoderAttention": "chooses by a flag at run time whether its cache counts; export with MultiHeadAttention",
    "PackedAttention": "takes batches without padding, for CUDA alone; export without padding removal",
    "PackedMultiHeadAttention": "takes batches without padding, for CUDA alone; export without padding removal",
    "PagedAttention": "takes caches in pages, which a server manages; export with GroupQueryAttention",
    "SparseAttention": "takes a block-sparse layout of keys; export with GroupQueryAttention",
    "LongformerAttention": "attends in sliding windows with global tokens, which only a CUDA kernel defines",
}


def _refuse(type_, why):
    @onnx_op(type_)
    def handler(ctx, *xs, **attributes):
        ctx.refuse(why)


for _type, _why in REFUSED.items():
    _refuse(_type, _why)


def default_scale(ctx, q, scale):
    if scale:
        return scale
    if not isinstance(q.dims[3], int):
        ctx.refuse("the head size, which the scale depends on, is known only at run time")
    return 1 / math.sqrt(q.dims[3])


def key_mask(ctx, index, q, k, filler):
    """What is added to the scores: `filler` where a key is hidden.

    index: lengths [B], or ends and starts [2 * B], of what is seen; or a mask [B, T] or [B, S, T], 0 where hidden.
    """
    if index is None:
        return None
    b, batch, length = ctx.build, q.dims[0], k.dims[2]
    if index.rank == 1:
        places = b.iota(dtype=index.dtype, dims=(1, length), axis=1)
        if sizes.equal(index.dims[0], batch) is True:
            seen = b.compare(places, b.reshape(index, dims=(batch, 1)), direction="lt")
        elif sizes.equal(index.dims[0], batch * 2) is True:
            ends, starts = (b.reshape(p, dims=(batch, 1)) for p in b.Split(index, axis=0, sizes=(batch, batch)))
            seen = b.and_(b.compare(places, ends, direction="lt"), b.compare(places, starts, direction="ge"))
        else:
            ctx.refuse(f"a mask index of {index.dims[0]} elements for a batch of {batch} is not supported")
    elif index.rank in (2, 3):
        seen = b.compare(index, 0, direction="gt")
    else:
        ctx.refuse(f"masks of rank {index.rank} are not supported")
    hidden = b.constant(np.array(filler), q.dtype)
    added = b.select(seen, b.constant(0, q.dtype), hidden)
    return b.reshape(added, dims=(added.dims[0], 1, *([1] if added.rank == 2 else []), *added.dims[1:]))


def total_mask(ctx, *masks):
    """The sum of additive masks, those that are absent apart."""
    given = [m for m in masks if m is not None]
    out = given[0] if given else None
    for mask in given[1:]:
        out = ctx.build.add(out, mask)
    return out


# ----------------------------------------------------------------------------------------------------- merged weights


@onnx_op("Attention", absent=("bias", "mask_index", "past", "attention_bias"))
def attention(
    ctx, x, w, bias, mask_index=None, past=None, attention_bias=None, past_sequence_length=None, *, num_heads,
    unidirectional=0, qkv_hidden_sizes=(), scale=0.0, mask_filter_value=-10000.0, do_rotary=0,
    rotary_embedding_dim=0, past_present_share_buffer=0,
):  # fmt: skip
    """One matrix makes queries, keys and values."""
    if do_rotary or past_present_share_buffer or past_sequence_length is not None:
        ctx.refuse("rotary embedding inside of Attention, and caches that it writes to, are not supported")
    b = ctx.build
    if x.rank != 3 or w.rank != 2:
        ctx.fail(f"needs an input [batch, time, features] and a matrix of weights, got {x.type} and {w.type}")
    projected = b.MatMul(x, w)
    if bias is not None:
        projected = b.add(projected, bias)
    widths = tuple(qkv_hidden_sizes) or (sizes.floordiv(w.dims[1], 3),) * 3
    if len(widths) != 3:
        ctx.fail(f"qkv_hidden_sizes must have three elements, got {len(widths)}")
    return with_past(
        ctx, b.Split(projected, axis=2, sizes=widths), num_heads, mask_index, attention_bias, past,
        unidirectional, scale, mask_filter_value,
    )  # fmt: skip


def with_past(ctx, projections, num_heads, mask_index, attention_bias, past, unidirectional, scale, filler):
    """Attention of projections [B, S, N * D], with a cache [2, B, N, P, D] before the keys and values."""
    b = ctx.build
    q, k, v = (heads(ctx, p, num_heads) for p in projections)
    offset = 0
    if past is not None:
        old = (b.reshape(p, dims=past.dims[1:]) for p in b.Split(past, axis=0, sizes=(1, 1)))
        k, v = (b.concatenate((before, now), axis=2) for before, now in zip(old, (k, v), strict=True))
        offset = past.dims[3]
    mask = total_mask(ctx, key_mask(ctx, mask_index, q, k, filler), attention_bias)
    out = b.Attention(
        q, k, v, mask, scale=default_scale(ctx, q, scale), causal=bool(unidirectional), kv_offset=offset
    )
    present = None
    if ctx.wants(1):
        present = b.concatenate(tuple(b.reshape(p, dims=(1, *p.dims)) for p in (k, v)), axis=0)
    return joined(ctx, out), present


# ------------------------------------------------------------------------------------------------- MultiHeadAttention


@onnx_op("MultiHeadAttention", absent=("k", "v", "bias", "mask", "attention_bias"))
def multi_head_attention(
    ctx, q, k=None, v=None, bias=None, mask=None, attention_bias=None, past_key=None, past_value=None,
    past_sequence_length=None, cache_indirection=None, *, num_heads, unidirectional=0, scale=0.0,
    mask_filter_value=-10000.0,
):  # fmt: skip
    if past_sequence_length is not None or cache_indirection is not None:
        ctx.refuse("caches that it writes to are not supported; export without a shared buffer")
    if ctx.wants(3):
        ctx.refuse("the scores as a result are not supported")
    b = ctx.build
    q, k, v = _projected(ctx, q, k, v, bias, num_heads)
    offset = 0
    if past_key is not None and past_value is not None:
        offset = past_key.dims[2]
        k, v = b.concatenate((past_key, k), axis=2), b.concatenate((past_value, v), axis=2)
    added = total_mask(ctx, key_mask(ctx, mask, q, k, mask_filter_value), attention_bias)
    out = b.Attention(
        q, k, v, added, scale=default_scale(ctx, q, scale), causal=bool(unidirectional), kv_offset=offset
    )
    return joined(ctx, out), k, v


def _projected(ctx, q, k, v, bias, num_heads):
    """Queries, keys and values as [B, N, S, D], whichever way they are packed, the bias added."""
    b = ctx.build
    if q.rank == 5:  # [B, S, N, 3, D]
        q, k, v = _unpacked(ctx, q, 3)
    else:
        q = _rank_3(ctx, q, "query")
        if k is None:
            ctx.fail("the key is missing, and the query is not packed with it")
        if k.rank == 5:  # [B, T, N, 2, D]
            k, v = _unpacked(ctx, k, 2)
    if v is None:
        ctx.fail("the value is missing, and the key is not packed with it")
    parts = [q, k, v]
    if bias is not None:
        widths = [_width(x, num_heads) for x in parts]
        biases = b.Split(bias, axis=0, sizes=tuple(widths))
        # Keys and values that are [B, N, T, D] already had theirs added by whoever made them.
        parts = [x if x.rank == 4 else b.add(x, own) for x, own in zip(parts, biases, strict=True)]
    return [x if x.rank == 4 else heads(ctx, x, num_heads) for x in parts]


def _rank_3(ctx, x, what):
    if x.rank != 3:
        ctx.fail(f"the {what} must be [batch, time, features] or packed, got {x.type}")
    return x


def _width(x, num_heads):
    return x.dims[2] if x.rank == 3 else x.dims[1] * x.dims[3]


def _unpacked(ctx, x, count):
    """[B, S, N, count, D] as `count` values [B, S, N * D]."""
    batch, length, n, _, width = x.dims
    parts = ctx.build.Split(x, axis=3, sizes=(1,) * count)
    return [ctx.build.reshape(p, dims=(batch, length, n * width)) for p in parts]


# ------------------------------------------------------------------------------------------------ GroupQueryAttention


@onnx_op("GroupQueryAttention", absent=("k", "v", "past_key", "past_value"))
def group_query_attention(
    ctx, q, k, v, past_key, past_value, seqlens_k, total_sequence_length, cos=None, sin=None, position_ids=None,
    attention_bias=None, head_sink=None, k_scale=None, v_scale=None, q_norm=None, k_norm=None, query_seqlens=None, *,
    num_heads, kv_num_heads, scale=0.0, softcap=0.0, do_rotary=0, rotary_interleaved=0, local_window_size=-1,
    smooth_softmax=0, causal=1, qk_output=0, kv_cache_bit_width=0, k_quant_type="NONE", v_quant_type="NONE",
    qk_norm_epsilon=1e-6, q_norm_epsilon=None, k_norm_epsilon=None, sliding_window_cache=0,
):  # fmt: skip
    """Batch entry b holds seqlens_k[b] + 1 tokens after this step; its new ones stand behind its old ones in the cache.

    A first prompt (as many queries as total_sequence_length) starts at 0, however short an entry is.
    """
    if kv_cache_bit_width or k_quant_type != "NONE" or v_quant_type != "NONE" or k_scale is not None:
        ctx.refuse("quantized caches are not supported")
    if ctx.wants(3) or qk_output or query_seqlens is not None or sliding_window_cache:
        ctx.refuse("scores as a result, padded chunks of queries and window-sized caches are not supported")
    b = ctx.build
    q, k, v = _grouped(ctx, q, k, v, num_heads, kv_num_heads)
    if q_norm is not None:
        q = b.RMSNormalization(q, q_norm, axis=3, epsilon=q_norm_epsilon or qk_norm_epsilon)
    if k_norm is not None:
        k = b.RMSNormalization(k, k_norm, axis=3, epsilon=k_norm_epsilon or qk_norm_epsilon)
    batch, _, length, _ = q.dims
    start, held = _tokens(ctx, seqlens_k, total_sequence_length, batch, length)
    if do_rotary:
        if cos is None or sin is None:
            ctx.fail("do_rotary needs cos_cache and sin_cache")
        if position_ids is None:
            steps = b.iota(dtype=dtypes.i64, dims=(1, length), axis=1)
            position_ids = b.add(b.reshape(start, dims=(batch, 1)), steps)
        cos, sin = (b.take(table, position_ids, axis=0) for table in (cos, sin))
        q, k = (b.RotaryEmbedding(x, cos, sin, interleaved=bool(rotary_interleaved)) for x in (q, k))
    if past_key is not None and past_value is not None:
        total = ctx.size(total_sequence_length, "total_sequence_length")
        k, v = (_appended(ctx, old, new, start, total) for old, new in ((past_key, k), (past_value, v)))
    mask = _seen(ctx, start, held, length, k.dims[2], causal, local_window_size, q.dtype)
    if attention_bias is not None:
        hidden = b.constant(-np.inf, attention_bias.dtype)
        mask = b.select(mask, attention_bias, hidden)
    sinks = head_sink
    if sinks is None and smooth_softmax:
        sinks = b.full(0.0, q.dtype, (num_heads,))
    out = b.Attention(
        q, k, v, mask, sinks, scale=default_scale(ctx, q, scale), softcap=softcap, zero_masked_rows=True
    )
    return joined(ctx, out), k, v


def _grouped(ctx, q, k, v, num_heads, kv_num_heads):
    """Queries [B, N, S, D], keys and values [B, G, S, D], also from one packed operand."""
    q = _rank_3(ctx, q, "query")
    if k is None:
        size = sizes.floordiv(q.dims[2], num_heads + 2 * kv_num_heads)
        widths = (size * num_heads, size * kv_num_heads, size * kv_num_heads)
        q, k, v = ctx.build.Split(q, axis=2, sizes=widths)
    if v is None:
        ctx.fail("the key is given and the value is not")
    return heads(ctx, q, num_heads), heads(ctx, k, kv_num_heads), heads(ctx, v, kv_num_heads)


def _tokens(ctx, seqlens_k, total, batch, length):
    """i64[B]: how many tokens each entry had before this step, and how many it has after it."""
    b = ctx.build
    held = b.add(b.reshape(b.convert(seqlens_k, dtype=dtypes.i64), dims=(batch,)), 1)
    count = b.dimensions(dims=(length,), scalar=True)
    before = b.subtract(held, count)
    prompt = b.compare(b.reshape(b.convert(total, dtype=dtypes.i64), dims=()), count, direction="eq")
    return b.select(prompt, b.constant(0, dtypes.i64), before), held


def _appended(ctx, old, new, start, total):
    """The cache [B, G, P, D] with new rows from each entry's `start` on and zeros behind, P or `total` long."""
    b = ctx.build
    batch, groups, _, size = new.dims
    capacity = sizes.maximum(old.dims[2], total)
    room = capacity - old.dims[2]
    grown = b.pad(old, b.constant(0, old.dtype), low=(0,) * 4, high=(0, 0, room, 0), interior=(0,) * 4)
    places = b.iota(dtype=dtypes.i64, dims=(1, capacity), axis=1)
    rows = b.subtract(places, b.reshape(start, dims=(batch, 1)))
    fresh = b.and_(
        b.compare(rows, 0, direction="ge"),
        b.compare(rows, b.dimensions(dims=(new.dims[2],), scalar=True), direction="lt"),
    )
    index = b.broadcast_in_dim(
        b.select(fresh, rows, b.constant(0, dtypes.i64)), dims=(batch, groups, capacity, size),
        broadcast_dimensions=(0, 2),
    )  # fmt: skip
    taken = b.take_along_axis(new, index, axis=2)
    kept = b.reshape(b.compare(rows, 0, direction="lt"), dims=(batch, 1, capacity, 1))
    behind = b.select(kept, grown, b.constant(0, old.dtype))
    return b.select(b.reshape(fresh, dims=(batch, 1, capacity, 1)), taken, behind)


def _seen(ctx, start, held, length, keys, causal, window, dtype):
    """bool[B, 1, S, T]: what a query of each entry sees; a window of w shows w keys, the query's own among them."""
    b = ctx.build
    batch = start.dims[0]
    column = b.iota(dtype=dtypes.i64, dims=(1, 1, keys), axis=2)
    if not causal:
        seen = b.compare(column, b.reshape(held, dims=(batch, 1, 1)), direction="lt")
        return b.reshape(seen, dims=(batch, 1, 1, keys))
    own = b.add(b.reshape(start, dims=(batch, 1, 1)), b.iota(dtype=dtypes.i64, dims=(1, length, 1), axis=1))
    seen = b.compare(column, own, direction="le")
    if window > 0:
        seen = b.and_(seen, b.compare(column, b.subtract(own, window), direction="gt"))
    return b.reshape(seen, dims=(batch, 1, length, keys))


# ------------------------------------------------------------------------------------------------------------ positions


@onnx_op("RotaryEmbedding")
def rotary_embedding(
    ctx, x, position_ids, cos, sin, *, interleaved=0, num_heads=0, rotary_embedding_dim=0, scale=1.0,
    is_packed_batching=0,
):  # fmt: skip
    """position_ids: one offset for all, or [B, S]."""
    if scale != 1.0 or is_packed_batching:
        ctx.refuse(f"a scale of {scale:g} and packed batches, which no CPU kernel defines, are not supported")
    b, flat = ctx.build, x.rank == 3
    if flat:
        x = heads(ctx, x, num_heads or sizes.floordiv(x.dims[2], 2 * cos.dims[1]))
    if x.rank != 4:
        ctx.fail(f"needs [batch, time, features] or [batch, heads, time, features], got {x.type}")
    if position_ids.rank < 2:
        steps = b.iota(dtype=position_ids.dtype, dims=(1, x.dims[2]), axis=1)
        position_ids = b.add(b.reshape(position_ids, dims=(1, 1)), steps)
    cos, sin = (b.take(table, position_ids, axis=0) for table in (cos, sin))
    out = b.RotaryEmbedding(x, cos, sin, interleaved=bool(interleaved))
    return joined(ctx, out) if flat else out


@onnx_op("RelativePositionBias")
def relative_position_bias(ctx, table, query_length, key_length, *, max_distance, is_bidirectional=0):
    """T5's learnt bias: table [buckets, heads] -> [1, heads, query_length, key_length]."""
    b = ctx.build
    queries, keys = ctx.size(query_length, "query_length"), ctx.size(key_length, "key_length")
    buckets, count = table.dims
    if not isinstance(buckets, int):
        ctx.refuse("the number of buckets is known only at run time")
    place = b.subtract(
        b.iota(dtype=dtypes.i64, dims=(1, keys), axis=1), b.iota(dtype=dtypes.i64, dims=(queries, 1), axis=0)
    )
    base = b.constant(0, dtypes.i64)
    if is_bidirectional:
        buckets //= 2
        base = b.select(b.compare(place, 0, direction="gt"), b.constant(buckets, dtypes.i64), base)
        distance = b.abs(place)
    else:
        distance = b.negate(b.minimum(place, 0))
    exact = buckets // 2
    far = b.log(b.divide(b.convert(b.maximum(distance, 1), dtype=dtypes.f32), float(exact)))
    far = b.multiply(b.divide(far, math.log(max_distance / exact)), float(buckets - exact))
    far = b.minimum(b.add(b.convert(far, dtype=dtypes.i64), exact), buckets - 1)
    bucket = b.add(base, b.select(b.compare(distance, exact, direction="lt"), distance, far))
    bias = b.transpose(b.take(table, bucket, axis=0), permutation=(2, 0, 1))
    return b.reshape(bias, dims=(1, count, queries, keys))


@onnx_op("GatedRelativePositionBias")
def gated_relative_position_bias(ctx, q, q_bias, rel_pos, weight, bias, eco_a, token_offset=None, *, num_heads):
    """rel_pos [1, N, S, S] times a gate of each query and head: u (r a - 1) + 2, u and r from its features."""
    if token_offset is not None:
        ctx.refuse("batches without padding are not supported; export without padding removal")
    b = ctx.build
    x = heads(ctx, b.add(_rank_3(ctx, q, "query"), q_bias), num_heads)
    gates = b.add(b.MatMul(x, weight), bias)
    half = sizes.floordiv(gates.dims[3], 2)
    parts = b.Split(gates, axis=3, sizes=(half, half))
    u, r = (b.reshape(b.logistic(b.reduce(p, axes=(3,), kind="sum")), dims=(*p.dims[:3], 1)) for p in parts)
    return b.multiply(b.add(b.multiply(u, b.subtract(b.multiply(r, eco_a), 1.0)), 2.0), rel_pos)
