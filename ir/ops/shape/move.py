"""Core operators that only move elements: broadcast, reshape, transpose, concatenate, slice, pad, reverse."""

import functools

import numpy as np

from ... import dims as sizes
from ...dims import Size
from ...facts import Fact
from ...ints import moved
from ...operators import ANY, Operand, Variadic, operator
from ...types import TensorType
from .. import bucketing
from .positions import MOVES, broadcast_in_dim, checked_sizes, one_each, ordered, padded, sliced, slices


@operator("broadcast_in_dim", family="shape", traits=MOVES)
class BroadcastInDim:
    """x with its axis i at result axis broadcast_dimensions[i]; size-1 axes and new axes repeat.

    x[..] -> [dims].  x.dims[i] must be 1 or equal dims[broadcast_dimensions[i]]; broadcast_dimensions increase
    strictly.
    """

    x: Operand[ANY]
    dims: tuple[Size, ...]
    broadcast_dimensions: tuple[int, ...]

    bucket = bucketing.broadcast_in_dim

    def infer(ctx, x, *, dims, broadcast_dimensions):
        fact = x.with_dims(checked_sizes(ctx, dims))
        ctx.need(
            len(broadcast_dimensions) == x.rank,
            f"broadcast_dimensions {list(broadcast_dimensions)} must name one axis for each of {x.type}",
        )
        ctx.need(
            list(broadcast_dimensions)
            == sorted(set(ctx.axes(broadcast_dimensions, len(dims), "broadcast_dimensions"))),
            f"broadcast_dimensions {list(broadcast_dimensions)} must increase strictly",
        )
        for axis, have in zip(broadcast_dimensions, x.dims, strict=True):
            wanted = dims[axis]
            if isinstance(wanted, int) and not isinstance(have, int):
                ctx.broadcast((have,), (wanted,))  # assumes that it is 1 or `wanted`
            ctx.equal(
                sizes.broadcast(have, wanted),
                wanted,
                f"axis {axis} of the result and the size {have} that repeats to it",
            )
        return moved(fact, lambda a: broadcast_in_dim(a, fact.dims, broadcast_dimensions), x)

    def reference(ctx, x, *, dims, broadcast_dimensions):
        return broadcast_in_dim(x, dims, broadcast_dimensions)

    def vjp(ctx, x, *, dims, broadcast_dimensions):
        b, g = ctx.build, ctx.cotangent
        places = zip(broadcast_dimensions, x.dims, strict=True)
        repeated = {axis for axis, size in places if ctx.repeats(size, dims[axis])}
        gone = tuple(i for i in range(g.rank) if i not in broadcast_dimensions or i in repeated)
        return b.reshape(b.reduce(g, axes=gone, kind="sum"), dims=x.dims) if gone else g


@operator("reshape", family="shape", traits=MOVES)
class Reshape:
    """The same elements in row-major order with other dims.  x[..] -> [dims]; the sizes must be equal.

    Carries known integers through.
    """

    x: Operand[ANY]
    dims: tuple[Size, ...]

    bucket = bucketing.reshape

    def infer(ctx, x, *, dims):
        fact = x.with_dims(checked_sizes(ctx, dims))
        ctx.equal(x.size, fact.size, f"element counts of {x.type} and {fact.type}")
        return fact.with_ints(x.ints)

    def reference(ctx, x, *, dims):
        return x.reshape(dims)

    def vjp(ctx, x, *, dims):
        return ctx.build.reshape(ctx.cotangent, dims=x.dims)


@operator("transpose", family="shape", traits=MOVES)
class Transpose:
    """Axes permuted: result axis i is x's axis permutation[i]."""

    x: Operand[ANY]
    permutation: tuple[int, ...]

    bucket = bucketing.keep

    def infer(ctx, x, *, permutation):
        if sorted(permutation) != list(range(x.rank)):
            ctx.fail(f"permutation {list(permutation)} must hold each axis of {x.type} once")
        fact = x.with_dims(x.dims[i] for i in permutation)
        return moved(fact, lambda a: np.transpose(a, permutation), x)

    def reference(ctx, x, *, permutation):
        return np.transpose(x, permutation)

    def vjp(ctx, x, *, permutation):
        back = tuple(permutation.index(i) for i in range(len(permutation)))
        return ctx.build.transpose(ctx.cotangent, permutation=back)


