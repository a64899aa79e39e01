"""com.microsoft attention against ONNX Runtime, or a formula where it has no kernel."""

import numpy as np
import pytest
from onnx import TensorProto

import irc

F, I32 = TensorProto.FLOAT, TensorProto.INT32
RNG = np.random.default_rng(7)
MS = {"domain": "com.microsoft"}
B, S, P, N, D = 2, 4, 3, 4, 16
H = N * D
# Products of 16 terms, a softmax of some 7 and a sum of 7: both sides round in f32, in other orders.
RTOL = 3e-6


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


MASKS = {
    "none": None,
    "lengths": np.array([4, 2], np.int32),
    "lengths and offsets": np.array([4, 2, 0, 4, 6, 0, 4, 6], np.int32),
    "ends and starts": np.array([4, 4, 0, 0], np.int32),
    "keys": np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.int32),
    "pairs": (RNG.random((B, S, S)) < 0.7).astype(np.int32) | np.eye(S, dtype=np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_of_merged_weights(causal, mask, one_node, agrees):
    operands = [(F, [B, "S", 10]), normal(10, 3 * H) * 0.3, normal(3 * H), MASKS[mask]]
    model = one_node("Attention", operands, 21, **MS, num_heads=N, unidirectional=causal)
    agrees(model, [normal(B, S, 10)], rtol=RTOL)


PADDED_LEFT = np.array([[1, 1, 1, 1], [0, 0, 1, 1]], np.int32)


@pytest.mark.parametrize("causal", [0, 1])
def test_padding_on_the_left_hidden_by_the_lowest_number(causal, one_node, agrees):
    """As exporters of GPT-2 have it: the queries of padding see nothing but later keys, hidden by the same number."""
    operands = [(F, [B, "S", 10]), normal(10, 3 * H) * 0.3, normal(3 * H), PADDED_LEFT]
    lowest = float(np.finfo(np.float32).min)
    model = one_node("Attention", operands, 21, **MS, num_heads=N, unidirectional=causal, mask_filter_value=lowest)
    agrees(model, [normal(B, S, 10)], rtol=RTOL)


def test_attention_with_a_past(one_node, agrees):
    operands = [(F, [B, S, 10]), normal(10, 3 * H) * 0.3, normal(3 * H), None, (F, [2, B, N, "P", D])]
    model = one_node("Attention", operands, 21, outputs=2, **MS, num_heads=N, unidirectional=1)
    agrees(model, [normal(B, S, 10), normal(2, B, N, P, D)], rtol=RTOL)


def test_attention_with_a_bias_of_the_scores(one_node, agrees):
    operands = [(F, [B, S, 10]), normal(10, 3 * H) * 0.3, normal(3 * H), None, None, (F, [B, N, S, S])]
    model = one_node("Attention", operands, 21, **MS, num_heads=N, unidirectional=1)
    agrees(model, [normal(B, S, 10), normal(B, N, S, S)], rtol=RTOL)


def test_values_of_another_width(one_node, agrees):
    operands = [(F, [B, S, 10]), normal(10, 2 * H + 8 * N) * 0.3, normal(2 * H + 8 * N)]
    model = one_node("Attention", operands, 21, **MS, num_heads=N, qkv_hidden_sizes=[H, H, 8 * N], scale=0.4)
    agrees(model, [normal(B, S, 10)], rtol=RTOL)


SEPARATE = [(F, [B, "S", H]), (F, [B, "T", H]), (F, [B, "T", H])]


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("mask", ["none", "lengths", "lengths and offsets", "keys"])
def test_multi_head_attention(mask, bias, one_node, agrees):
    operands = [*SEPARATE, normal(3 * H) if bias else None, MASKS[mask]]
    model = one_node("MultiHeadAttention", operands, 21, **MS, num_heads=N)
    agrees(model, [normal(B, 5, H), normal(B, S, H), normal(B, S, H)], rtol=RTOL)


def test_multi_head_attention_packed(one_node, agrees):
    model = one_node("MultiHeadAttention", [(F, [B, S, N, 3, D])], 21, **MS, num_heads=N, unidirectional=1)
    x = normal(B, S, N, 3, D)
    q, k, v = (np.ascontiguousarray(x[:, :, :, i].reshape(B, S, H)) for i in range(3))
    plain = one_node("MultiHeadAttention", [(F, [B, S, H])] * 3, 21, **MS, num_heads=N, unidirectional=1)
    agrees(model, [x], list(irc.compile(plain, target="reference")(q, k, v)), rtol=RTOL)
    agrees(plain, [q, k, v], rtol=RTOL)


def test_multi_head_attention_with_packed_keys_and_values(one_node, agrees):
    model = one_node("MultiHeadAttention", [(F, [B, 5, H]), (F, [B, S, N, 2, D])], 21, **MS, num_heads=N)
    q, kv = normal(B, 5, H), normal(B, S, N, 2, D)
    k, v = (np.ascontiguousarray(kv[:, :, :, i].reshape(B, S, H)) for i in range(2))
    plain = one_node("MultiHeadAttention", SEPARATE, 21, **MS, num_heads=N)
    agrees(model, [q, kv], list(irc.compile(plain, target="reference")(q, k, v)), rtol=RTOL)


def test_cross_attention_of_keys_that_are_laid_out_by_heads(one_node, agrees):
    operands = [(F, [B, "S", H]), (F, [B, N, "T", D]), (F, [B, N, "T", D])]
    model = one_node("MultiHeadAttention", operands, 21, **MS, num_heads=N, scale=0.2)
    agrees(model, [normal(B, S, H), normal(B, N, 6, D), normal(B, N, 6, D)], rtol=RTOL)


@pytest.mark.parametrize("causal", [0, 1])
def test_multi_head_attention_of_decoders(causal, one_node, agrees):
    operands = [*SEPARATE, None, None, (F, [1, N, S, "U"]), (F, [B, N, "P", D]), (F, [B, N, "P", D])]
    model = one_node("MultiHeadAttention", operands, 21, outputs=3, **MS, num_heads=N, unidirectional=causal)
    inputs = [normal(B, S, H), normal(B, S, H), normal(B, S, H), normal(1, N, S, S + P), normal(B, N, P, D),
              normal(B, N, P, D)]  # fmt: skip
    agrees(model, inputs, rtol=RTOL)


def test_one_query_sees_the_keys_of_a_cache_outside(one_node, agrees):
    model = one_node("MultiHeadAttention", SEPARATE, 21, **MS, num_heads=N, unidirectional=1)
    agrees(model, [normal(B, 1, H), normal(B, 6, H), normal(B, 6, H)], rtol=RTOL)


def decoding(one_node, keys, *, outputs=3, **given):
    """A DecoderMaskedMultiHeadAttention node of one query an entry; `given` names its optional constants."""
    batch = keys[0][1][0]
    names = ("mask", "bias_of_scores", "past_key", "past_value", "row", "width", "beams", "bias")
    attributes = {"past_present_share_buffer": 1} if "row" in given else {}
    operands = [(F, [batch, 1, H]), *keys, *(given.get(n) for n in names)]
    return one_node("DecoderMaskedMultiHeadAttention", operands, 21, outputs=outputs, **MS, num_heads=N, **attributes)


TOKEN = [(F, [4, 1, H])] * 2
BEAMS = RNG.integers(0, 2, (2, 2, 8)).astype(np.int32)
STEPS_OF_DECODING = {
    "plain": {},
    "bias": {"bias": normal(3 * H)},
    "mask": {"mask": np.array([[1, 1, 1, 1, 1, 1], [0, 1, 1, 1, 1, 1], [1] * 6, [0, 0, 0, 1, 1, 1]], np.int32)},
    "bias of scores": {"bias_of_scores": normal(4, 1, 1, 6)},
    "beams": {"width": np.array([2], np.int32), "beams": BEAMS},
}


@pytest.mark.parametrize("case", STEPS_OF_DECODING)
def test_a_step_of_a_decoder_with_its_cache(case, one_node, agrees):
    cache = (F, [4, N, 8, D])
    model = decoding(one_node, TOKEN, past_key=cache, past_value=cache, row=(I32, [1]), **STEPS_OF_DECODING[case])
    inputs = [*(normal(4, 1, H) for _ in range(3)), normal(4, N, 8, D), normal(4, N, 8, D)]
    agrees(model, [*inputs, np.array([5], np.int32)], rtol=RTOL)


@pytest.mark.parametrize("given", [
    {}, {"mask": np.array([[1] * 5, [0, 1, 1, 1, 1]], np.int32)}, {"bias": normal(3 * H)},
], ids=["plain", "mask", "bias"])  # fmt: skip
def test_a_step_of_cross_attention(given, one_node, agrees):
    model = decoding(one_node, [(F, [B, N, 5, D])] * 2, outputs=1, **given)
    agrees(model, [normal(B, 1, H), normal(B, N, 5, D), normal(B, N, 5, D)], rtol=RTOL)


def test_a_decoder_with_a_cache_that_grows_is_refused(one_node):
    cache = (F, [4, N, 8, D])
    with pytest.raises(irc.UnsupportedError, match="past_present_share_buffer must be 1"):
        irc.import_onnx(decoding(one_node, TOKEN, past_key=cache, past_value=cache))


@pytest.mark.parametrize("type_", ["PackedAttention", "PagedAttention", "SparseAttention", "LongformerAttention"])
def test_what_is_refused_says_why(type_, one_node):
    model = one_node(type_, [(F, [B, S, H]), normal(H, 3 * H)], 21, **MS)
    with pytest.raises(irc.UnsupportedError, match=f"{type_}.*(padding|pages|sparse|windows)"):
        irc.import_onnx(model)


def test_a_missing_past_value_names_the_node(one_node):
    operands = [(F, [B, S, H])] * 3 + [None] * 3 + [(F, [B, N, P, D])]
    with pytest.raises(irc.IrcError, match=r"'node' \(.*MultiHeadAttention\): past_key and past_value stand together"):
        irc.import_onnx(one_node("MultiHeadAttention", operands, 21, **MS, num_heads=N))


def test_a_missing_value_names_the_node(one_node):
    model = one_node("MultiHeadAttention", [(F, [B, S, H]), (F, [B, S, H])], 21, **MS, num_heads=N)
    with pytest.raises(irc.IrcError, match=r"'node' \(.*MultiHeadAttention\).*value is missing"):
        irc.import_onnx(model)
