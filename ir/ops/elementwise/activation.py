"""ONNX's activation functions, composites of one operand and few attributes."""

import math
from typing import Literal

import numpy as np

from ... import ints
from ...conversion import converted
from ...facts import Fact
from ...ints import mapped
from ...operators import EXACT, FLOAT, REAL, Operand, operator
from ...types import TensorType
from .arithmetic import MAP, in_wide, scipy_special, softplus


@operator("Relu", family="elementwise", traits=MAP | EXACT)
class Relu:
    """maximum(x, 0); NaN stays."""

    x: Operand[REAL]

    def reference(ctx, x):
        return np.maximum(x, 0)

    def decompose(ctx, x):
        if x.dtype.is_float and x.dtype.bits <= 8:  # f8e8m0fnu has no zero
            return in_wide(ctx.build, x, lambda b, x: b.maximum(x, 0))
        return ctx.build.maximum(x, 0)


@operator("LeakyRelu", family="elementwise", traits=MAP)
class LeakyRelu:
    """x where x >= 0, alpha * x elsewhere."""

    x: Operand[FLOAT]
    alpha: float = 0.01

    def reference(ctx, x, *, alpha):
        return np.where(x >= 0, x, alpha * x)

    def decompose(ctx, x, *, alpha):
        def leaky(b, x):
            return b.select(b.compare(x, 0.0, direction="ge"), x, b.multiply(x, alpha))

        return in_wide(ctx.build, x, leaky)


@operator("Elu", family="elementwise", traits=MAP)
class Elu:
    """x where x > 0, alpha * (e^x - 1) elsewhere."""

    x: Operand[FLOAT]
    alpha: float = 1.0

    def reference(ctx, x, *, alpha):
        return np.where(x > 0, x, alpha * np.expm1(x))

    def decompose(ctx, x, *, alpha):
        return in_wide(
            ctx.build,
            x,
            lambda b, x: b.select(b.compare(x, 0.0, direction="gt"), x, b.multiply(b.exponential_minus_one(x), alpha)),
        )


@operator("Celu", family="elementwise", traits=MAP)
class Celu:
    """maximum(x, 0) + minimum(alpha * (e^(x / alpha) - 1), 0)."""

    x: Operand[FLOAT]
    alpha: float = 1.0

    def reference(ctx, x, *, alpha):
        return np.maximum(x, 0) + np.minimum(alpha * np.expm1(x / alpha), 0)

    def decompose(ctx, x, *, alpha):
        def celu(b, x):
            below = b.multiply(b.exponential_minus_one(b.divide(x, alpha)), alpha)
            return b.add(b.maximum(x, 0.0), b.minimum(below, 0.0))

        return in_wide(ctx.build, x, celu)


@operator("Selu", family="elementwise", traits=MAP)
class Selu:
    """gamma * (x where x > 0, alpha * (e^x - 1) elsewhere)."""

    x: Operand[FLOAT]
    alpha: float = 1.67326319217681884765625
    gamma: float = 1.05070102214813232421875

    def reference(ctx, x, *, alpha, gamma):
        return gamma * np.where(x > 0, x, alpha * np.expm1(x))

    def decompose(ctx, x, *, alpha, gamma):
        def selu(b, x):
            below = b.multiply(b.exponential_minus_one(x), alpha)
            return b.multiply(b.select(b.compare(x, 0.0, direction="gt"), x, below), gamma)

        return in_wide(ctx.build, x, selu)


@operator("Gelu", family="elementwise", traits=MAP)
class Gelu:
    """x * Phi(x): exact by erf, or with approximate="tanh" 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""

    x: Operand[FLOAT]
    approximate: Literal["none", "tanh"] = "none"

    def reference(ctx, x, *, approximate):
        if approximate == "none":
            return 0.5 * x * scipy_special().erfc(-x / np.sqrt(2))
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))

    def decompose(ctx, x, *, approximate):
        def by_erf(b, x):
            return b.multiply(b.multiply(x, 0.5), b.erfc(b.multiply(x, -math.sqrt(0.5))))

        def by_tanh(b, x):
            cube = b.multiply(b.multiply(b.multiply(x, x), x), 0.044715)
            inner = b.multiply(b.add(x, cube), math.sqrt(2 / math.pi))
            return b.multiply(b.multiply(x, 0.5), b.add(b.tanh(inner), 1.0))

        return in_wide(ctx.build, x, by_erf if approximate == "none" else by_tanh)


@operator("HardSigmoid", family="elementwise", traits=MAP)
class HardSigmoid:
    """clamp(alpha * x + beta, 0, 1)."""

    x: Operand[FLOAT]
    alpha: float = 0.2
    beta: float = 0.5

    def reference(ctx, x, *, alpha, beta):
        return np.clip(alpha * x + beta, 0, 1)

    def decompose(ctx, x, *, alpha, beta):
        return in_wide(ctx.build, x, lambda b, x: b.clamp(0.0, b.add(b.multiply(x, alpha), beta), 1.0))


@operator("HardSwish", family="elementwise", traits=MAP)
class HardSwish:
    """x * clamp(x / 6 + 0.5, 0, 1)."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return x * np.clip(x / 6 + 0.5, 0, 1)

    def decompose(ctx, x):
        return in_wide(ctx.build, x, lambda b, x: b.multiply(x, b.clamp(0.0, b.add(b.divide(x, 6.0), 0.5), 1.0)))


