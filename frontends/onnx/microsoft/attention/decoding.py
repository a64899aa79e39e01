"""com.microsoft attention of one step of beam search, and the forms that are refused with a reason."""

from __future__ import annotations

from functools import partial

import numpy as np

from .....ir import dims as sizes
from .....ir import dtypes
from ...attention import joined
from ...registry import onnx_op as _onnx_op
from .merged import biased, default_scale, has_past, key_mask, of_rank_3, total_mask

onnx_op = partial(_onnx_op, domain="com.microsoft")

REFUSED = {
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


@onnx_op("DecoderMaskedMultiHeadAttention", absent=("k", "v", "mask", "attention_bias", "past_key", "past_value"))
def decoder_masked_multi_head_attention(
    ctx, q, k, v, mask, attention_bias, past_key, past_value, past_sequence_length=None, beam_width=None,
    cache_indirection=None, bias=None, *, num_heads, scale=0.0, mask_filter_value=-10000.0,
    past_present_share_buffer=0, output_qk=0,
):  # fmt: skip
    """One new token an entry.  Its cache is as long as it will ever be, its own row is past_sequence_length.

    cache_indirection [B / W, W, P]: which of the W beams of an entry an older row is taken from.
    Keys and values [B, N, T, D] are those of cross attention: no cache, and nothing is hidden but by the mask.
    """
    if output_qk or ctx.wants(3):
        ctx.refuse("the scores as a result are not supported")
    b = ctx.build
    q = of_rank_3(ctx, q, "query")
    if k is None and v is None:
        third = q.dims[2] // 3
        q, k, v = b.Split(q, axis=2, sizes=(third, third, third))
    if k is None or v is None:
        ctx.fail("one of key and value is missing")
    cross, present = k.rank == 4, [None, None]
    q, k, v = biased(ctx, (q, k, v), bias, num_heads)
    own = None
    if not cross:
        if not (has_past(ctx, past_key, past_value) and past_present_share_buffer):
            ctx.refuse("a cache that grows is not supported: past_present_share_buffer must be 1")
        if past_sequence_length is None or not past_sequence_length.dtype.is_integer:
            ctx.fail("past_sequence_length must be one integer")
        own = b.reshape(b.convert(past_sequence_length, dtype=dtypes.i64), dims=(1, 1, 1, 1))
        present = [_written(ctx, old, new, own) for old, new in ((past_key, k), (past_value, v))]
        k, v = present if cache_indirection is None else (_of_beams(ctx, x, cache_indirection, own) for x in present)
    added = total_mask(ctx, key_mask(ctx, _widened(ctx, mask, k), q, k, mask_filter_value),
                       _widened(ctx, attention_bias, k))  # fmt: skip
    if own is not None:
        seen = b.compare(b.iota(dtype=dtypes.i64, dims=(1, 1, 1, k.dims[2]), axis=3), own, direction="le")
        added = seen if added is None else b.select(seen, added, b.constant(-np.inf, added.dtype))
    out = b.Attention(q, k, v, added, scale=default_scale(ctx, q, scale))
    return joined(ctx, out), *present


def _written(ctx, old, new, row):
    """The cache [B, N, P, D] with `new` [B, N, 1, D] as row `row`."""
    b = ctx.build
    places = b.iota(dtype=dtypes.i64, dims=(1, 1, old.dims[2], 1), axis=2)
    return b.select(b.compare(places, row, direction="eq"), new, old)


def _of_beams(ctx, cache, indirection, row):
    """The cache with its rows before `row` taken from the beams that they came from."""
    b = ctx.build
    entries, beams, room = indirection.dims
    first = b.multiply(b.iota(dtype=dtypes.i64, dims=(entries, 1, 1), axis=0), b.dimensions(dims=(beams,), scalar=True))
    source = b.reshape(b.add(first, b.convert(indirection, dtype=dtypes.i64)), dims=(entries * beams, room))
    index = b.broadcast_in_dim(source, dims=cache.dims, broadcast_dimensions=(0, 2))
    places = b.iota(dtype=dtypes.i64, dims=(1, 1, room, 1), axis=2)
    return b.select(b.compare(places, row, direction="lt"), b.take_along_axis(cache, index, axis=0), cache)


def _widened(ctx, x, k):
    """A mask or bias whose last axis ends with this token, to the length of the cache; what is added counts nowhere."""
    if x is None or x.rank < 2 or sizes.equal(x.dims[-1], k.dims[2]) is True:
        return x
    none = (0,) * (x.rank - 1)
    return ctx.build.pad(
        x, ctx.build.constant(0, x.dtype), low=(*none, 0), high=(*none, k.dims[2] - x.dims[-1]), interior=(0,) * x.rank
    )
