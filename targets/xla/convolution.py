"""Convolutions."""

import math

import numpy as np

from . import types
from .context import Weight
from .linalg import from_sums, product_types
from .lowering import lower
from .mlir import hlo, ir


def _numbers(lhs_spec, rhs_spec, out_spec, rank):
    spatial = [str(i) for i in range(rank)]
    return hlo.ConvDimensionNumbers.get(
        lhs_spec.index("b"), lhs_spec.index("f"), [lhs_spec.index(s) for s in spatial],
        rhs_spec.index("i"), rhs_spec.index("o"), [rhs_spec.index(s) for s in spatial],
        out_spec.index("b"), out_spec.index("f"), [out_spec.index(s) for s in spatial],
    )  # fmt: skip


@lower("convolution")
def convolution(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, window_strides, padding, lhs_dilation, rhs_dilation, window_reversal,
    feature_group_count, batch_group_count, precision, result,
):  # fmt: skip
    result, dims = ctx.result_types[0]
    kernel = dict(zip(rhs_spec, w.dims, strict=True))
    taps = math.prod(n for s, n in kernel.items() if s.isdigit())
    if 0 in dims or 0 in x.dims or 0 in w.dims:
        return ctx.full(0, result, dims)
    operand, wide = product_types(x, w, result, kernel["i"] * taps)
    plain = batch_group_count == 1 and lhs_spec == out_spec and set(lhs_dilation) <= {1}
    if ctx.platform == "cpu" and plain:
        features = x.dims[lhs_spec.index("f")]
        padded = any(p != (0, 0) for p in padding)
        if taps == 1 and feature_group_count == 1 and not padded:
            value = _pointwise(ctx, x, w, lhs_spec, rhs_spec, window_strides, dims, operand, wide, precision)
            return from_sums(ctx, value, result)
        if kernel["i"] == 1 and kernel["o"] in (features, features * kernel["o"]) and taps <= MOST_TAPS:
            places = {"lhs_spec": lhs_spec, "rhs_spec": rhs_spec, "window_strides": window_strides}
            places |= {"padding": padding, "rhs_dilation": rhs_dilation, "window_reversal": window_reversal}
            return from_sums(ctx, _depthwise(ctx, ctx.convert(x, wide), w, dims, **places), result)
    if ctx.platform == "cpu":
        w, rhs_spec = _kernel_first(ctx, w, rhs_spec)
    value = hlo.convolution(
        types.tensor(wide, dims),
        ctx.convert(x, operand).value,
        ctx.convert(w, operand).value,
        _numbers(lhs_spec, rhs_spec, out_spec, x.rank - 2),
        ir.IntegerAttr.get(ir.IntegerType.get_signless(64), feature_group_count),
        ir.IntegerAttr.get(ir.IntegerType.get_signless(64), batch_group_count),
        window_strides=ir.DenseI64ArrayAttr.get(list(window_strides)),
        padding=ir.DenseIntElementsAttr.get(np.array(padding, np.int64).reshape(-1, 2)),
        lhs_dilation=ir.DenseI64ArrayAttr.get(list(lhs_dilation)),
        rhs_dilation=ir.DenseI64ArrayAttr.get(list(rhs_dilation)),
        window_reversal=ir.DenseBoolArrayAttr.get(list(window_reversal)),
        precision_config=ctx.precision(precision),
    )
    return from_sums(ctx, ctx.wrap(value, wide), result)


MOST_TAPS = 128
"""Kernel elements up to which a depthwise convolution is written out as a sum."""


def _kernel_first(ctx, w, rhs_spec):
    """The kernel as XLA's CPU convolution wants it in memory: spatial axes, then input, then output features.

    XLA would transpose any other at every call; a constant kernel is transposed once.
    """
    spec = "".join(sorted(s for s in rhs_spec if s.isdigit())) + "io"
    if not isinstance(w, Weight) or rhs_spec == spec:
        return w, rhs_spec
    return ctx.permuted(w, [rhs_spec.index(s) for s in spec]), spec


def _pointwise(ctx, x, w, spec, rhs_spec, strides, dims, operand, wide, precision):
    """A 1x1 convolution as a product of matrices, batched so that the result needs no transpose."""
    step = [strides[int(s)] if s.isdigit() else 1 for s in spec]
    x = ctx.convert(ctx.slice(x, [0] * x.rank, x.dims, step), operand)
    feature, batch = spec.index("f"), spec.index("b")
    w = ctx.reshape(w, [n for n, s in zip(w.dims, rhs_spec, strict=True) if not s.isdigit()])
    w = ctx.convert(w, operand)
    inner = [s for s in rhs_spec if not s.isdigit()].index("i")
    if feature == x.rank - 1:
        contracting = ([feature], [inner])
        return ctx.product(x, w, contracting, ([], []), wide, precision)
    if (batch, feature) != (0, 1):
        order = [batch, feature, *(i for i in range(x.rank) if i not in (batch, feature))]
        x = ctx.transpose(x, order)
    else:
        order = list(range(x.rank))
    flat = ctx.reshape(x, (x.dims[0], x.dims[1], math.prod(x.dims[2:])))
    if x.dims[0] == 1:
        value = ctx.product(w, ctx.reshape(flat, flat.dims[1:]), ([inner], [0]), ([], []), wide, precision)
    else:
        many = ctx.broadcast(w, (x.dims[0], *w.dims))
        value = ctx.product(many, flat, ([inner + 1], [1]), ([0], [0]), wide, precision)
    value = ctx.reshape(value, [dims[i] for i in order])
    return ctx.transpose(value, [order.index(i) for i in range(x.rank)])


def _depthwise(ctx, x, w, dims, *, lhs_spec, rhs_spec, window_strides, padding, rhs_dilation, window_reversal):
    """A sum over the kernel's elements of shifted slices times weights: features do not mix."""
    spatial = [s for s in lhs_spec if s.isdigit()]
    low, high = ([padding[int(s)][k] if s.isdigit() else 0 for s in lhs_spec] for k in (0, 1))
    if any(low) or any(high):
        x = ctx.pad(x, ctx.full(0, x.dtype), low, high)
    w = ctx.permuted(w, [rhs_spec.index(s) for s in [*spatial, "i", "o"]])  # [spatial.., 1, features]
    w = ctx.convert(w, x.dtype)
    total = None
    for place in np.ndindex(*w.dims[:-2]):
        starts, limits, step = [0] * x.rank, list(x.dims), [1] * x.rank
        for s, k, n in zip(spatial, place, w.dims[:-2], strict=True):
            axis, i = lhs_spec.index(s), int(s)
            starts[axis] = (n - 1 - k if window_reversal[i] else k) * rhs_dilation[i]
            step[axis] = window_strides[i]
            limits[axis] = starts[axis] + (dims[axis] - 1) * step[axis] + 1
        weights = ctx.slice(w, [*place, 0, 0], [*(p + 1 for p in place), 1, w.dims[-1]])
        weights = ctx.broadcast_in_dim(ctx.reshape(weights, (w.dims[-1],)), dims, [lhs_spec.index("f")])
        term = ctx.apply("multiply", ctx.broadcast(ctx.slice(x, starts, limits, step), dims), weights)
        total = term if total is None else ctx.apply("add", total, term)
    return total
