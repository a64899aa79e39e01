"""Operators of detectors: boxes that suppress each other, regions of interest."""

from typing import Literal

from .. import dtypes
from ..dims import Size, minimum
from ..operators import FLOAT, INTEGER, PURE, Operand, operator
from ..types import TensorType
from .shape.positions import size_scalar, sliced
from .widening import converted, count, statistics_type


def _sides(b, boxes, center):
    """(y1, x1, y2, x2) of boxes[.., 4], each [..]."""
    columns = [b.reshape(sliced(b, boxes, boxes.rank - 1, i, i + 1), dims=boxes.dims[:-1]) for i in range(4)]
    if center:
        x, y, w, h = columns
        w, h = (b.multiply(v, 0.5) for v in (w, h))
        return b.subtract(y, h), b.subtract(x, w), b.add(y, h), b.add(x, w)
    a, c, d, e = columns
    return b.minimum(a, d), b.minimum(c, e), b.maximum(a, d), b.maximum(c, e)


def _overlap(b, one, other):
    """Intersection over union of boxes given by their sides; 0 where the union is empty."""
    zero = b.constant(0, one[0].dtype)
    height = b.maximum(b.subtract(b.minimum(one[2], other[2]), b.maximum(one[0], other[0])), zero)
    width = b.maximum(b.subtract(b.minimum(one[3], other[3]), b.maximum(one[1], other[1])), zero)
    shared = b.multiply(height, width)
    areas = [b.multiply(b.subtract(s[2], s[0]), b.subtract(s[3], s[1])) for s in (one, other)]
    union = b.subtract(b.add(*areas), shared)
    return b.select(b.compare(union, zero, direction="gt"), b.divide(shared, union), zero)


@operator("SuppressedBoxes", family="detection", traits=PURE)
class SuppressedBoxes:
    """The boxes that greedy suppression keeps for each batch entry and class: i64[N, C, most], -1 behind the last.

    boxes[N, B, 4] as (y1, x1, y2, x2) in any order of corners, or (x, y, w, h) of the center; scores[N, C, B].  The box
    of the greatest score comes first (ties: lower index); those whose overlap with a kept one exceeds `iou` and those
    whose score is not above `threshold` (absent: all are) are dropped.
    """

    boxes: Operand[FLOAT]
    scores: Operand[FLOAT]
    iou: Operand[FLOAT]
    threshold: Operand[FLOAT] | None = None
    most: Size = 0
    center: bool = False

    def infer(ctx, boxes, scores, iou, threshold, *, most, center):
        ctx.need(boxes.rank == 3 and scores.rank == 3, f"boxes and scores have rank 3, got {boxes.type}, {scores.type}")
        ctx.equal(boxes.dims[2], 4, "the numbers of a box and 4")
        ctx.equal(boxes.dims[0], scores.dims[0], "the batch sizes of boxes and scores")
        ctx.equal(boxes.dims[1], scores.dims[2], "the numbers of boxes and scores")
        return scores.with_dims((*scores.dims[:2], most)).with_dtype(dtypes.i64)

    def decompose(ctx, boxes, scores, iou, threshold, *, most, center):
        b = ctx.build
        n, c, size = scores.dims
        lowest = b.constant(float("-inf"), scores.dtype)
        if threshold is not None:
            scores = b.select(b.compare(scores, b.reshape(threshold, dims=()), direction="gt"), scores, lowest)
        sides = [b.reshape(s, dims=(n, 1, size)) for s in _sides(b, boxes, center)]
        limit = b.reshape(iou, dims=())
        out = b.full(-1, dtypes.i64, (n, c, most))
        start = b.constant(0, dtypes.i64)
        state = (start, scores, out)

        def cond(inner, i, alive, chosen):
            return inner.compare(i, size_scalar(inner, most), direction="lt")

        def body(inner, i, alive, chosen):
            place, best = inner.ArgMax(alive, axis=2), inner.reduce(alive, axes=(2,), kind="max")
            found = inner.compare(inner.reshape(best, dims=(n, c, 1)), lowest, direction="gt")
            own = [
                inner.take_along_axis(
                    inner.broadcast_in_dim(s, dims=(n, c, size), broadcast_dimensions=(0, 1, 2)), place, axis=2
                )
                for s in sides
            ]
            gone = inner.compare(_overlap(inner, sides, own), limit, direction="gt")
            column = inner.iota(dtype=dtypes.i64, dims=(1, 1, size), axis=2)
            gone = inner.or_(gone, inner.compare(column, place, direction="eq"))
            alive = inner.select(gone, lowest, alive)
            zero = inner.constant(0, dtypes.i64)
            row = inner.select(found, place, inner.constant(-1, dtypes.i64))
            return inner.add(i, 1), alive, inner.dynamic_update_slice(chosen, row, (zero, zero, i))

        types = [TensorType(v.dtype, v.dims) for v in state]
        return b.while_(state, cond=b.region(types, cond), body=b.region(types, body))[2]


