"""Operators that only move or make elements by position: reshape, transpose, broadcast, slice, pad, iota and kin."""

import numpy as np

from ..dims import Size
from ..dtypes import DType
from ..operators import INTEGER, MOVES_DATA, PURE, TENSOR, ANY, Operand, Variadic, operator

MOVES = PURE | MOVES_DATA


@operator("broadcast_in_dim", family="shape", traits=MOVES)
class BroadcastInDim:
    """x with its axis i at result axis broadcast_dimensions[i]; size-1 axes and new axes repeat.

    x[..] -> [dims].  x.dims[i] must be 1 or equal dims[broadcast_dimensions[i]]; broadcast_dimensions increase strictly.
    """

    x: Operand[ANY]
    dims: tuple[Size, ...]
    broadcast_dimensions: tuple[int, ...]


@operator("reshape", family="shape", traits=MOVES)
class Reshape:
    """The same elements in row-major order with other dims.  x[..] -> [dims]; the sizes must be equal.

    Carries known integers through.
    """

    x: Operand[ANY]
    dims: tuple[Size, ...]


@operator("transpose", family="shape", traits=MOVES)
class Transpose:
    """Axes permuted: result axis i is x's axis permutation[i]."""

    x: Operand[ANY]
    permutation: tuple[int, ...]


@operator("concatenate", family="shape", traits=MOVES)
class Concatenate:
    """Values joined along axis (0 <= axis < rank); other dims must be equal.  At least one operand.  Carries ints."""

    xs: Variadic[ANY]
    axis: int


@operator("slice", family="shape", traits=MOVES)
class Slice:
    """x[starts[i] : limits[i] : strides[i]] on every axis; 0 <= starts <= limits <= dims, strides >= 1.  Carries ints.

    starts and limits may be symbolic sizes.  Result dim: ceil((limit - start) / stride).
    """

    x: Operand[ANY]
    starts: tuple[Size, ...]
    limits: tuple[Size, ...]
    strides: tuple[int, ...]


@operator("StridedSlice", family="shape", traits=MOVES)
class StridedSlice:
    """Python's x[starts:limits:strides] with already normalized bounds; strides may be negative (then limit -1 is "before 0").

    The importer's form of ONNX Slice with a negative step; decomposes into slice and reverse.
    """

    x: Operand[ANY]
    starts: tuple[Size, ...]
    limits: tuple[Size, ...]
    strides: tuple[int, ...]


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


@operator("PadMode", family="shape", traits=MOVES)
class PadMode:
    """ONNX Pad with mode reflect, edge or wrap.  Negative low/high crop first, as ONNX and NumPy have it."""

    x: Operand[ANY]
    low: tuple[Size, ...]
    high: tuple[Size, ...]
    mode: str


@operator("reverse", family="shape", traits=MOVES)
class Reverse:
    """Order of elements reversed along the axes."""

    x: Operand[ANY]
    axes: tuple[int, ...]


@operator("iota", family="shape", traits=PURE)
class Iota:
    """A tensor whose element is its index along axis.  -> dtype[dims]."""

    dtype: DType
    dims: tuple[Size, ...]
    axis: int


@operator("dimensions", family="shape", traits=PURE)
class Dimensions:
    """Sizes as an i64 vector (or, with scalar, the one size as an i64 scalar).  What ONNX Shape and Size become."""

    dims: tuple[Size, ...]
    scalar: bool = False


@operator("Range", family="shape", traits=PURE)
class Range:
    """start + i * delta for i in [0, count).  start and delta are scalars of the result's type."""

    start: Operand
    delta: Operand
    count: Size


@operator("Split", family="shape", traits=MOVES)
class Split:
    """x cut along axis into pieces of the given sizes, one result each.  The sizes must add up to the dim."""

    x: Operand[ANY]
    axis: int
    sizes: tuple[Size, ...]


@operator("Tile", family="shape", traits=MOVES)
class Tile:
    """x repeated repeats[i] times along axis i."""

    x: Operand[ANY]
    repeats: tuple[Size, ...]


@operator("DepthToSpace", family="shape", traits=MOVES)
class DepthToSpace:
    """[N,C,H,W] -> [N, C/b^2, H*b, W*b].  mode DCR (depth, column, row) or CRD, as ONNX has them."""

    x: Operand
    blocksize: int
    mode: str = "DCR"


@operator("SpaceToDepth", family="shape", traits=MOVES)
class SpaceToDepth:
    """[N,C,H,W] -> [N, C*b^2, H/b, W/b], the inverse of DepthToSpace in DCR mode."""

    x: Operand
    blocksize: int


@operator("Trilu", family="shape", traits=PURE)
class Trilu:
    """The upper (or lower) triangle of the last two axes, zero elsewhere; diagonal k counts upwards and may be symbolic."""

    x: Operand
    k: Size = 0
    upper: bool = True


@operator("EyeLike", family="shape", traits=PURE)
class EyeLike:
    """Ones on diagonal k of a [rows, columns] matrix of `dtype`, zeros elsewhere."""

    dtype: DType
    dims: tuple[Size, ...]
    k: int = 0
