"""ONNX lowering of attention: the primitives that ONNX Runtime's own kernels serve, as exporters write them."""

from __future__ import annotations

import math

from ...ir import dims as sizes
from ...ir import dtypes
from .lowering import lower


def _in_primitives(ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    if q.dtype not in (dtypes.f32, dtypes.f64):
        return f"MatMul and Softmax of {q.dtype} do not keep scores in f32"
    if causal or window >= 0 or sinks is not None:
        return "a mask by position and sinks are written with core operators"
    return None


@lower("Attention", when=_in_primitives)
def attention(ctx, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    type_ = q.tensor.with_dims((*q.dims[:3], k.dims[2]))
    scores = _grouped_product(ctx, q, ctx.transpose(k, (0, 1, 3, 2)), type_)
    if scale != 1.0:
        scores = ctx.op("Mul", scores, ctx.like(scale, q), type=type_)
    if softcap > 0:
        limited = ctx.op("Tanh", ctx.op("Div", scores, ctx.like(softcap, q), type=type_), type=type_)
        scores = ctx.op("Mul", limited, ctx.like(softcap, q), type=type_)
    if mask is not None and mask.dtype.is_bool:
        scores = ctx.op("Where", mask, scores, ctx.like(-math.inf, q), type=type_)
    elif mask is not None:
        scores = ctx.op("Add", scores, ctx.cast(mask, q.dtype), type=type_)
    weights = ctx.op("Softmax", scores, type=type_, axis=-1)
    if zero_masked_rows and mask is not None:
        column = type_.with_dims((*q.dims[:3], 1))
        top = ctx.op("ReduceMax", scores, ctx.constant([-1], dtypes.i64), type=column, keepdims=1)
        empty = ctx.op("Equal", top, ctx.like(-math.inf, q), type=column.with_dtype(dtypes.bool_))
        weights = ctx.op("Where", empty, ctx.like(0.0, q), weights, type=type_)
    return _grouped_product(ctx, weights, v, ctx.results[0])


def _grouped_product(ctx, a, b, type_):
    """[B,H,M,K] @ [B,G,K,N] where H / G heads share one right side: MatMul repeats it along an axis of its own."""
    batch, heads, groups = a.dims[0], a.dims[1], b.dims[1]
    if sizes.equal(heads, groups) is True:
        return ctx.op("MatMul", a, b, type=type_)
    shared = sizes.floordiv(heads, groups)
    a = ctx.reshape(a, (batch, groups, shared, *a.dims[2:]))
    b = ctx.reshape(b, (batch, groups, 1, *b.dims[2:]))
    out = ctx.op("MatMul", a, b, type=type_.with_dims((batch, groups, shared, *type_.shape[2:])))
    return ctx.reshape(out, type_.shape)