def most_kept(wanted: Size, boxes: Size) -> Size:
    """How many boxes a class can keep."""
    return minimum(wanted, boxes)


class _Cells:
    """Places along one axis of the cells of R regions, `low` to `high`[R, 1], on a grid of `length` places.

    Cell p of region r has samples[r] places p * side + (k + 1/2) * step behind low; `count`[R, 1] (i64) of
    them, from k = first[r, p] on, hold all that lie on the grid.  `outside`[R, cells] says whether some do not.
    """

    def __init__(self, b, low, high, *, cells, length, ratio, half_pixel):
        wide, (r, _) = low.dtype, low.dims
        self.zero, self.last = b.constant(0, wide), count(b, (length - 1,), wide)
        self.size = count(b, (length,), wide)
        extent = b.subtract(high, low)
        extent = extent if half_pixel else b.maximum(extent, 1.0)
        # XLA would multiply by 1 / cells, and a side that is whole would have a sample too many.
        side = b.divide(extent, b.optimization_barrier((b.full(cells, wide, (r, 1)),)))
        self.base = b.add(low, b.multiply(b.iota(dtype=wide, dims=(1, cells), axis=1), side))
        some = b.compare(side, self.zero, direction="gt")
        self.samples = b.full(ratio, wide, (r, 1)) if ratio else b.select(some, b.ceil(side), self.zero)
        self.step = b.divide(side, self.samples)
        ends = self.zero, b.subtract(self.samples, 1.0)
        near, far = (self._inside(b, _place(b, self.base, k, self.step)) for k in ends)
        self.outside = b.not_(b.and_(near, far))
        if ratio:
            self.first, self.count = self.zero, b.full(ratio, dtypes.i64, (r, 1))
            return
        # One sample more at both ends, for what rounding does.  A cell's samples on the grid are half a place or more
        # apart, or there is only one.
        begin, end = (
            b.subtract(b.divide(b.subtract(v, self.base), self.step), 0.5) for v in (b.constant(-1, wide), self.size)
        )
        begin, end = b.subtract(b.floor(begin), 1.0), b.add(b.ceil(end), 1.0)
        self.first = b.maximum(begin, self.zero)
        span = b.add(b.subtract(b.minimum(end, ends[1]), self.first), 1.0)
        span = b.minimum(span, b.add(b.multiply(self.size, 2.0), 7.0))
        span = b.select(b.compare(span, self.zero, direction="gt"), span, self.zero)  # NaN: none
        self.count = b.reshape(b.convert(b.reduce(span, axes=(1,), kind="max"), dtype=dtypes.i64), dims=(r, 1))

    def _inside(self, b, at):
        low, high = (b.compare(at, v, direction=d) for v, d in ((b.constant(-1, at.dtype), "ge"), (self.size, "le")))
        return b.and_(low, high)

    def sampled(self, b, number):
        """[(place i64, weight)] of the neighbours of sample first + `number`[R, Q], and if it counts: [R, Q, cells]."""
        r, cells = self.outside.dims
        k = b.convert(number, dtype=self.base.dtype)
        k, step, samples = (b.reshape(v, dims=(*v.dims, 1)) for v in (k, self.step, self.samples))
        first = self.first if self.first is self.zero else b.reshape(self.first, dims=(r, 1, cells))
        k = b.add(k, first)
        at = _place(b, b.reshape(self.base, dims=(r, 1, cells)), k, step)
        good = b.and_(self._inside(b, at), b.compare(k, samples, direction="lt"))
        at = b.select(good, b.minimum(b.maximum(at, self.zero), self.last), self.zero)
        low = b.floor(at)
        part = b.subtract(at, low)
        high = b.minimum(b.add(low, 1.0), self.last)
        rows = (low, b.subtract(b.constant(1, at.dtype), part)), (high, part)
        return [(b.convert(place, dtype=dtypes.i64), weight) for place, weight in rows], good


