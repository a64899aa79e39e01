"""Operators that pick or place elements by index: take, gather, scatter and the along-axis forms."""

import numpy as np

from ..dims import Size
from ..operators import ANY, INTEGER, MOVES_DATA, PURE, Operand, Region, Variadic, operator

MOVES = PURE | MOVES_DATA


@operator("take", family="indexing", traits=MOVES)
class Take:
    """Slices of x picked along axis.  x[.., N, ..], indices[I..] -> [.., I.., ..].  Indices outside [-N, N) clamp.  Carries ints."""

    x: Operand[ANY]
    indices: Operand[INTEGER]
    axis: int = 0


@operator("take_along_axis", family="indexing", traits=MOVES)
class TakeAlongAxis:
    """result[i..] = x[i.. with its axis-th index replaced by indices[i..]] (ONNX GatherElements).

    Ranks are equal; the result has the dims of indices; indices.dims <= x.dims off the axis.  Outside [-N, N) clamp.
    """

    x: Operand[ANY]
    indices: Operand[INTEGER]
    axis: int = 0


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


@operator("gather", family="indexing", traits=MOVES)
class Gather:
    """StableHLO gather: slices of x at starts given by indices; starts clamp so that the slice fits."""

    x: Operand
    indices: Operand[INTEGER]
    offset_dims: tuple[int, ...]
    collapsed_slice_dims: tuple[int, ...]
    start_index_map: tuple[int, ...]
    index_vector_dim: int
    slice_sizes: tuple[Size, ...]
    operand_batching_dims: tuple[int, ...] = ()
    start_indices_batching_dims: tuple[int, ...] = ()


@operator("scatter", family="indexing", traits=PURE)
class Scatter:
    """StableHLO scatter of one operand.  A window that is not wholly inside is dropped.  kind: replace, sum, prod, max, min, and, or, custom.

    "replace" with duplicates keeps the last in row-major order of the updates; body (old, new) -> value only for custom.
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


@operator("dynamic_slice", family="indexing", traits=MOVES)
class DynamicSlice:
    """The block of `sizes` at run-time scalar starts (one integer scalar an axis); starts clamp so that the block fits."""

    x: Operand[ANY]
    starts: Variadic[INTEGER]
    sizes: tuple[Size, ...]


@operator("dynamic_update_slice", family="indexing", traits=MOVES)
class DynamicUpdateSlice:
    """x with the block `update` written at run-time scalar starts; starts clamp so that the block fits."""

    x: Operand[ANY]
    update: Operand[ANY]
    starts: Variadic[INTEGER]


@operator("GatherND", family="indexing", traits=MOVES)
class GatherND:
    """ONNX GatherND: the last axis of indices holds index tuples into x after batch_dims leading axes.  Outside [-N, N) clamp."""

    x: Operand[ANY]
    indices: Operand[INTEGER]
    batch_dims: int = 0


@operator("ScatterND", family="indexing", traits=PURE)
class ScatterND:
    """ONNX ScatterND: x with updates placed at index tuples; kind replace, sum, prod, max, min.  Out-of-range updates are dropped."""

    x: Operand[ANY]
    indices: Operand[INTEGER]
    updates: Operand[ANY]
    kind: str = "replace"


@operator("OneHot", family="indexing", traits=PURE)
class OneHot:
    """values[1] where the new axis (of size depth) equals the index, values[0] elsewhere.  Negative indices in [-depth, -1] count from the end; others give a row of values[0].

    indices of any real type; values[2]; result has the dtype of values.
    """

    indices: Operand
    values: Operand[ANY]
    depth: Size
    axis: int = -1
