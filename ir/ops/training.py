"""Training: steps of the optimizers Adagrad, Adam and Momentum; batch normalization by the batch's own statistics."""

from typing import Literal

from ..operators import FLOAT, PURE, Operand, Variadic, operator
from .widening import converted, statistics_type


def _regularized(b, x, gradient, coefficient):
    return b.add(b.multiply(x, coefficient), gradient)


@operator("Adagrad", family="training", traits=PURE)
class Adagrad:
    """(new xs.., new squares..) of one step with rate R at the update count T; gradients gs, accumulated squares."""

    rate: Operand[FLOAT]
    count: Operand
    xs: Variadic
    gs: Variadic
    squares: Variadic
    norm_coefficient: float = 0.0
    decay_factor: float = 0.0
    epsilon: float = 1e-6

    def decompose(ctx, rate, count, xs, gs, squares, *, norm_coefficient, decay_factor, epsilon):
        b = ctx.build
        rows = []
        for x, g, h in zip(xs, gs, squares, strict=True):
            r = b.divide(_of(b, rate, x), b.add(b.multiply(_of(b, count, x), decay_factor), 1.0))
            g = _regularized(b, x, g, norm_coefficient)
            h = b.add(h, b.multiply(g, g))
            rows.append((b.subtract(x, b.divide(b.multiply(r, g), b.add(b.sqrt(h), epsilon))), h))
        return tuple(v for column in zip(*rows, strict=True) for v in column)


def _of(b, scalar, x):
    return converted(b, b.reshape(scalar, dims=()), x.dtype)


@operator("Adam", family="training", traits=PURE)
class Adam:
    """(new xs.., new averages.., new squares..) of one step with rate R at the update count T."""

    rate: Operand[FLOAT]
    count: Operand
    xs: Variadic
    gs: Variadic
    averages: Variadic
    squares: Variadic
    alpha: float = 0.9
    beta: float = 0.999
    norm_coefficient: float = 0.0
    norm_coefficient_post: float = 0.0
    epsilon: float = 1e-6

    def decompose(
        ctx, rate, count, xs, gs, averages, squares, *, alpha, beta, norm_coefficient, norm_coefficient_post, epsilon
    ):
        b = ctx.build
        rows = []
        for x, g, v, h in zip(xs, gs, averages, squares, strict=True):
            one = b.constant(1.0, x.dtype)
            t, r = _of(b, count, x), _of(b, rate, x)
            g = _regularized(b, x, g, norm_coefficient)
            v = b.add(b.multiply(v, alpha), b.multiply(g, 1 - alpha))
            h = b.add(b.multiply(h, beta), b.multiply(b.multiply(g, g), 1 - beta))
            top = b.sqrt(b.subtract(one, b.power(b.constant(beta, x.dtype), t)))
            adjusted = b.divide(b.multiply(r, top), b.subtract(one, b.power(b.constant(alpha, x.dtype), t)))
            r = b.select(b.compare(t, b.constant(0, x.dtype), direction="gt"), adjusted, r)
            new = b.subtract(x, b.divide(b.multiply(r, v), b.add(b.sqrt(h), epsilon)))
            rows.append((b.multiply(new, 1 - norm_coefficient_post), v, h))
        return tuple(v for column in zip(*rows, strict=True) for v in column)


@operator("Momentum", family="training", traits=PURE)
class Momentum:
    """(new xs.., new momenta..) of one step with rate R at the update count T; nesterov looks ahead."""

    rate: Operand[FLOAT]
    count: Operand
    xs: Variadic
    gs: Variadic
    momenta: Variadic
    alpha: float
    beta: float
    mode: Literal["standard", "nesterov"] = "standard"
    norm_coefficient: float = 0.0

    def decompose(ctx, rate, count, xs, gs, momenta, *, alpha, beta, mode, norm_coefficient):
        b = ctx.build
        rows = []
        for x, g, v in zip(xs, gs, momenta, strict=True):
            g = _regularized(b, x, g, norm_coefficient)
            first = b.compare(_of(b, count, x), b.constant(0, x.dtype), direction="gt")
            share = b.select(first, b.constant(beta, x.dtype), b.constant(1.0, x.dtype))
            v = b.add(b.multiply(v, alpha), b.multiply(g, share))
            step = v if mode == "standard" else b.add(g, b.multiply(v, alpha))
            rows.append((b.subtract(x, b.multiply(step, _of(b, rate, x))), v))
        return tuple(v for column in zip(*rows, strict=True) for v in column)


@operator("BatchNormalizationTraining", family="training", traits=PURE)
class BatchNormalizationTraining:
    """(y, new mean, new variance): x[N, C, ..] normalized by the mean and variance over all axes but the second.

    The running mean and variance become momentum * old + (1 - momentum) * batch; the variance is the population's.
    """

    x: Operand[FLOAT]
    scale: Operand[FLOAT]
    bias: Operand[FLOAT]
    mean: Operand[FLOAT]
    variance: Operand[FLOAT]
    epsilon: float = 1e-5
    momentum: float = 0.9

    def decompose(ctx, x, scale, bias, mean, variance, *, epsilon, momentum):
        b, wide = ctx.build, statistics_type(x.dtype)
        axes = tuple(i for i in range(x.rank) if i != 1)
        channels = (x.dims[1],)
        data = converted(b, x, wide)
        own_mean = b.ReduceMean(data, axes=axes, keepdims=False)
        centered = b.subtract(data, _along(b, own_mean, x.rank))
        own_variance = b.ReduceMean(b.multiply(centered, centered), axes=axes, keepdims=False)
        y = b.multiply(centered, _along(b, b.rsqrt(b.add(own_variance, epsilon)), x.rank))
        y = b.add(
            b.multiply(y, _along(b, converted(b, scale, wide), x.rank)), _along(b, converted(b, bias, wide), x.rank)
        )

        def running(old, new):
            old = converted(b, b.reshape(old, dims=channels), wide)
            return converted(b, b.add(b.multiply(old, momentum), b.multiply(new, 1 - momentum)), mean.dtype)

        return converted(b, y, x.dtype), running(mean, own_mean), running(variance, own_variance)


def _along(b, values, rank):
    """A vector of one value a channel, for an operand of that rank."""
    return b.reshape(values, dims=(values.dims[0], *[1] * (rank - 2)))
