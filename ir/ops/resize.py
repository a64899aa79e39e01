"""Resampling by interpolation."""

from typing import Literal

import numpy as np

from ..dims import Size
from ..operators import PURE, REAL, Operand, operator


COORDINATE_MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)  # fmt: skip


def _resize_type(
    ctx, x, *, dims, scales, mode, coordinate_mode, nearest_mode, cubic_coeff_a, exclude_outside, extrapolation_value,
    antialias, roi,
):  # fmt: skip
    ctx.need(len(dims) == x.rank, f"dims needs one size an axis of {x.type}, got {len(dims)}")
    ctx.need(len(scales) in (0, x.rank), f"scales needs one factor an axis of {x.type} or none, got {len(scales)}")
    ctx.need(all(s > 0 for s in scales), f"scales must be positive, got {list(scales)}")
    ctx.need(
        coordinate_mode in COORDINATE_MODES,
        f"coordinate_mode must be one of {', '.join(COORDINATE_MODES)}, got {coordinate_mode!r}",
    )
    if coordinate_mode == "tf_crop_and_resize":
        ctx.need(len(roi) == 2 * x.rank, f"tf_crop_and_resize needs roi with {2 * x.rank} entries, got {len(roi)}")
    return x.with_dims(dims)


@operator("Resize", family="resize", traits=PURE)
class Resize:
    """ONNX Resize to `dims`, one size an axis of x.  `scales` has the factors an axis where the model gave them, else ().

    With () scales the factor of an axis is dim / x.dim.  coordinate_mode is ONNX's coordinate_transformation_mode, with
    roi (starts then ends, one an axis) for tf_crop_and_resize.  Axes whose dim and scale leave them alone are not touched.
    """

    x: Operand[REAL]
    dims: tuple[Size, ...]
    scales: tuple[float, ...] = ()
    mode: Literal["nearest", "linear", "cubic"] = "nearest"
    coordinate_mode: str = "half_pixel"
    nearest_mode: Literal["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"] = "round_prefer_floor"
    cubic_coeff_a: float = -0.75
    exclude_outside: bool = False
    extrapolation_value: float = 0.0
    antialias: bool = False
    roi: tuple[float, ...] = ()
    infer = _resize_type
