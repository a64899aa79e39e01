"""ONNX NonMaxSuppression, RoiAlign and MaxRoiPool."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir.dtypes import f32, i64
from .indexing import non_zeros
from .registry import onnx_op


@onnx_op("NonMaxSuppression")
def non_max_suppression(ctx, boxes, scores, most=None, iou=None, threshold=None, *, center_point_box=0):
    """[n, 3]: batch entry, class and box of everything kept; their number is counted first."""
    b = ctx.build
    wanted = 0 if most is None else ctx.size(most, "max_output_boxes_per_class")
    kept = sizes.maximum(sizes.minimum(wanted, boxes.dims[1]), 0)
    iou = b.constant(np.zeros((), boxes.dtype.numpy)) if iou is None else iou
    chosen = b.SuppressedBoxes(boxes, scores, iou, threshold, most=kept, center=bool(center_point_box))
    places, count = non_zeros(ctx, b.compare(chosen, b.constant(0, i64), direction="ge"))
    pairs = b.transpose(places, permutation=(1, 0))
    box = b.reshape(b.GatherND(chosen, pairs), dims=(count, 1))
    ahead = b.slice(pairs, starts=(0, 0), limits=(count, 2), strides=(1, 1))
    return b.concatenate((ahead, box), axis=1)


@onnx_op("RoiAlign", since=16)
def roi_align(
    ctx, x, regions, batch, *, coordinate_transformation_mode="half_pixel", mode="avg", output_height=1, output_width=1,
    sampling_ratio=0, spatial_scale=1.0,
):  # fmt: skip
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        ctx.fail(f"coordinate_transformation_mode {coordinate_transformation_mode!r} is unknown")
    return _roi_align(ctx, x, regions, batch, coordinate_transformation_mode == "half_pixel", mode, output_height,
                      output_width, sampling_ratio, spatial_scale)  # fmt: skip


@onnx_op("RoiAlign", since=10, until=15)
def roi_align_10(
    ctx, x, regions, batch, *, mode="avg", output_height=1, output_width=1, sampling_ratio=0, spatial_scale=1.0
):
    return _roi_align(ctx, x, regions, batch, False, mode, output_height, output_width, sampling_ratio, spatial_scale)


def _roi_align(ctx, x, regions, batch, half_pixel, mode, height, width, ratio, scale):
    if ratio < 0:
        ctx.fail(f"sampling_ratio must not be negative, got {ratio}")
    return ctx.build.RoiAlign(
        x, regions, batch, output_height=height, output_width=width, sampling_ratio=ratio, spatial_scale=scale,
        mode=mode, half_pixel=half_pixel,
    )  # fmt: skip


@onnx_op("MaxRoiPool")
def max_roi_pool(ctx, x, rois, *, pooled_shape, spatial_scale=1.0):
    """Greatest element of each bin of each region [entry, x1, y1, x2, y2], ends included; 0 where a bin is empty.

    As in Caffe and ONNX Runtime, which the text leaves open: corners round half away from zero, bins round outward.
    """
    if x.rank != 4 or len(pooled_shape) != 2:
        ctx.fail(f"needs an operand [N, C, H, W] and two sizes, got {x.type} and {list(pooled_shape)}")
    b, (_, channels, height, width), count = ctx.build, x.dims, rois.dims[0]
    corners = b.convert(rois, dtype=f32) if rois.dtype.bits < 32 else rois
    entry, *edges = (b.reshape(part, dims=(count,)) for part in b.Split(corners, axis=1, sizes=(1,) * 5))
    left, top, right, bottom = (b.round_nearest_afz(b.multiply(edge, spatial_scale)) for edge in edges)
    least = b.constant(-np.inf, x.dtype)
    pooled = b.take(x, b.convert(entry, dtype=i64), axis=0)
    columns, some_columns = _bins(b, left, right, width, pooled_shape[1])
    rows, some_rows = _bins(b, top, bottom, height, pooled_shape[0])
    across, down = pooled_shape[1], pooled_shape[0]
    # First along the width, then along the height: [R, C, H, W] -> [R, C, H, across] -> [R, C, down, across].
    pooled = b.select(
        b.reshape(columns, dims=(count, 1, 1, across, width)),
        b.reshape(pooled, dims=(count, channels, height, 1, width)),
        least,
    )
    pooled = b.reshape(b.reduce(pooled, axes=(4,), kind="max"), dims=(count, channels, 1, height, across))
    pooled = b.reduce(b.select(b.reshape(rows, dims=(count, 1, down, height, 1)), pooled, least), axes=(3,), kind="max")
    some = b.and_(
        b.reshape(some_rows, dims=(count, 1, down, 1)), b.reshape(some_columns, dims=(count, 1, 1, across))
    )
    return b.select(some, pooled, b.constant(0, x.dtype))


def _bins(b, start, end, size, bins):
    """(bool[R, bins, size]: which places each bin of each region holds, bool[R, bins]: whether it holds any).

    Corners are whole by now, so that integers give the bins' edges exactly.
    """
    count = start.dims[0]
    begin, finish = (b.reshape(b.convert(v, dtype=i64), dims=(count, 1)) for v in (start, end))
    length = b.maximum(b.add(b.subtract(finish, begin), 1), 1)
    k = b.iota(dtype=i64, dims=(1, bins), axis=1)
    low = b.add(b.divide(b.multiply(k, length), bins), begin)
    high = b.add(b.divide(b.add(b.multiply(b.add(k, 1), length), bins - 1), bins), begin)
    last = b.dimensions(dims=(size,), scalar=True)
    low, high = (b.minimum(b.maximum(v, 0), last) for v in (low, high))
    place = b.iota(dtype=i64, dims=(1, 1, size), axis=2)
    low3, high3 = (b.reshape(v, dims=(count, bins, 1)) for v in (low, high))
    held = b.and_(b.compare(place, low3, direction="ge"), b.compare(place, high3, direction="lt"))
    return held, b.compare(low, high, direction="lt")
