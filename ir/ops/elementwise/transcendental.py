"""Elementwise functions of one operand: powers and roots, exponentials, trigonometric and special functions."""

import math

import numpy as np

from ...operators import EXACT, FLOAT, INEXACT, Operand, operator
from .arithmetic import MAP, derivative, scipy_special


@operator("exponential", family="elementwise", traits=MAP)
class Exponential:
    """e^x."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.exp(x)

    vjp = derivative(lambda b, x, y: y)


@operator("exponential_minus_one", family="elementwise", traits=MAP)
class ExponentialMinusOne:
    """e^x - 1, exact near 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.expm1(x)

    vjp = derivative(lambda b, x, y: b.add(y, 1.0))


@operator("log", family="elementwise", traits=MAP)
class Log:
    """Natural logarithm; NaN below 0, -inf at 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.log(x)

    vjp = derivative(lambda b, x, y: b.divide(1.0, x))


@operator("log_plus_one", family="elementwise", traits=MAP)
class LogPlusOne:
    """log(1 + x), exact near 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.log1p(x)

    vjp = derivative(lambda b, x, y: b.divide(1.0, b.add(x, 1.0)))


@operator("logistic", family="elementwise", traits=MAP)
class Logistic:
    """1 / (1 + e^-x)."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return 1 / (1 + np.exp(-x))

    vjp = derivative(lambda b, x, y: b.multiply(y, b.logistic(b.negate(x))))


@operator("tanh", family="elementwise", traits=MAP)
class Tanh:
    """Hyperbolic tangent."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.tanh(x)

    vjp = derivative(lambda b, x, y: b.subtract(1.0, b.multiply(y, y)))


@operator("sqrt", family="elementwise", traits=MAP | EXACT)
class Sqrt:
    """Square root; NaN below 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.sqrt(x)

    vjp = derivative(lambda b, x, y: b.divide(0.5, y))


@operator("rsqrt", family="elementwise", traits=MAP)
class Rsqrt:
    """1 / sqrt(x); +inf at +0, -inf at -0, NaN below 0."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return 1 / np.sqrt(x)

    vjp = derivative(lambda b, x, y: b.divide(b.multiply(y, -0.5), x))


@operator("cbrt", family="elementwise", traits=MAP)
class Cbrt:
    """Real cube root, also of negative numbers."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.cbrt(x)

    vjp = derivative(lambda b, x, y: b.divide(1 / 3, b.multiply(y, y)))


@operator("sine", family="elementwise", traits=MAP)
class Sine:
    """sin(x), radians."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.sin(x)

    vjp = derivative(lambda b, x, y: b.cosine(x))


@operator("cosine", family="elementwise", traits=MAP)
class Cosine:
    """cos(x), radians."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.cos(x)

    vjp = derivative(lambda b, x, y: b.negate(b.sine(x)))


@operator("tan", family="elementwise", traits=MAP)
class Tan:
    """tan(x), radians."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.tan(x)

    vjp = derivative(lambda b, x, y: b.add(b.multiply(y, y), 1.0))


@operator("asin", family="elementwise", traits=MAP)
class Asin:
    """Arc sine; NaN outside [-1, 1]."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arcsin(x)

    vjp = derivative(lambda b, x, y: b.rsqrt(b.subtract(1.0, b.multiply(x, x))))


@operator("acos", family="elementwise", traits=MAP)
class Acos:
    """Arc cosine; NaN outside [-1, 1]."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arccos(x)

    vjp = derivative(lambda b, x, y: b.negate(b.rsqrt(b.subtract(1.0, b.multiply(x, x)))))


@operator("atan", family="elementwise", traits=MAP)
class Atan:
    """Arc tangent."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arctan(x)

    vjp = derivative(lambda b, x, y: b.divide(1.0, b.add(b.multiply(x, x), 1.0)))


@operator("sinh", family="elementwise", traits=MAP)
class Sinh:
    """Hyperbolic sine."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.sinh(x)

    vjp = derivative(lambda b, x, y: b.cosh(x))


@operator("cosh", family="elementwise", traits=MAP)
class Cosh:
    """Hyperbolic cosine."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.cosh(x)

    vjp = derivative(lambda b, x, y: b.sinh(x))


@operator("asinh", family="elementwise", traits=MAP)
class Asinh:
    """Inverse hyperbolic sine."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arcsinh(x)

    vjp = derivative(lambda b, x, y: b.rsqrt(b.add(b.multiply(x, x), 1.0)))


@operator("acosh", family="elementwise", traits=MAP)
class Acosh:
    """Inverse hyperbolic cosine; NaN below 1."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arccosh(x)

    vjp = derivative(lambda b, x, y: b.rsqrt(b.multiply(b.subtract(x, 1.0), b.add(x, 1.0))))


@operator("atanh", family="elementwise", traits=MAP)
class Atanh:
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""

    x: Operand[INEXACT]

    def reference(ctx, x):
        return np.arctanh(x)

    vjp = derivative(lambda b, x, y: b.divide(1.0, b.subtract(1.0, b.multiply(x, x))))


@operator("erf", family="elementwise", traits=MAP)
class Erf:
    """Error function."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().erf(x)

    vjp = derivative(lambda b, x, y: b.multiply(b.exponential(b.negate(b.multiply(x, x))), 2 / math.sqrt(math.pi)))


@operator("erfc", family="elementwise", traits=MAP)
class Erfc:
    """1 - erf(x) without cancellation."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().erfc(x)

    vjp = derivative(lambda b, x, y: b.multiply(b.exponential(b.negate(b.multiply(x, x))), -2 / math.sqrt(math.pi)))


@operator("erf_inv", family="elementwise", traits=MAP)
class ErfInv:
    """Inverse error function; NaN outside [-1, 1]."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().erfinv(x)

    vjp = derivative(lambda b, x, y: b.multiply(b.exponential(b.multiply(y, y)), math.sqrt(math.pi) / 2))


@operator("lgamma", family="elementwise", traits=MAP)
class Lgamma:
    """log |gamma(x)|."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.where(np.isneginf(x), np.inf, scipy_special().gammaln(x))  # SciPy says -inf there, C says inf

    vjp = derivative(lambda b, x, y: b.digamma(x))


@operator("digamma", family="elementwise", traits=MAP)
class Digamma:
    """Derivative of lgamma."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return scipy_special().digamma(x)
