"""Operators of ai.onnx.ml compute what ONNX Runtime computes: import, then each target."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc
from irc.frontends.onnx import import_onnx
from irc.ir.reference import evaluate

ML = "ai.onnx.ml"
X = np.random.default_rng(3).standard_normal((7, 4)).astype(np.float32)
NUMBERS = np.array([[1.0, np.nan, 3.0], [7.0, 3.0, -2.0]], np.float32)
TRANSFORMS = ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")


def model_of(op: str, inputs: list[np.ndarray], outputs: int = 1, version: int = 3, **attributes) -> onnx.ModelProto:
    kinds = [8 if x.dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(x.dtype) for x in inputs]
    infos = [
        helper.make_tensor_value_info(f"x{i}", k, ["N", *x.shape[1:]] if x.ndim > 1 else x.shape)
        for i, (k, x) in enumerate(zip(kinds, inputs, strict=True))
    ]
    names = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, [i.name for i in infos], names, name="node", domain=ML, **attributes)
    graph = helper.make_graph([node], op, infos, [onnx.ValueInfoProto(name=n) for n in names])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, version)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def check(run_ort, model: onnx.ModelProto, inputs: list[np.ndarray], rtol: float = 2e-5) -> None:
    want = run_ort(model, inputs)
    for got in (evaluate(import_onnx(model), inputs), irc.compile(import_onnx(model), target="xla")(*inputs)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            if w.dtype == object:
                assert g.tolist() == w.tolist()
                continue
            assert (g.dtype, g.shape) == (w.dtype, w.shape)
            # Sums of a few products and one transcendental function, in f32 here and there.
            np.testing.assert_allclose(g, w, rtol=rtol, atol=2e-6)


FEATURES = [
    ("Scaler", [X], {"scale": [2.0, 3.0, 4.0, 0.1], "offset": [1.0, 0.0, -1.0, 5.0]}),
    ("Scaler", [X.astype(np.float64) + 1e-9], {"scale": [2.0], "offset": [1.0]}),
    ("Scaler", [(X * 9).astype(np.int64)], {"scale": [2.0], "offset": [1.0]}),
    ("Normalizer", [X], {"norm": "MAX"}),
    ("Normalizer", [X], {"norm": "L1"}),
    ("Normalizer", [np.concatenate([X, X * 0])], {"norm": "L2"}),
    ("Normalizer", [X[0]], {"norm": "L2"}),
    ("Normalizer", [(X * 9).astype(np.int64)], {"norm": "L1"}),
    ("Imputer", [NUMBERS], {"imputed_value_floats": [9.0, 8.0, 7.0], "replaced_value_float": float("nan")}),
    ("Imputer", [NUMBERS], {"imputed_value_floats": [9.0], "replaced_value_float": 3.0}),
    ("Imputer", [(X * 2).astype(np.int64)], {"imputed_value_int64s": [9, 8, 7, 6], "replaced_value_int64": 1}),
    ("OneHotEncoder", [np.array([1, 2, 3])], {"cats_int64s": [1, 3], "zeros": 1}),
    ("OneHotEncoder", [np.array([[1.5, 3.0]], np.float32)], {"cats_int64s": [1, 3]}),
    ("OneHotEncoder", [np.array([["a", "b", "z"]], object)], {"cats_strings": ["b", "a"], "zeros": 1}),
    ("FeatureVectorizer", [X, X[:, :2]], {"inputdimensions": [3, 4]}),
    ("FeatureVectorizer", [X[0].astype(np.float64), X[1].astype(np.float64)], {"inputdimensions": [1, 4]}),
    ("CategoryMapper", [np.array([["a", "z"]], object)], {"cats_strings": ["a", "b"], "cats_int64s": [5, 6]}),
    ("CategoryMapper", [np.array([[5, 7]])], {"cats_strings": ["a", "b"], "cats_int64s": [5, 6]}),
]


@pytest.mark.parametrize(("op", "inputs", "attributes"), FEATURES, ids=[f"{i}-{c[0]}" for i, c in enumerate(FEATURES)])
def test_encoders(op, inputs, attributes, run_ort):
    check(run_ort, model_of(op, inputs, **attributes), inputs)


def test_first_label_encoder_goes_both_ways(run_ort):
    for x in (np.array([["b", "z"]], object), np.array([[1, 7]])):
        attributes = {"classes_strings": ["a", "b"], "default_int64": 9, "default_string": "?"}
        check(run_ort, model_of("LabelEncoder", [x], version=1, **attributes), [x])


def numbers(*shape: int, seed: int = 0, positive: bool = False) -> list[float]:
    values = np.random.default_rng(seed).standard_normal(shape).round(2).reshape(-1)
    return [float(v) for v in (abs(values) if positive else values)]


@pytest.mark.parametrize("transform", [*TRANSFORMS, "PROBIT"])
def test_linear_models(transform, run_ort):
    x = X / 20
    for targets in (1, 3):
        attributes = {
            "coefficients": numbers(targets, 4),
            "intercepts": [0.5, 0.4, 0.3][:targets],
            "post_transform": transform,
        }
        check(run_ort, model_of("LinearRegressor", [x], targets=targets, **attributes), [x], rtol=1e-4)
        if targets > 1 or transform != "PROBIT":
            labels = [3, 7, 5][: max(targets, 2)]
            check(run_ort, model_of("LinearClassifier", [x], 2, classlabels_ints=labels, **attributes), [x], rtol=1e-4)
    words = {"coefficients": numbers(1, 4), "intercepts": [0.1], "classlabels_strings": ["no", "yes"]}
    check(run_ort, model_of("LinearClassifier", [X], 2, **words), [X])


@pytest.mark.parametrize("kernel", ["LINEAR", "POLY", "RBF", "SIGMOID"])
def test_support_vector_machines(kernel, run_ort):
    shared = {"kernel_params": [0.5, 0.1, 2.0], "kernel_type": kernel}
    machine = {"support_vectors": numbers(4, 4, seed=1), "rho": [0.1], **shared}
    for one_class in (0, 1):
        attributes = {"coefficients": numbers(4), "n_supports": 4, "one_class": one_class, **machine}
        check(run_ort, model_of("SVMRegressor", [X], version=1, **attributes), [X], rtol=1e-4)
    for transform in TRANSFORMS:
        binary = {**machine, "vectors_per_class": [2, 2], "classlabels_ints": [5, 6], "post_transform": transform}
        for odds in ({}, {"prob_a": [-0.7], "prob_b": [0.2]}):
            attributes = {"coefficients": numbers(4, seed=2), **binary, **odds}
            check(run_ort, model_of("SVMClassifier", [X], 2, 1, **attributes), [X], rtol=2e-4)
    several = {
        **machine,
        "coefficients": numbers(8, seed=3),
        "vectors_per_class": [2, 1, 1],
        "rho": [0.1, 0.2, -0.2],
        "classlabels_strings": ["a", "b", "c"],
    }
    for odds in ({}, {"prob_a": [-0.7, -1.1, -0.5], "prob_b": [0.2, 0.0, 0.1]}):
        # Coupled probabilities stop where the largest error is below 0.005 / classes, on both sides alike.
        check(run_ort, model_of("SVMClassifier", [X], 2, 1, **several, **odds), [X], rtol=2e-4)


def test_linear_support_vector_machines(run_ort):
    none = {"kernel_params": [0.0, 0.0, 0.0]}  # ONNX Runtime wants them there
    attributes = {"coefficients": numbers(3, 4), "rho": [0.1], "classlabels_ints": [5, 6, 7], **none}
    check(run_ort, model_of("SVMClassifier", [X], 2, 1, **attributes), [X])
    check(run_ort, model_of("SVMRegressor", [X], 1, 1, coefficients=numbers(4), rho=[0.3], **none), [X])


def trees(seed: int, count: int, depth: int, ids: range, prefix: str, positive: bool = False) -> dict[str, list]:
    """Attributes of an ensemble of full trees with a weight for each of `ids` in every leaf."""
    rng = np.random.default_rng(seed)
    branches, size = 2**depth - 1, 2 ** (depth + 1) - 1
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT"]
    out: dict[str, list] = {f"nodes_{k}": [] for k in ("treeids", "nodeids", "featureids", "modes", "values")}
    out |= {k: [] for k in ("nodes_truenodeids", "nodes_falsenodeids", "nodes_missing_value_tracks_true")}
    weights: dict[str, list] = {f"{prefix}_{k}": [] for k in ("treeids", "nodeids", "ids", "weights")}
    for tree in range(count):
        for node in range(size):
            branch = node < branches
            row = (tree, node, int(rng.integers(4)), modes[int(rng.integers(4))] if branch else "LEAF")
            row += (float(rng.standard_normal()), 2 * node + 1 if branch else 0, 2 * node + 2 if branch else 0)
            for key, value in zip(out, (*row, int(branch and rng.random() < 0.5)), strict=True):
                out[key].append(value)
            for i in () if branch else ids:
                weight = float(rng.random() / 2 if positive else rng.standard_normal())
                for key, value in zip(weights, (tree, node, i, weight), strict=True):
                    weights[key].append(value)
    return out | weights


WITH_NANS = np.where(np.random.default_rng(8).random((7, 4)) < 0.2, np.nan, X).astype(np.float32)


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_tree_regressors(aggregate, run_ort):
    for targets, base in ((1, [0.5]), (3, []), (3, [0.5, 1.0, 2.0])):
        attributes = trees(targets, 3, 3, range(targets), "target")
        attributes |= {"n_targets": targets, "aggregate_function": aggregate}
        if base:
            attributes["base_values"] = base
        check(run_ort, model_of("TreeEnsembleRegressor", [WITH_NANS], version=1, **attributes), [WITH_NANS])


def test_tree_regressor_of_doubles_compares_doubles(run_ort):
    x = np.array([[1.0 + 1e-12, 0, 0, 0], [1.0, 0, 0, 0]])
    attributes = trees(0, 1, 1, range(1), "target") | {"nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"], "n_targets": 1}
    values = helper.make_tensor("v", TensorProto.DOUBLE, [3], [1.0, 0.0, 0.0])
    weights = helper.make_tensor("w", TensorProto.DOUBLE, [2], [1.0, 2.0])
    for name in ("nodes_values", "target_weights"):
        del attributes[name]
    attributes |= {"nodes_values_as_tensor": values, "target_weights_as_tensor": weights, "nodes_featureids": [0, 0, 0]}
    model = model_of("TreeEnsembleRegressor", [x], version=3, **attributes)
    check(run_ort, model, [x])
    assert evaluate(import_onnx(model), [x])[0].tolist() == [[2.0], [1.0]]


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_tree_classifiers(transform, run_ort, tmp_path):
    for classes, ids, positive, base in (
        (3, range(3), False, []),
        (3, range(3), True, [0.5, 0.1, 0.2]),
        (2, range(1), True, []),
        (2, range(1), False, []),
        (2, range(1), False, [0.25]),
        (2, range(1, 2), True, []),
        (1, range(1), False, []),
    ):
        attributes = trees(classes, 2, 2, ids, "class", positive) | {"post_transform": transform}
        if base:
            attributes["base_values"] = base
        names = {"classlabels_int64s": [10, 11, 12][:classes]}
        if classes > 1 and not positive:
            names = {"classlabels_strings": ["a", "b", "c"][:classes]}
        model = model_of("TreeEnsembleClassifier", [WITH_NANS], 2, 1, **attributes, **names)
        check(run_ort, model, [WITH_NANS])
        out = written(model, tmp_path)
        assert "TreeEnsemble" in {n.op_type for n in out.graph.node}
        for got, want in zip(run_ort(out, [WITH_NANS]), run_ort(model, [WITH_NANS]), strict=True):
            if got.dtype == object:
                assert got.tolist() == want.tolist()
            else:
                np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-6)  # as in `check`


def written(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """The model through the default pipeline and back."""
    irc.save(irc.run_passes(import_onnx(model)), folder / "written.onnx")
    out = onnx.load(folder / "written.onnx")
    onnx.checker.check_model(out, full_check=True)
    return out


@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
@pytest.mark.parametrize("targets", [1, 3])
def test_trees_are_one_node_in_files(targets, aggregate, run_ort, tmp_path):
    """By its parts an ensemble of boosted trees is hundreds of nodes, and thirty times as slow."""
    attributes = trees(5, 3, 3, range(targets), "target") | {"base_values": numbers(targets), "n_targets": targets}
    attributes |= {"aggregate_function": aggregate, "post_transform": "SOFTMAX"}
    model = model_of("TreeEnsembleRegressor", [WITH_NANS], version=3, **attributes)
    out = written(model, tmp_path)
    kinds = [n.op_type for n in out.graph.node]
    if targets > 1 and aggregate == "AVERAGE":  # a copy of a tree for each target would count as a tree
        assert "TreeEnsemble" not in kinds
    else:
        assert kinds == ["TreeEnsemble", "Add", "Softmax"][: 2 if targets == 1 else 3]
        assert {v.domain: v.version for v in out.opset_import} == {"": 21, ML: 5}
        assert len(out.graph.initializer) == 1, "the tables are attributes only"
    (want,), (got,) = run_ort(model, [WITH_NANS]), run_ort(out, [WITH_NANS])
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-6)  # sums of four, in f32
    check(run_ort, out, [WITH_NANS])


def test_members_and_trees_of_one_leaf_in_files(run_ort, tmp_path):
    """x0 in {2, 3} ? 1 : 2 for target 0, where a NaN is no member; 4 for target 1 everywhere."""
    attributes = {
        "n_targets": 2,
        "tree_roots": [1, 0],
        "nodes_featureids": [0, 0],
        "nodes_modes": helper.make_tensor("m", TensorProto.UINT8, [2], [6, 0]),
        "nodes_splits": helper.make_tensor("s", TensorProto.FLOAT, [2], [2.0, 0.0]),
        "nodes_truenodeids": [0, 2],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 2],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 0, 1],
        "leaf_weights": helper.make_tensor("w", TensorProto.FLOAT, [3], [1.0, 2.0, 4.0]),
        "membership_values": helper.make_tensor("v", TensorProto.FLOAT, [3], [2.0, 3.0, float("nan")]),
    }
    x = np.array([[2.0], [3.0], [2.5], [np.nan]], np.float32)
    model = model_of("TreeEnsemble", [x], version=5, **attributes)
    out = written(model, tmp_path)
    assert [n.op_type for n in out.graph.node] == ["TreeEnsemble"]
    for proto in (model, out):
        assert run_ort(proto, [x])[0].tolist() == [[1, 4], [1, 4], [2, 4], [2, 4]]


def test_the_greater_of_two_sums_names_the_class():
    """ONNX: "the top class"; ONNX Runtime answers 1 where the second sum is positive, whatever the labels."""
    attributes = trees(4, 2, 2, range(2), "class", True) | {"classlabels_int64s": [10, 11]}
    labels, scores = evaluate(import_onnx(model_of("TreeEnsembleClassifier", [X], 2, 1, **attributes)), [X])
    assert labels.tolist() == (10 + scores.argmax(1)).tolist()
    assert len(set(labels.tolist())) == 2


def test_maps_are_refused_with_the_way_out():
    with pytest.raises(irc.IrcError, match=r"ZipMap.*node.*irc has no maps; convert with the option zipmap=False"):
        import_onnx(model_of("ZipMap", [X[:, :2]], classlabels_int64s=[0, 1]))


@pytest.mark.parametrize(
    ("op", "attributes", "message"),
    [
        ("LinearClassifier", {"coefficients": [1.0] * 4, "intercepts": [0.0]}, "1 scores need 2 labels, got 0"),
        ("LinearRegressor", {"coefficients": [1.0] * 3, "targets": 2}, "3 entries, which do not make 2 rows"),
        ("SVMRegressor", {"coefficients": [1.0] * 4, "rho": [0.0], "kernel_type": "COSINE"}, "got 'COSINE'"),
    ],
)
def test_faults_are_named(op, attributes, message):
    with pytest.raises(irc.IrcError, match=message):
        import_onnx(model_of(op, [X], 2 if op == "LinearClassifier" else 1, 1, **attributes))


def test_trees_that_loop_or_lead_nowhere_are_refused():
    for children, message in (([1, 0, 0], "form a cycle"), ([9, 0, 0], "leads to node 9 of tree 0, which is not")):
        attributes = trees(0, 1, 1, range(1), "target")
        if message.endswith("cycle"):
            attributes["nodes_truenodeids"] = [0, 0, 0]
            attributes["nodes_falsenodeids"] = [0, 0, 0]
        else:
            attributes["nodes_truenodeids"] = children
        with pytest.raises(irc.IrcError, match=message):
            import_onnx(model_of("TreeEnsembleRegressor", [X], version=1, **attributes))
