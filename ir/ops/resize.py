"""Resampling by interpolation."""

from typing import Literal

import numpy as np

from ..dims import Size
from ..operators import PURE, REAL, Operand, operator


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
