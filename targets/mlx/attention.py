"""Attention by mx.fast where its conventions are exactly those of irc; otherwise it is decomposed."""

from typing import Any

from ...ir import dims as sizes
from ...ir import dtypes
from .lowering import lower


@lower("Attention")
def attention(ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    if softcap or window >= 0:
        ctx.refuse("mx.fast.scaled_dot_product_attention has neither softcap nor window")
    if q.dtype not in (dtypes.f32, dtypes.f16, dtypes.bf16):
        ctx.refuse(f"mx.fast.scaled_dot_product_attention of {q.dtype}")
    if zero_masked_rows and (mask is not None or causal):
        ctx.refuse("rows that see nothing are not zero in mx.fast.scaled_dot_product_attention")
    if any(sizes.less_equal(1, d) is not True and isinstance(d, int) for x in (q, k, v) for d in x.dims):
        ctx.refuse("an empty operand")
    keywords: dict[str, Any] = {"scale": float(scale)}
    if causal:
        # MLX aligns the diagonal with the last key: the same if the keys before the queries are the difference.
        if mask is not None or sizes.equal(kv_offset, k.dims[2] - q.dims[2]) is not True:
            ctx.refuse("MLX's causal mask is aligned at the end, and takes no other mask beside it")
        keywords["mask"] = '"causal"'
    elif mask is not None:
        if not mask.dtype.is_bool and mask.dtype is not q.dtype:
            ctx.refuse("an additive mask of another element type")
        keywords["mask"] = mask
    if sinks is not None:
        if sinks.dtype is not q.dtype:
            ctx.refuse("sinks of another element type")
        keywords["sinks"] = sinks
    dims = ctx.result_types[0].shape
    return ctx.call("mx.fast.scaled_dot_product_attention", q, k, v, dims=dims, **keywords)
