"""ONNX Conv and ConvTranspose, with auto_pad, output_shape and missing kernel shapes resolved."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir.facts import NeedsInts
from .registry import onnx_op
from .window import per_axis, resolved_pads


def convolution(ctx, x, w, kernel_shape, strides, dilations, pads, auto_pad, group):
    """The attributes that every convolution of x[N, C, spatial..] with w[M, C/group, kernel..] has."""
    rank = x.rank - 2
    if rank < 1 or w.rank != x.rank:
        ctx.fail(f"needs a value and a kernel of equal rank 3 or more, got ranks {x.rank} and {w.rank}")
    kernel = w.dims[2:]
    for declared, actual in zip(kernel_shape or (), kernel, strict=False):
        if sizes.equal(declared, actual) is False:
            ctx.fail(f"kernel_shape {list(kernel_shape)} differs from the kernel's dims {list(w.dims)}")
    step, spread = per_axis(ctx, strides, rank, "strides"), per_axis(ctx, dilations, rank, "dilations")
    return {
        "strides": step,
        "dilations": spread,
        "pads": resolved_pads(ctx, x.dims[2:], kernel, step, spread, pads, auto_pad),
        "group": group,
    }


@onnx_op("Conv")
def conv(ctx, x, w, b=None, *, kernel_shape=(), strides=(), dilations=(), pads=(), auto_pad="NOTSET", group=1):
    return ctx.build.Conv(x, w, b, **convolution(ctx, x, w, kernel_shape, strides, dilations, pads, auto_pad, group))


@onnx_op("ConvTranspose")
def conv_transpose(
    ctx, x, w, b=None, *, kernel_shape=(), strides=(), dilations=(), pads=(), auto_pad="NOTSET", group=1,
    output_padding=(), output_shape=(),
):  # fmt: skip
    rank = x.rank - 2
    if rank < 1 or w.rank != x.rank:
        ctx.fail(f"needs a value and a kernel of equal rank 3 or more, got ranks {x.rank} and {w.rank}")
    step, spread = per_axis(ctx, strides, rank, "strides"), per_axis(ctx, dilations, rank, "dilations")
    extra = per_axis(ctx, output_padding, rank, "output_padding", 0)
    if any(not isinstance(k, int) for k in w.dims[2:]):
        raise NeedsInts("the kernel's size is known only at run time")
    reach = [(k - 1) * d + 1 for k, d in zip(w.dims[2:], spread, strict=True)]
    if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = output_shape[-rank:] if output_shape else [d * s for d, s in zip(x.dims[2:], step, strict=True)]
        rows = [
            _pads_for(ctx, *row, upper_first=auto_pad != "SAME_UPPER")
            for row in zip(x.dims[2:], wanted, step, reach, extra, strict=True)
        ]
        padding, extra = tuple(p for p, _ in rows), tuple(e for _, e in rows)
    else:
        padding = resolved_pads(ctx, x.dims[2:], w.dims[2:], step, spread, pads, auto_pad)
    return ctx.build.ConvTranspose(
        x, w, b, strides=step, dilations=spread, pads=padding, output_padding=extra, group=group
    )


def _pads_for(ctx, size, wanted, stride, reach, extra, *, upper_first):
    """Pads that give an output of the wanted size, and the output padding where even none is not enough."""
    total = stride * (size - 1) + extra + reach - wanted
    if sizes.less(total, 0) is True:
        return (0, 0), extra - total
    total = sizes.maximum(total, 0)
    less = sizes.floordiv(total, 2)
    return ((total - less, less) if upper_first else (less, total - less)), extra


@onnx_op("DeformConv")
def deform_conv(
    ctx, x, w, offset, b=None, mask=None, *, dilations=(), group=1, kernel_shape=(), offset_group=1, pads=(),
    strides=(),
):  # fmt: skip
    if x.rank != 4:
        ctx.refuse(f"{x.rank - 2} spatial axes are not supported, only two")
    pads = pads or (0, 0, 0, 0)
    return ctx.build.DeformConv(
        x, w, offset, b, mask, strides=strides or (1, 1), dilations=dilations or (1, 1),
        pads=((pads[0], pads[2]), (pads[1], pads[3])), group=group, offset_group=offset_group,
    )  # fmt: skip
