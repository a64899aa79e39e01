"""Convolutions with an addition and an activation fused in, or with channels last, of ONNX Runtime."""

from __future__ import annotations

from functools import partial

from ..convolution import conv, conv_transpose
from ..registry import onnx_op as _onnx_op
from .elementwise import activated

onnx_op = partial(_onnx_op, domain="com.microsoft")


def channels_first(ctx, x):
    """[N, spatial.., C] as [N, C, spatial..]."""
    if x.rank < 3:
        ctx.fail(f"needs a value of rank 3 or more, got {x.type}")
    return ctx.build.transpose(x, permutation=(0, x.rank - 1, *range(1, x.rank - 1)))


def channels_last(ctx, x):
    """[N, C, spatial..] as [N, spatial.., C]."""
    return ctx.build.transpose(x, permutation=(0, *range(2, x.rank), 1))


@onnx_op("FusedConv")
def fused_conv(
    ctx, x, w, b=None, z=None, *, activation="", activation_params=(), kernel_shape=(), strides=(), dilations=(),
    pads=(), auto_pad="NOTSET", group=1,
):  # fmt: skip
    """activation(Conv(x, w, b) + z)"""
    out = conv(ctx, x, w, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=pads,
               auto_pad=auto_pad, group=group)  # fmt: skip
    return activated(ctx, out if z is None else ctx.build.add(out, z), activation, activation_params)


@onnx_op("NhwcFusedConv", "NhwcConv")
def nhwc_fused_conv(
    ctx, x, w, b=None, z=None, *, activation="", activation_params=(), kernel_shape=(), strides=(), dilations=(),
    pads=(), auto_pad="NOTSET", group=1,
):  # fmt: skip
    """As FusedConv with x, z and the result [N, spatial.., C]; the weights stay [M, C / group, kernel..]."""
    out = conv(ctx, channels_first(ctx, x), w, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations,
               pads=pads, auto_pad=auto_pad, group=group)  # fmt: skip
    out = channels_last(ctx, out)
    return activated(ctx, out if z is None else ctx.build.add(out, z), activation, activation_params)


@onnx_op("ConvTransposeWithDynamicPads")
def conv_transpose_with_dynamic_pads(
    ctx, x, w, pads=None, b=None, *, kernel_shape=(), strides=(), dilations=(), auto_pad="NOTSET", group=1,
    output_padding=(),
):  # fmt: skip
    widths = () if pads is None else ctx.ints(pads, "the pads")
    return conv_transpose(ctx, x, w, b, kernel_shape=kernel_shape, strides=strides, dilations=dilations, pads=widths,
                          auto_pad=auto_pad, group=group, output_padding=output_padding)  # fmt: skip
