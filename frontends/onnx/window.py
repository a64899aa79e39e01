"""ONNX pooling, and what all operators over windows share: strides, dilations, pads and auto_pad resolved to sizes."""

from __future__ import annotations

from ...ir import dims as sizes
from .registry import onnx_op


def per_axis(ctx, given, rank, what, default=1):
    """One number a spatial axis."""
    if not given:
        return (default,) * rank
    if len(given) != rank:
        ctx.fail(f"{what} needs {rank} numbers, one a spatial axis, got {len(given)}")
    return tuple(given)


def resolved_pads(ctx, spatial, kernel, strides, dilations, pads, auto_pad):
    """(low, high) an axis.  SAME pads so that the output has ceil(size / stride) elements, symbolic sizes included."""
    rank = len(spatial)
    if auto_pad in ("NOTSET", "", None):
        flat = per_axis(ctx, pads, 2 * rank, "pads", 0)
        return tuple((flat[i], flat[i + rank]) for i in range(rank))
    if any(pads):
        ctx.fail(f"has both pads {list(pads)} and auto_pad {auto_pad}")
    if auto_pad == "VALID":
        return ((0, 0),) * rank
    if auto_pad not in ("SAME_UPPER", "SAME_LOWER"):
        ctx.fail(f"auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, got {auto_pad!r}")
    out = []
    for size, k, stride, dilation in zip(spatial, kernel, strides, dilations, strict=True):
        reach = (k - 1) * dilation + 1
        total = sizes.maximum((sizes.ceildiv(size, stride) - 1) * stride + reach - size, 0)
        less = sizes.floordiv(total, 2)
        out.append((less, total - less) if auto_pad == "SAME_UPPER" else (total - less, less))
    return tuple(out)


def pool(ctx, x, kernel_shape, strides, dilations, pads, auto_pad):
    """The attributes that every pool has."""
    rank = x.rank - 2
    if rank < 1:
        ctx.fail(f"needs a value of rank 3 or more, got rank {x.rank}")
    kernel = per_axis(ctx, kernel_shape, rank, "kernel_shape")
    step, spread = per_axis(ctx, strides, rank, "strides"), per_axis(ctx, dilations, rank, "dilations")
    return {
        "kernel_shape": kernel,
        "strides": step,
        "dilations": spread,
        "pads": resolved_pads(ctx, x.dims[2:], kernel, step, spread, pads if auto_pad == "NOTSET" else (), auto_pad),
    }


@onnx_op("MaxPool")
def max_pool(
    ctx, x, *, kernel_shape, strides=(), dilations=(), pads=(), auto_pad="NOTSET", ceil_mode=0, storage_order=0
):  # fmt: skip
    out = ctx.build.MaxPool(
        x,
        **pool(ctx, x, kernel_shape, strides, dilations, pads, auto_pad),
        ceil_mode=bool(ceil_mode) and auto_pad == "NOTSET",
        storage_order=storage_order,
        with_indices=ctx.wants(1),
    )
    return out if isinstance(out, tuple) else (out,)


@onnx_op("AveragePool")
def average_pool(
    ctx, x, *, kernel_shape, strides=(), dilations=(), pads=(), auto_pad="NOTSET", ceil_mode=0, count_include_pad=0
):  # fmt: skip
    return ctx.build.AveragePool(
        x,
        **pool(ctx, x, kernel_shape, strides, dilations, pads, auto_pad),
        ceil_mode=bool(ceil_mode) and auto_pad == "NOTSET",
        count_include_pad=bool(count_include_pad),
    )


@onnx_op("LpPool")
def lp_pool(ctx, x, *, kernel_shape, strides=(), dilations=(), pads=(), auto_pad="NOTSET", ceil_mode=0, p=2):
    return ctx.build.LpPool(
        x,
        **pool(ctx, x, kernel_shape, strides, dilations, pads, auto_pad),
        ceil_mode=bool(ceil_mode) and auto_pad == "NOTSET",
        p=int(p),
    )


@onnx_op("GlobalAveragePool", "GlobalMaxPool")
def global_pool(ctx, x):
    return ctx.build.apply(ctx.node.op_type, x)


@onnx_op("GlobalLpPool")
def global_lp_pool(ctx, x, *, p=2):
    return ctx.build.GlobalLpPool(x, p=int(p))


@onnx_op("Col2Im")
def col2im(ctx, x, image_shape, block_shape, *, dilations=(), pads=(), strides=()):
    image = ctx.numbers(image_shape, "the image's shape")
    block = ctx.numbers(block_shape, "the block's shape")
    rank = len(image)
    pads = pads or (0,) * 2 * rank
    return ctx.build.Col2Im(
        x, image=image, block=block, strides=strides or (1,) * rank, dilations=dilations or (1,) * rank,
        pads=tuple(zip(pads[:rank], pads[rank:], strict=True)),
    )  # fmt: skip


@onnx_op("MaxUnpool")
def max_unpool(ctx, x, indices, output_shape=None, *, kernel_shape, pads=(), strides=()):
    rank = len(kernel_shape)
    pads, strides = pads or (0,) * 2 * rank, strides or (1,) * rank
    pooled = tuple(
        (n - 1) * s - pads[i] - pads[rank + i] + k
        for i, (n, s, k) in enumerate(zip(x.dims[2:], strides, kernel_shape, strict=True))
    )
    whole = (*x.dims[:2], *pooled)
    dims = whole if output_shape is None else ctx.ints(output_shape, "the output's shape")
    return ctx.build.MaxUnpool(x, indices, pooled=whole, dims=dims)
