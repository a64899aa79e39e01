"""Operators of ai.onnx.ml: models that are no neural networks."""

import numpy as np

from .. import dtypes
from ..operators import ANY, FLOAT, INTEGER, PURE, REAL, Operand, operator


@operator("LabelEncoder", family="classical", traits=PURE)
class LabelEncoder:
    """values[i] where x equals keys[i] (the first such i; NaN equals NaN), `default` where it equals none."""

    x: Operand[ANY]
    keys: Operand[ANY]
    values: Operand[ANY]
    default: Operand[ANY]

    def infer(ctx, x, keys, values, default):
        ctx.same_dtype(x, keys)
        ctx.same_dtype(values, default)
        ctx.equal(keys.dims[0], values.dims[0], "the numbers of keys and values")
        return values.with_dims(x.dims)

    def reference(ctx, x, keys, values, default):
        same = x[..., None] == keys
        if keys.dtype.kind == "f":
            same = same | (np.isnan(x)[..., None] & np.isnan(keys))
        found = same.any(-1)
        place = np.where(found, same.argmax(-1), 0)
        out = np.empty(x.shape, values.dtype)
        out[...] = values[place] if len(values) else default.reshape(())
        out[~found] = default.reshape(-1)[0]
        return out

    def decompose(ctx, x, keys, values, default):
        b = ctx.build
        column, row = b.reshape(x, dims=(*x.dims, 1)), b.reshape(keys, dims=(*[1] * x.rank, keys.dims[0]))
        same = b.compare(column, row, direction="eq")
        if x.dtype.is_float:
            sick = [b.compare(v, v, direction="ne") for v in (column, row)]
            same = b.or_(same, b.and_(*sick))
        found = b.reduce(same, axes=(x.rank,), kind="or")
        place = b.ArgMax(b.convert(same, dtype=dtypes.i32), axis=x.rank, keepdims=False)
        return b.select(found, b.take(values, place, axis=0), b.reshape(default, dims=()))


@operator("Binarizer", family="classical", traits=PURE)
class Binarizer:
    """1 where x > threshold, else 0, in the type of x."""

    x: Operand[REAL]
    threshold: float = 0.0

    def decompose(ctx, x, *, threshold):
        b = ctx.build
        return b.convert(b.compare(x, b.constant(threshold, x.dtype), direction="gt"), dtype=x.dtype)


AGGREGATES = ("average", "sum", "min", "max")
TRANSFORMS = ("none", "softmax", "logistic", "softmax_zero", "probit")


@operator("TreeEnsemble", family="classical", traits=PURE)
class TreeEnsemble:
    """Decision trees over the rows of x[N, F]: the weights of the leaves that a row reaches, aggregated: [N, targets].

    Places 0..M-1 are branches, those behind them leaves that lead to themselves.  features, modes, splits, yes and no
    have one entry a place; modes are <=, <, >=, >, ==, != as 0..5 and membership of row sets[place] (padded with NaN)
    as 6.  roots has one place a tree, leaf_targets and leaf_weights one entry a place.  `depth` steps reach every leaf.
    """

    x: Operand[FLOAT]
    roots: Operand[INTEGER]
    features: Operand[INTEGER]
    modes: Operand[INTEGER]
    splits: Operand[FLOAT]
    yes: Operand[INTEGER]
    no: Operand[INTEGER]
    leaf_targets: Operand[INTEGER]
    leaf_weights: Operand[FLOAT]
    sets: Operand[FLOAT] | None = None
    targets: int = 1
    depth: int = 1
    aggregate: str = "sum"
    transform: str = "none"

    def infer(
        ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, *, targets, depth, aggregate,
        transform,
    ):  # fmt: skip
        ctx.need(x.rank == 2, f"x must have rank 2 [rows, features], got {x.type}")
        ctx.need(aggregate in AGGREGATES, f"aggregate must be one of {', '.join(AGGREGATES)}, got {aggregate!r}")
        ctx.need(transform in TRANSFORMS, f"transform must be one of {', '.join(TRANSFORMS)}, got {transform!r}")
        return x.with_dims((x.dims[0], targets))

    def decompose(
        ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, *, targets, depth, aggregate,
        transform,
    ):  # fmt: skip
        b = ctx.build
        rows, trees = x.dims[0], roots.dims[0]
        place = b.broadcast_in_dim(roots, dims=(rows, trees), broadcast_dimensions=(1,))
        for _ in range(depth):
            value = b.take_along_axis(x, b.take(features, place, axis=0), axis=1)
            split, mode = b.take(splits, place, axis=0), b.take(modes, place, axis=0)
            holds = None
            for number, direction in enumerate(("le", "lt", "ge", "gt", "eq", "ne")):
                this = b.and_(b.compare(mode, number, direction="eq"), b.compare(value, split, direction=direction))
                holds = this if holds is None else b.or_(holds, this)
            if sets is not None:
                members = b.take(sets, place, axis=0)
                inside = b.compare(b.reshape(value, dims=(rows, trees, 1)), members, direction="eq")
                inside = b.reduce(inside, axes=(2,), kind="or")
                holds = b.or_(holds, b.and_(b.compare(mode, 6, direction="eq"), inside))
            place = b.select(holds, b.take(yes, place, axis=0), b.take(no, place, axis=0))
        weight = b.reshape(b.take(leaf_weights, place, axis=0), dims=(rows, trees, 1))
        target = b.reshape(b.take(leaf_targets, place, axis=0), dims=(rows, trees, 1))
        here = b.compare(target, b.iota(dtype=target.dtype, dims=(1, 1, targets), axis=2), direction="eq")
        limits = {"min": float("inf"), "max": float("-inf")}
        weight = b.select(here, weight, b.constant(limits.get(aggregate, 0.0), weight.dtype))
        out = b.reduce(weight, axes=(1,), kind=aggregate if aggregate in limits else "sum")
        if aggregate in limits:
            none = b.not_(b.reduce(here, axes=(1,), kind="or"))
            out = b.select(none, b.constant(0.0, out.dtype), out)
        if aggregate == "average":
            out = b.divide(out, float(trees))
        return _transformed(b, out, transform)


def _transformed(b, x, transform):
    if transform == "softmax":
        return b.Softmax(x, axis=1)
    if transform == "logistic":
        return b.logistic(x)
    if transform == "softmax_zero":
        zero = b.constant(0.0, x.dtype)
        kept = b.compare(x, zero, direction="ne")
        high = b.reduce(x, axes=(1,), kind="max")
        power = b.exponential(b.subtract(x, b.reshape(high, dims=(x.dims[0], 1))))
        power = b.select(kept, power, zero)
        return b.divide(power, b.ReduceSum(power, axes=(1,)))
    if transform == "probit":
        return b.multiply(b.erf_inv(b.subtract(b.multiply(x, 2.0), 1.0)), 2**0.5)
    return x
