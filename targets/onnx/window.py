"""ONNX lowering of pools."""

from __future__ import annotations

from ...ir.dims import equal, floordiv
from .lowering import flat_pads, lower


def _numeric_pads(ctx, pads):
    return ctx.numbers([p for pair in pads for p in pair], "padding")


def _ceil_mode(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode):
    """0 where rounding down gives the result's dims: old versions count windows that begin behind the data."""
    rows = zip(x.dims[2:], kernel_shape, strides, dilations, pads, ctx.results[0].shape[2:], strict=True)
    down = all(equal(floordiv(n + low + high - d * (k - 1) - 1, s) + 1, out) for n, k, s, d, (low, high), out in rows)
    return int(ceil_mode and not down)


def _max_pool_claim(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, with_indices):
    return _numeric_pads(ctx, pads)


@lower("MaxPool", when=_max_pool_claim)
def max_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, storage_order, with_indices):
    return ctx.ops(
        "MaxPool",
        x,
        kernel_shape=kernel_shape,
        strides=strides,
        dilations=dilations,
        pads=flat_pads(pads),
        ceil_mode=_ceil_mode(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode),
        storage_order=storage_order,
    )


def _average_pool_claim(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad):
    return _numeric_pads(ctx, pads)


@lower("AveragePool", when=_average_pool_claim)
def average_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, count_include_pad):
    return ctx.op(
        "AveragePool",
        x,
        kernel_shape=kernel_shape,
        strides=strides,
        dilations=dilations,
        pads=flat_pads(pads),
        ceil_mode=_ceil_mode(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode),
        count_include_pad=int(count_include_pad),
    )


def _lp_pool_claim(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, p):
    return _numeric_pads(ctx, pads)


@lower("LpPool", when=_lp_pool_claim)
def lp_pool(ctx, x, *, kernel_shape, strides, dilations, pads, ceil_mode, p):
    return ctx.op(
        "LpPool",
        x,
        kernel_shape=kernel_shape,
        strides=strides,
        dilations=dilations,
        pads=flat_pads(pads),
        ceil_mode=_ceil_mode(ctx, x, kernel_shape, strides, dilations, pads, ceil_mode),
        p=p,
    )


def _global_claim(ctx, x, **_):
    """Why not: ONNX's kernels take values with a spatial axis, and none that is empty."""
    odd = ctx.dialect.runtime and (x.rank < 3 or 0 in x.dims)
    return f"ONNX Runtime pools no {x.type}" if odd else None


@lower("GlobalAveragePool", when=_global_claim)
def global_average_pool(ctx, x):
    return ctx.op("GlobalAveragePool", x)


@lower("GlobalMaxPool", when=_global_claim)
def global_max_pool(ctx, x):
    return ctx.op("GlobalMaxPool", x)


@lower("GlobalLpPool", when=_global_claim)
def global_lp_pool(ctx, x, *, p):
    return ctx.op("GlobalLpPool", x, p=p)
