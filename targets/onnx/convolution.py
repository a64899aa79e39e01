"""ONNX lowering of convolutions."""

from __future__ import annotations

from .lowering import flat_pads, lower


def _numbers(dims):
    """Sizes as an attribute; None where the weights tell them at run time."""
    return dims if all(isinstance(d, int) for d in dims) else None


def _numeric(ctx, x, w, b, *, strides, dilations, pads, group):
    if x.rank < 3:
        return "ONNX's convolutions have spatial axes"
    return ctx.numbers([p for pair in pads for p in pair], "padding")


@lower("Conv", when=_numeric)
def conv(ctx, x, w, b, *, strides, dilations, pads, group):
    return ctx.op(
        "Conv",
        x,
        w,
        b,
        strides=strides,
        dilations=dilations,
        pads=flat_pads(pads),
        group=group,
        kernel_shape=_numbers(w.dims[2:]),
    )


def _transpose_numeric(ctx, x, w, b, *, strides, dilations, pads, output_padding, group):
    if x.rank < 3:
        return "ONNX's convolutions have spatial axes"
    if any(isinstance(n, int) and n < 0 for n in output_padding):
        return "ONNX's output_padding is not negative"
    return ctx.numbers([*(p for pair in pads for p in pair), *output_padding], "padding")


@lower("ConvTranspose", when=_transpose_numeric)
def conv_transpose(ctx, x, w, b, *, strides, dilations, pads, output_padding, group):
    return ctx.op(
        "ConvTranspose",
        x,
        w,
        b,
        strides=strides,
        dilations=dilations,
        pads=flat_pads(pads),
        output_padding=output_padding,
        group=group,
        kernel_shape=_numbers(w.dims[2:]),
    )


def _conv_claim(
    ctx,
    x,
    w,
    *,
    lhs_spec,
    rhs_spec,
    out_spec,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    window_reversal,
    feature_group_count,
    batch_group_count,
    precision,
    result,
):
    if x.rank < 3:
        return "ONNX's Conv has at least one spatial axis"
    if any(d != 1 for d in lhs_dilation) or any(window_reversal) or batch_group_count != 1:
        return "ONNX's Conv has no input dilation, kernel reversal or batch groups"
    if not x.dtype.is_float or result not in (None, x.dtype):
        return "ONNX's Conv is for floats of one type"
    pads = [p for pair in padding for p in pair]
    if any(isinstance(p, int) and p < 0 for p in pads):
        return "ONNX's Conv has no negative padding"
    return ctx.numbers(pads, "padding")


@lower("convolution", when=_conv_claim)
def convolution(
    ctx,
    x,
    w,
    *,
    lhs_spec,
    rhs_spec,
    out_spec,
    window_strides,
    padding,
    lhs_dilation,
    rhs_dilation,
    window_reversal,
    feature_group_count,
    batch_group_count,
    precision,
    result,
):
    spatial = "".join(str(i) for i in range(x.rank - 2))
    data = ctx.transpose(x, [lhs_spec.index(c) for c in "bf" + spatial])
    kernel = ctx.transpose(w, [rhs_spec.index(c) for c in "oi" + spatial])
    produced = ctx.results[0].with_dims([ctx.results[0].shape[out_spec.index(c)] for c in "bf" + spatial])
    out = ctx.op(
        "Conv",
        data,
        kernel,
        type=produced,
        strides=window_strides,
        dilations=rhs_dilation,
        pads=flat_pads(padding),
        group=feature_group_count,
        kernel_shape=_numbers(kernel.dims[2:]),
    )
    return ctx.transpose(out, [("bf" + spatial).index(c) for c in out_spec])
