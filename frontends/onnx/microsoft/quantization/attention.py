"""QAttention and QEmbedLayerNormalization of ONNX Runtime: the parts of BERT with 8-bit inputs and weights."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from .....ir import dims as sizes
from .....ir import dtypes
from ...attention import heads, joined
from ...registry import onnx_op as _onnx_op
from .linear import one, real
from .products import per_column, scaled

onnx_op = partial(_onnx_op, domain="com.microsoft")


@onnx_op("QAttention", absent=("mask_index", "x_zero_point", "w_zero_point"))
def qattention(
    ctx, x, w, bias, x_scale, w_scale, mask_index=None, x_zero_point=None, w_zero_point=None, past=None, *, num_heads,
    unidirectional=0, scale=None, mask_filter_value=-10000.0, do_rotary=0, past_present_share_buffer=0,
):  # fmt: skip
    """The projections are products of integers, scaled to floats; attention itself is computed in floats."""
    if do_rotary or past_present_share_buffer:
        ctx.refuse("rotary embedding inside of QAttention, and caches that it writes to, are not supported")
    b = ctx.build
    if x.rank != 3 or w.rank != 2:
        ctx.fail(f"needs an input [batch, time, features] and a matrix of weights, got {x.type} and {w.type}")
    total = b.MatMulInteger(
        x, w, one(ctx, x_zero_point, "the input's zero point"), per_column(ctx, w_zero_point, "the weights' zero point")
    )
    factor = b.multiply(one(ctx, x_scale, "the input's scale"), per_column(ctx, w_scale, "the weights' scale"))
    third = sizes.floordiv(w.dims[1], 3)
    q, k, v = (heads(ctx, p, num_heads) for p in b.Split(scaled(ctx, total, factor, bias), axis=2, sizes=(third,) * 3))
    if not isinstance(q.dims[3], int):
        ctx.refuse("the head size is known only at run time")
    offset = 0
    if past is not None:
        old = (b.reshape(p, dims=past.dims[1:]) for p in b.Split(past, axis=0, sizes=(1, 1)))
        k, v = (b.concatenate((before, now), axis=2) for before, now in zip(old, (k, v), strict=True))
        offset = past.dims[3]
    out = b.Attention(
        q, k, v, _mask(ctx, mask_index, q, k, mask_filter_value), scale=scale or 1 / math.sqrt(q.dims[3]),
        causal=bool(unidirectional), kv_offset=offset,
    )  # fmt: skip
    present = None
    if ctx.wants(1):
        present = b.concatenate(tuple(b.reshape(p, dims=(1, *p.dims)) for p in (k, v)), axis=0)
    return joined(ctx, out), present


def _mask(ctx, index, q, k, filler):
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


@onnx_op("QEmbedLayerNormalization", absent=(
    "segment_ids", "segments", "mask", "segment_scale", "segment_zero_point",
))  # fmt: skip
def q_embed_layer_normalization(
    ctx, ids, segment_ids, words, positions, segments, gamma, beta, mask, word_scale, position_scale, segment_scale,
    gamma_scale, beta_scale, word_zero_point, position_zero_point, segment_zero_point, gamma_zero_point,
    beta_zero_point, *, epsilon=1e-12,
):  # fmt: skip
    """LayerNormalization of the sum of embeddings; and how many elements of each row of the mask are 1."""
    b = ctx.build
    rows, length = ids.dims
    total = real(ctx, b.take(words, ids, axis=0), word_scale, word_zero_point)
    first = b.slice(positions, starts=(0, 0), limits=(length, positions.dims[1]), strides=(1, 1))
    total = b.add(total, real(ctx, first, position_scale, position_zero_point))
    if segment_ids is not None:
        total = b.add(total, real(ctx, b.take(segments, segment_ids, axis=0), segment_scale, segment_zero_point))
    scale, bias = real(ctx, gamma, gamma_scale, gamma_zero_point), real(ctx, beta, beta_scale, beta_zero_point)
    out = b.LayerNormalization(total, scale, bias, axis=2, epsilon=epsilon)[0]
    if mask is None:
        return out, b.full(0, dtypes.i32, (rows,))
    ones = b.convert(b.compare(mask, 1, direction="eq"), dtype=dtypes.i32)
    return out, b.reduce(ones, axes=(1,), kind="sum")
