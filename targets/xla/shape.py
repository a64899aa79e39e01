"""Operators that move elements by position."""

import numpy as np

from ...ir import dtypes
from .lowering import lower
from .mlir import hlo


@lower("broadcast_in_dim")
def broadcast_in_dim(ctx, x, *, dims, broadcast_dimensions):
    return ctx.broadcast_in_dim(x, dims, broadcast_dimensions)


@lower("reshape")
def reshape(ctx, x, *, dims):
    return ctx.reshape(x, dims)


@lower("transpose")
def transpose(ctx, x, *, permutation):
    return ctx.transpose(x, permutation)


@lower("concatenate")
def concatenate(ctx, xs, *, axis):
    """Types below 8 bits are joined in a wider one: XLA's CPU compiler aborts on 2-bit ones."""
    if xs[0].dtype.bits < 8 and xs[0].dtype.is_integer:
        return ctx.convert(ctx.concatenate([ctx.carried(x) for x in xs], axis), xs[0].dtype)
    return ctx.concatenate(xs, axis)


@lower("slice")
def slice_(ctx, x, *, starts, limits, strides):
    return ctx.slice(x, starts, limits, strides)


@lower("pad")
def pad(ctx, x, value, *, low, high, interior):
    return ctx.pad(x, value, low, high, interior)


@lower("reverse")
def reverse(ctx, x, *, axes):
    return ctx.wrap(hlo.reverse(x.value, [a % x.rank for a in axes]), x.dtype)


@lower("iota")
def iota(ctx, *, dtype, dims, axis):
    return ctx.iota(dtype, dims, axis)


@lower("dimensions")
def dimensions(ctx, *, dims, scalar):
    return ctx.constant(np.array(dims[0] if scalar else dims, np.int64), dtypes.i64)
