"""Resampling by interpolation."""

import io
import math
from fractions import Fraction
from typing import Literal

import numpy as np

from .. import dtypes
from ..dims import Size, equal, less, maximum, minimum
from ..dtypes import DType
from ..facts import Fact
from ..operators import HOST, INTEGER, PURE, REAL, Operand, operator
from ..types import TensorType
from . import capacities
from .sampling import picked
from .widening import converted, count, saturated, statistics_type

COORDINATE_MODES = (
    "half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric", "tf_crop_and_resize",
    "tf_half_pixel_for_nn",
)  # fmt: skip


LEAST_FILTERED = 2.0**-16
"""The least scale with antialias: the filter of one place reaches over 1 / scale elements to either side."""


def _resize_type(
    ctx, x, *, dims, scales, mode, coordinate_mode, nearest_mode, cubic_coeff_a, exclude_outside, extrapolation_value,
    antialias, roi,
):  # fmt: skip
    ctx.need(len(dims) == x.rank, f"dims needs one size an axis of {x.type}, got {len(dims)}")
    ctx.need(all(less(d, 0) is not True for d in dims), f"sizes must not be negative, got {list(dims)}")
    ctx.need(len(scales) in (0, x.rank), f"scales needs one factor an axis of {x.type} or none, got {len(scales)}")
    least = LEAST_FILTERED if antialias else 2.0**-126
    ctx.need(
        all(least <= s <= 2.0**127 for s in scales),
        f"scales must be positive and finite{f', at least {least} with antialias' if antialias else ''}, "
        f"got {list(scales)}",
    )
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
            # The length that the factor gives before it is rounded down, as in ONNX's own definition of the length.
            return (n - 1) * q, 0, maximum(n * p - q, 1)
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
    align_corners divides by length - 1, where a given scale makes the length scale * x.dim, a fraction: ONNX's own
    definition (scale = length_resized / length_original), not ONNX Runtime's, which takes dim.
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
    bucket = capacities.resize


def _reflected(b, at, low, high):
    """at folded at the borders until it lies between them."""
    span = b.subtract(high, low)
    twice = b.maximum(b.multiply(span, 2.0), b.constant(1e-30, at.dtype))
    rest = b.remainder(b.abs(b.subtract(at, low)), twice)
    return b.add(low, b.minimum(rest, b.subtract(twice, rest)))


def _grid_cubic(b, part):
    """Weights of the neighbours -1, 0, 1, 2 of a place with this fraction."""
    return [_cubic(b, b.abs(b.subtract(part, float(k))), -0.75) for k in (-1, 0, 1, 2)]


