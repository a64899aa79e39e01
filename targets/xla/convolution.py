"""Convolutions.  On CPU the cheap ones are products and sums, and constant kernels are transposed ahead of time."""

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
        spec = _layout(ctx, lhs_spec)
        there = [lhs_spec.index(c) for c in spec]
        back = [spec.index(c) for c in lhs_spec]
        moved = {"spec": spec, "rhs_spec": rhs_spec, "strides": window_strides, "dims": tuple(dims[i] for i in there)}
        if taps == 1 and feature_group_count == 1 and not any(p != (0, 0) for p in padding):
            y = _pointwise(ctx, ctx.transpose(x, there), w, operand=operand, wide=wide, precision=precision, **moved)
            return from_sums(ctx, ctx.transpose(y, back), result)
        features = x.dims[lhs_spec.index("f")]
        if kernel["i"] == 1 and (features == 1 or kernel["o"] == features) and taps <= MOST_TAPS:
            moved |= {"padding": padding, "dilation": rhs_dilation, "reversal": window_reversal}
            y = _depthwise(ctx, ctx.transpose(ctx.convert(x, wide), there), w, **moved)
            return from_sums(ctx, ctx.transpose(y, back), result)
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


def _layout(ctx, spec):
    """The order of axes for convolutions that are written out as products and sums, on CPU.

    XLA's own convolution runs channels-last.  Where that does much of the work, the others join it, so that nothing is
    transposed in between; alone they are faster channels-first.
    """
    spatial = "".join(sorted(c for c in spec if c.isdigit()))
    return f"b{spatial}f" if ctx.emitter.remember(_is_mostly_native) else f"bf{spatial}"


def _is_mostly_native(model):
    """Whether a fourth or more of the convolutions' products are neither 1x1 nor depthwise ones."""
    total = native = 0
    for node in model.nodes():
        if node.op.name == "convolution":
            kernel = dict(zip(node.keywords["rhs_spec"], node.operands[1].dims, strict=True))
            taps = math.prod(n for c, n in kernel.items() if c.isdigit())
            products = math.prod(node.result.dims) * kernel["i"] * taps
            total += products
            native += products if kernel["i"] > 1 and taps > 1 else 0
    return 4 * native >= total


def _pointwise(ctx, x, w, *, spec, rhs_spec, strides, dims, operand, wide, precision):
    """A 1x1 convolution as a product of matrices; channels-first it is batched, so that the result stays so."""
    step = [strides[int(c)] if c.isdigit() else 1 for c in spec]
    if max(step) > 1:
        x = ctx.slice(x, [0] * x.rank, x.dims, step)
    x = ctx.convert(x, operand)
    features = [rhs_spec.index(c) for c in ("io" if spec[-1] == "f" else "oi")]
    order = [*features, *(i for i, c in enumerate(rhs_spec) if c.isdigit())]
    w = ctx.convert(ctx.permuted(w, order), operand)
    w = ctx.reshape(w, w.dims[:2])
    if spec[-1] == "f":
        flat = ctx.reshape(x, (math.prod(x.dims[:-1]), x.dims[-1]))
        value = ctx.product(flat, w, ([1], [0]), ([], []), wide, precision)
    elif x.dims[0] == 1:
        flat = ctx.reshape(x, (x.dims[1], math.prod(x.dims[2:])))
        value = ctx.product(w, flat, ([1], [0]), ([], []), wide, precision)
    else:
        flat = ctx.reshape(x, (x.dims[0], x.dims[1], math.prod(x.dims[2:])))
        many = ctx.broadcast(w, (x.dims[0], *w.dims))
        value = ctx.product(many, flat, ([2], [1]), ([0], [0]), wide, precision)
    return ctx.reshape(value, dims)


def _depthwise(ctx, x, w, *, spec, rhs_spec, strides, dims, padding, dilation, reversal):
    """A sum over the kernel's elements of shifted slices times weights: features do not mix."""
    spatial = [c for c in spec if c.isdigit()]
    low, high = ([padding[int(c)][k] if c.isdigit() else 0 for c in spec] for k in (0, 1))
    if any(low) or any(high):
        x = ctx.pad(x, ctx.full(0, x.dtype), low, high)
    w = ctx.permuted(w, [rhs_spec.index(c) for c in [*spatial, "i", "o"]])
    w = ctx.convert(w, x.dtype)
    total = None
    for place in np.ndindex(*w.dims[:-2]):
        starts, limits, step = [0] * x.rank, list(x.dims), [1] * x.rank
        for c, k, n in zip(spatial, place, w.dims[:-2], strict=True):
            axis, i = spec.index(c), int(c)
            starts[axis] = (n - 1 - k if reversal[i] else k) * dilation[i]
            step[axis] = strides[i]
            limits[axis] = starts[axis] + (dims[axis] - 1) * step[axis] + 1
        weights = ctx.slice(w, [*place, 0, 0], [*(p + 1 for p in place), 1, w.dims[-1]])
        weights = ctx.broadcast_in_dim(ctx.reshape(weights, (w.dims[-1],)), dims, [spec.index("f")])
        term = ctx.apply("multiply", ctx.broadcast(ctx.slice(x, starts, limits, step), dims), weights)
        total = term if total is None else ctx.apply("add", total, term)
    return total
