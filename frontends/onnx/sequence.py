"""ONNX sequences: construction, access, and the ways between tensors and sequences whose length is known."""

from __future__ import annotations

import numpy as np

from ...ir.dtypes import f32
from ...ir.facts import NeedsInts
from ...ir.types import OptionalType, TensorType
from .registry import onnx_op


@onnx_op("SequenceConstruct")
def construct(ctx, *xs):
    return ctx.build.SequenceConstruct(xs)


@onnx_op("SequenceEmpty")
def empty(ctx, *, dtype=None):
    return ctx.build.SequenceEmpty(element=TensorType(f32 if dtype is None else ctx.dtype(dtype), None))


@onnx_op("SequenceAt")
def at(ctx, xs, position):
    return ctx.build.SequenceAt(xs, position)


@onnx_op("SequenceInsert")
def insert(ctx, xs, x, position=None):
    return ctx.build.SequenceInsert(xs, x, position)


@onnx_op("SequenceErase")
def erase(ctx, xs, position=None):
    return ctx.build.SequenceErase(xs, position)


@onnx_op("SequenceLength")
def length(ctx, xs):
    return ctx.build.SequenceLength(xs)


@onnx_op("ConcatFromSequence")
def concat_from_sequence(ctx, xs, *, axis, new_axis=0):
    """On the device for a sequence whose elements are known here; else the host joins them."""
    if xs.node is None or xs.node.op.name != "SequenceConstruct":
        return ctx.build.ConcatFromSequence(xs, axis=axis, new_axis=bool(new_axis))
    ctx.read.append(xs)
    elements = [e for e in xs.node.operands if e is not None]
    at_axis = ctx.axis(axis, elements[0], extra=int(bool(new_axis)))
    if new_axis:
        elements = [ctx.build.reshape(e, dims=(*e.dims[:at_axis], 1, *e.dims[at_axis:])) for e in elements]
    return ctx.build.concatenate(tuple(elements), axis=at_axis)


@onnx_op("SplitToSequence")
def split_to_sequence(ctx, x, split=None, *, axis=0, keepdims=1):
    """Pieces of known sizes: Split, then the sequence of its results."""
    at_axis = ctx.axis(axis, x)
    whole = x.dims[at_axis]
    if split is not None and split.rank:
        pieces = ctx.ints(split, "the sizes of the pieces")
    else:
        piece = 1 if split is None else ctx.number(split, "the size of the pieces")
        if not isinstance(whole, int):
            raise NeedsInts("the number of pieces depends on the sizes of the inputs")
        if piece < 1:
            ctx.fail(f"the size of the pieces must be at least 1, got {piece}")
        pieces = tuple(min(piece, whole - start) for start in range(0, whole, piece))
    if not pieces:
        return ctx.build.SequenceEmpty(element=TensorType(x.dtype, None))
    parts = ctx.build.Split(x, axis=at_axis, sizes=pieces)
    parts = parts if isinstance(parts, tuple) else (parts,)
    if split is None and not keepdims:
        rest = tuple(d for i, d in enumerate(x.dims) if i != at_axis)
        parts = tuple(ctx.build.reshape(p, dims=rest) for p in parts)
    return ctx.build.SequenceConstruct(parts)


@onnx_op("Optional")
def optional(ctx, x=None, *, type=None):
    return ctx.build.Optional(x, element=None if x is not None else type)


@onnx_op("OptionalHasElement")
def has_element(ctx, x=None):
    """Known here unless x is an optional."""
    if x is None or not isinstance(x.type, OptionalType):
        return ctx.build.constant(np.array(x is not None))
    return ctx.build.OptionalHasElement(x)


@onnx_op("OptionalGetElement")
def get_element(ctx, x):
    return ctx.build.OptionalGetElement(x) if isinstance(x.type, OptionalType) else x
