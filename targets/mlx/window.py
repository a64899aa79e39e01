"""Operators over sliding windows: pairwise combination of strided slices, which beats every window view in MLX."""

import math

from ...ir import dims as sizes
from ...ir import dtypes
from ...ir.ops.combination import identity
from ...ir.ops.window import ceil_padding
from . import types
from .expression import LOWEST, Slot
from .lowering import lower
from .reduction import filled

_COMBINE = {
    "sum": "mx.add", "prod": "mx.multiply", "max": "mx.maximum", "min": "mx.minimum", "and": "mx.bitwise_and",
    "or": "mx.bitwise_or", "xor": "mx.bitwise_xor",
}  # fmt: skip
_LOGICAL = {"max": "or", "min": "and"}


def _padded(ctx, x, padding, fill):
    """x with the padding of its axes filled; negative padding removes."""
    if all(p == (0, 0) for p in padding):
        return x
    dims = tuple(d + low + high for d, (low, high) in zip(x.dims, padding, strict=True))
    if any(sizes.less_equal(0, p) is not True for pair in padding for p in pair):
        low, high = ([p[i] for p in padding] for i in (0, 1))
        return ctx.recipe("_pad", x, low, high, [0] * x.rank, fill, dims=dims)
    keywords = {}
    if fill.number is None or fill.number != 0:
        weak = fill.number is not None and not x.dtype.is_bool
        keywords["constant_values"] = Slot(fill, LOWEST, True) if weak else fill
    return ctx.call("mx.pad", x, [tuple(p) for p in padding], dims=dims, **keywords)


def _identity(ctx, kind, dtype, wide):
    """The identity of a kind of `dtype`, in the type that windows are combined in."""
    return ctx.scalar(identity(kind, dtype).astype(wide.numpy), wide)


def combined_windows(ctx, x, kind, window, strides, padding, dilations, dims, *, dtype):
    """Windows of x, in its wide type, combined by a kind that has a name."""
    if x.dtype.is_bool:
        kind = _LOGICAL.get(kind, kind)
    fill = _identity(ctx, kind, dtype, x.dtype)
    window = [ctx.static(w, "a window size") for w in window]
    x = _padded(ctx, x, padding, fill)
    numbers = (list(window), list(strides), list(dilations))
    return ctx.recipe("_reduce_window", x, *numbers, _COMBINE[kind], fill, dims=dims)


@lower("reduce_window")
def reduce_window(
    ctx, xs, *, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations, body
):  # fmt: skip
    if kind == "custom":
        return _custom(ctx, xs, window_dimensions, window_strides, padding, base_dilations, window_dilations, body)
    x = xs[0]
    dtype = x.dtype
    if (
        kind in ("sum", "prod")
        and (
            sliding := _cumulative(
                ctx, x, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations
            )
        )
        is not None
    ):
        return sliding
    if not all(isinstance(w, int) for w in window_dimensions):
        ctx.refuse("a window of symbolic size")
    wide = ctx.convert(ctx.wide(x), types.accumulator(dtype)) if kind in ("sum", "prod") else ctx.wide(x)
    if any(d != 1 for d in base_dilations):
        fill = _identity(ctx, kind, dtype, wide.dtype)
        low, high = ([p[i] for p in padding] for i in (0, 1))
        wide = ctx.recipe("_pad", wide, low, high, [d - 1 for d in base_dilations], fill)
        padding = [(0, 0)] * x.rank
    out = combined_windows(
        ctx,
        wide,
        kind,
        window_dimensions,
        window_strides,
        padding,
        window_dilations,
        ctx.result_types[0].shape,
        dtype=dtype,
    )
    return ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)


def _cumulative(ctx, x, kind, window, strides, padding, base, dilations):
    """A running sum or product: one axis, whose window reaches over all that came before; else None."""
    axes = [a for a, w in enumerate(window) if w != 1]
    if len(axes) != 1 or any(s != 1 for s in (*strides, *base, *dilations)) or types.is_code(x.dtype):
        return None
    (axis,) = axes
    n, w = x.dims[axis], window[axis]
    low, high = padding[axis]
    if any(p != (0, 0) for a, p in enumerate(padding) if a != axis):
        return None
    if not (sizes.equal(w, n) or sizes.equal(w, sizes.maximum(n, 1))):
        return None
    forward = sizes.equal(low, w - 1) and high == 0
    backward = sizes.equal(high, w - 1) and low == 0
    if not (forward or backward) or (isinstance(w, int) and w < 4):
        return None
    dtype = x.dtype
    wide = ctx.convert(ctx.wide(x), types.accumulator(dtype))
    keywords = {"axis": axis, **({"reverse": True} if backward else {})}
    out = ctx.call("mx.cumsum" if kind == "sum" else "mx.cumprod", wide, **keywords)
    return ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)


