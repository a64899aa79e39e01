"""ONNX lowering of operators that only move or make elements by position."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir import dtypes
from .lowering import lower


@lower("broadcast_in_dim")
def broadcast_in_dim(ctx, x, *, dims, broadcast_dimensions):
    trailing = tuple(range(len(dims) - x.rank, len(dims)))
    if broadcast_dimensions != trailing:
        placed = [1] * len(dims)
        for axis, dim in zip(broadcast_dimensions, x.dims, strict=True):
            placed[axis] = dim
        x = ctx.reshape(x, placed)
    return ctx.broadcast(x, dims)


@lower("reshape")
def reshape(ctx, x, *, dims):
    return ctx.reshape(x, dims)


@lower("transpose")
def transpose(ctx, x, *, permutation):
    return ctx.transpose(x, permutation)


@lower("concatenate")
def concatenate(ctx, xs, *, axis):
    return ctx.op("Concat", *xs, axis=axis)


_BEFORE = -(2**62)


def _slice(ctx, x, starts, limits, strides):
    axes = [
        i
        for i in range(x.rank)
        if not (sizes.equal(starts[i], 0) is True and sizes.equal(limits[i], x.dims[i]) is True and strides[i] == 1)
    ]
    if not axes:
        return x
    # Below 0 means "before the first element" here, which ONNX spells as a very negative end.
    ends = [_BEFORE if sizes.less(limits[i], 0) is True else limits[i] for i in axes]
    end = ctx.ints(ends)
    if any(
        strides[i] < 0 and e != _BEFORE and sizes.less_equal(0, e) is not True for i, e in zip(axes, ends, strict=True)
    ):
        before = ctx.op("Less", end, ctx.like(0, end), type=end.tensor.with_dtype(dtypes.bool_))
        end = ctx.op("Where", before, ctx.like(_BEFORE, end), end, type=end.type)
    return ctx.op(
        "Slice",
        x,
        ctx.ints(starts[i] for i in axes),
        end,
        ctx.constant(axes, dtypes.i64),
        ctx.constant([strides[i] for i in axes], dtypes.i64),
    )


@lower("slice", "StridedSlice")
def slice_(ctx, x, *, starts, limits, strides):
    return _slice(ctx, x, starts, limits, strides)


@lower(
    "pad", when=lambda ctx, x, value, *, low, high, interior: "ONNX pads only at the ends" if any(interior) else None
)
def pad(ctx, x, value, *, low, high, interior):
    if not x.rank:
        return ctx.op("Identity", x)
    return ctx.op("Pad", x, ctx.ints([*low, *high]), value)


def _short(ctx, x, *, low, high, mode):
    """ONNX Runtime limits reflect padding to one reflection and wants elements to repeat."""
    for dim, *ends in zip(x.dims, low, high, strict=True):
        if any(sizes.less(p, dim) is not True for p in ends if p != 0):
            return f"padding {ends} is not known to be shorter than the axis ({dim})"
    return None


@lower("PadMode", when=_short)
def pad_mode(ctx, x, *, low, high, mode):
    return ctx.op("Pad", x, ctx.ints([*low, *high]), mode=mode)


@lower("reverse")
def reverse(ctx, x, *, axes):
    if not axes:
        return ctx.op("Identity", x)
    end = [_BEFORE] * len(axes)
    return ctx.op(
        "Slice",
        x,
        ctx.constant([-1] * len(axes), dtypes.i64),
        ctx.constant(end, dtypes.i64),
        ctx.constant(list(axes), dtypes.i64),
        ctx.constant([-1] * len(axes), dtypes.i64),
    )


@lower("iota")
def iota(ctx, *, dtype, dims, axis):
    limit = ctx.reshape(ctx.ints([dims[axis]]), ())
    counting = limit.tensor.with_dims([dims[axis]])
    line = ctx.op("Range", ctx.constant(0, dtypes.i64), limit, ctx.constant(1, dtypes.i64), type=counting)
    narrow = dtype.bits < 32  # ONNX Runtime lacks Expand of some of those
    placed = ctx.reshape(line if narrow else ctx.cast(line, dtype), [n if i == axis else 1 for i, n in enumerate(dims)])
    return ctx.cast(ctx.broadcast(placed, dims), dtype)


@lower("dimensions")
def dimensions(ctx, *, dims, scalar):
    vector = ctx.ints(dims)
    return ctx.reshape(vector, ()) if scalar else vector


@lower("Range")
def range_(ctx, start, delta, *, count):
    """start + i * delta, so that the count is exactly the one of the type."""
    limit = ctx.reshape(ctx.ints([count]), ())
    line = ctx.op(
        "Range", ctx.constant(0, dtypes.i64), limit, ctx.constant(1, dtypes.i64), type=limit.tensor.with_dims([count])
    )
    return ctx.op("Add", start, ctx.op("Mul", ctx.cast(line, start.dtype), delta))


@lower("Split")
def split(ctx, x, *, axis, sizes):
    return ctx.ops("Split", x, ctx.ints(sizes), axis=axis)


@lower("Tile")
def tile(ctx, x, *, repeats):
    return ctx.op("Tile", x, ctx.ints(repeats))


@lower("DepthToSpace")
def depth_to_space(ctx, x, *, blocksize, mode):
    return ctx.op("DepthToSpace", x, blocksize=blocksize, mode=mode)


def _depth_first(ctx, x, *, blocksize, mode):
    return None if mode == "DCR" else "ONNX's SpaceToDepth has only the DCR order"


@lower("SpaceToDepth", when=_depth_first)
def space_to_depth(ctx, x, *, blocksize, mode):
    return ctx.op("SpaceToDepth", x, blocksize=blocksize)


@lower("Trilu")
def trilu(ctx, x, *, k, upper):
    return ctx.op("Trilu", x, ctx.reshape(ctx.ints([k]), ()), upper=int(upper))


def _made(ctx, *, dtype, dims, k):
    odd = ctx.dialect.runtime and dtype.name not in ("f32", "f64", "i32", "i64", "u64")
    return f"ONNX Runtime has no {dtype} kernel for it" if odd else None


@lower("EyeLike", when=_made)
def eye_like(ctx, *, dtype, dims, k):
    shaped = ctx.op("ConstantOfShape", ctx.ints(dims), type=ctx.results[0])
    return ctx.op("EyeLike", shaped, dtype=dtype.onnx, k=k)
