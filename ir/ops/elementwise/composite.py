"""ONNX's arithmetic composites: Pow of mixed types, Mod, variadic Max, Min, Sum, Mean; tests for NaN, infinity."""

import functools

import numpy as np

from ... import dtypes, ints
from ...conversion import converted
from ...facts import Fact
from ...ints import carrying
from ...operators import EXACT, FLOAT, NUMERIC, REAL, Operand, Variadic, operator
from ...types import TensorType
from ..widening import converted as in_type
from .arithmetic import MAP, in_wide, integer_power, power_type, to_bool


def _with_sign_of(b, rest, y):
    """A remainder moved to the sign of the divisor."""
    differ = b.compare(b.compare(rest, 0, direction="lt"), b.compare(y, 0, direction="lt"), direction="ne")
    return b.select(b.and_(differ, b.compare(rest, 0, direction="ne")), b.add(rest, y), rest)


def _float_mod(b, x, y):
    rest = b.remainder(x, y)
    zero = b.select(b.compare(y, 0.0, direction="lt"), b.constant(-0.0, x.dtype), b.constant(0.0, x.dtype))
    return b.select(b.compare(rest, 0.0, direction="eq"), zero, _with_sign_of(b, rest, y))


@operator("Reciprocal", family="elementwise", traits=MAP | EXACT)
class Reciprocal:
    """1 / x."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return 1 / x

    def decompose(ctx, x):
        return ctx.build.divide(1.0, x)


@operator("IsNaN", family="elementwise", traits=MAP | EXACT)
class IsNaN:
    """Whether x is NaN.  -> bool."""

    x: Operand[FLOAT]

    infer = to_bool

    def reference(ctx, x):
        return np.isnan(x)

    def decompose(ctx, x):
        return ctx.build.compare(x, x, direction="ne")


@operator("IsInf", family="elementwise", traits=MAP | EXACT)
class IsInf:
    """Whether x is an infinity of a wanted sign.  -> bool."""

    x: Operand[FLOAT]
    detect_negative: bool = True
    detect_positive: bool = True

    def infer(ctx, x, *, detect_negative, detect_positive):
        return x.with_dtype(dtypes.bool_)

    def reference(ctx, x, *, detect_negative, detect_positive):
        return (np.isposinf(x) & detect_positive) | (np.isneginf(x) & detect_negative)

    def decompose(ctx, x, *, detect_negative, detect_positive):
        b = ctx.build
        if not np.isinf(np.float64(x.dtype.max_value())) or not (detect_negative or detect_positive):
            return b.full(False, dtypes.bool_, x.dims)
        if detect_negative and detect_positive:
            return b.compare(b.abs(x), np.inf, direction="eq")
        return b.compare(x, np.inf if detect_positive else -np.inf, direction="eq")


@operator("Pow", family="elementwise", traits=MAP)
class Pow:
    """x ^ y in x's element type, with an exponent of another type (ONNX Pow); equal types are the core `power`."""

    x: Operand[REAL]
    y: Operand[REAL]

    def infer(ctx, x, y):
        return Fact(TensorType(x.dtype, ctx.broadcast(x.dims, y.dims)))

    def reference(ctx, x, y):
        if x.dtype.kind in "iu" and y.dtype.kind in "iu":
            return integer_power(x, y)
        return converted(np.power(x.astype(np.float64), y.astype(np.float64)), ctx.result_types[0].dtype)

    def decompose(ctx, x, y):
        b = ctx.build
        dtype = power_type(x.dtype, y.dtype)
        return in_type(b, b.power(in_type(b, x, dtype), in_type(b, y, dtype)), x.dtype)


@operator("Mod", family="elementwise", traits=MAP)
class Mod:
    """Remainder with the sign of y (Python's %).  Integers: x mod 0 is x."""

    x: Operand[REAL]
    y: Operand[REAL]

    infer = carrying(ints.modulo)

    def reference(ctx, x, y):
        if x.dtype.kind in "iu":
            return np.where(y == 0, x, np.mod(x, np.where((y == 0) | (y == -1), 1, y)))
        return np.mod(x, y)

    def decompose(ctx, x, y):
        if x.dtype.is_float:
            return in_wide(ctx.build, (x, y), _float_mod)
        rest = ctx.build.remainder(x, y)
        return rest if x.dtype.kind == "uint" else _with_sign_of(ctx.build, rest, y)


@operator("Max", family="elementwise", traits=MAP | EXACT)
class Max:
    """The greatest of one or more operands; NaN if any is NaN."""

    xs: Variadic[REAL]

    infer = carrying(ints.folded(ints.maximum))

    def decompose(ctx, xs):
        return functools.reduce(ctx.build.maximum, xs)


@operator("Min", family="elementwise", traits=MAP | EXACT)
class Min:
    """The least of one or more operands; NaN if any is NaN."""

    xs: Variadic[REAL]

    infer = carrying(ints.folded(ints.minimum))

    def decompose(ctx, xs):
        return functools.reduce(ctx.build.minimum, xs)


@operator("Sum", family="elementwise", traits=MAP)
class Sum:
    """The sum of one or more operands, from the left."""

    xs: Variadic[NUMERIC]

    infer = carrying(ints.folded(ints.add))

    def decompose(ctx, xs):
        return functools.reduce(ctx.build.add, xs)


@operator("Mean", family="elementwise", traits=MAP)
class Mean:
    """The sum of one or more operands divided by their number."""

    xs: Variadic[FLOAT]

    def decompose(ctx, xs):
        def mean(b, first, *rest):
            return b.divide(functools.reduce(b.add, rest, first), float(1 + len(rest)))

        return in_wide(ctx.build, xs, mean)
