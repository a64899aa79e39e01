"""ONNX Resize and the older Upsample, with scales or sizes turned into the result's dims."""

from __future__ import annotations

import math
from fractions import Fraction

from ...ir import dims as sizes
from ...ir.facts import NeedsInts
from .registry import onnx_op


@onnx_op("Resize", since=11)
def resize(
    ctx, x, roi=None, scales=None, sizes_=None, *, mode="nearest", coordinate_transformation_mode="half_pixel",
    cubic_coeff_a=-0.75, exclude_outside=0, extrapolation_value=0.0, nearest_mode="round_prefer_floor", antialias=0,
    axes=None, keep_aspect_ratio_policy="stretch",
):  # fmt: skip
    at = tuple(range(x.rank)) if axes is None else ctx.axes(axes, x)
    scales, sizes_ = _present(scales), _present(sizes_)
    if (scales is None) == (sizes_ is None):
        ctx.fail("needs either scales or sizes")
    if coordinate_transformation_mode not in MODES:
        ctx.refuse(f"coordinate_transformation_mode {coordinate_transformation_mode!r} is not supported")
    crop = _roi(ctx, x, roi, at) if coordinate_transformation_mode == "tf_crop_and_resize" else ()
    if scales is not None:
        factors = _spread(ctx, ctx.floats(scales, "the scales"), at, (1.0,) * x.rank, "scales")
        dims = tuple(
            _scaled(d, f, _extent(crop, i, x.rank)) for i, (d, f) in enumerate(zip(x.dims, factors, strict=True))
        )
    else:
        factors = ()
        dims = _spread(ctx, ctx.ints(sizes_, "the sizes"), at, x.dims, "sizes")
        if keep_aspect_ratio_policy != "stretch":
            dims, factors = _kept_aspect(ctx, x, dims, at, keep_aspect_ratio_policy)
    return ctx.build.Resize(
        x, dims=dims, scales=factors, mode=mode, coordinate_mode=coordinate_transformation_mode,
        nearest_mode=nearest_mode, cubic_coeff_a=cubic_coeff_a, exclude_outside=bool(exclude_outside),
        extrapolation_value=extrapolation_value, antialias=bool(antialias), roi=crop,
    )  # fmt: skip


MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)  # fmt: skip


def _present(value):
    """None for an input that is there but empty, which older operator sets use for "not given"."""
    return None if value is None or (value.type.dims is not None and value.dims == (0,)) else value


def _spread(ctx, given, axes, rest, what):
    """One entry an axis of x from one entry for each of `axes`."""
    if len(given) != len(axes):
        ctx.fail(f"needs {len(axes)} {what}, one an axis, got {len(given)}")
    out = list(rest)
    for axis, value in zip(axes, given, strict=True):
        out[axis] = value
    return tuple(out)


def _roi(ctx, x, roi, axes):
    if roi is None:
        ctx.fail("coordinate_transformation_mode tf_crop_and_resize needs roi")
    given = ctx.floats(roi, "the region of interest")
    if len(given) != 2 * len(axes):
        ctx.fail(f"needs {2 * len(axes)} numbers in roi, got {len(given)}")
    starts = _spread(ctx, given[: len(axes)], axes, (0.0,) * x.rank, "roi starts")
    return starts + _spread(ctx, given[len(axes) :], axes, (1.0,) * x.rank, "roi ends")


def _extent(crop, axis, rank):
    """The part of the axis that is resized."""
    return crop[rank + axis] - crop[axis] if crop else 1.0


def _scaled(dim, factor, extent):
    """floor(dim * extent * factor); a symbolic dim is scaled by the fraction that the factor spells."""
    if isinstance(dim, int):
        return math.floor(dim * extent * factor)
    fraction = Fraction(factor * extent).limit_denominator(1024)
    if abs(float(fraction) - factor * extent) > 1e-6 * abs(factor * extent):
        raise NeedsInts(f"the scale {factor} of a symbolic size is no simple fraction")
    return sizes.floordiv(dim * fraction.numerator, fraction.denominator)


def _kept_aspect(ctx, x, dims, axes, policy):
    """One scale for all resized axes: the least (not_larger) or greatest (not_smaller) that the sizes ask for."""
    if any(not isinstance(x.dims[a], int) or not isinstance(dims[a], int) for a in axes):
        raise NeedsInts("the common scale of axes of symbolic size is known only at run time")
    if policy not in ("not_larger", "not_smaller"):
        ctx.fail(f"keep_aspect_ratio_policy must be stretch, not_larger or not_smaller, got {policy!r}")
    asked = [dims[a] / x.dims[a] for a in axes]
    scale = min(asked) if policy == "not_larger" else max(asked)
    out = tuple(math.floor(x.dims[i] * scale + 0.5) if i in axes else d for i, d in enumerate(dims))
    return out, tuple(scale if i in axes else 1.0 for i in range(x.rank))


@onnx_op("Resize", since=10, until=10)
@onnx_op("Upsample", since=9, until=9)
def resize_10(ctx, x, scales, *, mode="nearest"):
    return _upsample(ctx, x, ctx.floats(scales, "the scales"), mode)


@onnx_op("Upsample", since=7, until=8)
def upsample_7(ctx, x, *, scales, mode="nearest"):
    return _upsample(ctx, x, scales, mode)


@onnx_op("Upsample", until=6)
def upsample_1(ctx, x, *, height_scale, width_scale, mode="nearest"):
    return _upsample(ctx, x, (1.0, 1.0, height_scale, width_scale), "linear" if mode == "bilinear" else mode)


def _upsample(ctx, x, scales, mode):
    """Before operator set 11 coordinates are i / scale, rounded down for nearest."""
    factors = _spread(ctx, scales, tuple(range(x.rank)), (1.0,) * x.rank, "scales")
    dims = tuple(_scaled(d, f, 1.0) for d, f in zip(x.dims, factors, strict=True))
    return ctx.build.Resize(x, dims=dims, scales=factors, mode=mode, coordinate_mode="asymmetric", nearest_mode="floor")


@onnx_op("GridSample")
def grid_sample(ctx, x, grid, *, align_corners=0, mode="linear", padding_mode="zeros"):
    mode = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
    return ctx.build.GridSample(x, grid, mode=mode, padding=padding_mode, align_corners=bool(align_corners))


@onnx_op("ImageDecoder")
def image_decoder(ctx, x, *, pixel_format="RGB"):
    return ctx.build.ImageDecoder(x, pixel_format=pixel_format)
