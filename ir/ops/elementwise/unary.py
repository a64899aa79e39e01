"""Elementwise operators of one operand: arithmetic, rounding, transcendental functions, bits, complex parts."""

import numpy as np

from ... import ints
from ...ints import carrying, mapped
from ...operators import COMPLEX, EXACT, FLOAT, INEXACT, INTEGER, LOGICAL, NUMERIC, Operand, operator
from .arithmetic import MAP, PART, bit_length, bit_pattern, scipy_special, to_bool, to_part, width


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


@operator("negate", family="elementwise", traits=MAP | EXACT)
class Negate:
    """-x; wraps for integers."""

    x: Operand[NUMERIC]

    infer = carrying(ints.negate)

    def reference(ctx, x):
        return np.negative(x)


@operator("sign", family="elementwise", traits=MAP | EXACT)
class Sign:
    """-1, 0 or 1 of x's type.  sign(-0.0) is -0.0, sign(NaN) is NaN; complex: x / |x|, 0 for 0."""

    x: Operand[NUMERIC]

    infer = carrying(ints.sign)

    def reference(ctx, x):
        return np.where((x == 0) | (x != x), x, np.sign(x))


@operator("exponential", family="elementwise", traits=MAP)
class Exponential:
    """e^x."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.exp(x)


@operator("exponential_minus_one", family="elementwise", traits=MAP)
class ExponentialMinusOne:
    """e^x - 1, exact near 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.expm1(x)


@operator("log", family="elementwise", traits=MAP)
class Log:
    """Natural logarithm; NaN below 0, -inf at 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.log(x)


@operator("log_plus_one", family="elementwise", traits=MAP)
class LogPlusOne:
    """log(1 + x), exact near 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.log1p(x)


@operator("logistic", family="elementwise", traits=MAP)
class Logistic:
    """1 / (1 + e^-x)."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return 1 / (1 + np.exp(-x))


@operator("tanh", family="elementwise", traits=MAP)
class Tanh:
    """Hyperbolic tangent."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.tanh(x)


@operator("sqrt", family="elementwise", traits=MAP | EXACT)
class Sqrt:
    """Square root; NaN below 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.sqrt(x)


@operator("rsqrt", family="elementwise", traits=MAP)
class Rsqrt:
    """1 / sqrt(x); +inf at +0, -inf at -0, NaN below 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return 1 / np.sqrt(x)


@operator("cbrt", family="elementwise", traits=MAP)
class Cbrt:
    """Real cube root, also of negative numbers."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.cbrt(x)


@operator("ceil", family="elementwise", traits=MAP | EXACT)
class Ceil:
    """Least integer not below x."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.ceil(x)


@operator("floor", family="elementwise", traits=MAP | EXACT)
class Floor:
    """Greatest integer not above x."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.floor(x)


@operator("round_nearest_even", family="elementwise", traits=MAP | EXACT)
class RoundNearestEven:
    """Nearest integer, halves to the even one."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.rint(x)


@operator("round_nearest_afz", family="elementwise", traits=MAP | EXACT)
class RoundNearestAfz:
    """Nearest integer, halves away from zero."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        whole = np.trunc(x)
        return np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)


@operator("sine", family="elementwise", traits=MAP)
class Sine:
    """sin(x), radians."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.sin(x)


@operator("cosine", family="elementwise", traits=MAP)
class Cosine:
    """cos(x), radians."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.cos(x)


@operator("tan", family="elementwise", traits=MAP)
class Tan:
    """tan(x), radians."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.tan(x)


@operator("asin", family="elementwise", traits=MAP)
class Asin:
    """Arc sine; NaN outside [-1, 1]."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arcsin(x)


@operator("acos", family="elementwise", traits=MAP)
class Acos:
    """Arc cosine; NaN outside [-1, 1]."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arccos(x)


@operator("atan", family="elementwise", traits=MAP)
class Atan:
    """Arc tangent."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arctan(x)


@operator("sinh", family="elementwise", traits=MAP)
class Sinh:
    """Hyperbolic sine."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.sinh(x)


@operator("cosh", family="elementwise", traits=MAP)
class Cosh:
    """Hyperbolic cosine."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.cosh(x)


@operator("asinh", family="elementwise", traits=MAP)
class Asinh:
    """Inverse hyperbolic sine."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arcsinh(x)


@operator("acosh", family="elementwise", traits=MAP)
class Acosh:
    """Inverse hyperbolic cosine; NaN below 1."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arccosh(x)


@operator("atanh", family="elementwise", traits=MAP)
class Atanh:
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arctanh(x)


@operator("erf", family="elementwise", traits=MAP)
class Erf:
    """Error function."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().erf(x)


@operator("erfc", family="elementwise", traits=MAP)
class Erfc:
    """1 - erf(x) without cancellation."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().erfc(x)


@operator("erf_inv", family="elementwise", traits=MAP)
class ErfInv:
    """Inverse error function; NaN outside [-1, 1]."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().erfinv(x)


@operator("lgamma", family="elementwise", traits=MAP)
class Lgamma:
    """log |gamma(x)|."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.where(np.isneginf(x), np.inf, scipy_special().gammaln(x))  # SciPy says -inf there, C says inf


@operator("digamma", family="elementwise", traits=MAP)
class Digamma:
    """Derivative of lgamma."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().digamma(x)


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
