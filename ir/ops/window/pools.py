"""ONNX's pools: references by NumPy, decompositions by reduce_window."""

import math

import numpy as np

from ... import dtypes
from ...dims import Size, maximum, minimum
from ...dtypes import DType
from ...operators import FLOAT, PURE, REAL, Operand, operator
from .. import capacities, sliding
from ..widening import converted, count, wide_array, widened
from .core import check_lengths, windows


def ceil_padding(kernel: int, stride: int, dilation: int, pads, ceil_mode: bool) -> tuple[Size, Size]:
    """The (low, high) padding with which plain windows are those of ceil_mode.

    A partial window reaches at most stride - 1 further; one that starts in the padding would need effective kernel - 1
    or more beyond x.
    """
    low, high = pads
    if not ceil_mode or stride == 1:
        return low, high
    effective = (kernel - 1) * dilation + 1
    return low, maximum(high, minimum(high + stride - 1, effective - 1))


def _pool_dims(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode):
    ctx.need(x.rank >= 2, f"x must be [N, C, spatial..], got {x.type}")
    check_lengths(ctx, x.rank - 2, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=pads)
    out = list(x.dims[:2])
    for size, k, s, d, p in zip(x.dims[2:], kernel_shape, strides, dilations, pads, strict=True):
        out.append(windows(size, k, s, ceil_padding(k, s, d, p, ceil_mode), 1, d))
    return tuple(out)


def _max_pool_type(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, with_indices):
    ctx.need(storage_order in (0, 1), f"storage_order must be 0 or 1, got {storage_order}")
    y = x.with_dims(_pool_dims(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode))
    return (y, y.with_dtype(dtypes.i64)) if with_indices else y


def _average_pool_type(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad):
    return x.with_dims(_pool_dims(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode))


def _lp_pool_type(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, p):
    ctx.need(p >= 1, f"p must be at least 1, got {p}")
    return x.with_dims(_pool_dims(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode))


def _global_type(ctx, x, **attributes):
    ctx.need(x.rank >= 2, f"x must be [N, C, spatial..], got {x.type}")
    ctx.need(attributes.get("p", 1) >= 1, f"p must be 1 or more, got {attributes.get('p')}")
    return x.with_dims((*x.dims[:2], *(1 for _ in x.dims[2:])))


def _ceil_pads(kernel_shape, strides, dilations, pads, ceil_mode):
    rows = zip(kernel_shape, strides, dilations, pads, strict=True)
    return tuple(ceil_padding(*row, ceil_mode) for row in rows)


def _all_axes(spatial, fill):
    return (fill, fill, *spatial)


def _max_pool_reference(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, with_indices):
    pads = _all_axes(_ceil_pads(kernel_shape, strides, dilations, pads, ceil_mode), (0, 0))
    window, strides, dilations = (_all_axes(v, 1) for v in (kernel_shape, strides, dilations))
    values, places = sliding.best_places(wide_array(x), ctx.result_types[0].dims, window, strides, dilations, pads)
    values = np.where(places < 0, wide_array(np.asarray(DType.from_numpy(x.dtype).min_value())), values)
    if not with_indices:
        return values
    if storage_order == 1 and places.size:
        area = math.prod(x.shape[2:])
        at = np.unravel_index(np.maximum(places, 0) % area, x.shape[2:])
        places = np.where(places < 0, -1, places // area * area + np.ravel_multi_index(at, x.shape[2:], order="F"))
    return values, places


def _pool(b, x, kind, kernel_shape, strides, dilations, pads, ceil_mode):
    """reduce_window over the spatial axes."""
    return b.reduce_window(
        x, kind=kind, window_dimensions=_all_axes(kernel_shape, 1), window_strides=_all_axes(strides, 1),
        padding=_all_axes(_ceil_pads(kernel_shape, strides, dilations, pads, ceil_mode), (0, 0)),
        base_dilations=(1,) * x.rank, window_dilations=_all_axes(dilations, 1),
    )  # fmt: skip


def _max_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, with_indices):
    b = ctx.build
    if not with_indices:
        return _pool(b, x, "max", kernel_shape, strides, dilations, pads, ceil_mode)
    # One strided slice of the padded x for each place of the window; the best so far and its index are carried along.
    pads = _ceil_pads(kernel_shape, strides, dilations, pads, ceil_mode)
    outs = [
        windows(n, k, s, p, 1, d)
        for n, k, s, p, d in zip(x.dims[2:], kernel_shape, strides, pads, dilations, strict=True)
    ]
    low, high = [], []
    for n, k, s, d, (before, _), out in zip(x.dims[2:], kernel_shape, strides, dilations, pads, outs, strict=True):
        low.append(before)
        high.append(_reach(out, s) + (k - 1) * d - n - before)
    index = _flat_indices(b, x.dims, storage_order)
    best = place = None
    for offset in sliding.offsets(kernel_shape):
        starts = [k * d for k, d in zip(offset, dilations, strict=True)]
        value = _strided(b, x, x.dtype.min_value(), low, high, starts, strides, outs)
        at = _strided(b, index, -1, low, high, starts, strides, outs)
        if best is None:
            best, place = value, at
            continue
        better = b.compare(value, best, direction="gt")
        if x.dtype.is_float:
            better = b.or_(better, b.compare(value, value, direction="ne"))
            better = b.and_(better, b.compare(best, best, direction="eq"))
        zero = b.constant(0, dtypes.i64)
        first = b.compare(place, zero, direction="lt")
        wins = b.and_(b.compare(at, zero, direction="ge"), b.or_(first, better))
        best, place = b.select(wins, value, best), b.select(wins, at, place)
    return best, place


