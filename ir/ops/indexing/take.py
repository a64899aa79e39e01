"""Indexing along one axis and by run-time block starts: take, the along-axis forms, dynamic slices."""

import numpy as np

from ... import dtypes
from ...dims import Size, equal
from ...ints import moved, numbers
from ...operators import ANY, INTEGER, PURE, Operand, Variadic, operator
from ..shape.positions import size_scalar
from . import bucketing
from .places import (
    KINDS,
    MOVES,
    along,
    block,
    check_starts,
    clamped,
    combinable,
    combined,
    inside,
    numbered,
    places_along,
    wrapped,
)


@operator("take", family="indexing", traits=MOVES)
class Take:
    """Slices of x picked along axis.  x[.., N, ..], indices[I..] -> [.., I.., ..].  Indices outside [-N, N) clamp.

    Carries ints.
    """

    x: Operand[ANY]
    indices: Operand[INTEGER]
    axis: int = 0

    bucket = bucketing.take

    def infer(ctx, x, indices, *, axis):
        axis = ctx.axis(axis, x.rank)
        if indices.size != 0:
            ctx.need(
                x.dims[axis] != 0, f"indices {indices.type} cannot pick from axis {axis} of {x.type}, which is empty"
            )
        fact = x.with_dims(x.dims[:axis] + indices.dims + x.dims[axis + 1 :])
        places = numbers(indices)
        if places is None or not isinstance(x.dims[axis], int):
            return fact
        return moved(fact, lambda a: np.take(a, clamped(places, a.shape[axis]), axis), x)

    def reference(ctx, x, indices, *, axis):
        return np.take(x, ctx.clamped(indices, x.shape[axis]), axis)

    def vjp(ctx, x, indices, *, axis):
        b, axis = ctx.build, axis % x.rank
        window = tuple(i for i in range(ctx.cotangent.rank) if not axis <= i < axis + indices.rank)
        dx = b.scatter(
            ctx.zeros(x), inside(b, indices, x.dims[axis]), ctx.cotangent, update_window_dims=window,
            inserted_window_dims=(axis,), scatter_dims_to_operand_dims=(axis,), index_vector_dim=indices.rank,
            kind="sum",
        )  # fmt: skip
        return dx, None


@operator("take_along_axis", family="indexing", traits=MOVES)
class TakeAlongAxis:
    """result[i..] = x[i.. with its axis-th index replaced by indices[i..]] (ONNX GatherElements).

    Ranks are equal; the result has the dims of indices; indices.dims <= x.dims off the axis.  Outside [-N, N) clamp.
    """

    x: Operand[ANY]
    indices: Operand[INTEGER]
    axis: int = 0

    bucket = bucketing.take

    def infer(ctx, x, indices, *, axis):
        along(ctx, x, indices, axis)
        there = equal(x.dims[axis], 0) is not True or 0 in indices.dims
        ctx.need(there, f"an axis of 0 elements has none to take: {x.type}")
        return x.with_dims(indices.dims)

    def reference(ctx, x, indices, *, axis):
        return x[places_along(ctx.clamped(indices, x.shape[axis]), axis)]

    def vjp(ctx, x, indices, *, axis):
        places = inside(ctx.build, indices, x.dims[axis])
        return ctx.build.put_along_axis(ctx.zeros(x), places, ctx.cotangent, axis=axis, kind="sum"), None


