"""Resampling by interpolation."""

import math
from fractions import Fraction
from typing import Literal

import numpy as np

from .. import dtypes
from ..dims import Size, equal, maximum, minimum
from ..dtypes import DType
from ..operators import PURE, REAL, Operand, operator
from .widening import converted, count, saturated, statistics_type

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


# Every coordinate mode is affine in the output place o: x = (a * o + b) / c with sizes a, b, c, so that indices and
# fractions are exact.  n and m are the sizes of the axis before and after, p / q its factor.


def simplest(value: float) -> Fraction:
    """The simplest fraction that is `value` in f32: 4/3 for 1.3333334."""
    wanted = np.float32(value)
    for limit in (1 << 4, 1 << 8, 1 << 12, 1 << 16, 1 << 20, 1 << 24):
        near = Fraction(value).limit_denominator(limit)
        if np.float32(near) == wanted:
            return near
    return Fraction(float(wanted))


def coordinates(
    mode: str, n: Size, m: Size, factor: Fraction | None, roi: tuple[float, float]
) -> tuple[Size, Size, Size]:
    """(a, b, c) of an axis; `factor` None means m / n."""
    p, q = (m, n) if factor is None else (factor.numerator, factor.denominator)
    several = minimum(m - 1, 1)
    match mode:
        case "half_pixel":
            return 2 * q, q - p, 2 * p
        case "half_pixel_symmetric":
            return 2 * q, n * p - m * q + q - p, 2 * p
        case "pytorch_half_pixel":
            return 2 * q * several, (q - p) * several, 2 * p
        case "asymmetric":
            return q, 0, p
        case "tf_half_pixel_for_nn":
            return 2 * q, q, 2 * p
        case "align_corners":
            return n - 1, 0, maximum(m - 1, 1)
    start, end = simplest(roi[0]), simplest(roi[1])
    d = math.lcm(start.denominator, end.denominator)
    first, last = int(start * d), int(end * d)
    middle = (1 - several) * (first + last) * (n - 1)
    return 2 * (last - first) * (n - 1), 2 * first * (n - 1) * (m - 1) + middle, 2 * d * maximum(m - 1, 1)


def _axes(x_dims, dims, scales, coordinate_mode, roi):
    """(axis, n, m, factor, roi of the axis) of the axes that are not left alone."""
    rank, crops = len(dims), coordinate_mode == "tf_crop_and_resize"
    for axis, (n, m) in enumerate(zip(x_dims, dims, strict=True)):
        factor = simplest(scales[axis]) if scales else None
        part = (roi[axis], roi[axis + rank]) if crops else (0.0, 1.0)
        if equal(n, m) is not True or factor not in (None, 1) or part != (0.0, 1.0):
            yield axis, n, m, factor, part


def _nearest_step(mode: str) -> tuple[int, int, bool]:
    """(s, t, up): the index is (s * x + t) / s, rounded up or down."""
    return {
        "floor": (1, 0, False),
        "ceil": (1, 0, True),
        "round_prefer_floor": (2, -1, True),
        "round_prefer_ceil": (2, 1, False),
    }[mode]


def _cubic_array(x: np.ndarray, a: float) -> np.ndarray:
    x = np.abs(x)
    inner = ((a + 2) * x - (a + 3)) * x * x + 1
    return np.where(x <= 1, inner, np.where(x < 2, a * (((x - 5) * x + 8) * x - 4), 0))


