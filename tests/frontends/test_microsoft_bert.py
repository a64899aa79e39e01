"""com.microsoft QAttention and QEmbedLayerNormalization against ONNX Runtime."""

import numpy as np
import pytest
from onnx import TensorProto

F, I32, U8 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.UINT8
RNG = np.random.default_rng(3)
MS = {"domain": "com.microsoft"}
B, S, H, N, P = 2, 5, 16, 4, 3


def whole(dtype, *shape):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max, shape, dtype, endpoint=True)


def scale(value):
    return np.array(value, np.float32)


MASKS = {
    "none": None,
    "lengths": np.array([5, 3], np.int32),
    "ends and starts": np.array([5, 4, 0, 2], np.int32),
    "keys": np.array([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], np.int32),
    "pairs": (RNG.random((B, S, S)) < 0.7).astype(np.int32),
}


def operands(weights, columns, mask, past=False):
    """Signed weights of 7 bits: with 8, ONNX Runtime's sums of pairs saturate on x86 machines without VNNI."""
    count = 3 * H
    w = RNG.integers(-64, 64, (H, count)).astype(np.int8) if weights is np.int8 else whole(weights, H, count)
    s = RNG.uniform(0.002, 0.004, count).astype(np.float32) if columns else scale(0.003)
    z = np.zeros(count, weights) if columns else np.array(2 if weights is np.int8 else 130, weights)
    cache = [(F, [2, B, N, "P", H // N])] if past else []
    return [(U8, [B, "S", H]), w, RNG.standard_normal(count).astype(np.float32), scale(0.02), s,
            mask, np.array(128, np.uint8), z, *cache]  # fmt: skip


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("weights", [np.uint8, np.int8])
def test_qattention(mask, weights, one_node, agrees):
    model = one_node("QAttention", operands(weights, False, MASKS[mask]), 21, **MS, num_heads=N)
    agrees(model, [whole(np.uint8, B, S, H)], rtol=3e-6)


@pytest.mark.parametrize("past", [False, True])
def test_qattention_of_decoders(past, one_node, agrees):
    """Scales a column; every token sees those before it; the cache comes back longer."""
    given = operands(np.int8, True, None, past)
    model = one_node("QAttention", given, 21, **MS, outputs=2, num_heads=N, unidirectional=1)
    inputs = [whole(np.uint8, B, S, H), RNG.standard_normal((2, B, N, P, H // N)).astype(np.float32)][: 1 + past]
    agrees(model, inputs, rtol=3e-6)


@pytest.mark.parametrize("segments", [True, False])
@pytest.mark.parametrize("mask", [True, False])
def test_q_embed_layer_normalization(segments, mask, one_node, agrees):
    z = np.array(120, np.uint8)
    some = [(I32, ["B", S]), whole(np.uint8, 2, H), scale(0.02), z] if segments else [None] * 4
    given = [(I32, ["B", S]), some[0], whole(np.uint8, 30, H), whole(np.uint8, 9, H), some[1], whole(np.uint8, H),
             whole(np.uint8, H), (I32, ["B", S]) if mask else None, scale(0.02), scale(0.03), some[2], scale(0.01),
             scale(0.01), z, z, some[3], z, z]  # fmt: skip
    model = one_node("QEmbedLayerNormalization", given, 21, **MS, outputs=2, epsilon=1e-5)
    model.graph.output[1].type.tensor_type.elem_type = I32
    inputs = [RNG.integers(0, 30, (B, S)).astype(np.int32)]
    inputs += [RNG.integers(0, 2, (B, S)).astype(np.int32)] if segments else []
    inputs += [np.array([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]], np.int32)] if mask else []
    agrees(model, inputs, rtol=3e-6)
