"""ONNX lowering of attention and rotary embedding: one node from opset 23 on, else what exporters write."""

from __future__ import annotations

import math

import numpy as np

from ...ir import dims as sizes
from ...ir import dtypes
from ...ir.graph import Constant
from .lowering import lower

SINCE = 23
"""The operator set that brought Attention and RotaryEmbedding."""


def _attention_claim(ctx, q, k, v, mask, sinks, **attributes):
    dialect = ctx.dialect
    single = _not_single(dialect, q, k, v, mask, sinks, **attributes)
    reason = single and _not_in_primitives(q, mask, sinks, **attributes)
    return reason and (single if dialect.opset >= SINCE else reason)


def _not_in_primitives(q, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    if q.dtype not in (dtypes.f32, dtypes.f64):
        return f"MatMul and Softmax of {q.dtype} do not keep scores in f32"
    if causal or window >= 0 or sinks is not None:
        return "a mask by position and sinks are written with core operators"
    return None


def _not_single(dialect, q, k, v, mask, sinks, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    """Why ONNX's Attention does not say this.  Its order is ours: scale, softcap, mask, softmax.

    Its scores of f16 are f16 (the softmax of them need not be), so the large numbers of an added mask overflow there.
    """
    if dialect.opset < SINCE:
        return f"opset {dialect.opset} has no Attention"
    if sinks is not None:
        return "ONNX's Attention has no sinks"
    if scale <= 0:
        return f"ONNX's Attention takes the root of the scale, which is {scale}"
    if q.dtype is dtypes.f64 and any(float(np.float32(value)) != value for value in (scale, softcap)):
        return f"ONNX holds attributes in f32, which has no {scale} or {softcap}"
    if mask is not None and not mask.dtype.is_bool:
        if q.dtype.bits < 32:
            return f"ONNX's Attention adds a mask to scores of {q.dtype}"
        if mask.dtype is not q.dtype and mask.dtype.bits >= q.dtype.bits:
            return f"ONNX wants the mask of {mask.dtype} in {q.dtype}"
    return _not_in_runtime(q, k, v, mask) if dialect.runtime else None


def _not_in_runtime(q, k, v, mask):
    """What ONNX Runtime 1.32 does wrong on the CPU."""
    if mask is not None and not mask.dtype.is_bool:
        return "ONNX Runtime takes the lowest f32 in a mask for -inf: rows of it alone are 0 and not an average"
    if q.dtype is not dtypes.f32:
        return f"ONNX Runtime takes the scale of f64 in f32 and lets scores of f16 overflow, got {q.dtype}"
    empty = next((d for x in (q, k, v) for d in x.dims if sizes.less_equal(1, d) is not True), None)
    return None if empty is None else f"ONNX Runtime refuses Attention with empty axes, and {empty} may be 0"


@lower("Attention", when=_attention_claim)
def attention(ctx, q, k, v, mask, sinks, **attributes):
    as_one = _not_single(ctx.dialect, q, k, v, mask, sinks, **attributes) is None
    return (_single if as_one else _in_primitives)(ctx, q, k, v, mask, **attributes)


def _single(ctx, q, k, v, mask, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
    """One node; rows that see nothing are 0 there, so where they may occur and must be NaN, a Where follows."""
    queries, keys = q.dims[2], k.dims[2]
    positions = causal or window >= 0
    guarded = not (zero_masked_rows or _all_see(ctx, queries, keys, causal, kv_offset, window))
    native = causal and window < 0 and sizes.equal(kv_offset, 0) is True and not guarded
    if positions and not native:
        mask = _with_positions(ctx, mask, queries, keys, causal, kv_offset, window, q)
    full = None
    if mask is not None:
        mask = mask if mask.rank else ctx.broadcast(mask, (1, 1))
        given = mask if mask.dtype.is_bool else ctx.cast(mask, q.dtype)
        full = ctx.broadcast(given, (*given.dims[:-2], queries, keys))  # ONNX Runtime repeats batches and heads only
    y = ctx.op(
        "Attention", q, k, v, full, scale=scale, softcap=softcap if softcap > 0 else None,
        is_causal=1 if native else None, softmax_precision=dtypes.f32.onnx if q.dtype.bits < 32 else None,
    )  # fmt: skip
    if not guarded:
        return y
    assert mask is not None, "without a mask, all rows see something or positions made one"
    return ctx.op("Where", _hidden(ctx, mask), ctx.like(math.nan, y), y)


def _all_see(ctx, queries, keys, causal, kv_offset, window) -> bool:
    """Whether every query is known to see a key, if only the one at its own position."""
    mask = ctx.node.operands[3] if len(ctx.node.operands) > 3 else None
    if mask is not None and _least(ctx, mask) == -math.inf:
        return False
    if window >= 0:
        inside = sizes.less_equal(queries + kv_offset, keys) is True
        return window >= 1 and inside and sizes.less_equal(0, kv_offset) is True
    return not causal or sizes.less_equal(0, kv_offset) is True


def _least(ctx, value) -> float:
    """A bound below the elements of a mask, -inf if none is known; sums round as those of the mask do."""
    if value.dtype.is_bool:
        return -math.inf
    if isinstance(value, Constant):
        array = ctx.exporter.root.array(value)
        least = float(np.min(array)) if array.size else 0.0
        return least if math.isfinite(least) else -math.inf
    node = value.node
    kind = None if node is None else node.op.name
    if kind in ("broadcast_in_dim", "reshape", "transpose", "slice", "take"):
        return _least(ctx, node.operands[0])
    if kind == "select":
        return min(_least(ctx, v) for v in node.operands[1:])
    if kind == "concatenate":
        return min(_least(ctx, v) for v in node.operands)
    if kind == "maximum":
        return max(_least(ctx, v) for v in node.operands)
    if kind == "add":
        with np.errstate(over="ignore"):
            return float(np.add(*(value.dtype.numpy.type(_least(ctx, v)) for v in node.operands)))
    return -math.inf


def _with_positions(ctx, mask, queries, keys, causal, kv_offset, window, q):
    """The mask (or none) less what queries must not see by position: bool, or floats with -inf."""
    i = ctx.op("Add", _counting(ctx, queries, 1), ctx.ints([kv_offset]), type=_counted(q, queries, 1))
    j = _counting(ctx, keys, 0)
    boolean = q.tensor.with_dtype(dtypes.bool_).with_dims((queries, keys))
    seen = ctx.op("LessOrEqual", j, i, type=boolean) if causal else None
    if window >= 0:
        first = ctx.op("Sub", i, ctx.ints([window]), type=i.type)
        near = ctx.op("Greater", j, first, type=boolean)
        seen = near if seen is None else ctx.op("And", seen, near, type=boolean)
    if mask is None:
        return seen
    type_ = mask.tensor.with_dims((*mask.dims[:-2], queries, keys))
    if mask.dtype.is_bool:
        return ctx.op("And", mask, seen, type=type_)
    return ctx.op("Where", seen, mask, ctx.like(-math.inf, mask), type=type_)


def _counted(x, size, trailing):
    return x.tensor.with_dtype(dtypes.i64).with_dims((size, *(1 for _ in range(trailing))))


def _counting(ctx, size, trailing):
    """0 up to size, with axes of size 1 behind."""
    limit = ctx.reshape(ctx.ints([size]), ())
    zero, one = ctx.constant(0, dtypes.i64), ctx.constant(1, dtypes.i64)
    line = ctx.op("Range", zero, limit, one, type=_counted(limit, size, 0))
    return ctx.reshape(line, (size, 1)) if trailing else line


def _hidden(ctx, mask):
    """bool[.., S, 1]: the rows of a mask that hide every key."""
    column = mask.tensor.with_dims((*mask.dims[:-1], 1))
    top = ctx.op("ReduceMax", mask, ctx.constant([-1], dtypes.i64), type=column, keepdims=1)
    if mask.dtype.is_bool:
        return ctx.op("Not", top, type=column)
    return ctx.op("Equal", top, ctx.like(-math.inf, top), type=column.with_dtype(dtypes.bool_))


def _in_primitives(ctx, q, k, v, mask, *, scale, softcap, causal, kv_offset, window, zero_masked_rows):
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


def _rotary_claim(ctx, x, cos, sin, *, interleaved):
    if ctx.dialect.opset < SINCE:
        return f"opset {ctx.dialect.opset} has no RotaryEmbedding"
    if x.dtype is dtypes.f64 or (ctx.dialect.runtime and x.dtype is dtypes.bf16):
        return f"RotaryEmbedding of {x.dtype} is not defined or has no kernel"
    if cos.dtype is not x.dtype or sin.dtype is not x.dtype:
        return f"ONNX wants the tables in {x.dtype}, got {cos.dtype} and {sin.dtype}"
    if sizes.equal(x.dims[3] % 2, 0) is not True:
        return f"ONNX's RotaryEmbedding wants an even head size, got {x.dims[3]}"
    if not isinstance(cos.dims[2], int) and sizes.equal(2 * cos.dims[2], x.dims[3]) is not True:
        return f"{cos.dims[2]} features are rotated, and ONNX takes the number as an attribute"
    return None


@lower("RotaryEmbedding", when=_rotary_claim)
def rotary_embedding(ctx, x, cos, sin, *, interleaved):
    partial = None if sizes.equal(2 * cos.dims[2], x.dims[3]) is True else 2 * cos.dims[2]
    cos, sin = (ctx.broadcast(table, (x.dims[0], x.dims[2], table.dims[2])) for table in (cos, sin))
    return ctx.op("RotaryEmbedding", x, cos, sin, interleaved=1 if interleaved else None, rotary_embedding_dim=partial)
