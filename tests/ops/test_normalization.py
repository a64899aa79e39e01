"""Normalizations against NumPy, SciPy and ONNX Runtime; decompositions, edges, types."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.types import tensor
from irc.testing.operators import check_composite, facts_of, run_onnx_node

B, C = symbol("B"), symbol("C")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(2, 6, 5, 4)).astype(np.float32)
V = [RNG.normal(size=6).astype(np.float32) for _ in range(3)] + [np.abs(RNG.normal(size=6)).astype(np.float32)]
FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
NCHW = "N C H W"


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_softmax_family(axis, dtype):
    x = X.astype(dtype)
    close = {"rtol": 2 * float(ml_dtypes.finfo(dtype).eps), "atol": 2 * float(ml_dtypes.finfo(dtype).eps)}
    soft = check_composite("Softmax", x, axis=axis, shapes=[NCHW]).astype(float)
    np.testing.assert_allclose(soft, scipy.special.softmax(x.astype(float), axis), **close)
    log = check_composite("LogSoftmax", x, axis=axis, shapes=[NCHW]).astype(float)
    np.testing.assert_allclose(log, scipy.special.log_softmax(x.astype(float), axis), **close)
    hard = check_composite("Hardmax", x, axis=axis, shapes=[NCHW]).astype(float)
    np.testing.assert_array_equal(np.argmax(hard, axis), np.argmax(x.astype(float), axis))
    np.testing.assert_array_equal(hard.sum(axis), 1)


def test_softmax_edges():
    x = np.array([[-np.inf, -np.inf], [np.inf, 0], [np.nan, 0], [-np.inf, 3]], np.float32)
    got = check_composite("Softmax", x, axis=1, shapes=["A B"])
    np.testing.assert_array_equal(got, np.array([[np.nan] * 2] * 3 + [[0, 1]], np.float32))
    for name in ("Softmax", "LogSoftmax", "Hardmax"):
        assert check_composite(name, x[:, :0], axis=1).shape == (4, 0)
        assert check_composite(name, x[:0], axis=1, shapes=["A B"]).shape == (0, 2)
    assert check_composite("Hardmax", np.array([1, 3, 3], np.float32), axis=0).tolist() == [0, 1, 0]


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_batch_normalization(dtype):
    scale, bias, mean, variance = (v.astype(dtype) for v in V)
    got = check_composite(
        "BatchNormalization", X.astype(dtype), scale, bias, mean, variance, shapes=["N 6 H W", *[None] * 4]
    )
    if dtype is np.float32:
        want = run_onnx_node("BatchNormalization", [X, *V], opset=15)
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_batch_normalization_with_wider_parameters():
    got = check_composite("BatchNormalization", X.astype(np.float16), *V, shapes=["N 6 H W", *[None] * 4])
    assert got.dtype == np.float16


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_instance_and_group_normalization(dtype):
    x, scale, bias = X.astype(dtype), V[0].astype(dtype), V[1].astype(dtype)
    instance = check_composite("InstanceNormalization", x, scale, bias, shapes=["N 6 H W", None, None])
    each = check_composite("GroupNormalization", x, scale, bias, num_groups=6, shapes=["N 6 H W", None, None])
    np.testing.assert_array_equal(instance, each)
    group = check_composite("GroupNormalization", x, scale, bias, num_groups=3, shapes=["N 6 H W", None, None])
    if dtype is np.float32:
        np.testing.assert_allclose(
            instance, run_onnx_node("InstanceNormalization", [X, V[0], V[1]]), rtol=1e-4, atol=1e-5
        )
        want = run_onnx_node("GroupNormalization", [X, V[0], V[1]], num_groups=3)
        np.testing.assert_allclose(group, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("axis", [-1, 1, 2])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_layer_and_rms_normalization(axis, dtype):
    scale = RNG.normal(size=X.shape[axis:]).astype(dtype)
    bias = RNG.normal(size=X.shape[axis:]).astype(dtype)
    fixed = ["N 6 5 4", None]
    y, mean, inverse = check_composite(
        "LayerNormalization", X.astype(dtype), scale, bias, axis=axis, shapes=[*fixed, None]
    )
    assert mean.dtype == (np.float64 if dtype is np.float64 else np.float32)
    rms = check_composite("RMSNormalization", X.astype(dtype), scale, axis=axis, shapes=fixed)
    if dtype is np.float32:
        for got, want in zip(
            (y, mean, inverse), run_onnx_node("LayerNormalization", [X, scale, bias], axis=axis, outputs=3), strict=True
        ):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
        axes = tuple(range(axis % 4, 4))
        np.testing.assert_allclose(
            rms, X / np.sqrt((X.astype(float) ** 2).mean(axes, keepdims=True) + 1e-5) * scale, rtol=1e-5
        )


def test_layer_normalization_without_parameters():
    y, mean, _ = check_composite("LayerNormalization", X, None, None, shapes=[NCHW])
    np.testing.assert_allclose(y.mean(-1), 0, atol=1e-6)
    np.testing.assert_allclose(mean, X.mean(-1, keepdims=True), rtol=1e-4, atol=1e-6)


def test_statistics_of_large_halves_do_not_overflow():
    x = np.full((1, 4096), 300, np.float16)
    x[:, ::2] = -300
    scale = np.ones(4096, np.float16)
    assert np.isfinite(check_composite("LayerNormalization", x, scale, None)[0]).all()
    np.testing.assert_allclose(np.abs(check_composite("RMSNormalization", x, scale)), 1)


@pytest.mark.parametrize("p", [1, 2])
def test_lp_normalization(p):
    x = X.copy()
    x[0, :, 0, 0] = 0
    got = check_composite("LpNormalization", x, axis=1, p=p, shapes=[NCHW])
    norm = np.linalg.norm(x.astype(float), ord=p, axis=1, keepdims=True)
    np.testing.assert_allclose(got, np.divide(x, norm, out=np.zeros_like(x, float), where=norm != 0), rtol=1e-5)
    assert not got[0, :, 0, 0].any()


@pytest.mark.parametrize("size", [1, 3, 4, 5])
def test_lrn(size):
    got = check_composite("LRN", X, size=size, alpha=0.1, beta=0.6, bias=1.5, shapes=[NCHW])
    if size % 2:  # ONNX Runtime has odd sizes only
        want = run_onnx_node("LRN", [X], size=size, alpha=0.1, beta=0.6, bias=1.5)
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_lrn_window_of_even_size_reaches_further_up():
    x = np.zeros((1, 4, 1), np.float32)
    x[0, 2] = 1
    got = check_composite("LRN", x + 1e-30, size=2, alpha=2.0, beta=1.0, bias=1.0)
    assert got[0, 2, 0] == pytest.approx(0.5)
    assert got[0, 1, 0] == pytest.approx(0.5e-30)
    assert got[0, 3, 0] == pytest.approx(1e-30)


@pytest.mark.parametrize("axes", [(0, 2, 3), (1,), (-1,)], ids=str)
def test_mean_variance_normalization(axes):
    got = check_composite("MeanVarianceNormalization", X, axes=axes, shapes=[NCHW])
    want = run_onnx_node("MeanVarianceNormalization", [X], axes=axes)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def test_types_and_errors():
    x = tensor(dtypes.f16, B, C, 8)
    y, mean, inverse = facts_of("LayerNormalization", x, tensor(dtypes.f16, 8), None, axis=1)
    assert [str(f.type) for f in (y, mean, inverse)] == ["f16[B,C,8]", "f32[B,1,1]", "f32[B,1,1]"]
    with pytest.raises(InferenceError, match="channels of x and of a parameter must be equal, got 4 and 3"):
        facts_of("InstanceNormalization", tensor(dtypes.f32, 1, 3, 2), tensor(dtypes.f32, 4), tensor(dtypes.f32, 4))
    with pytest.raises(InferenceError, match="channels modulo 4"):
        facts_of("GroupNormalization", tensor(dtypes.f32, 1, 6, 2), *[tensor(dtypes.f32, 6)] * 2, num_groups=4)
    with pytest.raises(InferenceError, match="dims of scale"):
        facts_of("RMSNormalization", tensor(dtypes.f32, 2, 6), tensor(dtypes.f32, 5))
    with pytest.raises(InferenceError, match="axis 2 is out of range"):
        facts_of("Softmax", tensor(dtypes.f32, 2, 6), axis=2)
