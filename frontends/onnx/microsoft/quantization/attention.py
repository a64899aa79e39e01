"""QAttention and QEmbedLayerNormalization of ONNX Runtime: the parts of BERT with 8-bit inputs and weights."""

from __future__ import annotations

from functools import partial

from .....ir import dims as sizes
from .....ir import dtypes
from ...registry import onnx_op as _onnx_op
from ..attention import with_past
from .linear import one, real
from .products import per_column, scaled

onnx_op = partial(_onnx_op, domain="com.microsoft")


@onnx_op("QAttention", absent=("mask_index", "x_zero_point", "w_zero_point"))
def qattention(
    ctx, x, w, bias, x_scale, w_scale, mask_index=None, x_zero_point=None, w_zero_point=None, past=None, *, num_heads,
    unidirectional=0, scale=0.0, mask_filter_value=-10000.0, do_rotary=0, past_present_share_buffer=0,
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
    return with_past(
        ctx, b.Split(scaled(ctx, total, factor, bias), axis=2, sizes=(third,) * 3), num_heads, mask_index, None, past,
        unidirectional, scale, mask_filter_value,
    )  # fmt: skip


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
