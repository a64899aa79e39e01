"""Operators whose result's size depends on values: NonZero, Unique.  The size comes as an attribute, counted before."""

from ... import dtypes
from ...dims import Size, product
from ...facts import Fact
from ...operators import ANY, ORDERED, PURE, Operand, operator
from ...types import TensorType
from .. import bucketing
from ..shape.positions import size_scalar, sliced


def _flat(b, x):
    return b.reshape(x, dims=(product(x.dims),))


def _places(b, length):
    return b.iota(dtype=dtypes.i64, dims=(length,), axis=0)


@operator("NonZero", family="indexing", traits=PURE)
class NonZero:
    """Indices of the elements that are not zero (false), in row-major order: i64[rank, count].

    `count` is how many there are; of more the first ones come out, of fewer the rest is unspecified.
    """

    x: Operand
    count: Size

    bucket = bucketing.non_zero

    def infer(ctx, x, *, count):
        return Fact(TensorType(dtypes.i64, (x.rank, count)))

    def decompose(ctx, x, *, count):
        b = ctx.build
        flat = _flat(b, x)
        chosen = flat if x.dtype.is_bool else b.compare(flat, b.constant(0, x.dtype), direction="ne")
        length = flat.dims[0]
        places = b.select(chosen, _places(b, length), size_scalar(b, length))
        rest = sliced(b, b.sort((places,), axis=0), 0, 0, count)
        rows = []
        for dim in reversed(x.dims):
            size = b.maximum(size_scalar(b, dim), 1)
            rows.append(b.reshape(b.remainder(rest, size), dims=(1, count)))
            rest = b.divide(rest, size)
        if not rows:
            return b.full(0, dtypes.i64, (0, count))
        return b.concatenate(tuple(reversed(rows)), axis=0)


def _matrix(b, x, axis):
    """The slices of x along axis as rows."""
    order = (axis, *(i for i in range(x.rank) if i != axis))
    rest = product(tuple(d for i, d in enumerate(x.dims) if i != axis))
    return b.reshape(b.transpose(x, permutation=order), dims=(x.dims[axis], rest))


def _numbers(b, x):
    """x in a type that orders."""
    return b.convert(x, dtype=dtypes.i32) if x.dtype.is_bool else x


def _rows_compared(b, rows):
    """(less[i,j], equal[i,j]) of all pairs of rows in lexicographic order, NaN greatest and equal to itself."""
    n, m = rows.dims
    left, right = b.reshape(rows, dims=(n, 1, m)), b.reshape(rows, dims=(1, n, m))
    lt, eq = b.compare(left, right, direction="lt"), b.compare(left, right, direction="eq")
    if rows.dtype.is_float:
        sick_left, sick_right = (b.compare(v, v, direction="ne") for v in (left, right))
        lt = b.or_(lt, b.and_(b.not_(sick_left), sick_right))
        eq = b.or_(eq, b.and_(sick_left, sick_right))
    column = b.iota(dtype=dtypes.i64, dims=(1, 1, m), axis=2)
    first = b.select(eq, size_scalar(b, m), column)
    first = b.reduce(first, axes=(2,), kind="min")
    at_first = b.and_(lt, b.compare(column, b.reshape(first, dims=(n, n, 1)), direction="eq"))
    return b.reduce(at_first, axes=(2,), kind="or"), b.reduce(eq, axes=(2,), kind="and")


def _summed(b, mask, axis):
    return b.reduce(b.convert(mask, dtype=dtypes.i64), axes=(axis,), kind="sum")


def _groups(b, x, axis, in_order):
    """(group of each element or slice, whether it is its group's first); groups numbered by value or appearance."""
    if axis is not None:
        rows = _matrix(b, _numbers(b, x), axis)
        n = rows.dims[0]
        less, equal = _rows_compared(b, rows)
        i, j = (b.iota(dtype=dtypes.i64, dims=(n, n), axis=a) for a in (0, 1))
        earlier = b.compare(j, i, direction="lt")
        first = b.not_(b.reduce(b.and_(equal, earlier), axes=(1,), kind="or"))
        if in_order:
            before = b.transpose(less, permutation=(1, 0))  # [i, j]: row j is less than row i
        else:
            own = b.reduce(b.select(equal, j, size_scalar(b, n)), axes=(1,), kind="min")
            before = b.compare(j, b.reshape(own, dims=(n, 1)), direction="lt")
        return _summed(b, b.and_(before, b.reshape(first, dims=(1, n))), 1), first
    flat = _numbers(b, _flat(b, x))
    n = flat.dims[0]
    values, order = b.sort((flat, _places(b, n)), axis=0)
    back = b.sort((order, _places(b, n)), axis=0)[1]
    previous = b.take(values, b.maximum(b.subtract(_places(b, n), 1), 0), axis=0)
    new = b.compare(values, previous, direction="ne")
    if flat.dtype.is_float:
        sick, was = (b.compare(v, v, direction="ne") for v in (values, previous))
        new = b.and_(new, b.not_(b.and_(sick, was)))
    new = b.or_(new, b.compare(_places(b, n), b.constant(0, dtypes.i64), direction="eq"))
    number = b.subtract(b.CumSum(b.convert(new, dtype=dtypes.i64), axis=0), 1)
    first = b.take(new, back, axis=0)  # the sort is stable, so the first of a group is its first in x
    group = b.take(number, back, axis=0)
    if in_order:
        return group, first
    rank = b.subtract(b.CumSum(b.convert(first, dtype=dtypes.i64), axis=0), 1)
    start = b.put_along_axis(b.full(2**62, dtypes.i64, (n,)), group, _places(b, n), axis=0, kind="min")
    return b.take(rank, b.take(start, group, axis=0), axis=0), first


