"""ONNX lowering of decision trees to the TreeEnsemble node of ai.onnx.ml, which holds them as attributes."""

from __future__ import annotations

import numpy as np
from onnx import numpy_helper

from ...ir import dtypes
from .lowering import lower

DOMAIN, VERSION = "ai.onnx.ml", 5
AGGREGATES = ("average", "sum", "min", "max")
MEMBER = 6


def _leaves(yes, no):
    """Places that lead to themselves."""
    own = np.arange(len(yes))
    return (yes == own) & (no == own)


def _claimed(
    ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base, *, targets, depth,
    aggregate, transform,
):  # fmt: skip
    if x.dtype not in (dtypes.f32, dtypes.f64):
        return f"TreeEnsemble takes f32 and f64 here, got {x.dtype}"
    tables = (roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base)
    if any(t is not None and t.data is None for t in tables):
        return "its trees are computed, and ONNX takes them as attributes"
    if aggregate == "average" and leaf_targets is None:
        return "a leaf has weights of several targets, and ONNX would count its tree once for each"
    missed = np.isnan(leaf_weights.data.numpy()) if leaf_targets is None else leaf_targets.data.numpy() < 0
    if aggregate in ("min", "max") and missed[_leaves(yes.data.numpy(), no.data.numpy())].any():
        return f"a leaf says nothing of a target, which ONNX cannot write beside {aggregate}"
    return None if transform in ("none", "logistic", "softmax") else f"{transform} is not written as a node"


@lower("TreeEnsemble", when=_claimed)
def tree_ensemble(
    ctx, x, roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets, missing, base, *, targets, depth,
    aggregate, transform,
):  # fmt: skip
    """The sums as one node; base values and the transform, which ONNX Runtime treats its own way, behind it."""
    _, *held = ctx.node.operands
    tables = [None if v is None else v.data.numpy() for v in held[:10]]
    if leaf_targets is None:
        tables = _one_target_a_tree(targets, *tables)
    out = ctx.op("TreeEnsemble", x, domain=DOMAIN, n_targets=targets,
                 aggregate_function=AGGREGATES.index(aggregate), **_attributes(*tables))  # fmt: skip
    ctx.exporter.root.versions[DOMAIN] = VERSION
    if base is not None:
        out = ctx.op("Add", out, ctx.constant(held[10].data.numpy(), x.dtype))
    if transform == "logistic":
        return ctx.op("Sigmoid", out)
    return ctx.op("Softmax", out, axis=1) if transform == "softmax" else out


def _one_target_a_tree(targets, roots, features, modes, splits, yes, no, _, leaf_weights, sets=None, missing=None):
    """The tables of a copy of every tree for each target: a leaf of ONNX has one weight."""
    places = len(yes)

    def copies(table, step=0):
        return np.concatenate([table + step * t if step else table for t in range(targets)])

    same = (copies(t) for t in (features, modes, splits))
    ids = np.repeat(np.arange(targets), places)
    weights = np.where(np.isnan(leaf_weights), 0, leaf_weights).T.reshape(-1)
    more = [None if t is None else copies(t) for t in (sets, missing)]
    return copies(roots, places), *same, copies(yes, places), copies(no, places), ids, weights, *more


def _attributes(roots, features, modes, splits, yes, no, leaf_targets, leaf_weights, sets=None, missing=None):
    """Branches and leaves numbered apart.  A tree of one leaf is a branch with that leaf on both sides."""
    leaf = _leaves(yes, no)
    number = np.where(leaf, np.cumsum(leaf), np.cumsum(~leaf)) - 1
    single = roots[leaf[roots]]
    branches = np.concatenate([np.flatnonzero(~leaf), single])
    inner = ~leaf[branches]
    starts = number[roots]
    starts[leaf[roots]] = (~leaf).sum() + np.arange(len(single))
    kinds = np.where(inner, modes[branches], 0)
    out = {
        "tree_roots": starts.tolist(),
        "nodes_featureids": np.where(inner, features[branches], 0).tolist(),
        "nodes_modes": numpy_helper.from_array(kinds.astype(np.uint8)),
        "nodes_splits": numpy_helper.from_array(np.where(inner, splits[branches], 0).astype(splits.dtype)),
        "nodes_truenodeids": number[yes[branches]].tolist(),
        "nodes_trueleafs": leaf[yes[branches]].astype(int).tolist(),
        "nodes_falsenodeids": number[no[branches]].tolist(),
        "nodes_falseleafs": leaf[no[branches]].astype(int).tolist(),
        "leaf_targetids": np.maximum(leaf_targets[leaf], 0).tolist(),
        "leaf_weights": numpy_helper.from_array(np.where(leaf_targets < 0, 0, leaf_weights)[leaf].astype(splits.dtype)),
    }
    if missing is not None:
        out["nodes_missing_value_tracks_true"] = (inner & missing[branches]).astype(int).tolist()
    if sets is not None and (kinds == MEMBER).any():
        rows = sets[branches[kinds == MEMBER]]
        parts = [np.append(row[~np.isnan(row)], np.nan) for row in rows]
        out["membership_values"] = numpy_helper.from_array(np.concatenate(parts).astype(splits.dtype))
    return out
