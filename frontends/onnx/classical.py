"""ONNX operators of the domain ai.onnx.ml."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir.dtypes import f32, i64, string
from ...ir.errors import InferenceError
from .registry import onnx_op

ML = "ai.onnx.ml"


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
        return ctx.build.constant(np.array(strings, object), string)
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


@onnx_op("TreeEnsemble", domain=ML)
def tree_ensemble(
    ctx, x, *, leaf_targetids, leaf_weights, nodes_falseleafs, nodes_falsenodeids, nodes_featureids, nodes_modes,
    nodes_splits, nodes_trueleafs, nodes_truenodeids, tree_roots, n_targets, aggregate_function=1, post_transform=0,
    membership_values=None, nodes_hitrates=None, nodes_missing_value_tracks_true=(),
):  # fmt: skip
    """Branches keep their numbers; leaf i becomes the place behind them, and leads to itself."""
    if any(nodes_missing_value_tracks_true):
        ctx.refuse("nodes_missing_value_tracks_true is not supported")
    branches, leaves = len(nodes_featureids), len(leaf_targetids)
    modes = nodes_modes.numpy()
    own = np.arange(branches, branches + leaves)

    def ends(ids, are_leaves):
        return np.concatenate([np.where(np.array(are_leaves, bool), np.array(ids) + branches, ids), own])

    yes, no = ends(nodes_truenodeids, nodes_trueleafs), ends(nodes_falsenodeids, nodes_falseleafs)
    roots = np.array(tree_roots)
    filler = np.zeros(leaves)
    b = ctx.build

    def whole(*parts):
        return b.constant(np.concatenate(parts).astype(np.int64))

    sets = None
    if membership_values is not None and membership_values.size:
        sets = b.constant(_sets(membership_values.numpy(), modes, branches + leaves).astype(x.dtype.numpy))
    return b.TreeEnsemble(
        x, whole(roots), whole(nodes_featureids, filler), whole(modes, filler),
        b.constant(np.concatenate([nodes_splits.numpy(), filler]).astype(x.dtype.numpy)), whole(yes), whole(no),
        whole(np.zeros(branches), leaf_targetids),
        b.constant(np.concatenate([np.zeros(branches), leaf_weights.numpy()]).astype(x.dtype.numpy)), sets,
        targets=n_targets, depth=_depth(yes, no, roots, branches),
        aggregate=("average", "sum", "min", "max")[aggregate_function],
        transform=("none", "softmax", "logistic", "softmax_zero", "probit")[post_transform],
    )  # fmt: skip


def _sets(values, modes, places):
    """One row of members a place, padded with NaN; the sets of member nodes come in order, a NaN behind each."""
    rows = np.split(values, np.flatnonzero(np.isnan(values)) + 1)
    rows = [r[~np.isnan(r)] for r in rows][: int((modes == 6).sum())]
    out = np.full((places, max((len(r) for r in rows), default=0) or 1), np.nan, values.dtype)
    for place, row in zip(np.flatnonzero(modes == 6), rows, strict=False):
        out[place, : len(row)] = row
    return out


def _depth(yes, no, roots, branches):
    """Steps from the roots until only leaves are left."""
    level, steps = np.unique(roots), 0
    while (level < branches).any():
        inner = level[level < branches]
        level, steps = np.unique(np.concatenate([yes[inner], no[inner]])), steps + 1
        if steps > branches:
            raise InferenceError("the branches of a tree form a cycle")
    return steps
