"""com.microsoft Attention and MultiHeadAttention: merged and packed projections, masks in all their shapes."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .....ir import dims as sizes
from .....ir import dtypes
from ...attention import heads, joined
from ...registry import onnx_op as _onnx_op

onnx_op = partial(_onnx_op, domain="com.microsoft")


def default_scale(ctx, q, scale):
    """`scale`, or 1 / sqrt(head size) where it is 0."""
    if scale:
        return scale
    if not isinstance(q.dims[3], int):
        ctx.refuse("the head size, which the scale depends on, is known only at run time")
    return 1 / math.sqrt(q.dims[3])


def key_mask(ctx, index, q, k, filler):
    """What is added to the scores: `filler` where a key is hidden.

    index: lengths [B], ends and starts [2 * B], or lengths with the offsets of packed queries and keys behind them
    [3 * B + 2]; or a mask [B, T] or [B, S, T], 0 where hidden.
    """
    if index is None:
        return None
    if not index.dtype.is_integer:
        ctx.fail(f"the mask must be of integers, got {index.type}")
    b, batch, length = ctx.build, q.dims[0], k.dims[2]
    if index.rank == 1:
        places = b.iota(dtype=index.dtype, dims=(1, length), axis=1)
        if sizes.equal(index.dims[0], batch * 3 + 2) is True:
            index = b.slice(index, starts=(0,), limits=(batch,), strides=(1,))
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


def hidden_keys(ctx, index, bias, q, k, filler, causal, offset):
    """(what is added to the scores, whether later keys are still to be hidden from a query)."""
    added, b = key_mask(ctx, index, q, k, filler), ctx.build
    lowest = float(q.dtype.finfo().min)
    if added is not None and causal and filler <= lowest:
        # ONNX Runtime hides later keys by the lowest number, not by -inf: a query that sees no key, as in padding on
        # the left, takes equal shares of all keys that have it, later ones too.
        own = b.add(b.iota(dtype=dtypes.i64, dims=(q.dims[2], 1), axis=0), b.dimensions(dims=(offset,), scalar=True))
        later = b.compare(b.iota(dtype=dtypes.i64, dims=(1, k.dims[2]), axis=1), own, direction="gt")
        added, causal = b.select(later, b.constant(np.array(lowest), q.dtype), added), False
    return total_mask(ctx, added, bias), bool(causal)


def total_mask(ctx, *masks):
    """The sum of additive masks, those that are absent apart."""
    given = [m for m in masks if m is not None]
    out = given[0] if given else None
    for mask in given[1:]:
        out = ctx.build.add(out, mask)
    return out


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
    mask, causal = hidden_keys(ctx, mask_index, attention_bias, q, k, filler, unidirectional, offset)
    out = b.Attention(q, k, v, mask, scale=default_scale(ctx, q, scale), causal=causal, kv_offset=offset)
    present = None
    if ctx.wants(1):
        present = b.concatenate(tuple(b.reshape(p, dims=(1, *p.dims)) for p in (k, v)), axis=0)
    return joined(ctx, out), present


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
    if has_past(ctx, past_key, past_value):
        offset = past_key.dims[2]
        k, v = b.concatenate((past_key, k), axis=2), b.concatenate((past_value, v), axis=2)
    else:  # keys of a cache that the model itself appended to: the last query sees all of them
        offset = sizes.maximum(k.dims[2] - q.dims[2], 0)
    added, causal = hidden_keys(ctx, mask, attention_bias, q, k, mask_filter_value, unidirectional, offset)
    out = b.Attention(q, k, v, added, scale=default_scale(ctx, q, scale), causal=causal, kv_offset=offset)
    return joined(ctx, out), k, v


def _projected(ctx, q, k, v, bias, num_heads):
    """Queries, keys and values as [B, N, S, D], whichever way they are packed, the bias added."""
    if q.rank == 5:  # [B, S, N, 3, D]
        q, k, v = _unpacked(ctx, q, 3)
    else:
        q = of_rank_3(ctx, q, "query")
        if k is None:
            ctx.fail("the key is missing, and the query is not packed with it")
        if k.rank == 5:  # [B, T, N, 2, D]
            k, v = _unpacked(ctx, k, 2)
    if v is None:
        ctx.fail("the value is missing, and the key is not packed with it")
    return biased(ctx, (q, k, v), bias, num_heads)


def biased(ctx, parts, bias, num_heads):
    """Queries, keys and values [B, S, N * D] plus their parts of the bias, as [B, N, S, D].

    Keys and values that are so already had theirs added by whoever made them.
    """
    if bias is not None:
        biases = ctx.build.Split(bias, axis=0, sizes=tuple(_width(x) for x in parts))
        parts = [x if x.rank == 4 else ctx.build.add(x, own) for x, own in zip(parts, biases, strict=True)]
    return [x if x.rank == 4 else heads(ctx, x, num_heads) for x in parts]


def has_past(ctx, key, value):
    """Whether there are cached keys and values [B, N, P, D]; only one of them is a fault."""
    if (key is None) != (value is None):
        ctx.fail("past_key and past_value stand together; one of them is missing")
    return key is not None


def of_rank_3(ctx, x, what):
    """x itself, which must be [batch, time, features]."""
    if x.rank != 3:
        ctx.fail(f"the {what} must be [batch, time, features] or packed, got {x.type}")
    return x


def _width(x):
    return x.dims[2] if x.rank == 3 else x.dims[1] * x.dims[3]


def _unpacked(ctx, x, count):
    """[B, S, N, count, D] as `count` values [B, S, N * D]."""
    batch, length, n, _, width = x.dims
    parts = ctx.build.Split(x, axis=3, sizes=(1,) * count)
    return [ctx.build.reshape(p, dims=(batch, length, n * width)) for p in parts]
