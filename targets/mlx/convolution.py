"""Convolutions: channels last in MLX, so kernels are turned once at load and adjacent layout changes cancel."""

from ...ir import dims as sizes
from ...ir import dtypes
from . import types
from .lowering import lower

_NATIVE = (dtypes.f32, dtypes.f16, dtypes.bf16)
"""Element types that MLX convolves."""


def _last(rank):
    """Channels first to last: [N, C, spatial..] -> [N, spatial.., C]."""
    return (0, *range(2, rank), 1)


def _kernel(ctx, w, index, permutation, suffix):
    """A kernel in MLX's layout [O, spatial.., I]; a weight is turned when it is loaded."""
    if tuple(permutation) == tuple(range(w.rank)):
        return w
    constant = ctx.constant_of(index)
    if constant is None:
        return ctx.transpose(w, permutation)
    make = "mx.contiguous({}.transpose(" + ", ".join(map(str, permutation)) + "))"
    return ctx.prepared(constant, suffix, make, [w.dims[p] for p in permutation])


def _short(values):
    """One number for equal ones."""
    return values[0] if all(isinstance(v, int) and v == values[0] for v in values) else tuple(values)


def _convolved(ctx, x, w, stride, padding, dilation, groups, dims):
    """mx.conv1d .. 3d where the padding is symmetric, mx.conv_general elsewhere.  Operands have channels last."""
    spatial = x.rank - 2
    keywords = {}
    if any(s != 1 for s in stride):
        keywords["stride"] = _short(stride)
    symmetric = all(sizes.equal(low, high) is True for low, high in padding)
    if any(p != 0 for pair in padding for p in pair):
        low = [p[0] for p in padding]
        keywords["padding"] = _short(low) if symmetric else (low, [p[1] for p in padding])
    if any(d != 1 for d in dilation):
        keywords["dilation" if symmetric else "kernel_dilation"] = _short(dilation)
    if groups != 1:
        keywords["groups"] = groups
    function = f"mx.conv{spatial}d" if symmetric else "mx.conv_general"
    return ctx.call(function, x, w, dims=dims, **keywords)


def _supported(ctx, dtype, spatial, groups, x):
    if dtype not in _NATIVE:
        ctx.refuse(f"mx.conv of {dtype}")
    if spatial > 3 or spatial < 1:
        ctx.refuse(f"mx.conv has no {spatial} spatial axes")
    if spatial == 3 and groups != 1:
        ctx.refuse("mx.conv3d has no groups")
    if any(sizes.less_equal(1, d) is not True for d in x.dims) and any(d == 0 for d in x.dims):
        ctx.refuse("an empty operand")


def _not_negative(padding):
    return all(sizes.less_equal(0, p) is True for pair in padding for p in pair)


@lower("Conv")
def conv(ctx, x, w, b, *, strides, dilations, pads, group):
    _supported(ctx, x.dtype, x.rank - 2, group, x)
    if not _not_negative(pads):
        ctx.refuse("negative padding")
    dims = ctx.result_types[0].shape
    last = _last(x.rank)
    dtype = x.dtype
    wide = types.accumulator(dtype)
    kernel = ctx.convert(_kernel(ctx, w, 1, last, "channels_last"), wide)
    source = ctx.convert(ctx.transpose(x, last), wide)
    y = _convolved(ctx, source, kernel, strides, pads, dilations, group, [dims[a] for a in last])
    if b is not None:
        y = ctx.infix("+", y, ctx.convert(b, wide))
        y.dims = tuple(dims[a] for a in last)
    return ctx.channels_first(ctx.convert(y, dtype))


@lower("ConvTranspose")
def conv_transpose(ctx, x, w, b, *, strides, dilations, pads, output_padding, group):
    _supported(ctx, x.dtype, x.rank - 2, group, x)
    if group != 1:
        ctx.refuse("groups of a transposed convolution")
    if any(sizes.less_equal(1, d) is not True for d in x.dims[2:]):
        ctx.refuse("an axis that may be empty")
    padding = [
        ((k - 1) * d - low, (k - 1) * d - high + extra)
        for k, d, (low, high), extra in zip(w.dims[2:], dilations, pads, output_padding, strict=True)
    ]
    if not _not_negative(padding):
        ctx.refuse("padding larger than the kernel")
    dims = ctx.result_types[0].shape
    last = _last(x.rank)
    wide = types.accumulator(x.dtype)
    kernel = ctx.convert(_kernel(ctx, w, 1, (1, *range(2, x.rank), 0), "transposed"), wide)
    keywords = {"padding": ([p[0] for p in padding], [p[1] for p in padding]), "flip": True}
    if any(d != 1 for d in dilations):
        keywords["kernel_dilation"] = _short(dilations)
    if any(s != 1 for s in strides):
        keywords["input_dilation"] = _short(strides)
    y = ctx.call(
        "mx.conv_general", ctx.convert(ctx.transpose(x, last), wide), kernel, dims=[dims[a] for a in last], **keywords
    )
    if b is not None:
        y = ctx.infix("+", y, ctx.convert(b, wide))
        y.dims = tuple(dims[a] for a in last)
    return ctx.channels_first(ctx.convert(y, x.dtype))


