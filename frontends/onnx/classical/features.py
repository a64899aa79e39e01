"""Encoders of features in the domain ai.onnx.ml: labels, categories, gaps, scales; and what maps are refused with."""

from __future__ import annotations

import numpy as np

from ....ir import dims as sizes
from ....ir.dtypes import f32, i64, string
from ..registry import onnx_op

ML = "ai.onnx.ml"


@onnx_op("LabelEncoder", until=1, domain=ML)
def label_encoder_1(ctx, x, *, classes_strings, default_string="_Unused", default_int64=-1):
    """Strings to their places, or places to strings."""
    return _mapped(ctx, x, classes_strings, range(len(classes_strings)), default_string, default_int64)


@onnx_op("CategoryMapper", domain=ML)
def category_mapper(ctx, x, *, cats_strings=(), cats_int64s=(), default_string="_Unused", default_int64=-1):
    if len(cats_strings) != len(cats_int64s):
        ctx.fail(f"cats_strings and cats_int64s must have equal length, got {len(cats_strings)} and {len(cats_int64s)}")
    return _mapped(ctx, x, cats_strings, cats_int64s, default_string, default_int64)


def _mapped(ctx, x, strings, ints, default_string, default_int64):
    """Strings to integers or integers to strings, whichever x is not."""
    strings, ints = words(ctx, strings), ctx.build.constant(np.array(ints, np.int64), i64)
    if x.dtype.is_string:
        return ctx.build.LabelEncoder(x, strings, ints, ctx.build.constant(default_int64, i64))
    return ctx.build.LabelEncoder(x, ints, strings, ctx.build.constant(np.array(default_string, object), string))


def words(ctx, strings):
    """A constant vector of strings."""
    return ctx.build.constant(np.array(strings, object), string)


def floats(ctx, values, dtype=f32):
    """A constant vector of floats."""
    return ctx.build.constant(np.array(values, np.float32).astype(dtype.numpy), dtype)


@onnx_op("LabelEncoder", since=2, domain=ML)
def label_encoder(
    ctx, x, *, keys_tensor=None, keys_strings=(), keys_int64s=(), keys_floats=(), values_tensor=None, values_strings=(),
    values_int64s=(), values_floats=(), default_tensor=None, default_string="_Unused", default_int64=-1,
    default_float=-0.0,
):  # fmt: skip
    keys = _vector(ctx, keys_tensor, keys_strings, keys_int64s, keys_floats)
    values = _vector(ctx, values_tensor, values_strings, values_int64s, values_floats)
    if default_tensor is not None:
        default = ctx.build.constant(default_tensor)
    elif values.dtype.is_string:
        default = ctx.build.constant(np.array(default_string, object), string)
    else:
        default = ctx.build.constant(default_int64 if values.dtype.is_integer else default_float, values.dtype)
    return ctx.build.LabelEncoder(x, keys, values, default)


def _vector(ctx, tensor, strings, ints, floats):
    if tensor is not None:
        return ctx.build.constant(tensor)
    if strings:
        return words(ctx, strings)
    return (
        ctx.build.constant(np.array(ints, np.int64), i64)
        if ints
        else ctx.build.constant(np.array(floats, np.float32), f32)
    )


@onnx_op("Binarizer", domain=ML)
def binarizer(ctx, x, *, threshold=0.0):
    return ctx.build.Binarizer(x, threshold=threshold)


@onnx_op("ArrayFeatureExtractor", domain=ML)
def array_feature_extractor(ctx, x, places):
    """The chosen places along the last axis; a vector counts as a matrix of one row."""
    if x.rank == 1:
        x = ctx.build.reshape(x, dims=(1, *x.dims))
    flat = ctx.build.reshape(places, dims=(sizes.product(places.dims),))
    return ctx.build.take(x, flat, axis=x.rank - 1)


@onnx_op("OneHotEncoder", domain=ML)
def one_hot_encoder(ctx, x, *, cats_int64s=(), cats_strings=(), zeros=1):
    """An unknown category is a row of zeros (ONNX Runtime fails there if zeros = 0).  Strings become their places."""
    b = ctx.build
    if x.dtype.is_string:
        places = b.constant(np.arange(len(cats_strings)), i64)
        x = b.LabelEncoder(x, words(ctx, cats_strings), places, b.constant(-1, i64))
        return b.OneHotEncoder(x, places)
    if not cats_int64s:
        ctx.fail(f"cats_int64s is missing: x has type {x.type}")
    return b.OneHotEncoder(x, b.constant(np.array(cats_int64s, np.int64), i64))


@onnx_op("Imputer", domain=ML)
def imputer(
    ctx, x, *, imputed_value_floats=(), imputed_value_int64s=(), replaced_value_float=0.0, replaced_value_int64=0
):
    b = ctx.build
    if x.dtype.is_float:
        values, replaced = floats(ctx, imputed_value_floats, x.dtype), replaced_value_float
    else:
        values, replaced = b.constant(np.array(imputed_value_int64s), x.dtype), replaced_value_int64
    if not values.dims[0]:
        ctx.fail(f"the imputed values for x of type {x.type} are missing")
    return b.Imputer(x, values, b.constant(replaced, x.dtype))


@onnx_op("Scaler", domain=ML)
def scaler(ctx, x, *, offset, scale):
    return ctx.build.Scaler(x, floats(ctx, offset), floats(ctx, scale))


@onnx_op("Normalizer", domain=ML)
def normalizer(ctx, x, *, norm="MAX"):
    if x.rank > 2:
        ctx.fail(f"x must have rank 1 or 2, got {x.type}")
    return ctx.build.Normalizer(x, norm=norm)


@onnx_op("FeatureVectorizer", domain=ML)
def feature_vectorizer(ctx, *xs, inputdimensions):
    """A vector counts as a matrix of one row."""
    if len(xs) != len(inputdimensions):
        ctx.fail(f"inputdimensions must have one entry an input, got {len(inputdimensions)} for {len(xs)}")
    return ctx.build.FeatureVectorizer(tuple(as_rows(ctx, x) for x in xs), sizes=inputdimensions)


def as_rows(ctx, x):
    """x [N, F]; a vector counts as a matrix of one row."""
    if x.rank > 2:
        ctx.fail(f"x must have rank 1 or 2, got {x.type}")
    return x if x.rank == 2 else ctx.build.reshape(x, dims=(1, *x.dims))


@onnx_op("ZipMap", domain=ML)
def zip_map(ctx, x, *, classlabels_int64s=(), classlabels_strings=()):
    ctx.refuse(
        "it makes a map a row, and irc has no maps; convert with the option zipmap=False (skl2onnx: "
        "options={'zipmap': False}), or cut the node off: its input holds the same numbers, one column a label"
    )


@onnx_op("DictVectorizer", "CastMap", domain=ML)
def maps(ctx, x, **attributes):
    ctx.refuse("it takes a map, and irc has no maps; give the model a tensor with one column a key")
