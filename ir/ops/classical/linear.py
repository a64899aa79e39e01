"""Linear models over rows of features."""

from ... import dtypes
from ...facts import Fact
from ...operators import FLOAT, PURE, REAL, Operand, operator
from ...types import TensorType
from ..widening import converted
from .scores import above, best, check_transform, transformed, two_columns


def products(b, x, coefficients):
    """f32 [rows, targets] of x[rows, features] and coefficients[targets, features]."""
    x = converted(b, x, dtypes.f32)
    return b.dot_general(x, coefficients, lhs_contracting=(1,), rhs_contracting=(1,))


def _check(ctx, x, coefficients, intercepts):
    ctx.need(x.rank == 2, f"x must have rank 2 [rows, features], got {x.type}")
    ctx.equal(x.dims[1], coefficients.dims[1], "the numbers of features of x and of the coefficients")
    if intercepts is not None:
        ctx.equal(coefficients.dims[0], intercepts.dims[0], "the numbers of rows of coefficients and of intercepts")


@operator("LinearRegressor", family="classical", traits=PURE)
class LinearRegressor:
    """f32 x @ coefficients^T + intercepts for x[N, F] and coefficients[targets, F], then the transform.

    Of the transforms only probit applies to a single target.
    """

    x: Operand[REAL]
    coefficients: Operand[FLOAT]
    intercepts: Operand[FLOAT] | None = None
    transform: str = "none"

    def infer(ctx, x, coefficients, intercepts, *, transform):
        _check(ctx, x, coefficients, intercepts)
        check_transform(ctx, transform)
        return Fact(TensorType(dtypes.f32, (x.dims[0], coefficients.dims[0])))

    def decompose(ctx, x, coefficients, intercepts, *, transform):
        b = ctx.build
        y = products(b, x, coefficients)
        y = y if intercepts is None else b.add(y, intercepts)
        return y if y.dims[1] == 1 and transform != "probit" else transformed(b, y, transform)


@operator("LinearClassifier", family="classical", traits=PURE)
class LinearClassifier:
    """(i64 [N] place of the class, f32 [N, classes]) of the scores x @ coefficients^T + intercepts.

    Several classes: the first with the greatest score.  One row of coefficients: two classes, 1 where the score is
    above 0; their scores are (1 - s, s), or by logistic the probabilities of -s and s.
    """

    x: Operand[REAL]
    coefficients: Operand[FLOAT]
    intercepts: Operand[FLOAT]
    transform: str = "none"

    def infer(ctx, x, coefficients, intercepts, *, transform):
        _check(ctx, x, coefficients, intercepts)
        check_transform(ctx, transform)
        classes = coefficients.dims[0]
        scores = TensorType(dtypes.f32, (x.dims[0], 2 if classes == 1 else classes))
        return Fact(TensorType(dtypes.i64, (x.dims[0],))), Fact(scores)

    def decompose(ctx, x, coefficients, intercepts, *, transform):
        b = ctx.build
        y = b.add(products(b, x, coefficients), intercepts)
        if y.dims[1] != 1:
            return best(b, y), transformed(b, y, transform)
        return above(b, y, 0.0), two_columns(b, y, complement=True, transform=transform)
