"""ONNX NonMaxSuppression and RoiAlign."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir.dtypes import i64
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
    if ratio <= 0:
        ctx.refuse("sampling_ratio 0, a number of samples that depends on each region, is not supported")
    return ctx.build.RoiAlign(
        x, regions, batch, output_height=height, output_width=width, sampling_ratio=ratio, spatial_scale=scale,
        mode=mode, half_pixel=half_pixel,
    )  # fmt: skip
