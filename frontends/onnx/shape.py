"""ONNX operators that move or make elements by position: Reshape, Transpose, Concat, Slice, Pad, Shape and kin."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir.data import ArrayData
from ...ir.dims import Dim, Size
from ...ir.dtypes import f32, i64
from ...ir.facts import NeedsInts
from .registry import onnx_op


@onnx_op("Constant")
def constant(
    ctx, *, value=None, sparse_value=None, value_float=None, value_floats=None, value_int=None, value_ints=None,
    value_string=None, value_strings=None,
):  # fmt: skip
    from .graph import constant as as_constant

    given = [
        v
        for v in (value, sparse_value, value_float, value_floats, value_int, value_ints, value_string, value_strings)
        if v is not None
    ]
    if len(given) != 1:
        ctx.fail(f"needs exactly one value, got {len(given)}")
    data = value or sparse_value
    if data is None:
        dtype = f32 if value_float is not None or value_floats is not None else i64
        if value_string is not None or value_strings is not None:
            array = np.array(given[0], object)
            data = ArrayData(array, ctx.dtype(8))
        else:
            data = ArrayData(np.array(given[0], dtype.numpy), dtype)
    return as_constant(ctx.model, next((o for o in ctx.node.output if o), "constant"), data)


@onnx_op("ConstantOfShape")
def constant_of_shape(ctx, shape, *, value=None):
    dims = _sizes(ctx, ctx.ints(shape, "the shape"))
    fill = ctx.zeros(f32) if value is None else ctx.build.constant(ArrayData(value.numpy().reshape(()), value.dtype))
    return ctx.build.broadcast_in_dim(fill, dims=dims, broadcast_dimensions=()) if dims else fill


def _sizes(ctx, dims):
    for d in dims:
        if isinstance(d, int) and d < 0:
            ctx.fail(f"sizes must not be negative, got [{', '.join(map(str, dims))}]")
    return dims


@onnx_op("Shape", since=15)
def shape(ctx, x, *, start=0, end=None):
    return _shape(ctx, x, slice(start, end))


@onnx_op("Shape", until=14)
def shape_1(ctx, x):
    return _shape(ctx, x, slice(None))


def _shape(ctx, x, part):
    dims = x.dims[part]
    ctx.read.append(x)
    return ctx.build.dimensions(dims=dims)


@onnx_op("Size")
def size(ctx, x):
    ctx.read.append(x)
    return ctx.build.dimensions(dims=(x.fact.size,), scalar=True)


@onnx_op("Reshape", since=5)
def reshape(ctx, x, shape, *, allowzero=0):
    return ctx.build.reshape(x, dims=reshaped(ctx, x, ctx.ints(shape, "the shape"), bool(allowzero)))


@onnx_op("Reshape", until=4)
def reshape_1(ctx, x, *, shape=()):
    return ctx.build.reshape(x, dims=reshaped(ctx, x, shape, False))


def reshaped(ctx, x, wanted, allow_zero):
    """The dims that a shape with 0 (copy the dim) and -1 (whatever is left) means for x."""
    out = list(wanted)
    for i, d in enumerate(out):
        if isinstance(d, int) and d == 0 and not allow_zero:
            if i >= x.rank:
                ctx.fail(f"the shape {_listed(wanted)} copies dim {i} of a value of rank {x.rank}")
            out[i] = x.dims[i]
    holes = [i for i, d in enumerate(out) if isinstance(d, int) and d == -1]
    if len(holes) > 1 or any(isinstance(d, int) and d < -1 for d in out):
        ctx.fail(f"the shape {_listed(wanted)} must have sizes and at most one -1")
    if holes:
        known = sizes.product([d for i, d in enumerate(out) if i != holes[0]])
        if isinstance(known, int) and known == 0:
            ctx.fail(f"the shape {_listed(wanted)} has a -1 beside a 0, so the -1 could be anything")
        out[holes[0]] = sizes.floordiv(x.fact.size, known)
    return tuple(out)


def _listed(values):
    return f"[{', '.join(map(str, values))}]"


@onnx_op("Flatten")
def flatten(ctx, x, *, axis=1):
    at = ctx.axis(axis, x, extra=1) if axis >= 0 else ctx.axis(axis, x)
    return ctx.build.reshape(x, dims=(sizes.product(x.dims[:at]), sizes.product(x.dims[at:])))


@onnx_op("Squeeze", since=13)
def squeeze(ctx, x, axes=None):
    return _squeeze(ctx, x, None if axes is None else ctx.numbers(axes, "axes"))


@onnx_op("Squeeze", until=12)
def squeeze_1(ctx, x, *, axes=None):
    return _squeeze(ctx, x, axes)


def _squeeze(ctx, x, axes):
    if axes is None:
        verdicts = [sizes.equal(d, 1) for d in x.dims]
        if None in verdicts:
            raise NeedsInts("which axes have size 1 is known only at run time")
        gone = {i for i, v in enumerate(verdicts) if v}
    else:
        gone = set(ctx.axes(axes, x))
        for i in gone:
            if sizes.equal(x.dims[i], 1) is False:
                ctx.fail(f"axis {i} has size {x.dims[i]}; only axes of size 1 can be squeezed")
    return ctx.build.reshape(x, dims=tuple(d for i, d in enumerate(x.dims) if i not in gone))


@onnx_op("Unsqueeze", since=13)
def unsqueeze(ctx, x, axes):
    return _unsqueeze(ctx, x, ctx.numbers(axes, "axes"))


@onnx_op("Unsqueeze", until=12)
def unsqueeze_1(ctx, x, *, axes):
    return _unsqueeze(ctx, x, axes)


def _unsqueeze(ctx, x, axes):
    new = set(ctx.axes(axes, x.rank + len(axes)))
    rest = iter(x.dims)
    return ctx.build.reshape(x, dims=tuple(1 if i in new else next(rest) for i in range(x.rank + len(new))))


@onnx_op("Transpose")
def transpose(ctx, x, *, perm=None):
    return ctx.build.transpose(x, permutation=tuple(range(x.rank))[::-1] if perm is None else perm)


@onnx_op("Concat", since=4)
def concat(ctx, *xs, axis):
    return ctx.build.concatenate(xs, axis=ctx.axis(axis, xs[0]))


@onnx_op("Concat", until=3)
def concat_1(ctx, *xs, axis=1):
    return ctx.build.concatenate(xs, axis=ctx.axis(axis, xs[0]))


@onnx_op("Split", since=13)
def split(ctx, x, sizes_=None, *, axis=0, num_outputs=None):
    given = None if sizes_ is None else ctx.ints(sizes_, "the sizes of the pieces")
    if num_outputs not in (None, len(ctx.node.output)):
        ctx.fail(f"num_outputs is {num_outputs}, but it has {len(ctx.node.output)} outputs")
    return _split(ctx, x, given, axis)


@onnx_op("Split", since=2, until=12)
def split_2(ctx, x, *, axis=0, split=None):
    return _split(ctx, x, split, axis)


@onnx_op("Split", until=1)
def split_1(ctx, x, sizes_=None, *, axis=0, split=None):
    given = split if sizes_ is None else ctx.ints(sizes_, "the sizes of the pieces")
    return _split(ctx, x, given, axis)


def _split(ctx, x, given, axis):
    """Pieces of the given sizes, or equal ones (since 18 the last may be smaller) as many as there are outputs."""
    at = ctx.axis(axis, x)
    count = len(ctx.node.output)
    if given is None:
        if ctx.version < 18 and isinstance(x.dims[at], int) and x.dims[at] % count:
            ctx.fail(f"cannot split {x.dims[at]} elements into {count} equal pieces")
        piece = sizes.ceildiv(x.dims[at], count)
        given = (*[piece] * (count - 1), x.dims[at] - piece * (count - 1))
    if len(given) != count:
        ctx.fail(f"splits into {len(given)} pieces but has {count} outputs")
    out = ctx.build.Split(x, axis=at, sizes=given)
    return out if isinstance(out, tuple) else (out,)


@onnx_op("Tile", since=6)
def tile(ctx, x, repeats):
    return ctx.build.Tile(x, repeats=_sizes(ctx, ctx.ints(repeats, "the repeats")))


@onnx_op("Tile", until=5)
def tile_1(ctx, x, tiles, axis):
    at = ctx.axis(ctx.number(axis, "the axis"), x)
    return ctx.build.Tile(x, repeats=tuple(ctx.size(tiles, "the repeats") if i == at else 1 for i in range(x.rank)))


@onnx_op("Expand")
def expand(ctx, x, shape):
    wanted = _sizes(ctx, ctx.ints(shape, "the shape"))
    rank = max(x.rank, len(wanted))
    target = (*[1] * (rank - len(wanted)), *wanted)
    own = (*[1] * (rank - x.rank), *x.dims)
    dims = tuple(_broadcast(ctx, a, b) for a, b in zip(own, target, strict=True))
    return ctx.build.broadcast_in_dim(x, dims=dims, broadcast_dimensions=tuple(range(rank - x.rank, rank)))


def _broadcast(ctx, a, b):
    try:
        return sizes.broadcast(a, b)
    except sizes.DimError:
        ctx.fail(f"a dim of size {a} does not broadcast to {b}")


@onnx_op("Range")
def range_(ctx, start, limit, delta):
    first, end, step = (_bound(ctx, v) for v in (start, limit, delta))
    if isinstance(step, Dim):
        raise NeedsInts("the step of the range depends on the sizes of the inputs")
    if step == 0:
        ctx.fail("the step of a range must not be 0")
    if isinstance(first, float) or isinstance(end, float) or isinstance(step, float):
        if isinstance(first, Dim) or isinstance(end, Dim):
            raise NeedsInts("the number of elements depends on the sizes of the inputs and a fraction")
        count: Size = max(int(np.ceil((np.float64(end) - first) / step)), 0)
    else:
        count = sizes.maximum(sizes.ceildiv(end - first if step > 0 else first - end, abs(step)), 0)
    return ctx.build.Range(ctx.scalar(start), ctx.scalar(delta), count=count)


def _bound(ctx, value):
    """A bound of a range: a size, or a float that is no whole number."""
    if value.dtype.is_integer:
        return ctx.size(value, "a bound of the range")
    whole = ctx.whole(value)
    if whole is not None:
        return whole
    number = ctx.floats(value, "a bound of the range")[0]
    return int(number) if number.is_integer() else number


@onnx_op("DepthToSpace")
def depth_to_space(ctx, x, *, blocksize, mode="DCR"):
    return ctx.build.DepthToSpace(x, blocksize=blocksize, mode=mode)


@onnx_op("SpaceToDepth")
def space_to_depth(ctx, x, *, blocksize, mode="DCR"):
    return ctx.build.SpaceToDepth(x, blocksize=blocksize, mode=mode)


@onnx_op("Trilu")
def trilu(ctx, x, k=None, *, upper=1):
    return ctx.build.Trilu(x, k=0 if k is None else ctx.size(k, "the diagonal"), upper=bool(upper))


@onnx_op("EyeLike")
def eye_like(ctx, x, *, dtype=None, k=0):
    ctx.read.append(x)
    if x.rank != 2:
        ctx.fail(f"needs a matrix, got rank {x.rank}")
    return ctx.build.EyeLike(dtype=x.dtype if dtype is None else ctx.dtype(dtype), dims=x.dims, k=k)


# Pad


@onnx_op("Pad", since=11)
def pad(ctx, x, pads, value=None, axes=None, *, mode="constant"):
    widths = ctx.ints(pads, "the pads")
    at = range(x.rank) if axes is None else ctx.axes(ctx.numbers(axes, "axes"), x)
    return _pad(ctx, x, widths, tuple(at), None if value is None else ctx.scalar(value), mode)


@onnx_op("Pad", since=2, until=10)
def pad_2(ctx, x, *, pads, mode="constant", value=0.0):
    return _pad(ctx, x, pads, tuple(range(x.rank)), ctx.build.constant(value, x.dtype), mode)


@onnx_op("Pad", until=1)
def pad_1(ctx, x, *, paddings, mode="constant", value=0.0):
    return _pad(ctx, x, paddings, tuple(range(x.rank)), ctx.build.constant(value, x.dtype), mode)


def _pad(ctx, x, widths, axes, value, mode):
    if len(widths) != 2 * len(axes):
        ctx.fail(f"needs two pads an axis ({2 * len(axes)}), got {len(widths)}")
    low: list[Size] = [0] * x.rank
    high: list[Size] = [0] * x.rank
    for i, axis in enumerate(axes):
        low[axis], high[axis] = widths[i], widths[i + len(axes)]
    if mode in ("reflect", "edge", "wrap"):
        return ctx.build.PadMode(x, low=tuple(low), high=tuple(high), mode=mode)
    if mode != "constant":
        ctx.fail(f"mode must be constant, reflect, edge or wrap, got {mode!r}")
    fill = ctx.zeros(x.dtype) if value is None else value
    return ctx.build.pad(x, fill, low=tuple(low), high=tuple(high), interior=(0,) * x.rank)


# Slice


@onnx_op("Slice", since=10)
def slice_(ctx, x, starts, ends, axes=None, steps=None):
    first = ctx.ints(starts, "the starts")
    at = range(len(first)) if axes is None else ctx.numbers(axes, "axes")
    by = (1,) * len(first) if steps is None else ctx.numbers(steps, "the steps")
    return _slice(ctx, x, first, ctx.ints(ends, "the ends"), tuple(at), by)


@onnx_op("Slice", until=9)
def slice_1(ctx, x, *, starts, ends, axes=None):
    return _slice(ctx, x, starts, ends, tuple(range(len(starts))) if axes is None else axes, (1,) * len(starts))


def _slice(ctx, x, starts, ends, axes, steps):
    if not len(starts) == len(ends) == len(axes) == len(steps):
        ctx.fail(f"has {len(starts)} starts, {len(ends)} ends, {len(axes)} axes and {len(steps)} steps")
    first, limit, stride = [0] * x.rank, list(x.dims), [1] * x.rank
    for start, end, axis, step in zip(starts, ends, ctx.axes(axes, x), steps, strict=True):
        if step == 0:
            ctx.fail("a step must not be 0")
        first[axis], limit[axis] = _bounds(ctx, x.dims[axis], start, end, step)
        stride[axis] = step
    form = ctx.build.slice if all(s > 0 for s in stride) else ctx.build.StridedSlice
    return form(x, starts=tuple(first), limits=tuple(limit), strides=tuple(stride))


_FAR = 2**31 - 1
"""A bound this far from 0 says "to the end" or "from the start", whatever the size is."""
_NO_BOUND = 1_000_000
"""An end from here on says "to the end"; one below the greatest i32 is recorded as an assumption on the size."""


def _bounds(ctx, dim, start, end, step):
    """Start and limit counted from the front and clamped as ONNX has it; symbolic sizes stay symbolic."""
    if step > 0:
        first = _place(start, dim, 0, dim)
        if isinstance(dim, Dim) and isinstance(end, int) and end >= _NO_BOUND:
            if end < _FAR:
                ctx.assume_at_most(dim, end)
            return first, dim
        return first, sizes.maximum(_place(end, dim, 0, dim), first)
    last = dim - 1
    first = _place(start, dim, 0, last)
    return first, sizes.minimum(_place(end, dim, -1, last), first)


def _place(bound, dim, low, high):
    """A bound counted from the front and clamped to [low, high]."""
    if isinstance(dim, Dim) and isinstance(bound, int) and abs(bound) >= _FAR:
        return high if bound > 0 else sizes.minimum(low, high)
    return _clamped(_from_front(bound, dim), low, high)


def _from_front(bound, dim):
    """A bound with negative ones counted from the end; NeedsInts if its sign depends on the sizes of the inputs."""
    low, high = sizes.bounds(bound)
    if low is not None and low >= 0:
        return bound
    if high is not None and high < 0:
        return bound + dim
    raise NeedsInts(f"whether the bound {bound} is negative depends on the sizes of the inputs")


def _clamped(bound, low, high):
    """min(max(bound, low), high): for an empty axis and a negative step that is -1, as NumPy has it."""
    return sizes.minimum(sizes.maximum(bound, low), high)
