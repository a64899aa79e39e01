"""ONNX lowering of TopK.  The core sort has no ONNX form."""

from __future__ import annotations

from .lowering import lower


@lower("TopK")
def top_k(ctx, x, *, k, axis, largest, ordered):
    return ctx.ops("TopK", x, ctx.ints([k]), axis=axis, largest=int(largest), sorted=int(ordered))