def _place(b, base, k, step):
    return b.add(base, b.multiply(b.add(k, 0.5), step))


def _grid(b, rows, columns, of):
    """of(b, ..) of values [R, Q, h] and [R, Q, w] as [R, Q, h, w]."""
    return of(b.reshape(rows, dims=(*rows.dims, 1)), b.reshape(columns, dims=(*columns.dims[:2], 1, columns.dims[2])))


def _pooled(b, x, entry, rows, columns, number, mode):
    """Samples `number`[R, Q] of all cells from x[N, H, W, C], summed or their greatest corner: [R, h, w, C]."""
    across = columns.count
    count_all = b.multiply(rows.count, across)
    many = b.maximum(across, 1)
    (high, down), (wide, right) = (
        axis.sampled(b, at) for axis, at in ((rows, b.divide(number, many)), (columns, b.remainder(number, many)))
    )
    r, q = number.dims
    good = _grid(b, down, right, b.and_)
    good = b.and_(good, b.reshape(b.compare(number, count_all, direction="lt"), dims=(r, q, 1, 1)))
    grid = good.dims
    entry = b.broadcast_in_dim(entry, dims=(*grid, 1), broadcast_dimensions=(0,))
    parts = []
    for y, above in high:
        for z, left in wide:
            places = [
                b.broadcast_in_dim(v, dims=(*grid, 1), broadcast_dimensions=axes)
                for v, axes in ((y, (0, 1, 2)), (z, (0, 1, 3)))
            ]
            value = b.GatherND(x, b.concatenate((entry, *places), axis=4))
            weight = _grid(b, above, left, b.multiply)
            parts.append(b.multiply(converted(b, value, weight.dtype), b.reshape(weight, dims=(*grid, 1))))
    value = b.Sum(tuple(parts)) if mode == "avg" else b.Max(tuple(parts))
    least = b.constant(0 if mode == "avg" else float("-inf"), value.dtype)
    value = b.select(b.reshape(good, dims=(*grid, 1)), value, least)
    return b.reduce(value, axes=(1,), kind="sum" if mode == "avg" else "max")


_TOGETHER = 64
"""About how many places of a region are sampled at once, where their number is known only at run time."""


