"""Operators of detectors: boxes that suppress each other, regions of interest."""

from typing import Literal

from .. import dtypes
from ..dims import Size, minimum
from ..operators import FLOAT, INTEGER, PURE, Operand, operator
from ..types import TensorType
from .sampling import corners
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


@operator("RoiAlign", family="detection", traits=PURE)
class RoiAlign:
    """x[N,C,H,W] averaged (or its greatest weighted corner) over the cells of regions[R,4] (x1, y1, x2, y2).

    Each region lies in the image batch[r], is divided into output_height x output_width cells, and each cell is sampled
    at sampling_ratio^2 places by bilinear interpolation.  half_pixel shifts by half a place and allows small regions.
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
        ctx.need(sampling_ratio > 0, f"sampling_ratio must be positive, got {sampling_ratio}")
        ctx.equal(regions.dims[0], batch.dims[0], "the numbers of regions and of batch indices")
        return x.with_dims((regions.dims[0], x.dims[1], output_height, output_width))

    def decompose(
        ctx, x, regions, batch, *, output_height, output_width, sampling_ratio, spatial_scale, mode, half_pixel
    ):
        b, wide = ctx.build, statistics_type(x.dtype)
        r, s = regions.dims[0], sampling_ratio
        given = b.multiply(converted(b, regions, wide), b.constant(spatial_scale, wide))
        given = b.subtract(given, b.constant(0.5 if half_pixel else 0.0, wide))
        ends = [b.reshape(sliced(b, given, 1, i, i + 1), dims=(r, 1)) for i in range(4)]
        points, good = [], None
        for axis, (low, high, cells) in enumerate(
            ((ends[1], ends[3], output_height), (ends[0], ends[2], output_width))
        ):
            extent = b.subtract(high, low)
            if not half_pixel:
                extent = b.maximum(extent, 1.0)
            steps = b.iota(dtype=wide, dims=(1, cells * s), axis=1)
            at = b.add(low, b.multiply(b.add(steps, 0.5), b.divide(extent, float(cells * s))))
            length = x.dims[2 + axis]
            inside = b.and_(
                b.compare(at, b.constant(-1, wide), direction="ge"),
                b.compare(at, count(b, (length,), wide), direction="le"),
            )
            at = b.minimum(b.maximum(at, 0.0), count(b, (length - 1,), wide))
            spread = (r, cells * s, 1) if axis == 0 else (r, 1, cells * s)
            at, inside = (b.reshape(v, dims=spread) for v in (at, inside))
            good = inside if good is None else b.and_(good, inside)
            points.append(at)
        grid = (r, output_height * s, output_width * s)
        points = [b.broadcast_in_dim(p, dims=grid, broadcast_dimensions=(0, 1, 2)) for p in points]
        rows = b.transpose(b.take(x, b.convert(batch, dtype=dtypes.i64), axis=0), permutation=(0, 2, 3, 1))
        parts = tuple(b.multiply(v, w) for v, w in corners(b, rows, points))
        value = b.Sum(parts) if mode == "avg" else b.Max(parts)
        value = b.select(b.reshape(good, dims=(*grid, 1)), value, b.constant(0, wide))
        value = b.reshape(value, dims=(r, output_height, s, output_width, s, x.dims[1]))
        value = b.reduce(value, axes=(2, 4), kind="sum" if mode == "avg" else "max")
        if mode == "avg":
            value = b.divide(value, float(s * s))
        return converted(b, b.transpose(value, permutation=(0, 3, 1, 2)), x.dtype)
