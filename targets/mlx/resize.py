"""Resampling: nearest neighbours by whole factors are repetition; everything else is decomposed."""

from .lowering import lower


@lower("Resize")
def resize(
    ctx, x, *, dims, scales, mode, coordinate_mode, nearest_mode, cubic_coeff_a, exclude_outside, extrapolation_value,
    antialias, roi,
):  # fmt: skip
    if mode != "nearest" or coordinate_mode == "tf_crop_and_resize" or antialias:
        ctx.refuse("only nearest neighbours have a short form in MLX")
    factors = [_factor(n, d, scales[i] if scales else None) for i, (n, d) in enumerate(zip(dims, x.dims, strict=True))]
    if any(f is None for f in factors):
        ctx.refuse("a factor that is not a whole number")
    exact = coordinate_mode == "asymmetric" and nearest_mode == "floor"
    centred = coordinate_mode in ("half_pixel", "pytorch_half_pixel") and nearest_mode.startswith("round")
    if not exact and not centred:
        ctx.refuse("a rule of nearest neighbours that is not repetition")
    shape = list(x.dims)
    for axis, factor in enumerate(factors):
        if factor != 1:
            shape[axis] = dims[axis]
            x = ctx.call("mx.repeat", x, factor, f"axis={axis}", dims=shape)
    return x


def _factor(new, old, scale):
    """The whole number that an axis grows by, or None."""
    for factor in range(1, 17):
        if new == old * factor and (scale is None or scale == factor):
            return factor
    return None
