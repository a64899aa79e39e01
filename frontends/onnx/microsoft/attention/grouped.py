"""com.microsoft GroupQueryAttention: batch entries of several lengths in one cache."""

from __future__ import annotations

from functools import partial

import numpy as np

from .....ir import dims as sizes
from .....ir import dtypes
from ...attention import heads, joined
from ...registry import onnx_op as _onnx_op
from .merged import default_scale, has_past, of_rank_3

onnx_op = partial(_onnx_op, domain="com.microsoft")


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
    if (q_norm is None) != (k_norm is None):
        ctx.fail("q_norm_weight and k_norm_weight stand together; one of them is missing")
    if not causal and local_window_size >= 0:
        ctx.fail(f"a local_window_size of {local_window_size} needs causal=1")
    b = ctx.build
    q, k, v = _grouped(ctx, q, k, v, num_heads, kv_num_heads)
    if q_norm is not None:
        q = b.RMSNormalization(q, q_norm, axis=3, epsilon=q_norm_epsilon or qk_norm_epsilon)
    if k_norm is not None:
        k = b.RMSNormalization(k, k_norm, axis=3, epsilon=k_norm_epsilon or qk_norm_epsilon)
    batch, _, length, _ = q.dims
    start, held, prompt = _tokens(ctx, seqlens_k, total_sequence_length, batch, length)
    if do_rotary:
        if cos is None or sin is None:
            ctx.fail("do_rotary needs cos_cache and sin_cache")
        positions = _positions(ctx, position_ids, start, prompt, batch, length)
        cos, sin = (b.take(table, positions, axis=0) for table in (cos, sin))
        q, k = (b.RotaryEmbedding(x, cos, sin, interleaved=bool(rotary_interleaved)) for x in (q, k))
    if has_past(ctx, past_key, past_value):
        total = ctx.size(total_sequence_length, "total_sequence_length")
        k, v = (_appended(ctx, old, new, start, total) for old, new in ((past_key, k), (past_value, v)))
    mask = _seen(ctx, start, held, length, k.dims[2], causal, local_window_size, q.dtype)
    if attention_bias is not None:
        hidden = b.constant(-np.inf, attention_bias.dtype)
        mask = b.select(mask, attention_bias, hidden)
    sinks = head_sink
    if sinks is None and smooth_softmax:
        sinks = b.full(0.0, q.dtype, (num_heads,))
    out = b.Attention(q, k, v, mask, sinks, scale=default_scale(ctx, q, scale), softcap=softcap, zero_masked_rows=True)
    return joined(ctx, out), k, v


def _grouped(ctx, q, k, v, num_heads, kv_num_heads):
    """Queries [B, N, S, D], keys and values [B, G, S, D], also from one packed operand."""
    q = of_rank_3(ctx, q, "query")
    if k is None:
        size = sizes.floordiv(q.dims[2], num_heads + 2 * kv_num_heads)
        widths = (size * num_heads, size * kv_num_heads, size * kv_num_heads)
        q, k, v = ctx.build.Split(q, axis=2, sizes=widths)
    if v is None:
        ctx.fail("the key is given and the value is not")
    k, v = of_rank_3(ctx, k, "key"), of_rank_3(ctx, v, "value")
    return heads(ctx, q, num_heads), heads(ctx, k, kv_num_heads), heads(ctx, v, kv_num_heads)


def _tokens(ctx, seqlens_k, total, batch, length):
    """i64[B]: how many tokens each entry had before this step, and has after it; bool: is this a first prompt?"""
    b = ctx.build
    for what, x in (("seqlens_k", seqlens_k), ("total_sequence_length", total)):
        if not x.dtype.is_integer:
            ctx.fail(f"{what} must be of integers, got {x.type}")
    held = b.add(b.reshape(b.convert(seqlens_k, dtype=dtypes.i64), dims=(batch,)), 1)
    count = b.dimensions(dims=(length,), scalar=True)
    before = b.subtract(held, count)
    prompt = b.compare(b.reshape(b.convert(total, dtype=dtypes.i64), dims=()), count, direction="eq")
    return b.select(prompt, b.constant(0, dtypes.i64), before), held, prompt


def _positions(ctx, given, start, prompt, batch, length):
    """i64[B or 1, S].  In a first prompt ONNX Runtime counts from the first element given, whatever the others are."""
    b = ctx.build
    steps = b.iota(dtype=dtypes.i64, dims=(1, length), axis=1)
    if given is None:
        return b.add(b.reshape(start, dims=(batch, 1)), steps)
    first = b.slice(given, starts=(0, 0), limits=(1, 1), strides=(1, 1))
    return b.select(prompt, b.add(first, steps), given)


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
    if window >= 0:
        seen = b.and_(seen, b.compare(column, b.subtract(own, window), direction="gt"))
    return b.reshape(seen, dims=(batch, 1, length, keys))