@operator("UniqueCount", family="indexing", traits=PURE)
class UniqueCount:
    """How many different elements x has, or slices along axis: an i64 scalar.  NaN is equal to NaN."""

    x: Operand[ORDERED]
    axis: int | None = None

    def infer(ctx, x, *, axis):
        return Fact(TensorType(dtypes.i64, ()))

    def decompose(ctx, x, *, axis):
        return _summed(ctx.build, _groups(ctx.build, x, axis, True)[1], 0)


@operator("Unique", family="indexing", traits=PURE)
class Unique:
    """(y, indices, inverse, counts) of the `count` different elements of x, or slices along axis.

    y is sorted or in order of first appearance; indices are those of first appearance, inverse gives each element's or
    slice's place in y.  NaN is equal to NaN and greatest.  `count` must be what UniqueCount says.
    """

    x: Operand[ORDERED]
    count: Size
    axis: int | None = None
    sorted: bool = True

    def infer(ctx, x, *, count, axis, sorted):
        if axis is None:
            y, length = x.with_dims((count,)), product(x.dims)
        else:
            axis = ctx.axis(axis, x.rank)
            y, length = x.with_dims((*x.dims[:axis], count, *x.dims[axis + 1 :])), x.dims[axis]
        numbers = Fact(TensorType(dtypes.i64, (count,)))
        return y, numbers, Fact(TensorType(dtypes.i64, (length,))), numbers

    def decompose(ctx, x, *, count, axis, sorted):
        b = ctx.build
        group, _ = _groups(b, x, axis, sorted)
        n = group.dims[0]
        indices = b.put_along_axis(
            b.full(0 if n == 0 else 2**62, dtypes.i64, (count,)), group, _places(b, n), axis=0, kind="min"
        )
        ones = b.full(1, dtypes.i64, (n,))
        counts = b.put_along_axis(b.full(0, dtypes.i64, (count,)), group, ones, axis=0, kind="sum")
        y = b.take(_flat(b, x) if axis is None else x, indices, axis=axis or 0)
        return y, indices, group, counts


@operator("ReverseSequence", family="indexing", traits=PURE)
class ReverseSequence:
    """x with the first lengths[i] places along time_axis reversed, for each place i along batch_axis."""

    x: Operand[ANY]
    lengths: Operand
    time_axis: int = 0
    batch_axis: int = 1

    def infer(ctx, x, lengths, *, time_axis, batch_axis):
        ctx.need(lengths.rank == 1, f"lengths must be a vector, got {lengths.type}")
        axes = ctx.axes((time_axis, batch_axis), x.rank)
        ctx.equal(lengths.dims[0], x.dims[axes[1]], "the number of lengths and of batch entries")
        return x.with_dims(x.dims)

    def decompose(ctx, x, lengths, *, time_axis, batch_axis):
        b = ctx.build
        time = b.iota(
            dtype=dtypes.i64, dims=tuple(d if i == time_axis else 1 for i, d in enumerate(x.dims)), axis=time_axis
        )
        ends = b.convert(lengths, dtype=dtypes.i64)
        ends = b.reshape(ends, dims=tuple(d if i == batch_axis else 1 for i, d in enumerate(x.dims)))
        turned = b.subtract(b.subtract(ends, 1), time)
        place = b.select(b.compare(time, ends, direction="lt"), turned, time)
        place = b.broadcast_in_dim(place, dims=x.dims, broadcast_dimensions=tuple(range(x.rank)))
        return b.take_along_axis(x, place, axis=time_axis)


@operator("TensorScatter", family="indexing", traits=PURE)
class TensorScatter:
    """A cache [B, .., T, ..] with update [B, .., t, ..] written at starts[b] + 0..t-1 along axis; modulo T if circular.

    starts defaults to zeros; what would go past the end of a cache that is not circular is dropped.
    """

    cache: Operand
    update: Operand
    starts: Operand | None = None
    axis: int = -2
    circular: bool = False

    def infer(ctx, cache, update, starts, *, axis, circular):
        axis = ctx.axis(axis, cache.rank)
        ctx.same_dtype(cache, update)
        ctx.equal_dims(cache.dims[:axis], update.dims[:axis], "leading dims of cache and update")
        ctx.equal_dims(cache.dims[axis + 1 :], update.dims[axis + 1 :], "trailing dims of cache and update")
        return cache.with_dims(cache.dims)

    def decompose(ctx, cache, update, starts, *, axis, circular):
        b = ctx.build
        axis %= cache.rank
        place = b.iota(dtype=dtypes.i64, dims=update.dims, axis=axis)
        if starts is not None:
            at = b.reshape(b.convert(starts, dtype=dtypes.i64), dims=(cache.dims[0], *[1] * (cache.rank - 1)))
            place = b.add(place, at)
        if circular:
            place = b.remainder(place, size_scalar(b, cache.dims[axis]))
        return b.put_along_axis(cache, place, update, axis=axis)
