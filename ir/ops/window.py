"""Operators over sliding windows: reduce_window, select_and_scatter, and ONNX's pools."""

import numpy as np

from .. import dtypes
from ..dims import Size, maximum, minimum
from ..facts import Fact
from ..operators import FLOAT, ORDERED, PURE, REAL, Operand, Region, Variadic, operator
from ..types import TensorType
from .combination import combined


def windows(size: Size, window: Size, stride: int, padding, base_dilation: int = 1, window_dilation: int = 1) -> Size:
    """How many windows fit along an axis; 0 if none does."""
    low, high = padding
    dilated = size if base_dilation == 1 else maximum((size - 1) * base_dilation + 1, 0)
    return maximum((dilated + low + high - ((window - 1) * window_dilation + 1)) // stride + 1, 0)


def _check_lengths(ctx, rank: int, **attributes) -> None:
    for name, value in attributes.items():
        ctx.need(len(value) == rank, f"{name} needs {rank} entries, one an axis, got {len(value)}")
        for entry in value:
            if name in ("padding", "pads"):
                ctx.need(len(entry) == 2, f"{name} needs pairs (low, high), got {entry}")
            elif isinstance(entry, int):
                ctx.need(entry >= 1, f"{name} must be at least 1, got {entry}")


def _reduce_window_type(
    ctx, xs, *, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations, body
):
    inputs, types = combined(ctx, xs, kind, body)
    x = inputs[0]
    _check_lengths(
        ctx, x.rank, window_dimensions=window_dimensions, window_strides=window_strides, padding=padding,
        base_dilations=base_dilations, window_dilations=window_dilations,
    )  # fmt: skip
    rows = zip(x.dims, window_dimensions, window_strides, padding, base_dilations, window_dilations, strict=True)
    dims = tuple(windows(*row) for row in rows)
    facts = tuple(Fact(TensorType(t, dims)) for t in types)
    return facts if kind == "custom" else facts[0]


def _select_and_scatter_type(ctx, x, source, *, select, window_dimensions, window_strides, padding):
    ctx.need(select in ("max", "min"), f"select must be max or min, got {select!r}")
    ctx.same_dtype(x, source)
    _check_lengths(
        ctx, x.rank, window_dimensions=window_dimensions, window_strides=window_strides, padding=padding
    )
    dims = [windows(*row) for row in zip(x.dims, window_dimensions, window_strides, padding, strict=True)]
    ctx.equal_dims(source.dims, dims, "dims of source and of the windows")
    return x.with_dims(x.dims)


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
    _check_lengths(ctx, x.rank - 2, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=pads)
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
    return x.with_dims((*x.dims[:2], *(1 for _ in x.dims[2:])))


@operator("reduce_window", family="window", traits=PURE)
class ReduceWindow:
    """xs combined in windows.  kind as in reduce; every attribute has one entry an axis of x, padding pairs (low, high).

    Padding counts as the identity.  custom: xs are n inputs then n scalar inits; body as in reduce.  Result dim:
    (padded - ((w - 1) * window_dilation + 1)) // stride + 1, or 0 where the window does not fit.
    """

    xs: Variadic
    kind: str
    window_dimensions: tuple[Size, ...]
    window_strides: tuple[int, ...]
    padding: tuple[tuple[Size, ...], ...]
    base_dilations: tuple[int, ...]
    window_dilations: tuple[int, ...]
    body: Region | None = None
    infer = _reduce_window_type


@operator("select_and_scatter", family="window", traits=PURE)
class SelectAndScatter:
    """For each window of x, `source`'s element is combined (sum) into the place of the element that select picks.

    select max or min: the first one in row-major order among equals, NaN preferred.  scatter kind sum.  x[..],
    source[windows] -> [x.dims], filled with 0 elsewhere.
    """

    x: Operand[ORDERED]
    source: Operand
    select: str
    window_dimensions: tuple[int, ...]
    window_strides: tuple[int, ...]
    padding: tuple[tuple[Size, ...], ...]
    infer = _select_and_scatter_type


@operator("MaxPool", family="window", traits=PURE)
class MaxPool:
    """ONNX MaxPool over the spatial axes of [N, C, spatial..]; pads are (low, high) pairs, already resolved from auto_pad.

    Padding never wins; NaN in a window gives NaN.  ceil_mode: partial windows at the high end count, except one that
    would start in the padding.  with_indices adds the i64 flat index into x of each maximum (first among equals), in
    row-major (storage_order 0) or column-major spatial order.
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


@operator("AveragePool", family="window", traits=PURE)
class AveragePool:
    """ONNX AveragePool over [N, C, spatial..]; divides by the number of elements inside x, or with count_include_pad inside
    the padded x (never counting what ceil_mode adds beyond the padding)."""

    x: Operand[FLOAT]
    kernel_shape: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    ceil_mode: bool = False
    count_include_pad: bool = False
    infer = _average_pool_type


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


@operator("GlobalAveragePool", family="window", traits=PURE)
class GlobalAveragePool:
    """Mean over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]
    infer = _global_type


@operator("GlobalMaxPool", family="window", traits=PURE)
class GlobalMaxPool:
    """Maximum over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]
    infer = _global_type


@operator("GlobalLpPool", family="window", traits=PURE)
class GlobalLpPool:
    """(sum |x|^p)^(1/p) over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]
    p: int = 2
    infer = _global_type
