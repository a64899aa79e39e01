"""Operators of ai.onnx.ml."""

import numpy as np

from irc.testing.operators import check_composite, run


def test_label_encoder_first_key_wins_and_nan_is_a_key():
    x = np.array([[1.0, np.nan], [7.0, 2.0]], np.float32)
    keys, values = np.array([2, 1, np.nan, 1], np.float32), np.array([20, 10, 99, 11], np.int64)
    got = check_composite("LabelEncoder", x, keys, values, np.array(-1, np.int64))
    assert got.tolist() == [[10, 99], [-1, 20]]


def test_label_encoder_of_strings():
    x, keys = np.array(["b", "z"], object), np.array(["a", "b"], object)
    assert run("LabelEncoder", x, keys, np.array([1, 2]), np.array(0)).tolist() == [2, 0]


def test_binarizer_is_strict():
    assert run("Binarizer", np.array([0.5, 1.0, 1.5], np.float32), threshold=1.0).tolist() == [0, 0, 1]


def tree(**more):
    """Two trees over two features: x0 <= 1 ? (x1 > 5 ? leaf0 : leaf1) : leaf2, and x0 in {2, 3} ? leaf3 : leaf4."""
    roots = np.array([0, 2])
    features, modes = np.array([0, 1, 0, *[0] * 5]), np.array([0, 3, 6, *[0] * 5])
    splits = np.array([1, 5, 0, *[0] * 5], np.float32)
    yes, no = np.array([1, 3, 6, 3, 4, 5, 6, 7]), np.array([5, 4, 7, 3, 4, 5, 6, 7])
    targets, weights = np.array([0, 0, 0, 0, 1, 0, 1, 1]), np.array([0, 0, 0, 1, 2, 4, 8, 16], np.float32)
    sets = np.full((8, 2), np.nan, np.float32)
    sets[2] = 2, 3
    x = np.array([[0, 6], [0, 5], [2, 0], [np.nan, 0]], np.float32)
    return run(
        "TreeEnsemble", x, roots, features, modes, splits, yes, no, targets, weights, sets, targets=2, depth=2, **more
    )


def test_tree_ensemble():
    assert tree().tolist() == [[1, 16], [0, 18], [4, 8], [4, 16]]
    assert tree(aggregate="max").tolist() == [[1, 16], [0, 16], [4, 8], [4, 16]]
    assert tree(aggregate="average").tolist() == [[0.5, 8], [0, 9], [2, 4], [2, 8]]
    np.testing.assert_allclose(tree(transform="logistic")[0], 1 / (1 + np.exp([-1.0, -16.0])), rtol=1e-6)


def test_trees_that_are_given_at_run_time_need_no_sets():
    """Which modes occur is not known then, and only those that need no sets of members can."""
    x, roots, places = np.array([[0.0], [2.0]], np.float32), np.array([0]), np.array([0, 1, 2])
    modes, splits = np.array([0, 0, 0]), np.array([1, 0, 0], np.float32)
    yes, no, weights = np.array([1, 1, 2]), np.array([2, 1, 2]), np.array([0, 5, 7], np.float32)
    got = check_composite("TreeEnsemble", x, roots, places * 0, modes, splits, yes, no, places * 0, weights)
    assert got.tolist() == [[5], [7]]
