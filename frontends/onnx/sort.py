"""ONNX TopK."""

from __future__ import annotations

from .registry import onnx_op


@onnx_op("TopK", since=10)
def topk(ctx, x, k, *, axis=-1, largest=1, sorted=1):
    return ctx.build.TopK(x, k=ctx.size(k, "k"), axis=ctx.axis(axis, x), largest=bool(largest), ordered=bool(sorted))


@onnx_op("TopK", until=9)
def topk_1(ctx, x, *, k, axis=-1):
    return ctx.build.TopK(x, k=k, axis=ctx.axis(axis, x))
