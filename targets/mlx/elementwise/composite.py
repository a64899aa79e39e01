"""Composites that MLX spells in one line: activations, limits, variadic extremes, powers of mixed types."""

import functools
import math

import numpy as np

from ....ir import dtypes
from .. import types
from ..lowering import lower
from .arithmetic import MAXIMUM, MINIMUM, limited, power
from .computing import both, known, plain, single


@lower("Relu")
def relu(ctx, x):
    return MAXIMUM(ctx, x, ctx.scalar(0, x.dtype))


@lower("LeakyRelu")
@plain
def leaky_relu(ctx, x, *, alpha):
    return ctx.select(ctx.infix(">=", x, 0), x, ctx.infix("*", x, ctx.scalar(alpha, x.dtype)))


@lower("ThresholdedRelu")
@plain
def thresholded_relu(ctx, x, *, alpha):
    return ctx.select(ctx.infix(">", x, ctx.scalar(alpha, x.dtype)), x, ctx.scalar(0, x.dtype))


@lower("PRelu")
@plain
def p_relu(ctx, x, slope):
    return ctx.select(ctx.infix(">=", x, 0), x, ctx.infix("*", slope, x))


def _number(ctx, value, x):
    return ctx.scalar(value, x.dtype)


@lower("Gelu")
@single
def gelu(ctx, x, *, approximate):
    half = ctx.infix("*", x, 0.5)
    if approximate == "none":
        if x.dtype is dtypes.f64:
            return ctx.infix("*", half, ctx.recipe("_erfc", ctx.infix("*", x, -math.sqrt(0.5))))
        return ctx.infix(
            "*", half, ctx.infix("+", ctx.call("mx.erf", ctx.infix("*", x, _number(ctx, math.sqrt(0.5), x))), 1)
        )
    cube = ctx.infix("*", ctx.infix("*", ctx.infix("*", x, _number(ctx, 0.044715, x)), x), x)
    inner = ctx.infix("*", ctx.infix("+", x, cube), _number(ctx, math.sqrt(2 / math.pi), x))
    return ctx.infix("*", half, ctx.infix("+", ctx.call("mx.tanh", inner), 1))


@lower("HardSigmoid")
@single
def hard_sigmoid(ctx, x, *, alpha, beta):
    line = ctx.infix("+", ctx.infix("*", x, _number(ctx, alpha, x)), _number(ctx, beta, x))
    return ctx.call("mx.clip", line, 0, 1)


@lower("HardSwish")
@single
def hard_swish(ctx, x):
    return ctx.infix("*", x, ctx.call("mx.clip", ctx.infix("+", ctx.infix("/", x, 6), 0.5), 0, 1))


@lower("Swish")
@single
def swish(ctx, x, *, alpha):
    if x.dtype is dtypes.f64:
        ctx.refuse("mx.sigmoid is accurate to single precision only")
    inner = x if alpha == 1 else ctx.infix("*", x, _number(ctx, alpha, x))
    return ctx.infix("*", x, ctx.call("mx.sigmoid", inner))


@lower("Softplus")
@single
def softplus(ctx, x):
    if x.dtype is dtypes.f64:
        ctx.refuse("mx.logaddexp of doubles")
    return ctx.call("mx.logaddexp", x, 0)


@lower("Softsign")
@single
def softsign(ctx, x):
    return ctx.infix("/", x, ctx.infix("+", ctx.call("mx.abs", x), 1))


@lower("Reciprocal")
@plain
def reciprocal(ctx, x):
    return ctx.infix("/", 1, x)


@lower("IsNaN")
def is_nan(ctx, x):
    return ctx.call("mx.isnan", ctx.wide(x), dtype=dtypes.bool_)


@lower("IsInf")
def is_inf(ctx, x, *, detect_negative, detect_positive):
    if not (detect_negative or detect_positive):
        return ctx.full(False, dtypes.bool_, x.dims)
    name = "mx.isinf" if detect_negative and detect_positive else "mx.isposinf" if detect_positive else "mx.isneginf"
    return ctx.call(name, ctx.wide(x), dtype=dtypes.bool_)


@lower("Max")
def max_(ctx, xs):
    return functools.reduce(lambda x, y: MAXIMUM(ctx, x, y), xs)


@lower("Min")
def min_(ctx, xs):
    return functools.reduce(lambda x, y: MINIMUM(ctx, x, y), xs)


@lower("Sum")
def sum_(ctx, xs):
    if types.wide(xs[0].dtype) is not xs[0].dtype:
        ctx.refuse("sums of narrow types")
    return functools.reduce(lambda x, y: ctx.infix("+", x, y), xs)


@lower("Clip")
def clip(ctx, x, low, high):
    wide = [None if v is None else ctx.wide(v) for v in (x, low, high)]
    return ctx.narrow(limited(ctx, *wide), x.dtype)


@lower("Mod")
@single
def modulo(ctx, x, y):
    if not x.dtype.is_integer:
        return ctx.recipe("_float_modulo", x, y, dims=both(ctx, x, y))
    if x.dtype.kind == "uint":
        return ctx.infix("%", x, y) if known(y, 0) else ctx.recipe("_remainder_unsigned", x, y, dims=both(ctx, x, y))
    return ctx.infix("%", x, y) if known(y, 0, -1) else ctx.recipe("_modulo", x, y, dims=both(ctx, x, y))


@lower("Pow")
def pow_(ctx, x, y):
    """A constant exponent takes x's type where it has the number; other mixtures are decomposed."""
    number = y.number
    if not x.dtype.is_float or number is None or float(np.float64(number).astype(x.dtype.numpy)) != float(number):
        ctx.refuse("an exponent of another element type that is not a constant")
    return power(ctx, x, ctx.array(np.full([1] * y.rank, number).astype(x.dtype.numpy), x.dtype))
