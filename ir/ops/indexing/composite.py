"""ONNX's indexing composites: GatherND, ScatterND, OneHot."""

import numpy as np

from ... import dtypes
from ...conversion import converted
from ...dims import Size
from ...operators import ANY, INTEGER, PURE, Operand, operator
from ..shape.positions import size_scalar
from .places import KINDS, MOVES, combinable, combined, from_the_end, from_the_end_of, in_i64, tuple_length, wrapped


@operator("GatherND", family="indexing", traits=MOVES)
class GatherND:
    """ONNX GatherND: the last axis of indices holds index tuples into x after batch_dims leading axes.

    Outside [-N, N) clamp.
    """

    x: Operand[ANY]
    indices: Operand[INTEGER]
    batch_dims: int = 0

    def infer(ctx, x, indices, *, batch_dims):
        count = tuple_length(ctx, x, indices, batch_dims)
        ctx.equal_dims(x.dims[:batch_dims], indices.dims[:batch_dims], "leading batch dims of x and indices")
        empty = 0 in x.dims[batch_dims : batch_dims + count] and 0 not in indices.dims
        ctx.need(not empty, f"an axis of 0 elements has none to take: {x.type}")
        return x.with_dims(indices.dims[:-1] + x.dims[batch_dims + count :])

    def reference(ctx, x, indices, *, batch_dims):
        count = indices.shape[-1]
        index = tuple(ctx.clamped(indices[..., i], x.shape[batch_dims + i]) for i in range(count))
        lead = indices.ndim - 1
        batch = tuple(
            np.arange(x.shape[i]).reshape([-1 if j == i else 1 for j in range(lead)]) for i in range(batch_dims)
        )
        out = x[(*batch, *index)] if batch or index else x
        return np.broadcast_to(out, indices.shape[:-1] + x.shape[batch_dims + count :])

    def decompose(ctx, x, indices, *, batch_dims):
        b = ctx.build
        count = indices.dims[-1]
        axes = tuple(range(batch_dims, batch_dims + count))
        lead = indices.rank - 1
        return b.gather(
            x,
            from_the_end(ctx, indices, tuple(x.dims[a] for a in axes)),
            offset_dims=tuple(range(lead, lead + x.rank - batch_dims - count)),
            collapsed_slice_dims=axes,
            start_index_map=axes,
            index_vector_dim=lead,
            slice_sizes=(1,) * (batch_dims + count) + x.dims[batch_dims + count :],
            operand_batching_dims=tuple(range(batch_dims)),
            start_indices_batching_dims=tuple(range(batch_dims)),
        )


@operator("ScatterND", family="indexing", traits=PURE)
class ScatterND:
    """ONNX ScatterND: x with updates placed at index tuples; kind replace, sum, prod, max, min.

    Out-of-range updates are dropped.
    """

    x: Operand[ANY]
    indices: Operand[INTEGER]
    updates: Operand[ANY]
    kind: str = "replace"

    def infer(ctx, x, indices, updates, *, kind):
        count = tuple_length(ctx, x, indices, 0)
        ctx.same_dtype(x, updates)
        combinable(ctx, kind, x.dtype, KINDS)
        ctx.equal_dims(
            indices.dims[:-1] + x.dims[count:],
            updates.dims,
            "dims that indices and x ask of updates, and those of updates,",
        )
        return x.with_dims(x.dims)

    def reference(ctx, x, indices, updates, *, kind):
        places = [wrapped(indices[..., i], x.shape[i]) for i in range(indices.shape[-1])]
        valid = np.ones(indices.shape[:-1], bool)
        for place, size in zip(places, x.shape, strict=False):
            valid &= (place >= 0) & (place < size)
        return combined(ctx, x, tuple(p[valid] for p in places), updates[valid], kind)

    def decompose(ctx, x, indices, updates, *, kind):
        b = ctx.build
        count, lead = indices.dims[-1], indices.rank - 1
        return b.scatter(
            x,
            from_the_end(ctx, indices, x.dims[:count]),
            updates,
            update_window_dims=tuple(range(lead, updates.rank)),
            inserted_window_dims=tuple(range(count)),
            scatter_dims_to_operand_dims=tuple(range(count)),
            index_vector_dim=lead,
            kind=kind,
        )


@operator("OneHot", family="indexing", traits=PURE)
class OneHot:
    """values[1] where the new axis (of size depth) equals the index, values[0] elsewhere.

    Negative indices in [-depth, -1] count from the end; others give a row of values[0].

    indices of any real type, floats truncated towards zero; values[2]; result has the dtype of values.
    """

    indices: Operand
    values: Operand[ANY]
    depth: Size
    axis: int = -1

    def infer(ctx, indices, values, *, depth, axis):
        ctx.need(
            not indices.dtype.is_complex and not indices.dtype.is_bool,
            f"indices must be real numbers, got {indices.type}",
        )
        ctx.need(values.rank == 1, f"values must be a vector of two, got {values.type}")
        ctx.equal(values.dims[0], 2, "the length of values and 2")
        ctx.at_most(0, depth, "depth must not be negative")
        axis = ctx.axis(axis, indices.rank + 1)
        return values.with_dims(indices.dims[:axis] + (depth,) + indices.dims[axis:])

    def reference(ctx, indices, values, *, depth, axis):
        axis %= indices.ndim + 1
        indices = indices if indices.dtype == np.uint64 else converted(indices, dtypes.i64)
        places = np.expand_dims(wrapped(indices, depth), axis)
        numbers = np.arange(depth).reshape([-1 if i == axis else 1 for i in range(indices.ndim + 1)])
        return np.where(places == numbers, values[1], values[0])

    def decompose(ctx, indices, values, *, depth, axis):
        b = ctx.build
        rank = indices.rank + 1
        axis %= rank
        places = from_the_end_of(b, in_i64(b, indices), size_scalar(b, depth))
        places = b.reshape(places, dims=indices.dims[:axis] + (1,) + indices.dims[axis:])
        numbers = b.iota(dtype=dtypes.i64, dims=(1,) * axis + (depth,) + (1,) * (rank - 1 - axis), axis=axis)
        off, on = (b.reshape(b.slice(values, starts=(i,), limits=(i + 1,), strides=(1,)), dims=()) for i in (0, 1))
        return b.select(b.compare(places, numbers, direction="eq"), on, off)
