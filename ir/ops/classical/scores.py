"""What scores of classes and targets become at the end: probabilities and the chosen class.  Defines no operators."""

import math

from ... import dtypes
from ..widening import converted

TRANSFORMS = ("none", "softmax", "logistic", "softmax_zero", "probit")


def check_transform(ctx, transform):
    """Infer: the transform is a known one."""
    ctx.need(transform in TRANSFORMS, f"transform must be one of {', '.join(TRANSFORMS)}, got {transform!r}")


def transformed(b, x, transform):
    """Scores [rows, targets] after the transform.

    softmax_zero leaves zeros alone: |x| <= 1e-7 counts as x * e^-greatest.  probit uses Winitzki's approximation of the
    inverse error function (a = 0.147), which ONNX's reference and ONNX Runtime use.
    """
    if transform == "softmax":
        return b.Softmax(x, axis=1)
    if transform == "logistic":
        return b.logistic(x)
    if transform == "softmax_zero":
        high = b.ReduceMax(x, axes=(1,))
        small = b.compare(b.abs(x), 1e-7, direction="le")
        power = b.exponential(b.subtract(x, high))
        power = b.select(small, b.multiply(x, b.exponential(b.negate(high))), power)
        total = b.ReduceSum(b.select(small, b.constant(0.0, x.dtype), power), axes=(1,))
        return b.divide(power, total)
    if transform == "probit":
        return b.multiply(_inverse_erf(b, b.subtract(b.multiply(x, 2.0), 1.0)), 1.41421356)
    return x


def _inverse_erf(b, x):
    log = b.log(b.multiply(b.subtract(b.constant(1.0, x.dtype), x), b.add(x, 1.0)))
    v = b.add(b.multiply(log, 0.5), 2.0 / (math.pi * 0.147))
    root = b.sqrt(b.subtract(b.multiply(v, v), b.multiply(log, 1 / 0.147)))
    size = b.sqrt(b.subtract(root, v))
    return b.select(b.compare(x, 0.0, direction="lt"), b.negate(size), size)


def two_columns(b, score, *, complement, transform):
    """[rows, 2] for the one score [rows, 1] of two classes: (1 - s, s) or (-s, s); by logistic (p(-s), p(s))."""
    if transform == "logistic":
        first, second = b.logistic(b.negate(score)), b.logistic(score)
    else:
        first, second = b.subtract(b.constant(1.0, score.dtype), score) if complement else b.negate(score), score
    return b.concatenate((first, second), axis=1)


def best(b, scores):
    """i64 [rows]: the first class with the greatest score."""
    return b.ArgMax(scores, axis=1, keepdims=False)


def above(b, score, threshold):
    """i64 [rows]: 1 where the score [rows, 1] exceeds the threshold, else 0."""
    flat = b.reshape(score, dims=(score.dims[0],))
    return converted(b, b.compare(flat, b.constant(threshold, score.dtype), direction="gt"), dtypes.i64)
