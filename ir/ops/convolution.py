"""Convolutions: the core operator in any layout, and ONNX's Conv and ConvTranspose in NCHW."""

from typing import Literal

import numpy as np

from ..dims import Size, less_equal
from ..dtypes import DType
from ..facts import Fact
from ..operators import FLOAT, NUMERIC, PURE, Operand, operator
from ..types import TensorType
from . import bucketing, capacities, sliding
from .cotangents import convolution_vjp
from .linalg import product_array, whole
from .sampling import interpolated
from .shape.positions import sliced
from .widening import converted, statistics_type, wide_array


def _dilated(ctx, size: Size, factor: int) -> Size:
    """Size of an axis with factor - 1 zeros between its elements; a symbolic one is needed to be 1 or more."""
    if factor == 1:
        return size
    if isinstance(size, int):
        return max((size - 1) * factor + 1, 0)
    ctx.at_most(1, size, "a dilated axis must not be empty")
    return (size - 1) * factor + 1


def conv_size(ctx, size: Size, kernel: Size, stride: int, padding, dilation: int, base_dilation: int = 1) -> Size:
    """Result dim of a convolution along an axis; fails where the kernel does not fit."""
    low, high = padding
    dilated = _dilated(ctx, size, base_dilation)
    out: Size = (dilated + low + high - ((kernel - 1) * dilation + 1)) // stride + 1
    if less_equal(0, out) is False:
        ctx.fail(
            f"a kernel of size {kernel} (dilation {dilation}) does not fit an axis of {size} padded by {low} and {high}"
        )
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
    for operand in (x, w):
        same = (operand.dtype.is_float, operand.dtype.is_complex) == (result.is_float, result.is_complex)
        ctx.need(same, f"a convolution of {operand.type} cannot have the type {result}")
    ctx.need(x.rank == w.rank and x.rank >= 2, f"x and w must have equal rank of 2 or more, got {x.type} and {w.type}")
    for spec, letters, what in (
        (lhs_spec, "bf", "lhs_spec"),
        (rhs_spec, "oi", "rhs_spec"),
        (out_spec, "bf", "out_spec"),
    ):
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
        out.append(_dilated(ctx, size, stride) + extra + (kernel - 1) * dilation - low - high)
        ctx.at_most(0, out[-1], "the result's dim must not be negative")
    return Fact(TensorType(dtype, (x.dims[0], channels, *out)))


def _ordered(spec: str, letters: str) -> tuple[int, ...]:
    """The permutation that brings an array laid out as `spec` into the order letters, spatial.."""
    return tuple(spec.index(c) for c in letters + "".join(map(str, range(len(spec) - 2))))