def _custom(ctx, xs, window, strides, padding, base, dilations, body):
    count = len(xs) // 2
    if any(types.wide(x.dtype) is not x.dtype for x in xs):
        ctx.refuse("a custom reduction of narrow types")
    dims = ctx.result_types[0].shape
    name = ctx.function(body, "combine", [dims] * (2 * count))
    low, high = ([p[i] for p in padding] for i in (0, 1))
    padded = [
        ctx.recipe("_pad", x, low, high, [d - 1 for d in base], init)
        for x, init in zip(xs[:count], xs[count:], strict=True)
    ]
    window = [ctx.static(w, "a window size") for w in window]
    made = ctx.recipe("_reduce_window_custom", padded, list(xs[count:]), window, list(strides), list(dilations), name)
    results = ctx.node.results
    return ctx.unpack(made, [(r.dtype, r.dims) for r in results], [r.name or "reduced" for r in results])


@lower("select_and_scatter")
def select_and_scatter(ctx, x, source, *, select, window_dimensions, window_strides, padding):
    dtype = source.dtype
    wide, values = ctx.wide(x), ctx.convert(ctx.wide(source), types.accumulator(dtype))
    sign = 1 if select == "max" else -1
    if x.dtype.is_bool:
        ctx.refuse("select_and_scatter of bool")
    out = ctx.recipe(
        "_select_and_scatter", wide, values, list(padding), list(window_dimensions), list(window_strides), sign,
        dims=x.dims, dtype=values.dtype,
    )  # fmt: skip
    return ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)


def _around(spatial, fill):
    return (fill, fill, *spatial)


def _pool(ctx, x, kind, kernel, strides, dilations, pads, ceil_mode, finish=lambda y: y):
    """Windows over the spatial axes, in the layout that x was made in; `finish` is applied before that is changed."""
    pads = [ceil_padding(*row, ceil_mode) for row in zip(kernel, strides, dilations, pads, strict=True)]
    source, permutation = ctx.laid_out(x)
    dtype = source.dtype
    wide = ctx.convert(ctx.wide(source), types.accumulator(dtype)) if kind == "sum" else ctx.wide(source)
    lists = (
        _around(kernel, 1),
        _around(strides, 1),
        _around(pads, (0, 0)),
        _around(dilations, 1),
        ctx.result_types[0].shape,
    )
    turned = [[row[permutation.index(a)] for a in range(x.rank)] for row in lists]
    out = finish(combined_windows(ctx, wide, kind, *turned, dtype=dtype))
    out = ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)
    return out if source is x else ctx.channels_first(out)


@lower("MaxPool")
def max_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, with_indices):
    if with_indices:
        ctx.refuse("indices of maxima")
    return _pool(ctx, x, "max", kernel_shape, strides, dilations, pads, ceil_mode)


@lower("AveragePool")
def average_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad):
    dims = ctx.result_types[0].shape
    _, permutation = ctx.laid_out(x)
    counts = _counts(ctx, x.dims[2:], dims[2:], kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad)

    def divided(y):
        number = math.prod(c for c in counts if isinstance(c, int))
        if number != 1 or all(isinstance(c, int) for c in counts):
            y = ctx.infix("/", y, number)
        for axis, count in enumerate(counts, 2):
            if not isinstance(count, int):
                behind = x.rank - 1 - permutation[axis]
                y = ctx.infix("/", y, ctx.reshape(count, (*count.dims, *[1] * behind)))
        return y

    return _pool(ctx, x, "sum", kernel_shape, strides, dilations, pads, ceil_mode, divided)


def _counts(ctx, sizes, outs, kernel, strides, dilations, pads, ceil_mode, count_include_pad):
    """How many elements each window holds along an axis: a number, or a vector where it differs."""
    counts = []
    for size, out, k, s, d, (low, high) in zip(sizes, outs, kernel, strides, dilations, pads, strict=True):
        if (count_include_pad or (low == 0 and high == 0)) and not (ceil_mode and s > 1):
            counts.append(k)
            continue
        first, last = (-low, size + high) if count_include_pad else (0, size)
        counts.append(ctx.recipe("_held", out, k, s, d, low, first, last, dtype=dtypes.f32, dims=(out,)))
    return counts


def _global(ctx, x, name):
    if x.rank < 3:
        ctx.refuse("no spatial axes")
    if types.is_code(x.dtype):
        ctx.refuse(f"MLX holds {x.dtype} as bytes")
    source, permutation = ctx.laid_out(x)
    axes = tuple(sorted(permutation[a] for a in range(2, x.rank)))
    dims = ctx.result_types[0].shape
    wide = ctx.convert(source, types.accumulator(x.dtype)) if name == "mean" else source
    if name == "mean":
        wide = filled(ctx, wide, axes, math.nan)
    out = ctx.method(
        wide, name, axis=axes[0] if len(axes) == 1 else axes, keepdims=True,
        dims=[dims[permutation.index(a)] for a in range(x.rank)],
    )  # fmt: skip
    out = ctx.convert(out, x.dtype)
    return out if source is x else ctx.channels_first(out)


@lower("GlobalAveragePool")
def global_average_pool(ctx, x):
    return _global(ctx, x, "mean")


@lower("GlobalMaxPool")
def global_max_pool(ctx, x):
    if any(sizes.less_equal(1, d) is not True for d in x.dims[2:]):
        ctx.refuse("the maximum of axes that may be empty")
    return _global(ctx, x, "max")
