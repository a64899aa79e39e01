"""Tree ensembles of the domain ai.onnx.ml, in the form of version 5 and as the older regressor and classifier."""

from __future__ import annotations

import numpy as np

from ....ir.dtypes import f32, f64
from ....ir.errors import InferenceError
from ..registry import onnx_op
from .features import ML, as_rows
from .models import labelled

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
AGGREGATES = ("average", "sum", "min", "max")
TRANSFORMS = ("none", "softmax", "logistic", "softmax_zero", "probit")


@onnx_op("TreeEnsemble", domain=ML)
def tree_ensemble(
    ctx, x, *, leaf_targetids, leaf_weights, nodes_falseleafs, nodes_falsenodeids, nodes_featureids, nodes_modes,
    nodes_splits, nodes_trueleafs, nodes_truenodeids, tree_roots, n_targets, aggregate_function=1, post_transform=0,
    membership_values=None, nodes_hitrates=None, nodes_missing_value_tracks_true=(),
):  # fmt: skip
    """Branches keep their numbers; leaf i becomes the place behind them, and leads to itself."""
    branches, leaves = len(nodes_featureids), len(leaf_targetids)
    modes = nodes_modes.numpy()
    own = np.arange(branches, branches + leaves)

    def ends(ids, are_leaves):
        return np.concatenate([np.where(np.array(are_leaves, bool), np.array(ids) + branches, ids), own])

    yes, no = ends(nodes_truenodeids, nodes_trueleafs), ends(nodes_falsenodeids, nodes_falseleafs)
    roots = np.array(tree_roots)
    filler = np.full(leaves, modes[0] if len(modes) else 0)
    b = ctx.build

    def whole(*parts):
        return b.constant(np.concatenate(parts).astype(np.int64))

    sets = None
    if membership_values is not None and membership_values.size:
        sets = b.constant(_sets(membership_values.numpy(), modes, branches + leaves).astype(x.dtype.numpy))
    return b.TreeEnsemble(
        x, whole(roots), whole(nodes_featureids, own * 0), whole(modes, filler),
        b.constant(np.concatenate([nodes_splits.numpy(), own * 0]).astype(x.dtype.numpy)), whole(yes), whole(no),
        whole(np.zeros(branches), leaf_targetids),
        b.constant(np.concatenate([np.zeros(branches), leaf_weights.numpy()]).astype(x.dtype.numpy)), sets,
        _missing(b, nodes_missing_value_tracks_true, branches + leaves),
        targets=n_targets, depth=_depth(yes, no, roots, np.arange(branches + leaves) >= branches),
        aggregate=AGGREGATES[aggregate_function],
        transform=TRANSFORMS[post_transform],
    )  # fmt: skip


def _sets(values, modes, places):
    """One row of members a place, padded with NaN; the sets of member nodes come in order, a NaN behind each."""
    rows = np.split(values, np.flatnonzero(np.isnan(values)) + 1)
    rows = [r[~np.isnan(r)] for r in rows][: int((modes == 6).sum())]
    out = np.full((places, max((len(r) for r in rows), default=0) or 1), np.nan, values.dtype)
    for place, row in zip(np.flatnonzero(modes == 6), rows, strict=False):
        out[place, : len(row)] = row
    return out


def _depth(yes, no, roots, leaf):
    """Steps from the roots until only leaves are left."""
    level, steps = np.unique(roots), 0
    while not leaf[level].all():
        inner = level[~leaf[level]]
        level, steps = np.unique(np.concatenate([yes[inner], no[inner]])), steps + 1
        if steps > len(yes):
            raise InferenceError("the branches of a tree form a cycle")
    return steps


def _missing(b, tracks, places):
    """Where a NaN goes to the true branch, or None if nowhere."""
    return b.constant(np.pad(np.array(tracks, bool), (0, places - len(tracks)))) if any(tracks) else None


