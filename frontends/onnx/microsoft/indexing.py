"""Operators of ONNX Runtime that pick elements by index: GatherND, Unique."""

from __future__ import annotations

from functools import partial

from ..indexing import gather_nd as _gather_nd
from ..indexing import unique as _unique
from ..registry import onnx_op as _onnx_op

onnx_op = partial(_onnx_op, domain="com.microsoft")


@onnx_op("GatherND")
def gather_nd(ctx, data, indices):
    return _gather_nd(ctx, data, indices)


@onnx_op("Unique")
def unique(ctx, x):
    """(values in the order in which they first occur, the place of each element among them, how often each occurs)"""
    if x.rank != 1:
        ctx.fail(f"needs a vector, got {x.type}")
    values, _, places, counts = _unique(ctx, x, sorted=0)
    return values, places, counts
