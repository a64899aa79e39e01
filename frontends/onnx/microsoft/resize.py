"""GridSample of ONNX Runtime: what is operator set 16's in ONNX."""

from __future__ import annotations

from ..registry import onnx_op
from ..resize import grid_sample as _grid_sample


@onnx_op("GridSample", domain="com.microsoft")
def grid_sample(ctx, x, grid, *, align_corners=0, mode="bilinear", padding_mode="zeros"):
    if mode not in ("bilinear", "nearest", "bicubic"):
        ctx.fail(f"mode must be bilinear, nearest or bicubic, got {mode!r}")
    return _grid_sample(ctx, x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)
