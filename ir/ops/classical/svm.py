"""Support vector machines over rows of features: kernels, pairwise votes, coupled probabilities."""

from typing import Literal

import numpy as np

from ... import dtypes
from ...facts import Fact
from ...operators import FLOAT, PURE, REAL, Operand, operator
from ...types import TensorType
from ..shape.positions import sliced
from ..widening import converted
from .linear import products
from .scores import best, check_transform, transformed, two_columns

KERNELS = Literal["LINEAR", "POLY", "RBF", "SIGMOID"]


def _kernel(b, x, vectors, kind, gamma, coef0, degree):
    """f32 [rows, vectors] of kernel values."""
    x = converted(b, x, dtypes.f32)
    if kind == "RBF":
        gap = b.subtract(b.reshape(x, dims=(x.dims[0], 1, x.dims[1])), vectors)
        return b.exponential(b.multiply(b.reduce(b.multiply(gap, gap), axes=(2,), kind="sum"), -gamma))
    y = products(b, x, vectors)
    if kind == "LINEAR":
        return y
    y = b.add(b.multiply(y, gamma), coef0)
    return b.tanh(y) if kind == "SIGMOID" else b.power(y, degree)


def _scale(b, values, vector):
    return b.dot_general(values, vector, lhs_contracting=(1,), rhs_contracting=(1,))


@operator("SVMRegressor", family="classical", traits=PURE)
class SVMRegressor:
    """f32 [N, 1]: kernel(x, vectors) @ coefficients[1, vectors]^T + rho; without vectors x @ coefficients^T + rho.

    kernel: LINEAR x.v, POLY (gamma x.v + coef0)^degree, RBF e^(-gamma |x - v|^2), SIGMOID tanh(gamma x.v + coef0).
    one_class gives 1 above 0 and -1 elsewhere.
    """

    x: Operand[REAL]
    coefficients: Operand[FLOAT]
    rho: Operand[FLOAT]
    vectors: Operand[FLOAT] | None = None
    kernel: KERNELS = "LINEAR"
    gamma: float = 0.0
    coef0: float = 0.0
    degree: float = 0.0
    one_class: bool = False

    def decompose(ctx, x, coefficients, rho, vectors, *, kernel, gamma, coef0, degree, one_class):
        b = ctx.build
        values = converted(b, x, dtypes.f32)
        if vectors is not None:
            values = _kernel(b, x, vectors, kernel, gamma, coef0, degree)
        y = b.add(_scale(b, values, coefficients), rho)
        if not one_class:
            return y
        one = b.constant(1.0, dtypes.f32)
        return b.select(b.compare(y, 0.0, direction="gt"), one, b.negate(one))


@operator("SVMClassifier", family="classical", traits=PURE)
class SVMClassifier:
    """(i64 [N] place of the class, f32 scores) by votes of each pair of classes, or by one linear score a class.

    With vectors, those of class c being the next per_class[c]: pair i < j has the score kernel(x, own vectors of both)
    @ coefficients[classes - 1, vectors] + rho[pair], and votes for i above 0, else for j; scores are [N, pairs].
    prob_a, prob_b [pairs]: scores are [N, classes], probabilities coupled from 1 / (1 + e^(a s + b)) of the pairs
    (Wu, Lin and Weng 2004, second approach, at most 100 rounds).  The one score s of two classes becomes (-s, s), of
    which logistic makes probabilities, and (1 - s, s) for other transforms.  Without vectors: x @ coefficients[classes,
    F]^T + rho[0], the greatest wins.  Kernels as for SVMRegressor.
    """

    x: Operand[REAL]
    coefficients: Operand[FLOAT]
    rho: Operand[FLOAT]
    vectors: Operand[FLOAT] | None = None
    prob_a: Operand[FLOAT] | None = None
    prob_b: Operand[FLOAT] | None = None
    per_class: tuple[int, ...] = ()
    classes: int = 2
    kernel: KERNELS = "LINEAR"
    gamma: float = 0.0
    coef0: float = 0.0
    degree: float = 0.0
    transform: str = "none"

    def infer(
        ctx, x, coefficients, rho, vectors, prob_a, prob_b, *, per_class, classes, kernel, gamma, coef0, degree,
        transform,
    ):  # fmt: skip
        ctx.need(x.rank == 2, f"x must have rank 2 [rows, features], got {x.type}")
        check_transform(ctx, transform)
        pairs = classes * (classes - 1) // 2
        columns = classes if vectors is None or prob_a is not None else max(pairs, 2)
        return Fact(TensorType(dtypes.i64, (x.dims[0],))), Fact(TensorType(dtypes.f32, (x.dims[0], columns)))

    def decompose(
        ctx, x, coefficients, rho, vectors, prob_a, prob_b, *, per_class, classes, kernel, gamma, coef0, degree,
        transform,
    ):  # fmt: skip
        b = ctx.build
        if vectors is None:
            scores = b.add(products(b, x, coefficients), b.reshape(rho, dims=(1, rho.dims[0])))
            return best(b, scores), transformed(b, scores, transform)
        values = _kernel(b, x, vectors, kernel, gamma, coef0, degree)
        scores = b.add(_scale(b, values, _pair_weights(b, coefficients, per_class)), rho)
        place = best(b, _votes(b, scores, classes))
        if prob_a is not None:
            scores = _coupled(b, scores, prob_a, prob_b, classes)
        elif classes == 2:
            return place, two_columns(b, scores, complement=transform != "none", transform=transform)
        return place, transformed(b, scores, transform)