class _Trees:
    """The nodes of an ensemble as the regressor and the classifier list them: one place a node, in their order."""

    def __init__(self, ctx, nodes, dtype):
        self.ctx, self.dtype = ctx, dtype
        trees, numbers = nodes["nodes_treeids"], nodes["nodes_nodeids"]
        keys = list(zip(trees, numbers, strict=True))
        self.place = {key: i for i, key in enumerate(keys)}
        if len(self.place) != len(keys):
            ctx.fail("two nodes have one number in one tree")
        modes = nodes["nodes_modes"]
        if odd := set(modes) - {*MODES, "LEAF"}:
            ctx.fail(f"the node mode {sorted(odd)[0]!r} is not one of {', '.join((*MODES, 'LEAF'))}")
        common = next((m for m in modes if m != "LEAF"), MODES[0])
        self.modes = np.array([MODES.index(common if m == "LEAF" else m) for m in modes])
        self.leaf = np.array([m == "LEAF" for m in modes], bool)
        self.yes = self._children(trees, nodes["nodes_truenodeids"])
        self.no = self._children(trees, nodes["nodes_falsenodeids"])
        first: dict[int, int] = {}
        for i, tree in enumerate(trees):
            first.setdefault(tree, i)
        self.roots = np.array(list(first.values()))
        self.features = np.where(self.leaf, 0, nodes["nodes_featureids"])
        self.splits = values(nodes, "nodes_values", dtype)
        self.tracks = nodes["nodes_missing_value_tracks_true"]

    def _children(self, trees, numbers):
        """Places of the nodes that branches lead to; a leaf leads to itself."""
        try:
            return np.array([i if leaf else self.place[trees[i], n]
                             for i, (leaf, n) in enumerate(zip(self.leaf, numbers, strict=True))])  # fmt: skip
        except KeyError as error:
            self.ctx.fail(f"a branch leads to node {error.args[0][1]} of tree {error.args[0][0]}, which is not there")

    def operands(self, x, trees, numbers, ids, weights, targets, base):
        """Operands of the IR's tree operators behind x, and `depth`.

        A leaf with several weights makes a matrix of one row a place, NaN where there is none.
        """
        b = self.ctx.build
        places = np.array([self.place.get(key, -1) for key in zip(trees, numbers, strict=True)])
        if (places < 0).any() or not self.leaf[places].all():
            self.ctx.fail("a weight belongs to a node that is no leaf")
        ids, count = np.array(ids), len(self.place)
        if len(np.unique(places)) == len(places):
            owner, table = np.full(count, -1), np.zeros(count, self.dtype.numpy)
            owner[places], table[places] = ids, weights
            owner = b.constant(owner)
        else:
            owner, table = None, np.full((count, targets), np.nan, self.dtype.numpy)
            table[places, ids] = 0
            np.add.at(table, (places, ids), weights)
        whole = [b.constant(v.astype(np.int64)) for v in (self.roots, self.features, self.modes, self.yes, self.no)]
        roots, features, modes, yes, no = whole
        missing = _missing(b, self.tracks, count)
        base = b.constant(base.astype(self.dtype.numpy)) if base.size else None
        rows = (x, roots, features, modes, b.constant(self.splits), yes, no, owner, b.constant(table), None, missing)
        return (*rows, base), _depth(self.yes, self.no, self.roots, self.leaf)


def values(nodes, name, dtype):
    """The numbers of an attribute, or of its form as a tensor."""
    tensor = nodes[f"{name}_as_tensor"]
    given = np.array(nodes[name], np.float32) if tensor is None or not tensor.size else tensor.numpy()
    return given.astype(dtype.numpy)


def _start(ctx, x):
    """x as f32 or f64 rows, in which branches compare."""
    x = as_rows(ctx, x)
    return x if x.dtype in (f32, f64) else ctx.build.convert(x, dtype=f32)


@onnx_op("TreeEnsembleRegressor", domain=ML)
def tree_ensemble_regressor(
    ctx, x, *, nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, nodes_truenodeids, nodes_falsenodeids,
    target_treeids, target_nodeids, target_ids, nodes_values=(), nodes_values_as_tensor=None, nodes_hitrates=(),
    nodes_hitrates_as_tensor=None, nodes_missing_value_tracks_true=(), target_weights=(),
    target_weights_as_tensor=None, base_values=(), base_values_as_tensor=None, n_targets=1, aggregate_function="SUM",
    post_transform="NONE",
):  # fmt: skip
    given = locals()
    x = _start(ctx, x)
    trees = _Trees(ctx, given, x.dtype)
    weights, base = values(given, "target_weights", x.dtype), values(given, "base_values", x.dtype)
    operands, depth = trees.operands(x, target_treeids, target_nodeids, target_ids, weights, n_targets, base)
    transform = post_transform.lower()
    if n_targets == 1 and transform != "probit":
        transform = "none"
    y = ctx.build.TreeEnsemble(
        *operands, targets=n_targets, depth=depth, aggregate=aggregate_function.lower(), transform=transform
    )
    return y if y.dtype is f32 else ctx.build.convert(y, dtype=f32)


@onnx_op("TreeEnsembleClassifier", domain=ML)
def tree_ensemble_classifier(
    ctx, x, *, nodes_treeids, nodes_nodeids, nodes_featureids, nodes_modes, nodes_truenodeids, nodes_falsenodeids,
    class_treeids, class_nodeids, class_ids, nodes_values=(), nodes_values_as_tensor=None, nodes_hitrates=(),
    nodes_hitrates_as_tensor=None, nodes_missing_value_tracks_true=(), class_weights=(), class_weights_as_tensor=None,
    base_values=(), base_values_as_tensor=None, classlabels_int64s=(), classlabels_strings=(), post_transform="NONE",
):  # fmt: skip
    """Two classes of which only one has weights share one sum; all weights positive decides what it means."""
    given = locals()
    x = _start(ctx, x)
    trees = _Trees(ctx, given, x.dtype)
    weights, base = values(given, "class_weights", x.dtype), values(given, "base_values", x.dtype)
    labels = classlabels_strings or classlabels_int64s
    classes, used = len(labels), set(class_ids)
    form, ids = "many", class_ids
    if classes == 1 or (classes == 2 and len(used) == 1):
        positive = bool((weights >= 0).all())
        form = "one" if classes == 1 else "second" if used == {1} else "complement" if positive else "opposite"
        if base.size > 1:
            ctx.refuse(f"{base.size} base values for the one class that has weights")
        if post_transform == "PROBIT":
            ctx.refuse("post_transform PROBIT of one sum for two classes")
        classes, ids = 1, [0] * len(class_ids)
    operands, depth = trees.operands(x, class_treeids, class_nodeids, ids, weights, classes, base)
    place, scores = ctx.build.TreeEnsembleClassifier(
        *operands, targets=classes, depth=depth, transform=post_transform.lower(), form=form,
        threshold=0.5 if form not in ("many", "one") and positive else 0.0,
    )  # fmt: skip
    return labelled(ctx, place, classlabels_strings, classlabels_int64s), scores
