"""ONNX lowering of sequences and optionals, in files."""

from __future__ import annotations

from .export import type_proto
from .late import files_only
from .lowering import lower


@lower("SequenceConstruct", when=lambda ctx, xs: files_only(ctx))
def sequence_construct(ctx, xs):
    return ctx.op("SequenceConstruct", *xs)


@lower("SequenceEmpty", when=lambda ctx, *, element: files_only(ctx))
def sequence_empty(ctx, *, element):
    return ctx.op("SequenceEmpty", dtype=element.dtype.onnx)


@lower("SequenceAt", when=lambda ctx, xs, position: files_only(ctx))
def sequence_at(ctx, xs, position):
    return ctx.op("SequenceAt", xs, position)


@lower("SequenceInsert", when=lambda ctx, xs, x, position: files_only(ctx))
def sequence_insert(ctx, xs, x, position):
    return ctx.op("SequenceInsert", xs, x, position)


@lower("SequenceErase", when=lambda ctx, xs, position: files_only(ctx))
def sequence_erase(ctx, xs, position):
    return ctx.op("SequenceErase", xs, position)


@lower("SequenceLength", when=lambda ctx, xs: files_only(ctx))
def sequence_length(ctx, xs):
    return ctx.op("SequenceLength", xs)


@lower("ConcatFromSequence", when=lambda ctx, xs, *, axis, new_axis: files_only(ctx))
def concat_from_sequence(ctx, xs, *, axis, new_axis):
    return ctx.op("ConcatFromSequence", xs, axis=axis, new_axis=int(new_axis))


@lower("Optional", when=lambda ctx, x, *, element: files_only(ctx))
def optional(ctx, x, *, element):
    declared = {"type": type_proto(element)} if x is None else {}
    return ctx.exporter.node("Optional", (x,), ctx.results, "", declared)[0]


@lower("OptionalHasElement", when=lambda ctx, x: files_only(ctx))
def optional_has_element(ctx, x):
    return ctx.op("OptionalHasElement", x)


@lower("OptionalGetElement", when=lambda ctx, x: files_only(ctx))
def optional_get_element(ctx, x):
    return ctx.op("OptionalGetElement", x)
