"""ONNX lowering of Resize."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir import dtypes
from ...ir.ops.resize import simplest
from .late import files_only
from .lowering import lower


def _aligned(ctx, x, *, dims, scales, coordinate_mode, **rest):
    """Why not.  ONNX Runtime aligns corners by the rounded length, another one where a scale gives a fraction."""
    if ctx.dialect.runtime and (not x.rank or 0 in x.dims or 0 in dims):
        return "ONNX Runtime resizes no scalar, and nothing from or to what is empty"
    for dim, given, scale in zip(dims, x.dims, scales, strict=False):
        factor = simplest(scale)
        if sizes.equal(dim, sizes.floordiv(given * factor.numerator, factor.denominator)) is False:
            return f"ONNX makes another length than {dim} of {given} places by the scale {scale}"
    if coordinate_mode != "align_corners":
        return None
    for dim, given, scale in zip(dims, x.dims, scales, strict=False):
        if sizes.equal(dim * (factor := simplest(scale)).denominator, given * factor.numerator) is not True:
            return f"ONNX Runtime aligns the corners of {given} * {scale} places by {dim}"
    return None


@lower("Resize", when=_aligned)
def resize(
    ctx,
    x,
    *,
    dims,
    scales,
    mode,
    coordinate_mode,
    nearest_mode,
    cubic_coeff_a,
    exclude_outside,
    extrapolation_value,
    antialias,
    roi,
):
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinate_mode}
    if mode == "nearest":
        attributes["nearest_mode"] = nearest_mode
    if mode == "cubic":
        attributes["cubic_coeff_a"] = cubic_coeff_a
        attributes["exclude_outside"] = int(exclude_outside)
    if antialias:
        attributes["antialias"] = 1
    region = None
    if coordinate_mode == "tf_crop_and_resize":
        attributes["extrapolation_value"] = extrapolation_value
        region = ctx.constant(np.array(roi, np.float32), dtypes.f32)
    if scales:
        return ctx.op("Resize", x, region, ctx.constant(np.array(scales, np.float32), dtypes.f32), **attributes)
    return ctx.op("Resize", x, region, None, ctx.ints(dims), **attributes)


@lower("ImageDecoder", when=lambda ctx, x, *, pixel_format: files_only(ctx))
def image_decoder(ctx, x, *, pixel_format):
    return ctx.op("ImageDecoder", x, pixel_format=pixel_format)
