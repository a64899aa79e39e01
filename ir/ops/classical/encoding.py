"""Columns of features made ready: labels as numbers, categories as ones, gaps filled, rows scaled and joined."""

from typing import Literal

import numpy as np

from ... import dtypes
from ...dims import minimum
from ...operators import ANY, FLOAT, PURE, REAL, Operand, Variadic, operator
from ..shape.positions import sliced
from ..widening import converted


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


@operator("OneHotEncoder", family="classical", traits=PURE)
class OneHotEncoder:
    """f32 [x.dims.., categories]: 1 where x, as i64 (floats truncated), is the category, else 0."""

    x: Operand[REAL]
    categories: Operand[ANY]

    def decompose(ctx, x, categories):
        b = ctx.build
        wanted = b.reshape(categories, dims=(*[1] * x.rank, categories.dims[0]))
        column = b.reshape(converted(b, x, categories.dtype), dims=(*x.dims, 1))
        return b.convert(b.compare(column, wanted, direction="eq"), dtype=dtypes.f32)


@operator("Imputer", family="classical", traits=PURE)
class Imputer:
    """x[.., features] with `values` (one, or one a feature) in place of elements equal to `replaced`.

    A NaN there stands for all NaNs.
    """

    x: Operand[REAL]
    values: Operand[REAL]
    replaced: Operand[REAL]

    def infer(ctx, x, values, replaced):
        ctx.same_dtype(x, values, replaced)
        if values.dims[0] != 1:
            ctx.equal(values.dims[0], x.dims[-1], "the numbers of imputed values and of features")
        return x.with_dims(x.dims)

    def decompose(ctx, x, values, replaced):
        b = ctx.build
        gap = b.compare(x, replaced, direction="eq")
        if x.dtype.is_float:
            nans = [b.compare(v, v, direction="ne") for v in (x, replaced)]
            gap = b.or_(gap, b.and_(*nans))
        return b.select(gap, values, x)


@operator("Scaler", family="classical", traits=PURE)
class Scaler:
    """(x - offset) * scale in f32, for x[.., features] and one number or one a feature; f64 is subtracted in f64."""

    x: Operand[REAL]
    offset: Operand[FLOAT]
    scale: Operand[FLOAT]

    def decompose(ctx, x, offset, scale):
        b = ctx.build
        wide = dtypes.f64 if x.dtype is dtypes.f64 else dtypes.f32
        x, offset, scale = (converted(b, v, wide) for v in (x, offset, scale))
        return converted(b, b.multiply(b.subtract(x, offset), scale), dtypes.f32)


@operator("Normalizer", family="classical", traits=PURE)
class Normalizer:
    """Rows of x[.., features] divided by their greatest element (MAX), sum of absolute values (L1) or length (L2).

    In f32; a row whose divisor is 0 stays as it is.
    """

    x: Operand[REAL]
    norm: Literal["MAX", "L1", "L2"] = "MAX"

    def decompose(ctx, x, *, norm):
        b = ctx.build
        x = converted(b, x, dtypes.f32)
        rule = {"MAX": b.ReduceMax, "L1": b.ReduceL1, "L2": b.ReduceL2}[norm]
        divisor = rule(x, axes=(x.rank - 1,))
        none = b.compare(divisor, b.constant(0.0, dtypes.f32), direction="eq")
        return b.divide(x, b.select(none, b.constant(1.0, dtypes.f32), divisor))


@operator("FeatureVectorizer", family="classical", traits=PURE)
class FeatureVectorizer:
    """Matrices [N, ..] side by side in f32: the first sizes[i] columns of xs[i], filled with zeros."""

    xs: Variadic[REAL]
    sizes: tuple[int, ...]

    def decompose(ctx, xs, *, sizes):
        b = ctx.build
        columns = []
        for x, size in zip(xs, sizes, strict=True):
            kept = minimum(x.dims[1], size)
            x = converted(b, sliced(b, x, 1, 0, kept), dtypes.f32)
            gap = size - kept
            zero = b.constant(0.0, dtypes.f32)
            columns.append(b.pad(x, zero, low=(0, 0), high=(0, gap), interior=(0, 0)) if gap != 0 else x)
        return b.concatenate(tuple(columns), axis=1) if len(columns) > 1 else columns[0]
