"""Convolutions: the core operator in any layout, and ONNX's Conv and ConvTranspose in NCHW."""

from typing import Literal

import numpy as np

from ..dims import Size, less_equal, maximum
from ..dtypes import DType
from ..facts import Fact
from ..operators import FLOAT, NUMERIC, PURE, Operand, operator
from ..types import TensorType


def conv_size(ctx, size: Size, kernel: Size, stride: int, padding, dilation: int, base_dilation: int = 1) -> Size:
    """Result dim of a convolution along an axis; fails where the kernel does not fit."""
    low, high = padding
    dilated = size if base_dilation == 1 else maximum((size - 1) * base_dilation + 1, 0)
    out = (dilated + low + high - ((kernel - 1) * dilation + 1)) // stride + 1
    if less_equal(0, out) is False:
        ctx.fail(f"a kernel of size {kernel} (dilation {dilation}) does not fit an axis of {size} padded by {low} and {high}")
    ctx.at_most(0, out, "the kernel must fit the padded axis")
    return out


def _check_spatial(ctx, count: int, **attributes) -> None:
    for name, value in attributes.items():
        ctx.need(len(value) == count, f"{name} needs {count} entries, one a spatial axis, got {len(value)}")
        for entry in value:
            if name in ("padding", "pads"):
                ctx.need(len(entry) == 2, f"{name} needs pairs (low, high), got {entry}")
            elif name != "window_reversal":
                ctx.need(entry >= 1, f"{name} must be at least 1, got {entry}")


def _check_spec(ctx, spec: str, letters: str, x, what: str) -> None:
    wanted = sorted(letters + "".join(map(str, range(x.rank - 2))))
    ctx.need(sorted(spec) == wanted, f"{what} {spec!r} must name the axes {''.join(wanted)} of {x.type}")


def divided(ctx, size: Size, count: int, what: str) -> Size:
    """size / count; fails unless count divides size."""
    ctx.equal(size % count, 0, f"{what} modulo {count} (which must divide it) and 0")
    return size // count


def _convolution_type(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, window_strides, padding, lhs_dilation, rhs_dilation, window_reversal,
    feature_group_count, batch_group_count, precision, result,
):  # fmt: skip
    if result is None:
        result = ctx.same_dtype(x, w)
    ctx.need(x.rank == w.rank and x.rank >= 2, f"x and w must have equal rank of 2 or more, got {x.type} and {w.type}")
    for spec, letters, what in ((lhs_spec, "bf", "lhs_spec"), (rhs_spec, "oi", "rhs_spec"), (out_spec, "bf", "out_spec")):
        _check_spec(ctx, spec, letters, x, what)
    _check_spatial(
        ctx, x.rank - 2, window_strides=window_strides, padding=padding, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation, window_reversal=window_reversal,
    )  # fmt: skip
    ctx.need(feature_group_count >= 1 and batch_group_count >= 1, "group counts must be at least 1")
    ctx.need(feature_group_count == 1 or batch_group_count == 1, "only one of the group counts may be above 1")
    lhs, rhs = dict(zip(lhs_spec, x.dims, strict=True)), dict(zip(rhs_spec, w.dims, strict=True))
    ctx.equal(lhs["f"], rhs["i"] * feature_group_count, "features of x and of w (times the groups)")
    divided(ctx, rhs["o"], feature_group_count * batch_group_count, "output features of w")
    out = {"b": divided(ctx, lhs["b"], batch_group_count, "batch of x"), "f": rhs["o"]}
    for i in range(x.rank - 2):
        axis = str(i)
        out[axis] = conv_size(
            ctx, lhs[axis], rhs[axis], window_strides[i], padding[i], rhs_dilation[i], lhs_dilation[i]
        )
    return Fact(TensorType(result, tuple(out[c] for c in out_spec)))


