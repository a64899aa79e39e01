"""NhwcMaxPool of ONNX Runtime."""

from __future__ import annotations

from ..registry import onnx_op
from ..window import max_pool
from .convolution import channels_first, channels_last


@onnx_op("NhwcMaxPool", domain="com.microsoft")
def nhwc_max_pool(
    ctx, x, *, kernel_shape, strides=(), dilations=(), pads=(), auto_pad="NOTSET", ceil_mode=0
):  # fmt: skip
    """MaxPool of [N, spatial.., C]."""
    (out,) = max_pool(ctx, channels_first(ctx, x), kernel_shape=kernel_shape, strides=strides, dilations=dilations,
                      pads=pads, auto_pad=auto_pad, ceil_mode=ceil_mode)  # fmt: skip
    return channels_last(ctx, out)
