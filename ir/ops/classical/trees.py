"""Ensembles of decision trees over rows of features."""

from typing import Literal

import numpy as np

from ... import dtypes
from ...facts import Fact
from ...operators import BOOL, FLOAT, INTEGER, PURE, Operand, operator
from ...types import TensorType
from ..widening import converted
from .scores import above, best, check_transform, transformed, two_columns

AGGREGATES = ("average", "sum", "min", "max")
DIRECTIONS = ("le", "lt", "ge", "gt", "eq", "ne")
MEMBER = len(DIRECTIONS)


def _leaves(b, x, roots, features, modes, splits, yes, no, sets, missing, depth):
    """[rows, trees]: the leaf that each row reaches in each tree."""
    rows, trees = x.dims[0], roots.dims[0]
    place = b.broadcast_in_dim(roots, dims=(rows, trees), broadcast_dimensions=(1,))
    used = _modes_in_use(modes, yes, sets)
    for _ in range(depth):
        value = b.take_along_axis(x, b.take(features, place, axis=0), axis=1)
        split = b.take(splits, place, axis=0)
        mode = b.take(modes, place, axis=0) if len(used) > 1 else None
        holds = None
        for number in used:
            if number == MEMBER:
                members = b.take(sets, place, axis=0)
                this = b.compare(b.reshape(value, dims=(rows, trees, 1)), members, direction="eq")
                this = b.reduce(this, axes=(2,), kind="or")
            else:
                this = b.compare(value, split, direction=DIRECTIONS[number])
            if mode is not None:
                this = b.and_(b.compare(mode, number, direction="eq"), this)
            holds = this if holds is None else b.or_(holds, this)
        if missing is not None:
            nan = b.compare(value, value, direction="ne")
            holds = b.or_(holds, b.and_(nan, b.take(missing, place, axis=0)))
        place = b.select(holds, b.take(yes, place, axis=0), b.take(no, place, axis=0))
    return place


def _modes_in_use(modes, yes, sets):
    """The modes that branches have (leaves lead to themselves, whatever theirs); all, if that is not known."""
    if modes.data is None or yes.data is None:
        return range(MEMBER if sets is None else MEMBER + 1)
    own = yes.data.numpy() == np.arange(len(yes.data.numpy()))
    return [int(m) for m in np.unique(modes.data.numpy()[~own])] or [0]


def _totals(
    b, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base, *, targets, depth,
    aggregate,
):  # fmt: skip
    """Weights of the leaves that rows reach, aggregated: [rows, targets]."""
    place = _leaves(b, x, roots, features, modes, splits, yes, no, sets, missing, depth)
    rows, trees = place.dims
    limits = {"min": float("inf"), "max": float("-inf")}
    weight = b.take(leaf_weights, place, axis=0)
    if leaf_targets is None:
        here = b.compare(weight, weight, direction="eq")
    else:
        weight = b.reshape(weight, dims=(rows, trees, 1))
        target = b.reshape(b.take(leaf_targets, place, axis=0), dims=(rows, trees, 1))
        here = b.compare(target, b.iota(dtype=target.dtype, dims=(1, 1, targets), axis=2), direction="eq")
    weight = b.select(here, weight, b.constant(limits.get(aggregate, 0.0), weight.dtype))
    out = b.reduce(weight, axes=(1,), kind=aggregate if aggregate in limits else "sum")
    if aggregate in limits:
        none = b.not_(b.reduce(here, axes=(1,), kind="or"))
        out = b.select(none, b.constant(0.0, out.dtype), out)
    if aggregate == "average":
        out = b.divide(out, float(trees))
    return out if base is None else b.add(out, base)


