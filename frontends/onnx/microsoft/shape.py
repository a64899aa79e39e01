"""Operators of ONNX Runtime that move or make elements by position: ExpandDims, Trilu, Pad, Range."""

from __future__ import annotations

from functools import partial

from ....ir.dtypes import i64
from ..registry import onnx_op as _onnx_op
from ..shape import pad as _pad
from ..shape import range_ as _range
from ..shape import trilu as _trilu

onnx_op = partial(_onnx_op, domain="com.microsoft")


@onnx_op("ExpandDims")
def expand_dims(ctx, x, axis):
    """x with an axis of size 1 at `axis`; negative ones count from behind the last axis."""
    at = ctx.axis(ctx.number(axis, "the axis"), x, extra=1)
    return ctx.build.reshape(x, dims=(*x.dims[:at], 1, *x.dims[at:]))


@onnx_op("Trilu")
def trilu(ctx, x, k=None, *, upper=1):
    return _trilu(ctx, x, k, upper=upper)


@onnx_op("Pad")
def pad(ctx, x, pads, value=None, *, mode="constant"):
    if mode not in ("constant", "reflect", "edge"):
        ctx.fail(f"mode must be constant, reflect or edge, got {mode!r}")
    return _pad(ctx, x, pads, value, mode=mode)


@onnx_op("Range")
def range_(ctx, start, limit, delta=None):
    step = ctx.build.constant(1, start.dtype) if delta is None else delta
    return _range(ctx, ctx.scalar(start), ctx.scalar(limit), ctx.scalar(step))


@onnx_op("UnfoldTensor")
def unfold_tensor(ctx, x, *, size, dim=-1, step=1):
    """[.., (d - size) / step + 1, .., size]: the pieces of `size` along `dim`, `step` apart, as a new last axis."""
    b, at = ctx.build, ctx.axis(dim, x)
    if size < 1 or step < 1:
        ctx.fail(f"size and step must be positive, got {size} and {step}")
    count = (x.dims[at] - size) // step + 1
    starts = b.multiply(b.iota(dtype=i64, dims=(count, 1), axis=0), step)
    pieces = b.take(x, b.add(starts, b.iota(dtype=i64, dims=(1, size), axis=1)), axis=at)
    order = (*range(at + 1), *range(at + 2, pieces.rank), at + 1)
    return b.transpose(pieces, permutation=order)
