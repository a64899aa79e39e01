"""Operators over sliding windows: reduce_window, select_and_scatter, and ONNX's pools."""

import numpy as np

from ..dims import Size
from ..operators import FLOAT, ORDERED, PURE, REAL, Operand, Region, Variadic, operator


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


@operator("GlobalAveragePool", family="window", traits=PURE)
class GlobalAveragePool:
    """Mean over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]


@operator("GlobalMaxPool", family="window", traits=PURE)
class GlobalMaxPool:
    """Maximum over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]


@operator("GlobalLpPool", family="window", traits=PURE)
class GlobalLpPool:
    """(sum |x|^p)^(1/p) over all spatial axes of [N, C, spatial..]; they stay with size 1."""

    x: Operand[FLOAT]
    p: int = 2
