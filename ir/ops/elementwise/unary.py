"""Elementwise operators of one operand: signs, rounding, bits, complex parts.  Not exponentials and their kin."""

import numpy as np

from ... import ints
from ...ints import carrying, mapped
from ...operators import COMPLEX, EXACT, FLOAT, INEXACT, INTEGER, LOGICAL, NUMERIC, Operand, operator
from .arithmetic import MAP, PART, bit_length, bit_pattern, derivative, flat, to_bool, to_part, width


@operator("abs", family="elementwise", traits=MAP | EXACT)
class Abs:
    """Absolute value; a complex operand gives its real modulus.  abs of the least integer is itself."""

    x: Operand[NUMERIC]

    def infer(ctx, x):
        if x.dtype.is_complex:
            return x.with_dtype(PART[x.dtype])
        return mapped(ctx, x.with_dims(x.dims), ints.absolute, x)

    def reference(ctx, x):
        return np.abs(x)

    vjp = derivative(lambda b, x, y: b.sign(x))


@operator("negate", family="elementwise", traits=MAP | EXACT)
class Negate:
    """-x; wraps for integers."""

    x: Operand[NUMERIC]

    infer = carrying(ints.negate)

    def reference(ctx, x):
        return np.negative(x)

    def vjp(ctx, x):
        return ctx.build.negate(ctx.cotangent)


@operator("sign", family="elementwise", traits=MAP | EXACT)
class Sign:
    """-1, 0 or 1 of x's type.  sign(-0.0) is -0.0, sign(NaN) is NaN; complex: x / |x|, 0 for 0."""

    x: Operand[NUMERIC]

    infer = carrying(ints.sign)

    def reference(ctx, x):
        return np.where((x == 0) | (x != x), x, np.sign(x))

    vjp = flat


@operator("ceil", family="elementwise", traits=MAP | EXACT)
class Ceil:
    """Least integer not below x."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.ceil(x)

    vjp = flat


@operator("floor", family="elementwise", traits=MAP | EXACT)
class Floor:
    """Greatest integer not above x."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.floor(x)

    vjp = flat


@operator("round_nearest_even", family="elementwise", traits=MAP | EXACT)
class RoundNearestEven:
    """Nearest integer, halves to the even one."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.rint(x)

    vjp = flat


@operator("round_nearest_afz", family="elementwise", traits=MAP | EXACT)
class RoundNearestAfz:
    """Nearest integer, halves away from zero."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)

    vjp = flat


@operator("not", family="elementwise", traits=MAP)
class LogicalNot:
    """Logical not of bool, bitwise not of integers."""

    x: Operand[LOGICAL]

    def infer(ctx, x):
        return mapped(ctx, x.with_dims(x.dims), ints.inverted(x.dtype), x)

    def reference(ctx, x):
        return np.invert(x)


@operator("popcnt", family="elementwise", traits=MAP)
class Popcnt:
    """Number of set bits."""

    x: Operand[INTEGER]

    def reference(ctx, x):
        return np.bitwise_count(bit_pattern(ctx, x))


@operator("count_leading_zeros", family="elementwise", traits=MAP)
class CountLeadingZeros:
    """Number of leading zero bits; the width for 0."""

    x: Operand[INTEGER]

    def reference(ctx, x):
        return width(ctx) - bit_length(bit_pattern(ctx, x))


@operator("is_finite", family="elementwise", traits=MAP | EXACT)
class IsFinite:
    """Neither infinite nor NaN.  -> bool."""

    x: Operand[FLOAT]

    infer = to_bool

    def reference(ctx, x):
        return np.isfinite(x)

    vjp = flat


@operator("real", family="elementwise", traits=MAP | EXACT)
class Real:
    """Real part; a real operand is its own."""

    x: Operand[INEXACT]

    infer = to_part

    def reference(ctx, x):
        return np.real(x)


@operator("imag", family="elementwise", traits=MAP | EXACT)
class Imag:
    """Imaginary part; 0 for a real operand."""

    x: Operand[INEXACT]

    infer = to_part

    def reference(ctx, x):
        return np.imag(x)


@operator("conj", family="elementwise", traits=MAP)
class Conj:
    """Complex conjugate."""

    x: Operand[COMPLEX]

    def reference(ctx, x):
        return np.conj(x)