def _pair_weights(b, coefficients, per_class):
    """[pairs, vectors]: for pair i < j row j-1 at the vectors of class i, row i at those of class j, else 0."""
    ends = np.cumsum(per_class)
    starts = ends - per_class
    rows, masks = [], []
    for i in range(len(per_class)):
        for j in range(i + 1, len(per_class)):
            row, mask = np.zeros(int(ends[-1]), np.int64), np.zeros(int(ends[-1]), bool)
            row[starts[i] : ends[i]], row[starts[j] : ends[j]] = j - 1, i
            mask[starts[i] : ends[i]] = mask[starts[j] : ends[j]] = True
            rows.append(row)
            masks.append(mask)
    picked = b.take_along_axis(coefficients, b.constant(np.array(rows)), axis=0)
    return b.select(b.constant(np.array(masks)), picked, b.constant(0.0, coefficients.dtype))


def _votes(b, scores, classes):
    """f32 [rows, classes]: how many pairs chose the class."""
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    for_first, for_second = (np.eye(classes, dtype=np.float32)[[p[k] for p in pairs]] for k in (0, 1))
    first = b.convert(b.compare(scores, 0.0, direction="gt"), dtype=dtypes.f32)
    second = b.subtract(b.constant(1.0, dtypes.f32), first)
    chosen = [
        b.dot_general(v, b.constant(m), lhs_contracting=(1,), rhs_contracting=(0,))
        for v, m in ((first, for_first), (second, for_second))
    ]
    return b.add(*chosen)


def _coupled(b, scores, prob_a, prob_b, classes):
    """f32 [rows, classes]: probabilities p that minimize the sum of (r_ji p_i - r_ij p_j)^2."""
    rows = scores.dims[0]
    odds = b.negate(b.add(b.multiply(scores, prob_a), prob_b))
    pairwise = b.clamp(b.constant(1e-7, dtypes.f32), b.logistic(odds), b.constant(1 - 1e-7, dtypes.f32))
    matrix = np.full((classes, classes), 0)
    sign = np.zeros((classes, classes), np.float32)
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    for n, (i, j) in enumerate(pairs):
        matrix[i, j] = matrix[j, i] = n
        sign[i, j], sign[j, i] = 1, -1
    # r[i, j] is the chance of i against j, r[j, i] its complement; the diagonal is 0.
    r = b.take(pairwise, b.constant(matrix), axis=1)
    one, zero = b.constant(1.0, dtypes.f32), b.constant(0.0, dtypes.f32)
    r = b.select(b.constant(sign > 0), r, b.select(b.constant(sign < 0), b.subtract(one, r), zero))
    turned = b.transpose(r, permutation=(0, 2, 1))
    diagonal = b.reduce(b.multiply(r, r), axes=(1,), kind="sum")
    on = b.constant(np.eye(classes, dtype=bool))
    q = b.select(on, b.reshape(diagonal, dims=(rows, 1, classes)), b.negate(b.multiply(turned, r)))
    start = b.full(1.0 / classes, dtypes.f32, (rows, classes))

    def times(inner, p):
        return inner.reduce(inner.multiply(q, inner.reshape(p, dims=(rows, 1, classes))), axes=(2,), kind="sum")

    def state_of(inner, p):
        qp = times(inner, p)
        pqp = inner.ReduceSum(inner.multiply(p, qp), axes=(1,))
        far = inner.ReduceMax(inner.abs(inner.subtract(qp, pqp)), axes=(1,))
        return qp, pqp, inner.compare(far, 0.005 / classes, direction="ge")

    def unfinished(inner, i, p):
        open_ = inner.reduce(state_of(inner, p)[2], axes=(0, 1), kind="or")
        return inner.and_(inner.compare(i, max(100, classes), direction="lt"), open_)

    def improved(inner, i, p):
        qp, pqp, open_ = state_of(inner, p)
        new = p
        for t in range(classes):
            here = inner.constant(np.arange(classes) == t)
            own = sliced(inner, diagonal, 1, t, t + 1)
            at = sliced(inner, qp, 1, t, t + 1)
            diff = inner.divide(inner.subtract(pqp, at), own)
            scale = inner.add(diff, 1.0)
            new = inner.divide(inner.select(here, inner.add(new, diff), new), scale)
            top = inner.multiply(diff, inner.add(inner.multiply(diff, own), inner.multiply(at, 2.0)))
            pqp = inner.divide(inner.divide(inner.add(pqp, top), scale), scale)
            row = inner.reshape(sliced(inner, q, 1, t, t + 1), dims=(rows, classes))
            qp = inner.divide(inner.add(qp, inner.multiply(diff, row)), scale)
        return inner.add(i, 1), inner.select(open_, new, p)

    state = (b.constant(0, dtypes.i32), start)
    types = [TensorType(v.dtype, v.dims) for v in state]
    return b.while_(state, cond=b.region(types, unfinished), body=b.region(types, improved))[1]