@lower("convolution")
def convolution(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, window_strides, padding, lhs_dilation, rhs_dilation, window_reversal,
    feature_group_count, batch_group_count, precision, result,
):  # fmt: skip
    spatial = x.rank - 2
    dims, dtype = ctx.result_types[0].shape, ctx.result_types[0].dtype
    digits = [str(i) for i in range(spatial)]
    source = ctx.transpose(x, [lhs_spec.index(c) for c in ("b", *digits, "f")])
    kernel = _kernel(ctx, w, 1, [rhs_spec.index(c) for c in ("o", *digits, "i")], f"from_{rhs_spec}")
    groups = feature_group_count
    if batch_group_count > 1:
        source = _batch_groups(ctx, source, batch_group_count)
        groups = batch_group_count
    if any(window_reversal) and not all(window_reversal):
        kernel = ctx.index(kernel, ":", *("::-1" if r else ":" for r in window_reversal))
        window_reversal = (False,) * spatial
    flip = bool(spatial) and all(window_reversal)
    out_dims = [dims[out_spec.index(c)] for c in ("b", *digits, "f")]
    sums = (source, kernel, window_strides, padding, lhs_dilation, rhs_dilation, groups, flip, dtype, out_dims)
    native = x.dtype in _NATIVE and w.dtype in _NATIVE and dtype.is_float and 1 <= spatial <= (3 if groups == 1 else 2)
    native = native and all(
        sizes.less_equal(1, d) is True or not isinstance(d, int) for d in (*source.dims, *kernel.dims, *out_dims)
    )
    y = _by_mlx(ctx, *sums) if native else _by_taps(ctx, *sums)
    back = ["b", *digits, "f"]
    return ctx.transpose(y, [back.index(c) for c in out_spec])


def _by_mlx(ctx, x, w, stride, padding, input_dilation, dilation, groups, flip, dtype, dims):
    wide = types.accumulator(x.dtype)
    x, w = ctx.convert(x, wide), ctx.convert(w, wide)
    if all(d == 1 for d in input_dilation) and not flip and _not_negative(padding):
        return ctx.convert(_convolved(ctx, x, w, stride, padding, dilation, groups, dims), dtype)
    if not _not_negative(padding):
        x = _padded(ctx, x, padding, input_dilation)
        padding, input_dilation = [(0, 0)] * len(padding), (1,) * len(padding)
    keywords = {}
    if any(s != 1 for s in stride):
        keywords["stride"] = _short(stride)
    if any(p != 0 for pair in padding for p in pair):
        keywords["padding"] = ([p[0] for p in padding], [p[1] for p in padding])
    if any(d != 1 for d in dilation):
        keywords["kernel_dilation"] = _short(dilation)
    if any(d != 1 for d in input_dilation):
        keywords["input_dilation"] = _short(input_dilation)
    if groups != 1:
        keywords["groups"] = groups
    if flip:
        keywords["flip"] = True
    return ctx.convert(ctx.call("mx.conv_general", x, w, dims=dims, **keywords), dtype)


def _padded(ctx, x, padding, input_dilation):
    low, high = [0, *(p[0] for p in padding), 0], [0, *(p[1] for p in padding), 0]
    interior = [0, *(d - 1 for d in input_dilation), 0]
    if not any(interior) and all(p == 0 for p in (*low, *high)):
        return x
    dims = [
        d + a + b + (sizes.maximum(d - 1, 0) * i if i else 0)
        for d, a, b, i in zip(x.dims, low, high, interior, strict=True)
    ]
    return ctx.recipe("_pad", x, low, high, interior, ctx.scalar(0, x.dtype), dims=dims)


def _by_taps(ctx, x, w, stride, padding, input_dilation, dilation, groups, flip, dtype, dims):
    """Any number of spatial axes and any element type: a product of matrices for each place of the kernel."""
    accumulator = dtypes.i32 if dtype.is_integer and dtype.bits < 32 else types.accumulator(dtype)
    if x.dtype.is_integer:
        made, exact = types.carrier(dtype), x.dtype.bits <= 8 and w.dtype.bits <= 8 and dtype.bits <= 32
        block = 1024 if x.dtype.kind == "int" and w.dtype.kind == "int" else 256
        call = f"_matmul_small(a, b, mx.int32, {block})" if exact else f"_matmul_integer(a, b, {types.spelling(made)})"
        ctx.emitter.need("_matmul_small" if exact else "_matmul_integer")
        multiply, accumulator = f"lambda a, b: {call}", dtypes.i32 if exact else made
        x, w = ctx.wide(x), ctx.wide(w)
    else:
        multiply = "mx.matmul"
        x, w = (ctx.convert(ctx.wide(v), types.accumulator(v.dtype)) for v in (x, w))
    if flip:
        w = ctx.index(w, ":", *["::-1"] * (x.rank - 2))
    x = _padded(ctx, x, padding, input_dilation)
    name = f"mx.{types.NATIVE[accumulator]}"
    y = ctx.recipe(
        "_conv_by_taps", x, w, list(stride), list(dilation), groups, name, multiply, dims=dims, dtype=accumulator
    )
    return ctx.narrow(ctx.convert(y, types.wide(dtype)), dtype)


def _batch_groups(ctx, x, groups):
    """Group g of the batch meets group g of the kernel's outputs: the same as feature groups of the remaining batch."""
    batch, spatial, features = x.dims[0] // groups, x.dims[1:-1], x.dims[-1]
    x = ctx.reshape(x, (groups, batch, *spatial, features))
    x = ctx.transpose(x, (1, *range(2, x.rank - 1), 0, x.rank - 1))
    return ctx.reshape(x, (batch, *spatial, groups * features))