def _convolution_reference(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, window_strides, padding, lhs_dilation, rhs_dilation, window_reversal,
    feature_group_count, batch_group_count, precision, result,
):  # fmt: skip
    dtype = ctx.result_types[0].dtype
    x = product_array(x, dtype.numpy).transpose(_ordered(lhs_spec, "bf"))
    w = product_array(w, dtype.numpy).transpose(_ordered(rhs_spec, "oi"))
    w = np.flip(w, [i + 2 for i, reverse in enumerate(window_reversal) if reverse])
    for i, factor in enumerate(lhs_dilation):
        x = sliding.dilate(x, i + 2, factor, 0)
    if (groups := batch_group_count) > 1:
        # Group g of the batch meets group g of w's outputs: the same as feature groups of the remaining batch.
        x = x.reshape(groups, x.shape[0] // groups, *x.shape[1:]).swapaxes(0, 1)
        x = x.reshape(x.shape[0], groups * x.shape[2], *x.shape[3:])
    y = sliding.correlate(x, w, window_strides, padding, rhs_dilation, feature_group_count * groups)
    return whole(y, dtype).transpose([_ordered(out_spec, "bf").index(i) for i in range(y.ndim)])


def _specs(rank: int) -> dict[str, str]:
    """ONNX's layout."""
    digits = "".join(map(str, range(rank - 2)))
    return {"lhs_spec": f"bf{digits}", "rhs_spec": f"oi{digits}", "out_spec": f"bf{digits}"}


def convolve(b, x, w, *, strides, dilations, pads, group, result=None):
    """ONNX Conv without bias as a core convolution."""
    ones = (1,) * (x.rank - 2)
    return b.convolution(
        x, w, **_specs(x.rank), window_strides=strides, padding=pads, lhs_dilation=ones, rhs_dilation=dilations,
        window_reversal=(False,) * (x.rank - 2), feature_group_count=group, result=result,
    )  # fmt: skip


def per_channel(b, x, rank: int):
    """A vector along axis 1 of something of that rank."""
    return b.reshape(x, dims=(x.dims[0], *(1 for _ in range(rank - 2))))


def _with_bias(b, y, bias):
    return y if bias is None else b.add(y, per_channel(b, bias, y.rank))


def _conv_reference(ctx, x, w, b, *, strides, dilations, pads, group):
    y = sliding.correlate(wide_array(x), wide_array(w), strides, pads, dilations, group)
    return y if b is None else y + wide_array(b).reshape(-1, *[1] * (x.ndim - 2))


def _conv(ctx, x, w, b, *, strides, dilations, pads, group):
    y = convolve(ctx.build, x, w, strides=strides, dilations=dilations, pads=pads, group=group)
    return _with_bias(ctx.build, y, b)


def _conv_transpose_reference(ctx, x, w, b, *, strides, dilations, pads, output_padding, group):
    """Each element of x adds its multiple of the kernel to the result."""
    x, w = wide_array(x), wide_array(w)
    n, kernel, spatial = x.shape[0], w.shape[2:], x.shape[2:]
    rows = zip(spatial, strides, kernel, dilations, output_padding, strict=True)
    full = [max((i - 1) * s + 1, 0) + (k - 1) * d + max(extra, 0) for i, s, k, d, extra in rows]
    full = [
        max(size, high, low + out, 0)
        for size, (low, high), out in zip(full, pads, ctx.result_types[0].dims[2:], strict=True)
    ]
    y = np.zeros((n, group, w.shape[1], *full))
    x = x.reshape(n, group, w.shape[0] // group, -1)
    w = w.reshape(group, w.shape[0] // group, w.shape[1], *kernel)
    for offset in sliding.offsets(kernel):
        part = np.matmul(w[(slice(None), slice(None), slice(None), *offset)].swapaxes(1, 2), x)
        at = tuple(sliding.steps(k * d, i, s) for k, d, i, s in zip(offset, dilations, spatial, strides, strict=True))
        y[(..., *at)] += part.reshape(n, group, w.shape[2], *spatial)
    y = y.reshape(n, group * w.shape[2], *full)
    y = sliding.pad(y, [(0, 0), (0, 0), *((-low, 0) for low, _ in pads)], 0)
    y = y[tuple(slice(0, size) for size in ctx.result_types[0].dims)]
    return y if b is None else y + wide_array(b).reshape(-1, *[1] * len(kernel))


def _conv_transpose(ctx, x, w, b, *, strides, dilations, pads, output_padding, group):
    build, spatial = ctx.build, x.rank - 2
    specs = _specs(x.rank)
    if group == 1:
        specs["rhs_spec"] = "io" + specs["rhs_spec"][2:]
    else:
        inputs, outputs, kernel = w.dims[0] // group, w.dims[1], w.dims[2:]
        w = build.reshape(w, dims=(group, inputs, outputs, *kernel))
        w = build.transpose(w, permutation=(0, 2, 1, *range(3, 3 + spatial)))
        w = build.reshape(w, dims=(group * outputs, inputs, *kernel))
    padding = tuple(
        ((k - 1) * d - low, (k - 1) * d - high + extra)
        for k, d, (low, high), extra in zip(w.dims[2:], dilations, pads, output_padding, strict=True)
    )
    y = build.convolution(
        x, w, **specs, window_strides=(1,) * spatial, padding=padding, lhs_dilation=strides, rhs_dilation=dilations,
        window_reversal=(True,) * spatial, feature_group_count=group,
    )  # fmt: skip
    return _with_bias(build, y, b)


@operator("convolution", family="convolution", traits=PURE)
class Convolution:
    """StableHLO convolution of x with w.

    Specs name axes: "b" batch, "f" feature, "i"/"o" kernel in/out, digits spatial; e.g. lhs_spec "bf01", rhs_spec
    "oi01", out_spec "bf01".  padding has one (low, high) pair a spatial axis, may be negative.  Result dim: (dilated +
    low + high - ((k - 1) * rhs_dilation + 1)) // stride + 1, at least 0.  No kernel flip unless window_reversal.
    Accumulates as dot_general does; `result` is the result's element type (default: that of x).
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
    reference = _convolution_reference
    vjp = convolution_vjp
    bucket = bucketing.convolution


@operator("Conv", family="convolution", traits=PURE)
class Conv:
    """ONNX Conv: x[N, C, spatial..], w[M, C/group, kernel..], b[M].

    pads are (low, high) pairs, already resolved from auto_pad.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[Size, ...], ...]
    group: int = 1
    infer = _conv_type
    reference = _conv_reference
    decompose = _conv
    bucket = capacities.convolved


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
    reference = _conv_transpose_reference
    decompose = _conv_transpose
    bucket = capacities.convolved_back


@operator("DeformConv", family="convolution", traits=PURE)
class DeformConv:
    """Conv2D whose places are moved by offset [N, groups*kh*kw*2, oh, ow] (y, x) and weighed by mask.

    Between the places of x it interpolates bilinearly.
    x[N,C,H,W], w[M, C/group, kh, kw], mask[N, groups*kh*kw, oh, ow]; places outside x count as zero.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    offset: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    mask: Operand[FLOAT] | None = None
    strides: tuple[int, ...] = (1, 1)
    dilations: tuple[int, ...] = (1, 1)
    pads: tuple[tuple[int, int], ...] = ((0, 0), (0, 0))
    group: int = 1
    offset_group: int = 1

    def infer(ctx, x, w, offset, b, mask, *, strides, dilations, pads, group, offset_group):
        ctx.need(x.rank == 4 and w.rank == 4 and offset.rank == 4, "DeformConv has two spatial axes")
        two = len(strides) == len(dilations) == len(pads) == 2 and group > 0 and offset_group > 0
        two = two and all(len(pair) == 2 for pair in pads)
        ctx.need(two, "strides, dilations and pads must have two entries, groups must be positive")
        ctx.equal(x.dims[1], w.dims[1] * group, "channels of x and of w (times group)")
        points = offset_group * w.dims[2] * w.dims[3]
        ctx.equal_dims(offset.dims[:2], (x.dims[0], 2 * points), "batch and places of offset, and those of x and w,")
        if mask is not None:
            dims = (x.dims[0], points, *offset.dims[2:])
            ctx.equal_dims(mask.dims, dims, "dims of mask, and those of offset,")
        return x.with_dims((x.dims[0], w.dims[0], *offset.dims[2:]))

    def decompose(ctx, x, w, offset, b, mask, *, strides, dilations, pads, group, offset_group):
        build, dtype = ctx.build, statistics_type(x.dtype)
        n, c, h, width = x.dims
        m, _, kh, kw = w.dims
        oh, ow = offset.dims[2:]
        g, k = offset_group, kh * kw
        grid = (n, g, kh, kw, oh, ow)
        moves = build.reshape(converted(build, offset, dtype), dims=(n, g, kh, kw, 2, oh, ow))
        points = []
        for axis in (0, 1):
            at = build.reshape(sliced(build, moves, 4, axis, axis + 1), dims=grid)
            steps = build.iota(
                dtype=dtype, dims=tuple(d if i == 4 + axis else 1 for i, d in enumerate(grid)), axis=4 + axis
            )
            taps = build.iota(
                dtype=dtype, dims=tuple(d if i == 2 + axis else 1 for i, d in enumerate(grid)), axis=2 + axis
            )
            base = build.add(build.multiply(steps, float(strides[axis])), build.multiply(taps, float(dilations[axis])))
            at = build.add(at, build.subtract(base, float(pads[axis][0])))
            points.append(build.reshape(at, dims=(n * g, k, oh, ow)))
        rows = build.reshape(x, dims=(n * g, c // g, h, width))
        picked = interpolated(build, build.transpose(rows, permutation=(0, 2, 3, 1)), points)
        if mask is not None:
            weight = build.reshape(converted(build, mask, dtype), dims=(n * g, k, oh, ow, 1))
            picked = build.multiply(picked, weight)
        picked = build.transpose(picked, permutation=(0, 4, 1, 2, 3))
        picked = build.reshape(picked, dims=(n, group, c // group * k, oh * ow))
        kernel = build.reshape(converted(build, w, dtype), dims=(1, group, m // group, c // group * k))
        out = build.reshape(build.MatMul(kernel, picked), dims=(n, m, oh, ow))
        if b is not None:
            out = build.add(out, build.reshape(converted(build, b, dtype), dims=(1, m, 1, 1)))
        return converted(build, out, x.dtype)