def _reach(out: Size, stride: int) -> Size:
    """How far `out` places, `stride` apart, extend."""
    return 0 if isinstance(out, int) and not out else (out - 1) * stride + 1


def _strided(b, x, fill, low, high, starts, strides, outs):
    """The padded x at starts + strides * i along its spatial axes, as many places as `outs` says."""
    none = (0,) * x.rank
    padded = b.pad(x, b.constant(fill, x.dtype), low=_all_axes(low, 0), high=_all_axes(high, 0), interior=none)
    limits = [start + _reach(out, s) for start, out, s in zip(starts, outs, strides, strict=True)]
    limits = (*padded.dims[:2], *limits)
    return b.slice(padded, starts=_all_axes(starts, 0), limits=limits, strides=_all_axes(strides, 1))


def _flat_indices(b, dims, storage_order: int):
    """i64[dims]: the flat index of each element, spatial axes in row-major (0) or column-major (1) order."""
    spatial = list(range(2, len(dims)))
    total, step = None, 1
    for axis in (*(spatial if storage_order else reversed(spatial)), 1, 0):
        part = b.iota(dtype=dtypes.i64, dims=tuple(d if i == axis else 1 for i, d in enumerate(dims)), axis=axis)
        part = b.multiply(part, count(b, (step,), dtypes.i64))
        total = part if total is None else b.add(total, part)
        step = step * dims[axis]
    return total


def _average_pool_reference(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad):
    total, counts = wide_array(x), np.ones(())
    rows = zip(
        kernel_shape,
        strides,
        dilations,
        pads,
        _ceil_pads(kernel_shape, strides, dilations, pads, ceil_mode),
        strict=True,
    )
    for axis, (k, s, d, p, (low, high)) in enumerate(rows, 2):
        n, out = x.shape[axis], ctx.result_types[0].dims[axis]
        around = [(0, 0)] * axis + [(low, high)] + [(0, 0)] * (x.ndim - axis - 1)
        total = sliding.along_axis(np.add, sliding.pad(total, around, 0.0), axis, out, k, s, d, 0)
        ones = sliding.pad(np.ones(n), [tuple(p)], 1.0) if count_include_pad else np.ones(n)
        ones = sliding.pad(ones, [(0, high - p[1]) if count_include_pad else (low, high)], 0.0)
        held = sliding.along_axis(np.add, ones, 0, out, k, s, d, 0)
        counts = counts * held.reshape(-1, *[1] * (x.ndim - axis - 1))
    return total / counts


def _average_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad):
    b = ctx.build
    total = _pool(b, widened(b, x), "sum", kernel_shape, strides, dilations, pads, ceil_mode)
    if (count_include_pad or all(p == (0, 0) for p in pads)) and not (ceil_mode and any(s > 1 for s in strides)):
        return converted(b, b.divide(total, math.prod(kernel_shape)), x.dtype)
    for axis, row in enumerate(zip(kernel_shape, strides, dilations, pads, strict=True), 2):
        held = _elements_held(b, x.dims[axis], total.dims[axis], *row, count_include_pad)
        held = b.convert(b.reshape(held, dims=(total.dims[axis], *[1] * (x.rank - axis - 1))), dtype=total.dtype)
        total = b.divide(total, held)
    return converted(b, total, x.dtype)


def _elements_held(b, size, out, kernel, stride, dilation, pads, count_include_pad):
    """i64[out]: how many elements of each window lie inside x (or inside the padded x)."""
    low, high = pads
    first, last = (-low, size + high) if count_include_pad else (0, size)
    start = b.subtract(b.multiply(b.iota(dtype=dtypes.i64, dims=(out,), axis=0), stride), count(b, (low,), dtypes.i64))

    def below(limit):
        """How many elements of the window lie before `limit`: ceil((limit - start) / dilation) in [0, kernel]."""
        distance = b.maximum(b.subtract(count(b, (limit,), dtypes.i64), start), 0)
        return b.minimum(b.divide(b.add(distance, dilation - 1), dilation), kernel)

    return b.subtract(below(last), below(first))