@operator("Mish", family="elementwise", traits=MAP)
class Mish:
    """x * tanh(softplus(x))."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return x * np.tanh(np.logaddexp(x, 0))

    def decompose(ctx, x):
        return in_wide(ctx.build, x, lambda b, x: b.multiply(x, b.tanh(softplus(b, x))))


@operator("Softplus", family="elementwise", traits=MAP)
class Softplus:
    """log(1 + e^x), without overflow."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return np.logaddexp(x, 0)

    def decompose(ctx, x):
        return in_wide(ctx.build, x, softplus)


@operator("Softsign", family="elementwise", traits=MAP)
class Softsign:
    """x / (1 + |x|)."""

    x: Operand[FLOAT]

    def reference(ctx, x):
        return x / (1 + np.abs(x))

    def decompose(ctx, x):
        return in_wide(ctx.build, x, lambda b, x: b.divide(x, b.add(b.abs(x), 1.0)))


@operator("Swish", family="elementwise", traits=MAP)
class Swish:
    """x * logistic(alpha * x)."""

    x: Operand[FLOAT]
    alpha: float = 1.0

    def reference(ctx, x, *, alpha):
        return x / (1 + np.exp(-alpha * x))

    def decompose(ctx, x, *, alpha):
        return in_wide(ctx.build, x, lambda b, x: b.multiply(x, b.logistic(x if alpha == 1 else b.multiply(x, alpha))))


@operator("ThresholdedRelu", family="elementwise", traits=MAP)
class ThresholdedRelu:
    """x where x > alpha, 0 elsewhere."""

    x: Operand[FLOAT]
    alpha: float = 1.0

    def reference(ctx, x, *, alpha):
        return np.where(x > alpha, x, 0)

    def decompose(ctx, x, *, alpha):
        def above(b, x):
            return b.select(b.compare(x, alpha, direction="gt"), x, b.constant(0.0, x.dtype))

        return in_wide(ctx.build, x, above)


@operator("Shrink", family="elementwise", traits=MAP)
class Shrink:
    """x + bias where x < -lambd, x - bias where x > lambd, 0 elsewhere.

    Integers of up to 16 bits are computed in f32, wider ones in f64, and the result is truncated.
    """

    x: Operand[REAL]
    bias: float = 0.0
    lambd: float = 0.5

    def reference(ctx, x, *, bias, lambd):
        dtype = ctx.node.operands[0].dtype
        if dtype.is_integer:
            x = x.astype(np.float32 if dtype.bits <= 16 else np.float64)
        return converted(np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0)), ctx.result_types[0].dtype)

    def decompose(ctx, x, *, bias, lambd):
        def shrink(b, x):
            inner = b.select(b.compare(x, lambd, direction="gt"), b.subtract(x, bias), b.constant(0.0, x.dtype))
            return b.select(b.compare(x, -lambd, direction="lt"), b.add(x, bias), inner)

        return in_wide(ctx.build, x, shrink)


@operator("PRelu", family="elementwise", traits=MAP)
class PRelu:
    """x where x >= 0, slope * x elsewhere; slope broadcasts to x."""

    x: Operand[REAL]
    slope: Operand[REAL]

    def infer(ctx, x, slope):
        dims = ctx.broadcast(x.dims, slope.dims)
        ctx.same_dtype(x, slope)
        return x.with_dims(ctx.equal_dims(x.dims, dims, "dims of x and of the slope broadcast to it"))

    def reference(ctx, x, slope):
        return np.where(x >= 0, x, slope * x)

    def decompose(ctx, x, slope):
        def prelu(b, x, slope):
            return b.select(b.compare(x, 0, direction="ge"), x, b.multiply(slope, x))

        return in_wide(ctx.build, (x, slope), prelu) if x.dtype.is_float else prelu(ctx.build, x, slope)


@operator("Clip", family="elementwise", traits=MAP | EXACT)
class Clip:
    """x limited to [low, high], either of which may be absent; low above high gives high.  NaN stays."""

    x: Operand[REAL]
    low: Operand[REAL] | None = None
    high: Operand[REAL] | None = None

    def infer(ctx, x, low, high):
        present = [o for o in (x, low, high) if o is not None]
        fact = Fact(TensorType(ctx.same_dtype(*present), ctx.broadcast(*(o.dims for o in present))))
        if low is not None:
            fact = mapped(ctx, fact, ints.maximum, x, low)
            x = fact
        if high is not None:
            fact = mapped(ctx, fact, ints.minimum, x, high)
        return fact

    def reference(ctx, x, low, high):
        x = x if low is None else np.maximum(x, low)
        return x if high is None else np.minimum(x, high)

    def decompose(ctx, x, low, high):
        b = ctx.build
        x = x if low is None else b.maximum(x, low)
        return x if high is None else b.minimum(x, high)
