"""Core operators over sliding windows: reduce_window and select_and_scatter."""

import numpy as np

from ...dims import Size, maximum
from ...dtypes import DType
from ...facts import Fact
from ...operators import ORDERED, PURE, Operand, Region, Variadic, operator
from ...types import TensorType
from .. import bucketing, sliding
from ..combination import UFUNCS, combined, identity
from ..widening import wide_array


def windows(size: Size, window: Size, stride: int, padding, base_dilation: int = 1, window_dilation: int = 1) -> Size:
    """How many windows fit along an axis; 0 if none does."""
    low, high = padding
    dilated = size if base_dilation == 1 else maximum((size - 1) * base_dilation + 1, 0)
    return maximum((dilated + low + high - ((window - 1) * window_dilation + 1)) // stride + 1, 0)


def check_lengths(ctx, rank: int, **attributes) -> None:
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
    check_lengths(
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
    check_lengths(ctx, x.rank, window_dimensions=window_dimensions, window_strides=window_strides, padding=padding)
    dims = [windows(*row) for row in zip(x.dims, window_dimensions, window_strides, padding, strict=True)]
    ctx.equal_dims(source.dims, dims, "dims of source and of the windows")
    return x.with_dims(x.dims)


def _reduce_window_reference(
    ctx, xs, *, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations, body
):
    shape = ctx.result_types[0].dims
    if kind != "custom":
        start = identity(kind, DType.from_numpy(xs[0].dtype))
        y = wide_array(xs[0])
        start = start.astype(y.dtype)
        for axis, factor in enumerate(base_dilations):
            y = sliding.dilate(y, axis, factor, start)
        y = sliding.pad(y, padding, start)
        for axis, row in enumerate(zip(shape, window_dimensions, window_strides, window_dilations, strict=True)):
            if row[1:3] != (1, 1) or row[0] != y.shape[axis]:
                y = sliding.along_axis(UFUNCS[kind], y, axis, *row, start)
        return y
    count = len(xs) // 2
    padded = []
    for x, init in zip(xs[:count], xs[count:], strict=True):
        for axis, factor in enumerate(base_dilations):
            x = sliding.dilate(x, axis, factor, init)
        padded.append(sliding.pad(x, padding, init))
    results = [np.empty(shape, t.dtype.numpy) for t in ctx.result_types]
    for place in np.ndindex(*shape):
        state = tuple(xs[count:])
        for offset in sliding.offsets(window_dimensions):
            at = tuple(
                o * s + k * d for o, s, k, d in zip(place, window_strides, offset, window_dilations, strict=True)
            )
            state = ctx.run(body, *state, *(np.asarray(x[at]) for x in padded))
        for result, value in zip(results, state, strict=True):
            result[place] = value
    return tuple(results)


def _reduce_window_vjp(
    ctx, xs, *, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations, body
):
    """sum; max and min without dilations, where the first of equal elements in a window has the cotangent."""
    b, x, g = ctx.build, xs[0], ctx.cotangent
    plain = all(d == 1 for d in (*base_dilations, *window_dilations))
    if kind in ("max", "min") and plain and all(isinstance(w, int) for w in window_dimensions):
        dx = b.select_and_scatter(
            x, g, select=kind, window_dimensions=window_dimensions, window_strides=window_strides, padding=padding
        )
        return (dx,)
    if kind != "sum":
        ctx.refuse(f"kind {kind!r} with these windows has no derivative here; sum, and max and min undilated, have")
    pads = []
    sizes = (x.dims, g.dims, window_dimensions)
    rows = zip(*sizes, window_strides, padding, base_dilations, window_dilations, strict=True)
    for size, out, window, stride, (low, _), base, dilation in rows:
        before = (window - 1) * dilation - low
        # As many places as the dilated x has, whatever of it no window reached.
        pads.append((before, (size - 1) * base + (window - 1) * dilation + 1 - before - ((out - 1) * stride + 1)))
    dx = b.reduce_window(
        g, kind="sum", window_dimensions=window_dimensions, window_strides=base_dilations, padding=tuple(pads),
        base_dilations=window_strides, window_dilations=window_dilations,
    )  # fmt: skip
    return (dx,)


def _select_and_scatter_reference(ctx, x, source, *, select, window_dimensions, window_strides, padding):
    wide = wide_array(x)
    ones = (1,) * x.ndim
    _, places = sliding.best_places(
        wide, source.shape, window_dimensions, window_strides, ones, padding, least=select == "min"
    )
    y = np.zeros(x.size, wide.dtype)
    np.add.at(y, places[places >= 0], wide_array(source)[places >= 0])
    return y.reshape(x.shape)


@operator("reduce_window", family="window", traits=PURE)
class ReduceWindow:
    """xs combined in windows.  kind as in reduce; every attribute has one entry an axis of x.

    padding has pairs (low, high), which may be negative; it counts as the identity.  custom: xs are n inputs then n
    scalar inits, which are what padding counts as; body as in reduce.  Result dim: (padded - ((w - 1) *
    window_dilation + 1)) // stride + 1, or 0 where the window does not fit.
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
    reference = _reduce_window_reference
    vjp = _reduce_window_vjp
    bucket = bucketing.reduce_window


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
    reference = _select_and_scatter_reference
    bucket = bucketing.select_and_scatter
