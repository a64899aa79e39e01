"""ONNX lowering of TopK.  The core sort has no ONNX form."""

from __future__ import annotations

from ...ir import dtypes
from .lowering import lower


@lower("TopK")
def top_k(ctx, x, *, k, axis, largest, ordered):
    """Always sorted: what is not `ordered` may come in any order, but agrees with the other targets this way."""
    return ctx.ops("TopK", x, ctx.ints([k]), axis=axis, largest=int(largest), sorted=1)


def _integers(ctx, xs, *, axis, kind, comparator):
    if kind == "custom":
        return "ONNX has no sort with a comparator"
    return "ONNX leaves the order of NaN undefined" if xs[0].dtype.is_float else None


@lower("sort", when=_integers)
def sort(ctx, xs, *, axis, kind, comparator):
    """TopK of the whole axis, whose ties keep the lower index first; the other operands follow its indices."""
    key = xs[0]
    wide = key if key.dtype in (dtypes.i32, dtypes.i64) else ctx.cast(key, dtypes.i64)
    if key.dtype is dtypes.u64:  # what is 2^63 or more became negative; from the least i64 on, the order is right again
        wide = ctx.op("Add", wide, ctx.constant(int(dtypes.i64.min_value()), dtypes.i64), type=wide.type)
    types = (wide.type, key.tensor.with_dtype(dtypes.i64))
    _, order = ctx.ops(
        "TopK", wide, ctx.ints([key.dims[axis]]), types=types, axis=axis, largest=int(kind == "descending"), sorted=1
    )
    return tuple(ctx.op("GatherElements", x, order, type=x.type, axis=axis) for x in xs)
