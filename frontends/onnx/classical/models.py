"""Linear models and support vector machines of the domain ai.onnx.ml, and the labels that classifiers name."""

from __future__ import annotations

import numpy as np

from ....ir.dtypes import i64
from ..registry import onnx_op
from .features import ML, as_rows, floats, words


def labelled(ctx, place, strings, ints):
    """The labels of the classes at these places; a single label stands beside 1 for what is of no other class."""
    if strings:
        return ctx.build.take(words(ctx, strings if len(strings) > 1 else ("0", "1")), place, axis=0)
    if len(ints) < 2 or list(ints) == list(range(len(ints))):
        return place
    return ctx.build.take(ctx.build.constant(np.array(ints, np.int64), i64), place, axis=0)


def _rows(ctx, values, rows, what):
    """A constant matrix of so many rows."""
    if not rows or len(values) % rows:
        ctx.fail(f"{what} has {len(values)} entries, which do not make {rows} rows")
    return ctx.build.constant(np.array(values, np.float32).reshape(rows, -1))


@onnx_op("LinearRegressor", domain=ML)
def linear_regressor(ctx, x, *, coefficients, intercepts=(), targets=1, post_transform="NONE"):
    matrix = _rows(ctx, coefficients, targets, "coefficients")
    bias = floats(ctx, intercepts) if intercepts else None
    return ctx.build.LinearRegressor(as_rows(ctx, x), matrix, bias, transform=post_transform.lower())


@onnx_op("LinearClassifier", domain=ML)
def linear_classifier(
    ctx, x, *, coefficients, intercepts, classlabels_ints=(), classlabels_strings=(), multi_class=0,
    post_transform="NONE",
):  # fmt: skip
    labels = classlabels_strings or classlabels_ints
    rows = len(intercepts)
    if len(labels) != max(rows, 2):
        ctx.fail(f"{rows} scores need {max(rows, 2)} labels, got {len(labels)}")
    if rows == 1 and post_transform == "PROBIT":
        ctx.refuse("post_transform PROBIT of one score for two classes")
    matrix = _rows(ctx, coefficients, rows, "coefficients")
    place, scores = ctx.build.LinearClassifier(
        as_rows(ctx, x), matrix, floats(ctx, intercepts), transform=post_transform.lower()
    )
    return labelled(ctx, place, classlabels_strings, classlabels_ints), scores


def _kernel(ctx, kind, parameters):
    """Kernel attributes of the IR."""
    if kind not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
        ctx.fail(f"kernel_type must be LINEAR, POLY, RBF or SIGMOID, got {kind!r}")
    gamma, coef0, degree = (*parameters, 0.0, 0.0, 0.0)[:3]
    return {"kernel": kind, "gamma": gamma, "coef0": coef0, "degree": degree}


@onnx_op("SVMRegressor", domain=ML)
def svm_regressor(
    ctx, x, *, coefficients, rho, support_vectors=(), n_supports=0, kernel_params=(), kernel_type="LINEAR",
    one_class=0, post_transform="NONE",
):  # fmt: skip
    """post_transform has no effect, as in ONNX Runtime."""
    vectors = _rows(ctx, support_vectors, n_supports, "support_vectors") if n_supports else None
    return ctx.build.SVMRegressor(
        as_rows(ctx, x), _rows(ctx, coefficients, 1, "coefficients"), floats(ctx, rho[:1]), vectors,
        **_kernel(ctx, kernel_type, kernel_params), one_class=bool(one_class),
    )  # fmt: skip


@onnx_op("SVMClassifier", domain=ML)
def svm_classifier(
    ctx, x, *, coefficients, rho, support_vectors=(), vectors_per_class=(), prob_a=(), prob_b=(), kernel_params=(),
    kernel_type="LINEAR", classlabels_ints=(), classlabels_strings=(), post_transform="NONE",
):  # fmt: skip
    labels = classlabels_strings or classlabels_ints
    classes = max(len(labels), 1)
    vectors = a = b = None
    if count := sum(vectors_per_class):
        if len(vectors_per_class) != classes:
            ctx.fail(f"vectors_per_class has {len(vectors_per_class)} entries for {classes} labels")
        vectors = _rows(ctx, support_vectors, count, "support_vectors")
        matrix = _rows(ctx, coefficients, classes - 1, "coefficients")
        if prob_a:
            pairs = classes * (classes - 1) // 2
            if not len(prob_a) == len(prob_b) == len(rho) == pairs:
                ctx.fail(f"rho, prob_a and prob_b must have {pairs} entries, one a pair of classes")
            a, b = floats(ctx, prob_a), floats(ctx, prob_b)
    else:
        matrix, rho = _rows(ctx, coefficients, classes, "coefficients"), rho[:1]
    place, scores = ctx.build.SVMClassifier(
        as_rows(ctx, x), matrix, floats(ctx, rho), vectors, a, b, per_class=tuple(vectors_per_class), classes=classes,
        **_kernel(ctx, kernel_type, kernel_params), transform=post_transform.lower(),
    )  # fmt: skip
    return labelled(ctx, place, classlabels_strings, classlabels_ints), scores
