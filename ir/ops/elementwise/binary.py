"""Elementwise operators of two and three operands: arithmetic, logic, shifts, comparison, selection."""

from typing import Literal

import numpy as np

from ... import dtypes, ints
from ...facts import Fact
from ...ints import carrying, mapped
from ...operators import (
    ANY,
    BOOL,
    COMMUTATIVE,
    EXACT,
    FLOAT,
    INTEGER,
    LOGICAL,
    NUMERIC,
    REAL,
    TENSOR,
    Operand,
    operator,
)
from ...types import TensorType
from .arithmetic import (
    COMPARE,
    MAP,
    WHOLE,
    as_signed,
    bit_pattern,
    flat,
    integer_divide,
    integer_power,
    shared,
    shift_amount,
    sign_extended,
    width,
)


@operator("add", family="elementwise", traits=MAP | COMMUTATIVE | EXACT)
class Add:
    """x + y; or for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]

    infer = carrying(ints.add)

    def reference(ctx, x, y):
        return np.add(x, y)

    def vjp(ctx, x, y):
        return ctx.cotangent, ctx.cotangent


@operator("subtract", family="elementwise", traits=MAP | EXACT)
class Subtract:
    """x - y."""

    x: Operand[NUMERIC]
    y: Operand[NUMERIC]

    infer = carrying(ints.subtract)

    def reference(ctx, x, y):
        return np.subtract(x, y)

    def vjp(ctx, x, y):
        return ctx.cotangent, ctx.build.negate(ctx.cotangent)


@operator("multiply", family="elementwise", traits=MAP | COMMUTATIVE | EXACT)
class Multiply:
    """x * y; and for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]

    infer = carrying(ints.multiply)

    def reference(ctx, x, y):
        return np.multiply(x, y)

    def vjp(ctx, x, y):
        b, g = ctx.build, ctx.cotangent
        return b.multiply(g, y), b.multiply(g, x)


@operator("divide", family="elementwise", traits=MAP | EXACT)
class Divide:
    """x / y.  Integers truncate towards zero; x / 0 is -1 (all ones for unsigned); INT_MIN / -1 is INT_MIN."""

    x: Operand[NUMERIC]
    y: Operand[NUMERIC]

    infer = carrying(ints.divide)

    def reference(ctx, x, y):
        return integer_divide(x, y) if x.dtype.kind in "iu" else np.divide(x, y)

    def vjp(ctx, x, y):
        b = ctx.build
        part = b.divide(ctx.cotangent, y)
        return part, b.negate(b.multiply(part, ctx.result))


@operator("remainder", family="elementwise", traits=MAP | EXACT)
class Remainder:
    """x - y * trunc(x / y), with the sign of x.  Integers: x rem 0 is x, INT_MIN rem -1 is 0.  Floats: C fmod."""

    x: Operand[REAL]
    y: Operand[REAL]

    infer = carrying(ints.remainder)

    def reference(ctx, x, y):
        if x.dtype.kind not in "iu":
            return np.fmod(x, y)
        return np.where(y == 0, x, np.fmod(x, np.where((y == 0) | (y == -1), 1, y)))

    def vjp(ctx, x, y):
        b, g = ctx.build, ctx.cotangent
        whole = b.round_nearest_even(b.divide(b.subtract(x, ctx.result), y))
        return g, b.negate(b.multiply(g, whole))


@operator("power", family="elementwise", traits=MAP)
class Power:
    """x ^ y.  Integers wrap; a negative integer exponent gives 0, but 1 for base 1 and 1 or -1 for base -1."""

    x: Operand[NUMERIC]
    y: Operand[NUMERIC]

    infer = carrying(ints.power)

    def reference(ctx, x, y):
        return integer_power(x, y) if x.dtype.kind in "iu" else np.power(x, y)

    def vjp(ctx, x, y):
        """x^0 has the slope 0 in x everywhere; x^y has none in y where x <= 0."""
        b, g = ctx.build, ctx.cotangent
        slope = b.multiply(y, b.power(x, b.subtract(y, 1.0)))
        slope = b.select(b.compare(y, 0.0, direction="eq"), b.constant(0.0, x.dtype), slope)
        positive = b.compare(x, 0.0, direction="gt")
        log = b.log(b.select(positive, x, b.constant(1.0, x.dtype)))
        return b.multiply(g, slope), b.multiply(g, b.multiply(log, ctx.result))


@operator("maximum", family="elementwise", traits=MAP | COMMUTATIVE | EXACT)
class Maximum:
    """The greater; NaN if either is NaN; +0 above -0 is not promised.  or for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]

    infer = carrying(ints.maximum)

    def reference(ctx, x, y):
        return np.maximum(x, y)

    def vjp(ctx, x, y):
        return shared(ctx, x, y, "gt")


@operator("minimum", family="elementwise", traits=MAP | COMMUTATIVE | EXACT)
class Minimum:
    """The lesser; NaN if either is NaN.  and for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]

    infer = carrying(ints.minimum)

    def reference(ctx, x, y):
        return np.minimum(x, y)

    def vjp(ctx, x, y):
        return shared(ctx, x, y, "lt")


@operator("atan2", family="elementwise", traits=MAP)
class Atan2:
    """Angle of the point (y as x-axis, x as y-axis): atan2(x, y) in NumPy's argument order."""

    x: Operand[FLOAT]
    y: Operand[FLOAT]

    def reference(ctx, x, y):
        return np.arctan2(x, y)

    def vjp(ctx, x, y):
        b, g = ctx.build, ctx.cotangent
        part = b.divide(g, b.add(b.multiply(x, x), b.multiply(y, y)))
        return b.multiply(part, y), b.negate(b.multiply(part, x))


