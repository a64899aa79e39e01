"""Attention and rotary embedding: against ONNX Runtime and plain formulas, masks, grouped heads, sinks, empty rows."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.types import tensor
from irc.testing.operators import check_composite, facts_of, run

B, S, T = map(symbol, "BST")
RNG = np.random.default_rng(0)


def operands(h=4, g=2, s=5, t=7, d=8, e=6, dtype=np.float32):
    return [RNG.normal(size=dims).astype(dtype) for dims in ((2, h, s, d), (2, g, t, d), (2, g, t, e))]


SHAPES = ["B 4 S 8", "B 2 T 8", "B 2 T 6"]


def plain(q, k, v, visible=None, scale=0.3):
    """Attention as a loop over heads."""
    out = np.zeros((*q.shape[:3], v.shape[3]))
    for b, h in np.ndindex(q.shape[:2]):
        g = h // (q.shape[1] // k.shape[1])
        scores = scale * q[b, h].astype(float) @ k[b, g].astype(float).T
        if visible is not None:
            scores = np.where(visible, scores, -np.inf)
        out[b, h] = scipy.special.softmax(scores, -1) @ v[b, g]
    return out


@pytest.mark.parametrize("heads", [(4, 2), (4, 4), (4, 1)], ids=str)
@pytest.mark.parametrize(
    "dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda d: np.dtype(d).name
)
def test_plain(heads, dtype):
    q, k, v = operands(*heads, dtype=dtype)
    shapes = ["B 4 S 8", f"B {heads[1]} T 8", f"B {heads[1]} T 6"]
    got = check_composite("Attention", q, k, v, scale=0.3, shapes=shapes)
    eps = float(ml_dtypes.finfo(dtype).eps)
    np.testing.assert_allclose(got.astype(float), plain(q, k, v), rtol=4 * eps, atol=4 * eps)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("window", [-1, 1, 3])
@pytest.mark.parametrize("offset", [0, 2])
def test_visibility(causal, window, offset):
    q, k, v = operands()
    i, j = np.arange(5)[:, None] + offset, np.arange(7)
    visible = (j <= i if causal else j >= 0) & (j > i - window if window >= 0 else j >= 0)
    got = check_composite(
        "Attention", q, k, v, scale=0.3, causal=causal, window=window, kv_offset=offset, shapes=SHAPES
    )
    np.testing.assert_allclose(got, plain(q, k, v, visible), rtol=1e-5, atol=1e-6)


def test_symbolic_offset():
    q, k, v = operands()
    types = [tensor(dtypes.f32, B, 4, S, 8), tensor(dtypes.f32, B, 2, T, 8), tensor(dtypes.f32, B, 2, T, 6)]
    want = run("Attention", q, k, v, scale=0.3, causal=True, kv_offset=2)
    for decompose in (False, True):
        got = run("Attention", q, k, v, scale=0.3, causal=True, kv_offset=T - S, types=types, decompose=decompose)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "dims, shape",
    [((5, 7), "S T"), ((2, 1, 5, 7), "B 1 S T"), ((4, 1, 7), "4 1 T"), ((1, 1, 1, 7), "1 1 1 T")],
    ids=str,
)
def test_masks(dims, shape):
    q, k, v = operands()
    visible = RNG.random(dims) < 0.7
    visible[..., 0] = True
    got = check_composite("Attention", q, k, v, visible, scale=0.3, shapes=[*SHAPES, shape])
    added = np.where(visible, 0, -np.inf).astype(np.float32)
    also = check_composite("Attention", q, k, v, added, scale=0.3, shapes=[*SHAPES, shape])
    np.testing.assert_array_equal(got, also)
    full = np.broadcast_to(visible, (2, 4, 5, 7))
    want = np.zeros((2, 4, 5, 6))
    for b, h in np.ndindex(2, 4):
        one = np.s_[b : b + 1, h // 2 : h // 2 + 1]
        want[b, h] = plain(q[b : b + 1, h : h + 1], k[one], v[one], full[b, h])[0, 0]
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_softcap_comes_before_the_mask():
    q, k, v = operands()
    mask = np.full((5, 7), -50, np.float32)
    mask[:, 0] = 0
    got = check_composite("Attention", q, k, v, mask, scale=3.0, softcap=2.0, shapes=[*SHAPES, None])
    np.testing.assert_allclose(got, np.repeat(np.repeat(v[:, :, :1], 2, 1), 5, 2), rtol=1e-5)


@pytest.mark.parametrize("zero", [False, True])
def test_rows_that_see_nothing(zero):
    q, k, v = operands()
    visible = np.ones((5, 7), bool)
    visible[2] = False
    got = check_composite("Attention", q, k, v, visible, scale=0.3, zero_masked_rows=zero, shapes=[*SHAPES, None])
    assert (got[:, :, 2] == 0).all() if zero else np.isnan(got[:, :, 2]).all()
    np.testing.assert_allclose(np.delete(got, 2, 2), np.delete(plain(q, k, v), 2, 2), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("zero", [False, True])
def test_sinks_take_probability(zero):
    q, k, v = operands()
    sinks = RNG.normal(size=4).astype(np.float32)
    got = check_composite("Attention", q, k, v, None, sinks, scale=0.3, zero_masked_rows=zero, shapes=[*SHAPES, None])
    longer = np.zeros((2, 4, 5, 8))
    longer[..., :7] = 0.3 * np.einsum("bhsd,bhtd->bhst", q.astype(float), np.repeat(k, 2, 1))
    longer[..., 7] = sinks[:, None]
    want = scipy.special.softmax(longer, -1)[..., :7] @ np.repeat(v, 2, 1)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    hidden = np.zeros((5, 7), bool)
    assert not check_composite("Attention", q, k, v, hidden, sinks, scale=0.3, zero_masked_rows=zero).any()


def test_empty():
    q, k, v = operands()
    assert check_composite("Attention", q[:, :, :0], k, v, scale=1.0, shapes=SHAPES).shape == (2, 4, 0, 6)
    assert check_composite("Attention", q[:0], k[:0], v[:0], scale=1.0, shapes=SHAPES).shape == (0, 4, 5, 6)
    assert not check_composite("Attention", q, k[:, :, :0], v[:, :, :0], scale=1.0, zero_masked_rows=True).any()


@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("rotated", [4, 2])
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rotary(interleaved, rotated, batch, dtype):
    x = RNG.normal(size=(2, 3, 5, 8)).astype(dtype)
    angle = RNG.normal(size=(batch, 5, rotated))
    cos, sin = np.cos(angle).astype(dtype), np.sin(angle).astype(dtype)
    shape = f"{1 if batch == 1 else 'B'} S {rotated}"
    got = check_composite("RotaryEmbedding", x, cos, sin, interleaved=interleaved, shapes=["B 3 S 8", shape, shape])
    wide = x.astype(float)
    pairs = [(2 * i, 2 * i + 1) if interleaved else (i, i + rotated) for i in range(rotated)]
    want = wide.copy()
    for r, (i, j) in enumerate(pairs):
        turn = (cos.astype(float) + 1j * sin.astype(float))[:, None, :, r]
        z = (wide[..., i] + 1j * wide[..., j]) * turn
        want[..., i], want[..., j] = z.real, z.imag
    np.testing.assert_array_equal(got, want.astype(dtype))


def test_types_and_errors():
    q, k, v = tensor(dtypes.f16, B, 8, S, 64), tensor(dtypes.f16, B, 2, T, 64), tensor(dtypes.f16, B, 2, T, 32)
    assert str(facts_of("Attention", q, k, v, scale=1.0).type) == "f16[B,8,S,32]"
    with pytest.raises(InferenceError, match="query heads 8 modulo key heads 3"):
        facts_of("Attention", q, tensor(dtypes.f16, B, 3, T, 64), tensor(dtypes.f16, B, 3, T, 32), scale=1.0)
    with pytest.raises(InferenceError, match="dims of mask"):
        facts_of("Attention", q, k, v, tensor(dtypes.bool_, 1, 3, S, T), scale=1.0)
    with pytest.raises(InferenceError, match="mask must be bool or floating-point"):
        facts_of("Attention", q, k, v, tensor(dtypes.i32, S, T), scale=1.0)
    with pytest.raises(InferenceError, match="rotated features: 80 is more than 64"):
        facts_of("RotaryEmbedding", q, *[tensor(dtypes.f16, 1, S, 40)] * 2)
