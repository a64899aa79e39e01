"""com.microsoft residual, embedding and group normalizations against ONNX Runtime, or a formula without a kernel."""

import numpy as np
import pytest
from onnx import TensorProto

import irc

F, F16, I32 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32
RNG = np.random.default_rng(5)
MS = {"domain": "com.microsoft"}
B, S, H = 2, 5, 16


def normal(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("skip", [(B, S, H), (1, S, H), (S, H)], ids=str)
def test_skip_layer_normalization(skip, bias, one_node, agrees):
    operands = [(F, [B, "S", H]), (F, [*skip[:-2], "S", H]), normal(H), normal(H), *([normal(H)] if bias else [])]
    model = one_node("SkipLayerNormalization", operands, 21, outputs=["y", "", "", "sum"], **MS, epsilon=1e-5)
    agrees(model, [normal(B, S, H), normal(*skip)], rtol=3e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_skip_simplified_layer_normalization(bias, one_node, agrees):
    operands = [(F, [B, "S", H]), (F, [B, "S", H]), normal(H), *([normal(H)] if bias else [])]
    model = one_node("SkipSimplifiedLayerNormalization", operands, 21, outputs=["y", "", "", "sum"], **MS, epsilon=1e-5)
    agrees(model, [normal(B, S, H), normal(B, S, H)], rtol=3e-6)


@pytest.mark.parametrize("op, vectors", [("SkipLayerNormalization", 2), ("SkipSimplifiedLayerNormalization", 1)])
def test_statistics_and_sums_as_results(op, vectors, one_node, agrees):
    """ONNX Runtime's mean of the simplified form is 0."""
    operands = [(F, [B, S, H]), (F, [B, S, H]), *(normal(H) for _ in range(vectors))]
    model = one_node(op, operands, 21, outputs=["y", "mean", "inverse", "sum"], **MS, epsilon=1e-5)
    agrees(model, [normal(B, S, H), normal(B, S, H)], rtol=3e-6)


@pytest.mark.parametrize("x, scale", [(F, np.float32), (F16, np.float16), (F16, np.float32), (F, np.float16)])
def test_simplified_layer_normalization_has_the_type_of_its_scale(x, scale, one_node, agrees):
    """f16 results: one unit of them."""
    kinds = {F: np.float32, F16: np.float16}
    out = next(t for t, kind in kinds.items() if kind is scale)
    model = one_node("SimplifiedLayerNormalization", [(x, [B, "S", H]), normal(H, dtype=scale)], 21, outputs=2,
                     out_type=[out, F], axis=-1)  # fmt: skip
    agrees(model, [normal(B, S, H, dtype=kinds[x])], rtol=1e-3 if scale is np.float16 else 3e-6)


def test_they_count_as_normalizations(one_node):
    from irc.passes import run_passes
    from irc.passes.fusions import composites_in

    operands = [(F, [B, S, H]), (F, [B, S, H]), normal(H)]
    for op, name in (("SkipLayerNormalization", "layer_norm"), ("SkipSimplifiedLayerNormalization", "rms_norm")):
        model = run_passes(irc.import_onnx(one_node(op, operands, 21, **MS)))
        assert composites_in(model) == {name: 1, f"skip_{name}": 1}


def test_half_precision(one_node, agrees):
    """One unit of f16 in the result: both round the sum and the result, at different places."""
    operands = [(F16, [B, S, H]), (F16, [B, S, H]), normal(H, dtype=np.float16), normal(H, dtype=np.float16)]
    model = one_node("SkipLayerNormalization", operands, 21, out_type=F16, **MS, epsilon=1e-5)
    agrees(model, [normal(B, S, H, dtype=np.float16), normal(B, S, H, dtype=np.float16)], rtol=1e-3)


def test_simplified_layer_normalization_stands_in_the_default_domain(one_node, agrees):
    model = one_node("SimplifiedLayerNormalization", [(F, [B, "S", H]), normal(H)], 21, axis=-1, epsilon=1e-6)
    agrees(model, [normal(B, S, H)], rtol=3e-6)


@pytest.mark.parametrize("segments", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_embed_layer_normalization(masked, segments, one_node, agrees):
    ids = [(I32, [B, "S"])]
    tables = [normal(30, H), normal(8, H), normal(2, H) if segments else None, normal(H), normal(H)]
    operands = [*ids, *(ids if segments else [None]), *tables, *(ids if masked else [])]
    model = one_node("EmbedLayerNormalization", operands, 21, outputs=["y", "mask_index", "sum"],
                     out_type=[F, I32, F], **MS, epsilon=1e-5)  # fmt: skip
    inputs = [RNG.integers(0, 30, (B, S), np.int32)]
    inputs += [RNG.integers(0, 2, (B, S), np.int32)] * segments
    inputs += [np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], np.int32)] * masked
    agrees(model, inputs, rtol=3e-6)


def grouped(x, gamma, beta, groups, silu):
    """[N, H, W, C]"""
    n, h, w, c = x.shape
    parts = x.astype(np.float64).reshape(n, h * w, groups, c // groups)
    mean, variance = parts.mean((1, 3), keepdims=True), parts.var((1, 3), keepdims=True)
    y = ((parts - mean) / np.sqrt(variance + 1e-5)).reshape(n, h, w, c) * gamma + beta
    return (y / (1 + np.exp(-y)) if silu else y).astype(np.float32)


@pytest.mark.parametrize("silu", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_group_norm(last, silu, one_node, agrees):
    x, gamma, beta = normal(2, 3, 4, 8), normal(8), normal(8)
    given, want = x, grouped(x, gamma, beta, 4, silu)
    if not last:
        given, want = np.moveaxis(x, 3, 1), np.moveaxis(want, 3, 1)
    model = one_node("GroupNorm", [(F, list(given.shape)), gamma, beta], 21, **MS, groups=4, activation=silu,
                     channels_last=last)  # fmt: skip
    agrees(model, [given.copy()], [want], rtol=1e-6)


@pytest.mark.parametrize("skip", [(2, 3, 4, 8), (2, 1, 1, 8), (2, 8)], ids=str)
def test_skip_group_norm(skip, one_node, agrees):
    x, other, gamma, beta, bias = normal(2, 3, 4, 8), normal(*skip), normal(8), normal(8), normal(8)
    total = x + (other if other.ndim == 4 else other[:, None, None]) + bias
    model = one_node("SkipGroupNorm", [(F, list(x.shape)), gamma, beta, (F, list(skip)), bias], 21,
                     outputs=["y", "s"], **MS, groups=2, activation=1)  # fmt: skip
    agrees(model, [x, other], [grouped(total, gamma, beta, 2, 1), total], rtol=1e-6)


@pytest.mark.parametrize("axis, bias", [(3, (2, 1, 1, 5)), (3, (1, 1, 4, 5)), (2, (2, 1, 4, 5)), (-1, (5,))], ids=str)
def test_bias_softmax(axis, bias, one_node, agrees):
    x, added = normal(2, 3, 4, 5), normal(*bias)
    total = (x + added).astype(np.float64)
    axes = tuple(range(axis % 4, 4))
    powers = np.exp(total - total.max(axes, keepdims=True))
    want = (powers / powers.sum(axes, keepdims=True)).astype(np.float32)
    model = one_node("BiasSoftmax", [(F, [2, 3, 4, 5]), (F, list(bias))], 21, **MS, axis=axis, is_inner_broadcast=1)
    agrees(model, [x, added], [want], rtol=1e-6)


def test_a_wrong_group_count_names_the_node(one_node):
    model = one_node("GroupNorm", [(F, [2, 3, 4, 8]), normal(8), normal(8)], 21, **MS, groups=3, activation=0)
    with pytest.raises(irc.IrcError, match="GroupNorm"):
        irc.import_onnx(model)
