"""Operators that combine elements along axes: reduce and ONNX's reductions, ArgMax/ArgMin, cumulative sums."""

import numpy as np

from ..operators import LOGICAL, ORDERED, PURE, REAL, NUMERIC, Operand, Region, Variadic, operator


@operator("reduce", family="reduction", traits=PURE)
class Reduce:
    """xs combined along axes, which disappear.  kind: sum, prod, max, min, and, or, xor on one operand, or custom.

    An empty reduction gives the identity: 0, 1, the least value, the greatest value, all ones, 0, 0.  max and min give NaN
    if an element is NaN.  Integers wrap; f16/bf16 sums accumulate in f32.  custom: xs are n inputs then n scalar inits, and
    body (accumulators.., elements..) -> n scalars, associative; n results.
    """

    xs: Variadic
    axes: tuple[int, ...]
    kind: str
    body: Region | None = None



@operator("ReduceSum", family="reduction", traits=PURE)
class ReduceSum:
    """Sum along axes.  axes () reduces nothing."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceMean", family="reduction", traits=PURE)
class ReduceMean:
    """Mean along axes.  Integers: the sum (wrapping) divided towards zero.  Empty: NaN for floats, 0 for integers."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceMax", family="reduction", traits=PURE)
class ReduceMax:
    """Greatest along axes; NaN if there is one.  Empty: -inf, least integer, False."""

    x: Operand[ORDERED]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceMin", family="reduction", traits=PURE)
class ReduceMin:
    """Least along axes; NaN if there is one.  Empty: +inf, greatest integer, True."""

    x: Operand[ORDERED]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceProd", family="reduction", traits=PURE)
class ReduceProd:
    """Product along axes."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceL1", family="reduction", traits=PURE)
class ReduceL1:
    """Sum of absolute values."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceL2", family="reduction", traits=PURE)
class ReduceL2:
    """Square root of the sum of squares (integers: rounded towards zero)."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceLogSum", family="reduction", traits=PURE)
class ReduceLogSum:
    """Logarithm of the sum."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceLogSumExp", family="reduction", traits=PURE)
class ReduceLogSumExp:
    """log(sum(exp(x))), computed after subtracting the maximum.  A row of -inf gives -inf."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ReduceSumSquare", family="reduction", traits=PURE)
class ReduceSumSquare:
    """Sum of squares."""

    x: Operand[NUMERIC]
    axes: tuple[int, ...]
    keepdims: bool = True


@operator("ArgMax", family="reduction", traits=PURE)
class ArgMax:
    """i64 index of the greatest element along axis; NaN counts as greatest.  Ties: first (or last with select_last_index).  The axis must not be empty."""

    x: Operand[ORDERED]
    axis: int = 0
    keepdims: bool = True
    select_last_index: bool = False


@operator("ArgMin", family="reduction", traits=PURE)
class ArgMin:
    """i64 index of the least element along axis; NaN counts as least.  Ties: first (or last with select_last_index).  The axis must not be empty."""

    x: Operand[ORDERED]
    axis: int = 0
    keepdims: bool = True
    select_last_index: bool = False


@operator("CumSum", family="reduction", traits=PURE)
class CumSum:
    """Running sum along axis; exclusive leaves the element itself out, reverse runs from the end."""

    x: Operand[REAL]
    axis: int
    exclusive: bool = False
    reverse: bool = False


@operator("CumProd", family="reduction", traits=PURE)
class CumProd:
    """Running product along axis; exclusive leaves the element itself out, reverse runs from the end."""

    x: Operand[REAL]
    axis: int
    exclusive: bool = False
    reverse: bool = False