@operator("RoiAlign", family="detection", traits=PURE)
class RoiAlign:
    """x[N,C,H,W] averaged (or its greatest weighted corner) over the cells of regions[R,4] (x1, y1, x2, y2).

    Each region lies in the image batch[r] (as `take` reads an index), is divided into output_height x output_width
    cells, and each cell is sampled by bilinear interpolation at sampling_ratio^2 places; where that is 0, at
    ceil(height / output_height) x ceil(width / output_width) of the region's size, none if one is not positive or NaN.
    A place more than 1 off the grid gives 0, and so do cells without a place and regions that are not finite.  Cells of
    any size cost no more than their places on the grid, which are told from the others as exactly as floats allow.
    half_pixel shifts by half a place and allows regions smaller than 1.
    """

    x: Operand[FLOAT]
    regions: Operand[FLOAT]
    batch: Operand[INTEGER]
    output_height: int
    output_width: int
    sampling_ratio: int
    spatial_scale: float = 1.0
    mode: Literal["avg", "max"] = "avg"
    half_pixel: bool = True

    def infer(ctx, x, regions, batch, *, output_height, output_width, sampling_ratio, spatial_scale, mode, half_pixel):
        ctx.need(x.rank == 4, f"x must have rank 4 [N,C,H,W], got {x.type}")
        ctx.need(regions.rank == 2, f"regions must be [R, 4], got {regions.type}")
        ctx.equal(regions.dims[1], 4, "the numbers of a region's corners")
        ctx.need(batch.rank == 1, f"batch must be a vector, got {batch.type}")
        ctx.need(sampling_ratio >= 0, f"sampling_ratio must not be negative, got {sampling_ratio}")
        ctx.equal(regions.dims[0], batch.dims[0], "the numbers of regions and of batch indices")
        return x.with_dims((regions.dims[0], x.dims[1], output_height, output_width))

    def decompose(
        ctx, x, regions, batch, *, output_height, output_width, sampling_ratio, spatial_scale, mode, half_pixel
    ):
        b, wide = ctx.build, statistics_type(x.dtype)
        r, channels = regions.dims[0], x.dims[1]
        given = b.multiply(converted(b, regions, wide), b.constant(spatial_scale, wide))
        given = b.subtract(given, b.constant(0.5 if half_pixel else 0.0, wide))
        left, top, right, bottom = (sliced(b, given, 1, i, i + 1) for i in range(4))
        rows, columns = (
            _Cells(b, low, high, cells=cells, length=length, ratio=sampling_ratio, half_pixel=half_pixel)
            for low, high, cells, length in (
                (top, bottom, output_height, x.dims[2]), (left, right, output_width, x.dims[3]),
            )
        )  # fmt: skip
        x, entry = b.transpose(x, permutation=(0, 2, 3, 1)), b.convert(batch, dtype=dtypes.i64)
        dims = (r, output_height, output_width, channels)
        start = b.constant(0, wide)
        if mode == "max":  # places off the grid count as 0
            outside = b.or_(*(b.reshape(v, dims=d) for v, d in (
                (rows.outside, (r, output_height, 1)), (columns.outside, (r, 1, output_width)))))  # fmt: skip
            start = b.reshape(b.select(outside, start, b.constant(float("-inf"), wide)), dims=(*dims[:3], 1))
        combine = "add" if mode == "avg" else "maximum"
        if sampling_ratio:
            number = b.iota(dtype=dtypes.i64, dims=(r, sampling_ratio**2), axis=1)
            value = b.apply(combine, _pooled(b, x, entry, rows, columns, number, mode), start)
        else:
            start = b.broadcast_in_dim(start, dims=dims, broadcast_dimensions=tuple(range(start.rank)))
            value = _looped(b, x, entry, rows, columns, start, combine, mode)
        if mode == "avg":
            samples = b.maximum(b.multiply(rows.samples, columns.samples), 1.0)
            value = b.divide(value, b.reshape(samples, dims=(r, 1, 1, 1)))
        return converted(b, b.transpose(value, permutation=(0, 3, 1, 2)), x.dtype)


def _looped(b, x, entry, rows, columns, start, combine, mode):
    """Samples by the piece, as many times as the region with most of them needs."""
    r, height, width, _ = start.dims
    piece = max(_TOGETHER // max(height * width, 1), 1)
    most = b.reduce(b.multiply(rows.count, columns.count), axes=(0, 1), kind="max")
    times = b.divide(b.add(b.maximum(most, 0), piece - 1), piece)
    number = b.iota(dtype=dtypes.i64, dims=(r, piece), axis=1)
    types = [TensorType(dtypes.i64, ()), TensorType(start.dtype, start.dims)]

    def body(inner, i, value):
        at = inner.add(number, inner.multiply(i, piece))
        value = inner.apply(combine, value, _pooled(inner, x, entry, rows, columns, at, mode))
        return inner.add(i, 1), value

    cond = b.region(types, lambda inner, i, value: inner.compare(i, times, direction="lt"))
    return b.while_((b.constant(0, dtypes.i64), start), cond=cond, body=b.region(types, body))[1]