def _resize_reference(
    ctx, x, *, dims, scales, mode, coordinate_mode, nearest_mode, cubic_coeff_a, exclude_outside, extrapolation_value,
    antialias, roi,
):  # fmt: skip
    if not x.size or 0 in dims:
        return np.zeros(dims, x.dtype)
    y = x if mode == "nearest" else x.astype(np.float64)
    outside = np.zeros((), bool)
    for axis, n, m, factor, part in _axes(x.shape, dims, scales, coordinate_mode, roi):
        a, b, c = coordinates(coordinate_mode, n, m, factor, part)
        top = a * np.arange(m) + b
        if mode == "nearest":
            s, t, up = _nearest_step(nearest_mode)
            place = s * top + t * c
            place = -(-place // (s * c)) if up else place // (s * c)
            y = np.take(y, np.clip(place, 0, n - 1), axis)
        else:
            shrink = float(min(factor if factor is not None else Fraction(m, n), 1)) if antialias else 1.0
            y = _weighted_array(y, axis, top, c, mode, shrink, cubic_coeff_a, exclude_outside)
        gone = (top < 0) | (top > (n - 1) * c)
        outside = outside | gone.reshape(-1, *[1] * (x.ndim - axis - 1))
    if coordinate_mode == "tf_crop_and_resize":
        y = np.where(outside, np.asarray(extrapolation_value).astype(y.dtype), y)
    return y if mode == "nearest" else saturated(y, DType.from_numpy(x.dtype))


def _weighted_array(y, axis, top, c, mode, shrink, a, exclude_outside):
    """An axis interpolated: the neighbours of each place, weighted by their distance times `shrink`."""
    n, base = y.shape[axis], top // c
    reach = math.ceil((2 if mode == "cubic" else 1) / shrink)
    taps = np.arange(1 - reach, reach + 1)
    places = base[:, None] + taps
    distance = (places * c - top[:, None]) / c * shrink
    weights = _cubic_array(distance, a) if mode == "cubic" else np.maximum(1 - np.abs(distance), 0)
    if exclude_outside:
        weights = np.where((places >= 0) & (places < n), weights, 0)
    weights = weights / np.sum(weights, axis=1, keepdims=True)
    total = 0.0
    for k in range(len(taps)):
        weight = weights[:, k].reshape(-1, *[1] * (y.ndim - axis - 1))
        total = total + np.take(y, np.clip(places[:, k], 0, n - 1), axis) * weight
    return total


def _floor_divide(b, x, y):
    """Quotient of i64 values rounded down."""
    below = b.compare(b.remainder(x, y), b.constant(0, dtypes.i64), direction="lt")
    return b.subtract(b.divide(x, y), b.convert(below, dtype=dtypes.i64))


def _size(b, n: Size):
    return count(b, (n,), dtypes.i64)


def _limit(b, index, n: Size):
    """Indices brought into [0, n)."""
    return b.maximum(b.minimum(index, _size(b, n - 1)), 0)


def _resize(
    ctx, x, *, dims, scales, mode, coordinate_mode, nearest_mode, cubic_coeff_a, exclude_outside, extrapolation_value,
    antialias, roi,
):  # fmt: skip
    b = ctx.build
    y = x if mode == "nearest" else converted(b, x, statistics_type(x.dtype))
    outside = None
    for axis, n, m, factor, part in _axes(x.dims, dims, scales, coordinate_mode, roi):
        a, shift, c = coordinates(coordinate_mode, n, m, factor, part)
        top = b.add(b.multiply(b.iota(dtype=dtypes.i64, dims=(m,), axis=0), _size(b, a)), _size(b, shift))
        if mode == "nearest":
            s, t, up = _nearest_step(nearest_mode)
            place, divisor = b.add(b.multiply(top, s), _size(b, t * c)), _size(b, s * c)
            place = b.negate(_floor_divide(b, b.negate(place), divisor)) if up else _floor_divide(b, place, divisor)
            y = b.take(y, _limit(b, place, n), axis=axis)
        elif antialias:
            y = _filtered(b, y, axis, top, c, factor, m, mode, cubic_coeff_a, exclude_outside)
        else:
            y = _weighted(b, y, axis, top, c, mode, cubic_coeff_a, exclude_outside)
        if coordinate_mode == "tf_crop_and_resize":
            gone = b.or_(
                b.compare(top, b.constant(0, dtypes.i64), direction="lt"),
                b.compare(top, _size(b, (n - 1) * c), direction="gt"),
            )
            gone = b.reshape(gone, dims=(m, *(1 for _ in range(x.rank - axis - 1))))
            outside = gone if outside is None else b.or_(outside, gone)
    if outside is not None:
        y = b.select(outside, b.constant(extrapolation_value, y.dtype), y)
    return converted(b, y, x.dtype)


def _weighted(b, y, axis, top, c, mode, a, exclude_outside):
    """An axis interpolated from its two or four nearest neighbours."""
    n, divisor, m = y.dims[axis], _size(b, c), top.dims[0]
    base = _floor_divide(b, top, divisor)
    part = b.subtract(top, b.multiply(base, divisor))
    part = b.divide(b.convert(part, dtype=y.dtype), b.convert(divisor, dtype=y.dtype))
    taps = (-1, 0, 1, 2) if mode == "cubic" else (0, 1)
    places = [base if k == 0 else b.add(base, k) for k in taps]
    weights = []
    for k, place in zip(taps, places, strict=True):
        distance = b.abs(b.subtract(part, float(k)))
        weight = _cubic(b, distance, a) if mode == "cubic" else b.subtract(b.constant(1, y.dtype), distance)
        if exclude_outside:
            inside = b.compare(place, _limit(b, place, n), direction="eq")
            weight = b.select(inside, weight, b.constant(0, y.dtype))
        weights.append(weight)
    if exclude_outside:
        total = b.Sum(tuple(weights))
        weights = [b.divide(w, total) for w in weights]
    parts = []
    for place, weight in zip(places, weights, strict=True):
        weight = b.reshape(weight, dims=(m, *(1 for _ in range(y.rank - axis - 1))))
        parts.append(b.multiply(b.take(y, _limit(b, place, n), axis=axis), weight))
    return b.Sum(tuple(parts))


def _cubic(b, x, a: float):
    """The cubic kernel at distances x >= 0."""
    inner = b.add(b.multiply(b.multiply(b.subtract(b.multiply(x, a + 2), a + 3), x), x), 1.0)
    outer = b.multiply(b.subtract(b.multiply(b.add(b.multiply(b.subtract(x, 5.0), x), 8.0), x), 4.0), a)
    outer = b.select(b.compare(x, b.constant(2, x.dtype), direction="lt"), outer, b.constant(0, x.dtype))
    return b.select(b.compare(x, b.constant(1, x.dtype), direction="le"), inner, outer)


def _filtered(b, y, axis, top, c, factor, m, mode, a, exclude_outside):
    """An axis interpolated by a kernel stretched by n / m: a matrix product with the weights of all places.

    The kernel reaches at most 2 n + 1 beyond the axis on either side; what falls there belongs to the first and last.
    """
    n, dtype = y.dims[axis], y.dtype
    margin = 2 * n + 2
    wide = n + 2 * margin
    places = b.subtract(b.iota(dtype=dtypes.i64, dims=(1, wide), axis=1), _size(b, margin))
    divisor = _size(b, c)
    distance = b.subtract(b.multiply(places, divisor), b.reshape(top, dims=(m, 1)))
    distance = b.divide(b.convert(distance, dtype=dtype), b.convert(divisor, dtype=dtype))
    if factor is not None:
        shrink = b.constant(min(float(factor), 1.0), dtype)
    else:
        shrink = b.minimum(b.divide(count(b, (m,), dtype), count(b, (n,), dtype)), 1.0)
    distance = b.abs(b.multiply(distance, shrink))
    if mode == "cubic":
        weights = _cubic(b, distance, a)
    else:
        weights = b.maximum(b.subtract(b.constant(1, dtype), distance), 0.0)
    zero = b.constant(0, dtype)
    if exclude_outside:
        inside = b.compare(places, _limit(b, places, n), direction="eq")
        weights = b.select(inside, weights, zero)
    weights = b.divide(weights, b.ReduceSum(weights, axes=(1,)))

    def columns(start, limit):
        return b.slice(weights, starts=(0, start), limits=(m, limit), strides=(1, 1))

    before, after = (b.ReduceSum(columns(*ends), axes=(1,)) for ends in ((0, margin), (margin + n, wide)))
    own = b.iota(dtype=dtypes.i64, dims=(1, n), axis=1)
    matrix = columns(margin, margin + n)
    matrix = b.add(matrix, b.select(b.compare(own, b.constant(0, dtypes.i64), direction="eq"), before, zero))
    matrix = b.add(matrix, b.select(b.compare(own, _size(b, n - 1), direction="eq"), after, zero))
    y = b.dot_general(y, matrix, lhs_contracting=(axis,), rhs_contracting=(1,))
    last = y.rank - 1
    return b.transpose(y, permutation=tuple(last if i == axis else i - (i > axis) for i in range(y.rank)))


@operator("Resize", family="resize", traits=PURE)
class Resize:
    """ONNX Resize to `dims`, one size an axis of x.  `scales` has the factors an axis where the model gave them.

    With () scales the factor of an axis is dim / x.dim; a given one stands for the simplest fraction that is equal in
    f32.  Coordinates are exact; the weights are f32 (f64 for f64); integer results are truncated.  coordinate_mode is
    ONNX's coordinate_transformation_mode, with roi (starts then ends, one an axis) for tf_crop_and_resize.  Axes whose
    dim and scale leave them alone are not touched.  antialias and exclude_outside as in ONNX, for linear and cubic.
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
    reference = _resize_reference
    decompose = _resize
