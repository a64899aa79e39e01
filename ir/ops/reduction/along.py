"""Operators that keep an order along an axis: ArgMax and ArgMin, CumSum and CumProd."""

import numpy as np

from ... import dtypes
from ...dims import maximum
from ...facts import Fact
from ...operators import ORDERED, PURE, REAL, Operand, operator
from ...types import TensorType
from .. import bucketing
from ..widening import converted, wide_array, widened
from .reduce import reduced, reduced_dims


def _reduced_index(ctx, x, *, axis, keepdims, select_last_index):
    axis = ctx.axis(axis, x.rank)
    ctx.at_most(1, x.dims[axis], "the axis must not be empty")
    return Fact(TensorType(dtypes.i64, reduced_dims(x.dims, (axis,), keepdims)))


def _along_axis(ctx, x, *, axis, exclusive, reverse):
    ctx.axis(axis, x.rank)
    return x.with_dims(x.dims)


def _extreme_index(pick, kind: str):
    """Rules of ArgMax and ArgMin: NumPy's function and the kind of reduce that finds the value."""

    def reference(ctx, x, *, axis, keepdims, select_last_index):
        wide = wide_array(x)
        if not select_last_index:
            return pick(wide, axis=axis, keepdims=keepdims)
        return x.shape[axis] - 1 - pick(np.flip(wide, axis), axis=axis, keepdims=keepdims)

    def decompose(ctx, x, *, axis, keepdims, select_last_index):
        b = ctx.build
        axis %= x.rank
        best = reduced(b, x, (axis,), True, kind)
        hit = b.compare(x, best, direction="eq")
        if x.dtype.is_float:
            hit = b.or_(hit, b.compare(x, x, direction="ne"))
        places = b.iota(dtype=dtypes.i64, dims=tuple(d if i == axis else 1 for i, d in enumerate(x.dims)), axis=axis)
        none = -1 if select_last_index else np.iinfo(np.int64).max
        found = b.select(hit, places, b.constant(none, dtypes.i64))
        return reduced(b, found, (axis,), keepdims, "max" if select_last_index else "min")

    return reference, decompose


_ARGMAX, _ARGMIN = _extreme_index(np.argmax, "max"), _extreme_index(np.argmin, "min")


def _running(kind: str, accumulate):
    """Rules of CumSum and CumProd."""

    def reference(ctx, x, *, axis, exclusive, reverse):
        wide = wide_array(x)
        wide = np.flip(wide, axis) if reverse else wide
        y = accumulate(wide, axis=axis, dtype=wide.dtype)
        if exclusive:
            first = np.full_like(np.take(y, [0] * min(1, y.shape[axis]), axis), kind == "prod")
            y = np.concatenate([first, np.take(y, range(max(y.shape[axis] - 1, 0)), axis)], axis)
        return np.flip(y, axis) if reverse else y

    def decompose(ctx, x, *, axis, exclusive, reverse):
        b = ctx.build
        axis %= x.rank
        wide = widened(b, x)
        window = maximum(x.dims[axis], 1)
        ends = (0, window - 1) if reverse else (window - 1, 0)
        ones = (1,) * x.rank
        y = b.reduce_window(
            wide, kind=kind, window_dimensions=tuple(window if i == axis else 1 for i in range(x.rank)),
            window_strides=ones, padding=tuple(ends if i == axis else (0, 0) for i in range(x.rank)),
            base_dilations=ones, window_dilations=ones,
        )  # fmt: skip
        if exclusive:
            shift = tuple(int(i == axis) for i in range(x.rank))
            back = tuple(-s for s in shift)
            low, high = (back, shift) if reverse else (shift, back)
            start = b.constant(int(kind == "prod"), y.dtype)
            y = b.pad(y, start, low=low, high=high, interior=(0,) * x.rank)
        return converted(b, y, x.dtype)

    return reference, decompose


_CUMSUM, _CUMPROD = _running("sum", np.cumsum), _running("prod", np.cumprod)


@operator("ArgMax", family="reduction", traits=PURE)
class ArgMax:
    """i64 index of the greatest element along axis; NaN counts as greatest.  The axis must not be empty.

    Ties: first (or last with select_last_index).
    """

    x: Operand[ORDERED]
    axis: int = 0
    keepdims: bool = True
    select_last_index: bool = False
    infer = _reduced_index
    reference, decompose = _ARGMAX
    bucket = bucketing.best_place(bucketing.least)


@operator("ArgMin", family="reduction", traits=PURE)
class ArgMin:
    """i64 index of the least element along axis; NaN counts as least.  The axis must not be empty.

    Ties: first (or last with select_last_index).
    """

    x: Operand[ORDERED]
    axis: int = 0
    keepdims: bool = True
    select_last_index: bool = False
    infer = _reduced_index
    reference, decompose = _ARGMIN
    bucket = bucketing.best_place(bucketing.most)


@operator("CumSum", family="reduction", traits=PURE)
class CumSum:
    """Running sum along axis; exclusive leaves the element itself out, reverse runs from the end."""

    x: Operand[REAL]
    axis: int
    exclusive: bool = False
    reverse: bool = False
    infer = _along_axis
    reference, decompose = _CUMSUM
    bucket = bucketing.running("sum")


@operator("CumProd", family="reduction", traits=PURE)
class CumProd:
    """Running product along axis; exclusive leaves the element itself out, reverse runs from the end."""

    x: Operand[REAL]
    axis: int
    exclusive: bool = False
    reverse: bool = False
    infer = _along_axis
    reference, decompose = _CUMPROD
    bucket = bucketing.running("prod")
