"""ONNX Attention and RotaryEmbedding, brought to the one canonical form: rank 4, explicit scale, cache concatenated."""

from __future__ import annotations

import math

from ...ir import dims as sizes
from ...ir.facts import NeedsInts
from .registry import onnx_op


@onnx_op("Attention", since=23)
def attention(
    ctx, q, k, v, mask=None, past_key=None, past_value=None, nonpad_kv_seqlen=None, *, is_causal=0, q_num_heads=None,
    kv_num_heads=None, scale=None, softcap=0.0, softmax_precision=None, qk_matmul_output_mode=0, left_window_size=-1,
    right_window_size=-1,
):  # fmt: skip
    """What the canonical form cannot say (scores as a result, padded caches, windows to the right) is expanded."""
    narrow = softmax_precision is not None and ctx.dtype(softmax_precision).bits < 32 and q.dtype.bits < 64
    if ctx.wants(3) or nonpad_kv_seqlen is not None or right_window_size >= 0 or narrow:
        ctx.expand()
    if left_window_size >= 0 and not is_causal:
        ctx.expand()
    flat = q.rank == 3
    if flat:
        if not q_num_heads or not kv_num_heads:
            ctx.fail("operands of rank 3 need q_num_heads and kv_num_heads")
        q, k, v = (heads(ctx, x, n) for x, n in ((q, q_num_heads), (k, kv_num_heads), (v, kv_num_heads)))
    offset = 0
    if past_key is not None and past_value is not None:
        offset = past_key.dims[2]
        k = ctx.build.concatenate((past_key, k), axis=2)
        v = ctx.build.concatenate((past_value, v), axis=2)
    if scale is None:
        if not isinstance(q.dims[3], int):
            raise NeedsInts("the head size, which the scale depends on, is known only at run time")
        scale = 1 / math.sqrt(q.dims[3])
    out = ctx.build.Attention(
        q, k, v, None if mask is None else _full_mask(ctx, mask, k.dims[2]), scale=scale, softcap=softcap,
        causal=bool(is_causal), kv_offset=offset, window=left_window_size + 1 if left_window_size >= 0 else -1,
        zero_masked_rows=True,
    )  # fmt: skip
    return (joined(ctx, out) if flat else out), k, v


def heads(ctx, x, count):
    """[B, S, N * D] as [B, N, S, D]."""
    batch, length, width = x.dims
    if count < 1 or sizes.equal(width % count, 0) is False:
        ctx.fail(f"the number of heads must be positive and divide the {width} features, got {count}")
    split = ctx.build.reshape(x, dims=(batch, length, count, sizes.floordiv(width, count)))
    return ctx.build.transpose(split, permutation=(0, 2, 1, 3))


def joined(ctx, x):
    """[B, N, S, D] as [B, S, N * D]."""
    batch, count, length, width = x.dims
    back = ctx.build.transpose(x, permutation=(0, 2, 1, 3))
    return ctx.build.reshape(back, dims=(batch, length, count * width))


def _full_mask(ctx, mask, length):
    """A mask whose last axis is shorter than the keys hides the rest of them."""
    short = sizes.less(mask.dims[-1], length)
    if short is not True or sizes.equal(mask.dims[-1], 1) is True:
        return mask
    hidden = ctx.build.constant(False if mask.dtype.is_bool else -math.inf, mask.dtype)
    none = (0,) * mask.rank
    return ctx.build.pad(mask, hidden, low=none, high=(*none[1:], length - mask.dims[-1]), interior=none)


@onnx_op("RotaryEmbedding", since=23)
def rotary_embedding(
    ctx, x, cos, sin, position_ids=None, *, interleaved=0, num_heads=0, rotary_embedding_dim=0
):  # fmt: skip
    flat = x.rank == 3
    if flat:
        if not num_heads:
            ctx.fail("an operand of rank 3 needs num_heads")
        x = heads(ctx, x, num_heads)
    if position_ids is not None:
        cos, sin = (ctx.build.take(table, position_ids, axis=0) for table in (cos, sin))
    if rotary_embedding_dim and sizes.equal(cos.dims[-1] * 2, rotary_embedding_dim) is False:
        ctx.fail(
            f"rotary_embedding_dim is {rotary_embedding_dim}, the tables have {cos.dims[-1]} columns; expected half"
        )
    out = ctx.build.RotaryEmbedding(x, cos, sin, interleaved=bool(interleaved))
    return joined(ctx, out) if flat else out