@operator("GridSample", family="resize", traits=PURE)
class GridSample:
    """ONNX GridSample: x[N, C, d1..dr] at the places grid[N, o1..or, r] gives, in [-1, 1], last axis of x first.

    align_corners puts -1 and 1 at the centers of the corner elements, else at their outer edges.  Outside: zeros, the
    border's values, or the values reflected at the border.  nearest rounds half to even; cubic has a = -0.75.
    """

    x: Operand[REAL]
    grid: Operand[REAL]
    mode: Literal["linear", "nearest", "cubic"] = "linear"
    padding: Literal["zeros", "border", "reflection"] = "zeros"
    align_corners: bool = False

    def infer(ctx, x, grid, *, mode, padding, align_corners):
        ctx.need(
            x.rank == grid.rank and x.rank >= 3,
            f"x and grid must have equal ranks of 3 or more, got {x.type}, {grid.type}",
        )
        ctx.equal(grid.dims[-1], x.rank - 2, "the last dim of grid and the number of spatial axes")
        ctx.equal(grid.dims[0], x.dims[0], "the batch sizes of grid and x")
        return x.with_dims((*x.dims[:2], *grid.dims[1:-1]))

    def decompose(ctx, x, grid, *, mode, padding, align_corners):
        b, rank = ctx.build, x.rank - 2
        wide = statistics_type(grid.dtype)
        rows = b.transpose(x, permutation=(0, *range(2, x.rank), 1))
        out_dims = grid.dims[:-1]
        points, limits = [], []
        for axis in range(rank):
            column, n = rank - 1 - axis, x.dims[2 + axis]
            at = b.slice(
                grid, starts=(0,) * (rank + 1) + (column,), limits=(*out_dims, column + 1), strides=(1,) * grid.rank
            )
            at = converted(b, b.reshape(at, dims=out_dims), wide)
            size = count(b, (n,), wide)
            last = b.subtract(size, 1.0)
            if align_corners:
                at, low, high = b.multiply(b.multiply(b.add(at, 1.0), 0.5), last), b.constant(0, wide), last
            else:
                at = b.multiply(b.subtract(b.multiply(b.add(at, 1.0), size), 1.0), 0.5)
                low, high = b.constant(-0.5, wide), b.subtract(size, 0.5)
            if mode == "nearest":
                at = b.round_nearest_even(at)
            if padding == "border":
                at = b.maximum(b.minimum(at, last), b.constant(0, wide))
            elif padding == "reflection":
                outside = b.or_(b.compare(at, low, direction="lt"), b.compare(at, high, direction="gt"))
                at = b.select(outside, _reflected(b, at, low, high), at)
                if mode == "nearest":
                    at = b.floor(at)
            points.append(at)
            limits.append((low, high, last))

        def neighbour(places):
            if padding == "border":
                places = [
                    b.maximum(b.minimum(p, l), b.constant(0, wide)) for p, (_, _, l) in zip(places, limits, strict=True)
                ]
            elif padding == "reflection":
                places = [
                    b.select(
                        b.or_(b.compare(p, lo, direction="lt"), b.compare(p, hi, direction="gt")),
                        b.floor(b.maximum(_reflected(b, p, lo, hi), b.constant(0, wide))),
                        p,
                    )
                    for p, (lo, hi, _) in zip(places, limits, strict=True)
                ]
            return picked(b, rows, places)

        if mode == "nearest":
            out = neighbour(points)
        else:
            taps = (0, 1) if mode == "linear" else (-1, 0, 1, 2)
            base = [b.floor(p) for p in points]
            parts = [b.subtract(p, q) for p, q in zip(points, base, strict=True)]
            weights = [
                [b.subtract(b.constant(1, wide), f), f] if mode == "linear" else _grid_cubic(b, f) for f in parts
            ]
            total = []
            for number in range(len(taps) ** rank):
                digits = [number // len(taps) ** i % len(taps) for i in range(rank)]
                places = [b.add(q, float(taps[d])) if taps[d] else q for q, d in zip(base, digits, strict=True)]
                weight = weights[0][digits[0]]
                for axis in range(1, rank):
                    weight = b.multiply(weight, weights[axis][digits[axis]])
                value = converted(b, neighbour(places), wide)
                total.append(b.multiply(value, b.reshape(weight, dims=(*out_dims, 1))))
            out = b.Sum(tuple(total))
        out = b.transpose(out, permutation=(0, rank + 1, *range(1, rank + 1)))
        return converted(b, out, x.dtype)


@operator("ImageDecoder", family="resize", traits=PURE | HOST)
class ImageDecoder:
    """The pixels u8[H, W, channels] of an image file, through Pillow; pixel_format RGB, BGR or Grayscale."""

    x: Operand[INTEGER]
    pixel_format: Literal["RGB", "BGR", "Grayscale"] = "RGB"

    def infer(ctx, x, *, pixel_format):
        ctx.need(x.dtype is dtypes.u8 and x.rank == 1, f"x must be a vector of u8, got {x.type}")
        return Fact(TensorType(dtypes.u8, None))

    def reference(ctx, x, *, pixel_format):
        try:
            from PIL import Image
        except ImportError:
            ctx.fail("decoding images needs Pillow; pip install pillow")
        image = Image.open(io.BytesIO(x.tobytes()))
        if pixel_format == "Grayscale":
            return np.array(image.convert("L"))[..., None]
        pixels = np.array(image.convert("RGB"))
        return pixels if pixel_format == "RGB" else pixels[..., ::-1]