def conv_dims(ctx, x, w, *, strides, dilations, pads, group) -> tuple[Size, ...]:
    """Result dims of ONNX Conv."""
    ctx.need(x.rank == w.rank and x.rank >= 2, f"x and w must have equal rank of 2 or more, got {x.type} and {w.type}")
    _check_spatial(ctx, x.rank - 2, strides=strides, dilations=dilations, pads=pads)
    ctx.need(group >= 1, f"group must be at least 1, got {group}")
    ctx.equal(x.dims[1], w.dims[1] * group, "channels of x and of w (times group)")
    divided(ctx, w.dims[0], group, "output channels of w")
    rows = zip(x.dims[2:], w.dims[2:], strides, pads, dilations, strict=True)
    return (x.dims[0], w.dims[0], *(conv_size(ctx, *row) for row in rows))


def _check_bias(ctx, b, channels: Size) -> None:
    if b is not None:
        ctx.need(b.rank == 1, f"b must be a vector, got {b.type}")
        ctx.equal(b.dims[0], channels, "the dim of b and the output channels")


def _conv_type(ctx, x, w, b, *, strides, dilations, pads, group):
    dims = conv_dims(ctx, x, w, strides=strides, dilations=dilations, pads=pads, group=group)
    _check_bias(ctx, b, dims[1])
    return Fact(TensorType(ctx.same_dtype(x, w, b), dims))


def _conv_transpose_type(ctx, x, w, b, *, strides, dilations, pads, output_padding, group):
    dtype = ctx.same_dtype(x, w, b)
    ctx.need(x.rank == w.rank and x.rank >= 2, f"x and w must have equal rank of 2 or more, got {x.type} and {w.type}")
    _check_spatial(ctx, x.rank - 2, strides=strides, dilations=dilations, pads=pads)
    ctx.need(len(output_padding) == x.rank - 2, f"output_padding needs {x.rank - 2} entries, got {len(output_padding)}")
    ctx.equal(x.dims[1], w.dims[0], "channels of x and of w")
    divided(ctx, w.dims[0], group, "channels")
    channels = w.dims[1] * group
    _check_bias(ctx, b, channels)
    out = []
    for size, kernel, stride, (low, high), dilation, extra in zip(
        x.dims[2:], w.dims[2:], strides, pads, dilations, output_padding, strict=True
    ):
        out.append(stride * (size - 1) + extra + (kernel - 1) * dilation + 1 - low - high)
        ctx.at_most(0, out[-1], "the result's dim must not be negative")
    return Fact(TensorType(dtype, (x.dims[0], channels, *out)))


@operator("convolution", family="convolution", traits=PURE)
class Convolution:
    """StableHLO convolution of x with w.  Specs name axes: "b" batch, "f" feature, "i"/"o" kernel in/out, digits spatial.

    e.g. lhs_spec "bf01", rhs_spec "oi01", out_spec "bf01".  padding has one (low, high) pair a spatial axis, may be
    negative.  Result dim: (dilated + low + high - ((k - 1) * rhs_dilation + 1)) // stride + 1.  No kernel flip unless
    window_reversal.  Accumulates as dot_general does; `result` is the result's element type (default: that of x).
    """

    x: Operand[NUMERIC]
    w: Operand[NUMERIC]
    lhs_spec: str
    rhs_spec: str
    out_spec: str
    window_strides: tuple[int, ...]
    padding: tuple[tuple[Size, ...], ...]
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    window_reversal: tuple[bool, ...]
    feature_group_count: int = 1
    batch_group_count: int = 1
    precision: Literal["default", "high", "highest"] = "highest"
    result: DType | None = None
    infer = _convolution_type


@operator("Conv", family="convolution", traits=PURE)
class Conv:
    """ONNX Conv: x[N, C, spatial..], w[M, C/group, kernel..], b[M]; pads are (low, high) pairs, already resolved from auto_pad."""

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    group: int = 1
    infer = _conv_type


@operator("ConvTranspose", family="convolution", traits=PURE)
class ConvTranspose:
    """ONNX ConvTranspose: x[N, C, spatial..], w[C, M/group, kernel..], b[M]; pads and output_padding already resolved.

    Result dim: stride * (in - 1) + output_padding + (k - 1) * dilation + 1 - low - high.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    output_padding: tuple[Size, ...]
    group: int = 1
    infer = _conv_transpose_type