@operator("and", family="elementwise", traits=MAP | COMMUTATIVE)
class LogicalAnd:
    """Logical and of bool, bitwise and of integers."""

    x: Operand[LOGICAL]
    y: Operand[LOGICAL]

    infer = carrying(ints.both)

    def reference(ctx, x, y):
        return np.bitwise_and(x, y)


@operator("or", family="elementwise", traits=MAP | COMMUTATIVE)
class LogicalOr:
    """Logical or of bool, bitwise or of integers."""

    x: Operand[LOGICAL]
    y: Operand[LOGICAL]

    infer = carrying(ints.either)

    def reference(ctx, x, y):
        return np.bitwise_or(x, y)


@operator("xor", family="elementwise", traits=MAP | COMMUTATIVE)
class LogicalXor:
    """Logical or bitwise exclusive or."""

    x: Operand[LOGICAL]
    y: Operand[LOGICAL]

    infer = carrying(ints.exactly_one)

    def reference(ctx, x, y):
        return np.bitwise_xor(x, y)


@operator("shift_left", family="elementwise", traits=MAP)
class ShiftLeft:
    """x << y; 0 where y is not in [0, width)."""

    x: Operand[INTEGER]
    y: Operand[INTEGER]

    def reference(ctx, x, y):
        valid, y = shift_amount(ctx, y)
        return as_signed(np.where(valid, bit_pattern(ctx, x) << y, np.uint64(0)))


@operator("shift_right_arithmetic", family="elementwise", traits=MAP)
class ShiftRightArithmetic:
    """x >> y filled with the sign bit (of the value read as signed); sign fill where y is not in [0, width)."""

    x: Operand[INTEGER]
    y: Operand[INTEGER]

    def reference(ctx, x, y):
        valid, y = shift_amount(ctx, y)
        return sign_extended(ctx, x) >> np.where(valid, y, width(ctx) - 1).astype(np.int64)


@operator("shift_right_logical", family="elementwise", traits=MAP)
class ShiftRightLogical:
    """x >> y filled with zeros; 0 where y is not in [0, width)."""

    x: Operand[INTEGER]
    y: Operand[INTEGER]

    def reference(ctx, x, y):
        valid, y = shift_amount(ctx, y)
        return as_signed(np.where(valid, bit_pattern(ctx, x) >> y, np.uint64(0)))


@operator("complex", family="elementwise", traits=MAP)
class Complex:
    """Complex numbers from real and imaginary parts.  f32 -> c64, f64 -> c128."""

    x: Operand[FLOAT]
    y: Operand[FLOAT]

    def infer(ctx, x, y):
        part = ctx.same_dtype(x, y)
        if part not in WHOLE:
            ctx.fail(f"the parts of a complex number are f32 or f64, got {part}")
        return Fact(TensorType(WHOLE[part], ctx.broadcast(x.dims, y.dims)))

    def reference(ctx, x, y):
        out = np.empty(np.broadcast_shapes(x.shape, y.shape), np.complex128)
        out.real, out.imag = x, y
        return out


@operator("compare", family="elementwise", traits=MAP | EXACT)
class Compare:
    """x direction y -> bool.  Anything ordered with NaN is False; NaN ne anything is True.

    Strings and complex: eq, ne only.
    """

    x: Operand[ANY]
    y: Operand[ANY]
    direction: Literal["eq", "ne", "lt", "le", "gt", "ge"]

    def infer(ctx, x, y, *, direction):
        dtype = ctx.same_dtype(x, y)
        if (dtype.is_string or dtype.is_complex) and direction not in ("eq", "ne"):
            ctx.fail(f"{dtype} has no order: direction must be eq or ne, got {direction}")
        fact = Fact(TensorType(dtypes.bool_, ctx.broadcast(x.dims, y.dims)))
        return mapped(ctx, fact, ints.compare(direction), x, y)

    def reference(ctx, x, y, *, direction):
        return COMPARE[direction](x, y)

    vjp = flat


@operator("select", family="elementwise", traits=MAP | EXACT)
class Select:
    """x where predicate, y elsewhere (all three broadcast)."""

    predicate: Operand[BOOL]
    x: Operand[ANY]
    y: Operand[ANY]

    def infer(ctx, predicate, x, y):
        fact = Fact(TensorType(ctx.same_dtype(x, y), ctx.broadcast(predicate.dims, x.dims, y.dims)))
        return mapped(ctx, fact, ints.select, predicate, x, y)

    def reference(ctx, predicate, x, y):
        return np.where(predicate, x, y)

    def vjp(ctx, predicate, x, y):
        b, g = ctx.build, ctx.cotangent
        zero = b.constant(0.0, g.dtype)
        return None, b.select(predicate, g, zero), b.select(predicate, zero, g)


@operator("clamp", family="elementwise", traits=MAP | EXACT)
class Clamp:
    """minimum(maximum(x, low), high); NaN in any operand gives NaN.  low above high gives high."""

    low: Operand[REAL]
    x: Operand[REAL]
    high: Operand[REAL]

    infer = carrying(ints.clamp)

    def reference(ctx, low, x, high):
        return np.minimum(np.maximum(x, low), high)

    def vjp(ctx, low, x, high):
        """To x strictly between the limits, else to the limit that is the result, to high where they cross."""
        b, g = ctx.build, ctx.cotangent
        zero = b.constant(0.0, g.dtype)
        above = b.compare(b.maximum(x, low), high, direction="ge")
        below = b.compare(x, low, direction="le")
        rest = b.select(above, zero, g)
        return b.select(below, rest, zero), b.select(below, zero, rest), b.select(above, g, zero)
