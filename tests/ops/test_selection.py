"""Operators whose result's size is counted before: NonZero, Unique; and ReverseSequence, TensorScatter."""

import numpy as np
import pytest

from irc.ir.errors import InferenceError
from irc.testing.operators import check_composite, run


@pytest.mark.parametrize("shape", [(7,), (3, 4), (2, 3, 2), (0, 3)])
def test_non_zero(shape):
    x = np.random.default_rng(1).integers(0, 2, shape).astype(np.float32)
    want = np.array(np.nonzero(x))
    got = run("NonZero", x, count=want.shape[1])
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("in_order", [True, False])
def test_unique(axis, in_order):
    generator = np.random.default_rng(2)
    x = generator.integers(0, 3, (6, 4)).astype(np.float32)
    if axis is None:
        x[0, :2] = np.nan
    else:
        x = np.concatenate([x, x], 0 if axis == 0 else 1)
    y, indices, inverse, counts = np.unique(x, True, True, True, axis=axis)
    order = np.arange(len(indices)) if in_order else np.argsort(indices)
    back = np.argsort(order)
    assert int(run("UniqueCount", x, axis=axis)) == len(indices)
    got = run("Unique", x, count=len(indices), axis=axis, sorted=in_order)
    want = (np.take(y, order, axis or 0), indices[order], back[inverse.reshape(-1)], counts[order])
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)


def test_reverse_sequence():
    x = np.arange(12).reshape(4, 3)
    got = check_composite("ReverseSequence", x, np.array([4, 0, 2]), time_axis=0, batch_axis=1)
    assert got.T.tolist() == [[9, 6, 3, 0], [1, 4, 7, 10], [5, 2, 8, 11]]
    with pytest.raises(InferenceError, match="number of lengths"):
        run("ReverseSequence", x, np.array([1, 2]), time_axis=0, batch_axis=1)


def test_tensor_scatter_wraps_only_if_circular():
    cache, update = np.zeros((2, 4, 1), np.float32), np.arange(1, 5, dtype=np.float32).reshape(2, 2, 1)
    starts = np.array([1, 3])
    linear = check_composite("TensorScatter", cache, update, starts)
    assert linear[..., 0].tolist() == [[0, 1, 2, 0], [0, 0, 0, 3]]
    circular = check_composite("TensorScatter", cache, update, starts, circular=True)
    assert circular[..., 0].tolist() == [[0, 1, 2, 0], [4, 0, 0, 3]]