def _lp_pool_reference(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, p):
    total = np.abs(wide_array(x)) ** p
    rows = zip(
        kernel_shape, strides, dilations, _ceil_pads(kernel_shape, strides, dilations, pads, ceil_mode), strict=True
    )
    for axis, (k, s, d, around) in enumerate(rows, 2):
        total = sliding.pad(total, [around if i == axis else (0, 0) for i in range(x.ndim)], 0.0)
        total = sliding.along_axis(np.add, total, axis, ctx.result_types[0].dims[axis], k, s, d, 0)
    return total ** (1 / p)


def _powers(b, x, p: int):
    magnitude = b.abs(x)
    return magnitude if p == 1 else b.multiply(x, x) if p == 2 else b.power(magnitude, float(p))


def _root(b, x, p: int):
    return x if p == 1 else b.sqrt(x) if p == 2 else b.power(x, 1 / p)


def _lp_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, p):
    b = ctx.build
    total = _pool(b, _powers(b, widened(b, x), p), "sum", kernel_shape, strides, dilations, pads, ceil_mode)
    return converted(b, _root(b, total, p), x.dtype)


def _spatial(x) -> tuple[int, ...]:
    return tuple(range(2, x.ndim if isinstance(x, np.ndarray) else x.rank))


def _global_average_reference(ctx, x):
    return np.mean(wide_array(x), axis=_spatial(x), keepdims=True)


def _global_average(ctx, x):
    return ctx.build.ReduceMean(x, axes=_spatial(x))


def _global_max_reference(ctx, x):
    return np.max(wide_array(x), axis=_spatial(x), keepdims=True, initial=-np.inf)


def _global_max(ctx, x):
    return ctx.build.ReduceMax(x, axes=_spatial(x))


def _global_lp_reference(ctx, x, *, p):
    return np.sum(np.abs(wide_array(x)) ** p, axis=_spatial(x), keepdims=True) ** (1 / p)


def _global_lp(ctx, x, *, p):
    b = ctx.build
    total = b.ReduceSum(_powers(b, widened(b, x), p), axes=_spatial(x))
    return converted(b, _root(b, total, p), x.dtype)


@operator("MaxPool", family="window", traits=PURE)
class MaxPool:
    """ONNX MaxPool over the spatial axes of [N, C, spatial..].

    pads are (low, high) pairs, already resolved from auto_pad.  Padding never wins: a window with nothing of x in it
    gives the least value and index -1.  NaN in a window gives NaN.  ceil_mode: partial windows at the high end count,
    except one that would start in the padding.  with_indices adds the i64 flat index into x of each maximum (first
    among equals), in row-major (storage_order 0) or column-major spatial order.
    """

    x: Operand[REAL]
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    ceil_mode: bool = False
    storage_order: int = 0
    with_indices: bool = False
    infer = _max_pool_type
    reference = _max_pool_reference
    decompose = _max_pool
    bucket = capacities.max_pool


@operator("AveragePool", family="window", traits=PURE)
class AveragePool:
    """ONNX AveragePool over [N, C, spatial..]; divides by the number of elements inside x.

    With count_include_pad: inside the padded x (never counting what ceil_mode adds beyond the padding).
    """

    x: Operand[FLOAT]
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    ceil_mode: bool = False
    count_include_pad: bool = False
    infer = _average_pool_type
    reference = _average_pool_reference
    decompose = _average_pool
    bucket = capacities.average_pool


@operator("LpPool", family="window", traits=PURE)
class LpPool:
    """(sum |x|^p)^(1/p) in windows of [N, C, spatial..]; padding counts as 0."""

    x: Operand[FLOAT]
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    ceil_mode: bool = False
    p: int = 2
    infer = _lp_pool_type
    reference = _lp_pool_reference
    decompose = _lp_pool
    bucket = capacities.lp_pool


@operator("GlobalAveragePool", family="window", traits=PURE)
class GlobalAveragePool:
    """Mean over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]
    infer = _global_type
    reference = _global_average_reference
    decompose = _global_average
    bucket = capacities.closed_from(2)


@operator("GlobalMaxPool", family="window", traits=PURE)
class GlobalMaxPool:
    """Maximum over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]
    infer = _global_type
    reference = _global_max_reference
    decompose = _global_max
    bucket = capacities.global_with(capacities.least_of)


@operator("GlobalLpPool", family="window", traits=PURE)
class GlobalLpPool:
    """(sum |x|^p)^(1/p) over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]
    p: int = 2
    infer = _global_type
    reference = _global_lp_reference
    decompose = _global_lp
    bucket = capacities.global_with(0)
