"""StableHLO's general gather and scatter, batching dimensions included."""

import numpy as np

from ... import dtypes
from ...dims import Size
from ...operators import ANY, INTEGER, PURE, Operand, Region, operator
from . import bucketing
from .places import KINDS, MOVES, combinable, combined, numbered
from .windows import check_scatter, gathered_dims, start_bounds, window_places, window_starts, windows_inside


@operator("gather", family="indexing", traits=MOVES)
class Gather:
    """StableHLO gather: slices of x at starts given by indices; starts clamp so that the slice fits."""

    x: Operand[ANY]
    indices: Operand[INTEGER]
    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[Size, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()

    bucket = bucketing.gather

    def infer(
        ctx,
        x,
        indices,
        *,
        offset_dims,
        collapsed_slice_dims,
        start_index_map,
        index_vector_dim,
        slice_sizes,
        operand_batching_dims,
        start_indices_batching_dims,
    ):
        dims = gathered_dims(
            ctx,
            x,
            indices,
            offset_dims,
            collapsed_slice_dims,
            start_index_map,
            index_vector_dim,
            slice_sizes,
            operand_batching_dims,
            start_indices_batching_dims,
        )
        return x.with_dims(dims)

    def reference(
        ctx,
        x,
        indices,
        *,
        offset_dims,
        collapsed_slice_dims,
        start_index_map,
        index_vector_dim,
        slice_sizes,
        operand_batching_dims,
        start_indices_batching_dims,
    ):
        starts = window_starts(
            indices, x.ndim, start_index_map, index_vector_dim, operand_batching_dims, start_indices_batching_dims
        )
        starts = np.clip(starts, 0, np.subtract(x.shape, slice_sizes).reshape(-1, *[1] * (starts.ndim - 1)))
        dropped = (*collapsed_slice_dims, *operand_batching_dims)
        return x[window_places(starts, slice_sizes, dropped, offset_dims)]

    def vjp(
        ctx,
        x,
        indices,
        *,
        offset_dims,
        collapsed_slice_dims,
        start_index_map,
        index_vector_dim,
        slice_sizes,
        operand_batching_dims,
        start_indices_batching_dims,
    ):
        b = ctx.build
        low, high = start_bounds(b, x.dims, slice_sizes, start_index_map, indices, index_vector_dim)
        starts = b.clamp(low, b.convert(indices, dtype=low.dtype), high)
        dx = b.scatter(
            ctx.zeros(x), starts, ctx.cotangent, update_window_dims=offset_dims,
            inserted_window_dims=collapsed_slice_dims, scatter_dims_to_operand_dims=start_index_map,
            index_vector_dim=index_vector_dim, input_batching_dims=operand_batching_dims,
            scatter_indices_batching_dims=start_indices_batching_dims, kind="sum",
        )  # fmt: skip
        return dx, None


@operator("scatter", family="indexing", traits=PURE)
class Scatter:
    """StableHLO scatter of one operand.  A window that is not wholly inside is dropped.

    kind: replace, sum, prod, max, min, and, or, custom.

    "replace" with duplicates keeps the last in row-major order of the updates; body (old, new) -> value only for
    custom.
    """

    x: Operand
    indices: Operand[INTEGER]
    updates: Operand
    update_window_dims: tuple[int, ...]
    inserted_window_dims: tuple[int, ...]
    scatter_dims_to_operand_dims: tuple[int, ...]
    index_vector_dim: int
    input_batching_dims: tuple[int, ...] = ()
    scatter_indices_batching_dims: tuple[int, ...] = ()
    kind: str = "replace"
    body: Region | None = None

    bucket = bucketing.scatter

    def infer(
        ctx,
        x,
        indices,
        updates,
        *,
        update_window_dims,
        inserted_window_dims,
        scatter_dims_to_operand_dims,
        index_vector_dim,
        input_batching_dims,
        scatter_indices_batching_dims,
        kind,
        body,
    ):
        check_scatter(
            ctx,
            x,
            indices,
            updates,
            update_window_dims,
            inserted_window_dims,
            scatter_dims_to_operand_dims,
            index_vector_dim,
            input_batching_dims,
            scatter_indices_batching_dims,
        )
        combinable(ctx, kind, x.dtype, (*KINDS, "and", "or", "xor", "custom"))
        ctx.need((kind == "custom") == (body is not None), "kind custom, and no other, takes a body")
        return x.with_dims(x.dims)

    def reference(
        ctx,
        x,
        indices,
        updates,
        *,
        update_window_dims,
        inserted_window_dims,
        scatter_dims_to_operand_dims,
        index_vector_dim,
        input_batching_dims,
        scatter_indices_batching_dims,
        kind,
        body,
    ):
        dropped = (*inserted_window_dims, *input_batching_dims)
        window = iter(updates.shape[d] for d in update_window_dims)
        sizes = [1 if axis in dropped else next(window) for axis in range(x.ndim)]
        starts = window_starts(
            indices,
            x.ndim,
            scatter_dims_to_operand_dims,
            index_vector_dim,
            input_batching_dims,
            scatter_indices_batching_dims,
        )
        room = np.subtract(x.shape, sizes).reshape(-1, *[1] * (starts.ndim - 1))
        valid = ((starts >= 0) & (starts <= room)).all(axis=0)
        where_scattered = tuple(i for i in range(updates.ndim) if i not in update_window_dims)
        valid = (
            np.broadcast_to(np.expand_dims(valid, tuple(update_window_dims)), updates.shape)
            if where_scattered
            else np.broadcast_to(valid, updates.shape)
        )
        places = window_places(starts, sizes, dropped, update_window_dims)
        index = tuple(np.broadcast_to(p, updates.shape)[valid] for p in places)
        return combined(ctx, x, index, updates[valid], kind, body)

    def vjp(
        ctx,
        x,
        indices,
        updates,
        *,
        update_window_dims,
        inserted_window_dims,
        scatter_dims_to_operand_dims,
        index_vector_dim,
        input_batching_dims,
        scatter_indices_batching_dims,
        kind,
        body,
    ):
        """kind sum and replace; of several updates of one element the last has the cotangent."""
        b, g = ctx.build, ctx.cotangent
        if kind not in ("sum", "replace"):
            ctx.refuse(f"kind {kind!r} has no derivative here; sum and replace have")
        dropped = (*inserted_window_dims, *input_batching_dims)
        window = iter(updates.dims[d] for d in update_window_dims)
        sizes = tuple(1 if axis in dropped else next(window) for axis in range(x.rank))
        valid = windows_inside(
            b, x.dims, sizes, scatter_dims_to_operand_dims, indices, index_vector_dim, updates, update_window_dims
        )

        def gathered(y):
            return b.gather(
                y, indices, offset_dims=update_window_dims, collapsed_slice_dims=inserted_window_dims,
                start_index_map=scatter_dims_to_operand_dims, index_vector_dim=index_vector_dim, slice_sizes=sizes,
                operand_batching_dims=input_batching_dims, start_indices_batching_dims=scatter_indices_batching_dims,
            )  # fmt: skip

        zero = b.constant(0.0, g.dtype)
        if kind == "sum":
            return g, None, b.select(valid, gathered(g), zero)
        numbers = numbered(b, updates)
        winners = b.scatter(
            b.full(-1, dtypes.i64, x.dims), indices, numbers, update_window_dims=update_window_dims,
            inserted_window_dims=inserted_window_dims, scatter_dims_to_operand_dims=scatter_dims_to_operand_dims,
            index_vector_dim=index_vector_dim, input_batching_dims=input_batching_dims,
            scatter_indices_batching_dims=scatter_indices_batching_dims,
        )  # fmt: skip
        own = b.and_(valid, b.compare(gathered(winners), numbers, direction="eq"))
        rest = b.select(b.compare(winners, -1, direction="eq"), g, zero)
        return rest, None, b.select(own, gathered(g), zero)