@operator("concatenate", family="shape", traits=MOVES)
class Concatenate:
    """Values joined along axis (0 <= axis < rank); other dims must be equal.  At least one operand.  Carries ints."""

    xs: Variadic[ANY]
    axis: int

    bucket = bucketing.concatenate

    def infer(ctx, xs, *, axis):
        ctx.need(len(xs) > 0, "concatenate needs at least one operand")
        dtype = ctx.same_dtype(*xs)
        dims = xs[0].dims
        ctx.need(0 <= axis < len(dims), f"axis {axis} is out of range for rank {len(dims)}")
        for x in xs[1:]:
            ctx.need(x.rank == len(dims), f"operands must have equal rank, got {xs[0].type} and {x.type}")
            pairs = enumerate(zip(dims, x.dims, strict=True))
            dims = tuple(a if i == axis else ctx.equal(a, b, f"dims off the axis (axis {i})") for i, (a, b) in pairs)
        total = functools.reduce(lambda a, b: a + b, (x.dims[axis] for x in xs))
        fact = Fact(TensorType(dtype, dims[:axis] + (total,) + dims[axis + 1 :]))
        return moved(fact, lambda *arrays: np.concatenate(arrays, axis), *xs)

    def reference(ctx, xs, *, axis):
        return np.concatenate(xs, axis)

    def vjp(ctx, xs, *, axis):
        start, parts = 0, []
        for x in xs:
            parts.append(sliced(ctx.build, ctx.cotangent, axis, start, start + x.dims[axis]))
            start = start + x.dims[axis]
        return tuple(parts)


@operator("slice", family="shape", traits=MOVES)
class Slice:
    """x[starts[i] : limits[i] : strides[i]] on every axis; 0 <= starts <= limits <= dims, strides >= 1.  Carries ints.

    starts and limits may be symbolic sizes.  Result dim: ceil((limit - start) / stride).
    """

    x: Operand[ANY]
    starts: tuple[Size, ...]
    limits: tuple[Size, ...]
    strides: tuple[int, ...]

    bucket = bucketing.slice_

    def infer(ctx, x, *, starts, limits, strides):
        one_each(ctx, x, starts=starts, limits=limits, strides=strides)
        for axis, (start, limit, stride, dim) in enumerate(zip(starts, limits, strides, x.dims, strict=True)):
            ctx.need(stride >= 1, f"the stride of axis {axis} must be at least 1, got {stride}")
            ordered(ctx, axis, start, limit, dim)
        dims = (
            sizes.ceildiv(limit - start, stride) for start, limit, stride in zip(starts, limits, strides, strict=True)
        )
        return moved(x.with_dims(dims), lambda a: a[slices(starts, limits, strides)], x)

    def reference(ctx, x, *, starts, limits, strides):
        return x[slices(starts, limits, strides)]

    def vjp(ctx, x, *, starts, limits, strides):
        b, g = ctx.build, ctx.cotangent
        ends = (
            dim - start - (0 if n == 0 else (n - 1) * stride + 1)
            for dim, start, n, stride in zip(x.dims, starts, g.dims, strides, strict=True)
        )
        gaps = tuple(stride - 1 for stride in strides)
        return b.pad(g, b.constant(0.0, g.dtype), low=starts, high=tuple(ends), interior=gaps)


@operator("pad", family="shape", traits=MOVES)
class Pad:
    """x with `low`/`high` copies of the scalar `value` at the ends and `interior` ones between elements of each axis.

    Negative low/high remove elements (after interior padding).  Sizes may be symbolic; interior >= 0.
    """

    x: Operand[ANY]
    value: Operand[ANY]
    low: tuple[Size, ...]
    high: tuple[Size, ...]
    interior: tuple[int, ...]

    bucket = bucketing.pad

    def infer(ctx, x, value, *, low, high, interior):
        one_each(ctx, x, low=low, high=high, interior=interior)
        ctx.same_dtype(x, value)
        ctx.need(value.rank == 0, f"the padding value must be a scalar, got {value.type}")
        ctx.need(min(interior, default=0) >= 0, f"interior padding must not be negative, got {list(interior)}")
        dims = []
        for l, h, i, dim in zip(low, high, interior, x.dims, strict=True):
            dims.append(l + h + dim + (sizes.maximum(dim - 1, 0) * i if i else 0))
            ctx.at_most(0, dims[-1], f"padding ({l}, {h}) of a dim of size {dim} leaves a negative size")
        return moved(x.with_dims(dims), lambda a, v: padded(a, v[()], low, high, interior), x, value)

    def reference(ctx, x, value, *, low, high, interior):
        return padded(x, value[()], low, high, interior)

    def vjp(ctx, x, value, *, low, high, interior):
        b, g = ctx.build, ctx.cotangent
        none = (0,) * x.rank
        g = b.pad(g, b.constant(0.0, g.dtype), low=tuple(-l for l in low), high=tuple(-h for h in high), interior=none)
        own = b.slice(g, starts=none, limits=g.dims, strides=tuple(i + 1 for i in interior))
        axes = tuple(range(x.rank))
        total, kept = (b.reduce(v, axes=axes, kind="sum") for v in (ctx.cotangent, own))
        return own, b.subtract(total, kept)


@operator("reverse", family="shape", traits=MOVES)
class Reverse:
    """Order of elements reversed along the axes."""

    x: Operand[ANY]
    axes: tuple[int, ...]

    bucket = bucketing.reverse

    def infer(ctx, x, *, axes):
        axes = ctx.axes(axes, x.rank)
        return moved(x.with_dims(x.dims), lambda a: np.flip(a, axes), x)

    def reference(ctx, x, *, axes):
        return np.flip(x, axes)

    def vjp(ctx, x, *, axes):
        return ctx.build.reverse(ctx.cotangent, axes=axes)