@operator("put_along_axis", family="indexing", traits=PURE)
class PutAlongAxis:
    """x with updates[i..] placed at i.. whose axis-th index is indices[i..] (ONNX ScatterElements).

    kind combines with what is there; "replace" with duplicate indices keeps the last in row-major order.  Indices in
    [-N, N) as usual; updates outside are dropped.
    """

    x: Operand[ANY]
    indices: Operand[INTEGER]
    updates: Operand[ANY]
    axis: int = 0
    kind: str = "replace"

    bucket = bucketing.put_along_axis

    def infer(ctx, x, indices, updates, *, axis, kind):
        along(ctx, x, indices, axis)
        ctx.equal_dims(indices.dims, updates.dims, "dims of indices and updates")
        ctx.same_dtype(x, updates)
        combinable(ctx, kind, x.dtype, KINDS)
        return x.with_dims(x.dims)

    def reference(ctx, x, indices, updates, *, axis, kind):
        places = wrapped(indices, x.shape[axis])
        valid = (places >= 0) & (places < x.shape[axis])
        index = tuple(np.broadcast_to(p, places.shape)[valid] for p in places_along(places, axis))
        return combined(ctx, x, index, updates[valid], kind)

    def vjp(ctx, x, indices, updates, *, axis, kind):
        """kind sum and replace; of several updates of one place the last has the cotangent."""
        b, g = ctx.build, ctx.cotangent
        if kind not in ("sum", "replace"):
            ctx.refuse(f"kind {kind!r} has no derivative here; sum and replace have")
        picked, zero = b.take_along_axis(g, indices, axis=axis), b.constant(0.0, g.dtype)
        if kind == "sum":
            low, high = size_scalar(b, -x.dims[axis]), size_scalar(b, x.dims[axis])
            places = b.convert(indices, dtype=dtypes.i64)
            valid = b.and_(b.compare(places, low, direction="ge"), b.compare(places, high, direction="lt"))
            return g, None, b.select(valid, picked, zero)
        numbers = numbered(b, updates)
        none = b.full(-1, dtypes.i64, x.dims)
        winners = b.put_along_axis(none, indices, numbers, axis=axis)
        own = b.compare(b.take_along_axis(winners, indices, axis=axis), numbers, direction="eq")
        rest = b.select(b.compare(winners, -1, direction="eq"), g, zero)
        return rest, None, b.select(own, picked, zero)


@operator("dynamic_slice", family="indexing", traits=MOVES)
class DynamicSlice:
    """The block of `sizes` at run-time starts (one integer scalar an axis); starts clamp so that the block fits."""

    x: Operand[ANY]
    starts: Variadic[INTEGER]
    sizes: tuple[Size, ...]

    bucket = bucketing.dynamic_slice

    def infer(ctx, x, starts, *, sizes):
        check_starts(ctx, x, starts)
        ctx.need(len(sizes) == x.rank, f"sizes must have one entry for each axis of {x.type}, got {len(sizes)}")
        for axis, (size, dim) in enumerate(zip(sizes, x.dims, strict=True)):
            ctx.at_most(size, dim, f"size {axis} of the block")
        fact = x.with_dims(sizes)
        places = [numbers(s) for s in starts]
        if any(p is None for p in places) or not x.tensor.is_static or not fact.tensor.is_static:
            return fact
        return moved(fact, lambda a: a[block(places, a.shape, sizes)], x)

    def reference(ctx, x, starts, *, sizes):
        return x[block(starts, x.shape, sizes)]

    def vjp(ctx, x, starts, *, sizes):
        return ctx.build.dynamic_update_slice(ctx.zeros(x), ctx.cotangent, starts), (None,) * len(starts)


@operator("dynamic_update_slice", family="indexing", traits=MOVES)
class DynamicUpdateSlice:
    """x with the block `update` written at run-time scalar starts; starts clamp so that the block fits."""

    x: Operand[ANY]
    update: Operand[ANY]
    starts: Variadic[INTEGER]

    bucket = bucketing.dynamic_update_slice

    def infer(ctx, x, update, starts):
        check_starts(ctx, x, starts)
        ctx.same_dtype(x, update)
        ctx.need(update.rank == x.rank, f"the update must have the rank of x, got {update.type} and {x.type}")
        for axis, (size, dim) in enumerate(zip(update.dims, x.dims, strict=True)):
            ctx.at_most(size, dim, f"size {axis} of the update")
        return x.with_dims(x.dims)

    def reference(ctx, x, update, starts):
        out = x.copy()
        out[block(starts, x.shape, update.shape)] = update
        return out

    def vjp(ctx, x, update, starts):
        b, g = ctx.build, ctx.cotangent
        rest = b.dynamic_update_slice(g, ctx.zeros(update), starts)
        return rest, b.dynamic_slice(g, starts, sizes=update.dims), (None,) * len(starts)