@operator("TreeEnsemble", family="classical", traits=PURE)
class TreeEnsemble:
    """Decision trees over the rows of x[N, F]: the weights of the leaves that a row reaches, aggregated: [N, targets].

    Places 0..M-1 are branches, those behind them leaves that lead to themselves.  features, modes, splits, yes and no
    have one entry a place; modes are <=, <, >=, >, ==, != as 0..5 and membership of row sets[place] (padded with NaN)
    as 6; a NaN goes to yes where missing[place].  roots has one place a tree, leaf_targets and leaf_weights one entry a
    place; without leaf_targets leaf_weights is [places, targets], NaN where a leaf says nothing of a target.  `depth`
    steps reach every leaf.  base [targets] is added before the transform.
    """

    x: Operand[FLOAT]
    roots: Operand[INTEGER]
    features: Operand[INTEGER]
    modes: Operand[INTEGER]
    splits: Operand[FLOAT]
    yes: Operand[INTEGER]
    no: Operand[INTEGER]
    leaf_targets: Operand[INTEGER] | None
    leaf_weights: Operand[FLOAT]
    sets: Operand[FLOAT] | None = None
    missing: Operand[BOOL] | None = None
    base: Operand[FLOAT] | None = None
    targets: int = 1
    depth: int = 1
    aggregate: str = "sum"
    transform: str = "none"

    def infer(
        ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base, *, targets,
        depth, aggregate, transform,
    ):  # fmt: skip
        ctx.need(x.rank == 2, f"x must have rank 2 [rows, features], got {x.type}")
        ctx.need(aggregate in AGGREGATES, f"aggregate must be one of {', '.join(AGGREGATES)}, got {aggregate!r}")
        check_transform(ctx, transform)
        return x.with_dims((x.dims[0], targets))

    def decompose(
        ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base, *, targets,
        depth, aggregate, transform,
    ):  # fmt: skip
        out = _totals(
            ctx.build, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base,
            targets=targets, depth=depth, aggregate=aggregate,
        )  # fmt: skip
        return transformed(ctx.build, out, transform)


@operator("TreeEnsembleClassifier", family="classical", traits=PURE)
class TreeEnsembleClassifier:
    """(i64 [N] place of the class, f32 [N, classes]) of the summed weights of the leaves that the rows of x reach.

    Operands as for TreeEnsemble.  form "many": the first class with the greatest sum.  Else there is one sum s, the
    class is 1 where it is above `threshold`, and the scores are: "complement" (1 - s, s), "opposite" (-s, s), both
    probabilities of -s and s by logistic, "second" (0, s), "one" just s.  (ONNX Runtime names the class of two sums
    after the sign of the second; here, as ONNX says, the greater one wins.)
    """

    x: Operand[FLOAT]
    roots: Operand[INTEGER]
    features: Operand[INTEGER]
    modes: Operand[INTEGER]
    splits: Operand[FLOAT]
    yes: Operand[INTEGER]
    no: Operand[INTEGER]
    leaf_targets: Operand[INTEGER] | None
    leaf_weights: Operand[FLOAT]
    sets: Operand[FLOAT] | None = None
    missing: Operand[BOOL] | None = None
    base: Operand[FLOAT] | None = None
    targets: int = 2
    depth: int = 1
    transform: str = "none"
    form: Literal["many", "complement", "opposite", "second", "one"] = "many"
    threshold: float = 0.0

    def infer(
        ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base, *, targets,
        depth, transform, form, threshold,
    ):  # fmt: skip
        ctx.need(x.rank == 2, f"x must have rank 2 [rows, features], got {x.type}")
        check_transform(ctx, transform)
        ctx.need(form == "many" or targets == 1, f"the form {form!r} is of one target, got {targets}")
        columns = targets if form == "many" else 1 if form == "one" else 2
        return Fact(TensorType(dtypes.i64, (x.dims[0],))), Fact(TensorType(dtypes.f32, (x.dims[0], columns)))

    def decompose(
        ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base, *, targets,
        depth, transform, form, threshold,
    ):  # fmt: skip
        b = ctx.build
        sums = b.TreeEnsemble(
            x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base,
            targets=targets, depth=depth,
        )  # fmt: skip
        scores = converted(b, sums, dtypes.f32)
        if form == "many":
            return best(b, sums), transformed(b, scores, transform)
        place = above(b, sums, threshold)
        if form == "one":
            return place, scores
        if form == "second":
            both = b.concatenate((b.multiply(scores, 0.0), scores), axis=1)
            return place, transformed(b, both, transform)
        return place, two_columns(b, scores, complement=form == "complement", transform=transform)
