"""com.microsoft rotary embeddings and biases by position against ONNX Runtime, or a formula without a kernel."""

import numpy as np
import pytest
from onnx import TensorProto

import irc

F, F16, I32, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64
RNG = np.random.default_rng(7)
MS = {"domain": "com.microsoft"}
B, S, N, D = 2, 4, 4, 16
H = N * D
# Two products and a sum: both sides round in f32, in other orders.
RTOL = 3e-6


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


TABLES = (normal(32, D // 2), normal(32, D // 2))


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("positions", [np.array([2]), np.array([[0, 1, 2, 3], [5, 6, 7, 8]])], ids=["offset", "each"])
@pytest.mark.parametrize("dims", [(B, S, H), (B, N, S, D)], ids=["flat", "heads"])
def test_rotary_embedding(dims, positions, interleaved, one_node, agrees):
    model = one_node("RotaryEmbedding", [(F, list(dims)), positions, *TABLES], 21, **MS, interleaved=interleaved)
    agrees(model, [normal(*dims)], rtol=RTOL)


def test_rotary_embedding_of_a_part(one_node, agrees):
    tables = (normal(32, 4), normal(32, 4))
    model = one_node("RotaryEmbedding", [(F, [B, S, H]), np.array([1]), *tables], 21, **MS, num_heads=N,
                     rotary_embedding_dim=8)  # fmt: skip
    agrees(model, [normal(B, S, H)], rtol=RTOL)


@pytest.mark.parametrize("attributes", [{"scale": 2.0}, {"is_packed_batching": 1}], ids=str)
def test_what_rotary_embedding_does_not_heed(attributes, one_node, agrees):
    positions = np.array([[0, 1, 2, 3], [5, 6, 7, 8]])
    model = one_node("RotaryEmbedding", [(F, [B, S, H]), positions, *TABLES], 21, **MS, **attributes)
    agrees(model, [normal(B, S, H)], rtol=RTOL)


def test_rotary_embedding_of_half_precision(one_node, agrees):
    """One unit of f16: both round the result."""
    tables = [x.astype(np.float16) for x in TABLES]
    model = one_node("RotaryEmbedding", [(F16, [B, S, H]), np.array([2]), *tables], 21, out_type=F16, **MS)
    agrees(model, [normal(B, S, H).astype(np.float16)], rtol=1e-3)


@pytest.mark.parametrize("sections", [[2, 3, 3], [4, 2, 2], [8, 0, 0], [2, 5, 1]], ids=str)
@pytest.mark.parametrize("layout", [0, 1])
def test_m_rotary_embedding(layout, sections, one_node, agrees):
    positions = RNG.integers(0, 32, (3, B, S))
    model = one_node("MRotaryEmbedding", [(F, [B, S, H]), positions, *TABLES], 21, **MS, num_heads=N,
                     mrope_section=sections, mrope_layout=layout)  # fmt: skip
    agrees(model, [normal(B, S, H)], rtol=RTOL)


def test_m_rotary_embedding_by_heads(one_node, agrees):
    operands = [(F, [B, N, "S", D]), (I64, [3, B, "S"]), *TABLES]
    model = one_node("MRotaryEmbedding", operands, 21, **MS, mrope_section=[4, 2, 2], interleaved=1)
    agrees(model, [normal(B, N, S, D), RNG.integers(0, 32, (3, B, S))], rtol=RTOL)


def test_gemma_rotary_embedding(one_node, agrees):
    """The schema's formula; it rounds at each step in f16, of which both sides make three."""
    angles, halves = normal(B, S, D), [normal(B, N, S, D).astype(np.float16) for _ in range(4)]
    cos, sin = (f(angles).astype(np.float16)[:, None] for f in (np.cos, np.sin))
    want = [halves[i] * cos + halves[i + 1] * sin for i in (0, 2)]
    operands = [(F, [B, S, D]), *[(F16, [B, N, S, D])] * 4]
    model = one_node("GemmaRotaryEmbedding", operands, 21, outputs=2, out_type=F16, **MS)
    agrees(model, [angles, *halves], want, rtol=1.5e-3)


@pytest.mark.parametrize("op, positions, attributes, fault", [
    ("RotaryEmbedding", np.zeros((1, 2, 3)), {}, "position_ids must be integers of rank 0 or 1 or 2"),
    ("MRotaryEmbedding", np.zeros((B, S), np.int64), {"mrope_section": [2, 3, 3]}, "must be integers of rank 3"),
    ("MRotaryEmbedding", np.zeros((3, B, S), np.int64), {"mrope_section": [2, 3, 4]}, "add up to 8, got .2, 3, 4."),
    ("MRotaryEmbedding", np.zeros((3, B, S), np.int64), {}, "'mrope_section' is missing"),
    ("RotaryEmbedding", np.array([1]), {"num_heads": N, "rotary_embedding_dim": 10}, "half of the rotary_embedding"),
])  # fmt: skip
def test_wrong_nodes_are_named(op, positions, attributes, fault, one_node):
    model = one_node(op, [(F, [B, S, H]), positions, *TABLES], 21, **MS, **attributes)
    with pytest.raises(irc.IrcError, match=rf"'node' \(.*{op}\): .*{fault}"):
        irc.import_onnx(model)


def bucket(place: int, bidirectional: int, buckets: int, farthest: int) -> int:
    """T5's, written with numbers."""
    base = 0
    if bidirectional:
        buckets //= 2
        base = buckets * (place > 0)
        distance = abs(place)
    else:
        distance = max(-place, 0)
    exact = buckets // 2
    if distance < exact:
        return base + distance
    far = np.log(np.float32(distance) / np.float32(exact)) / np.float32(np.log(farthest / exact))
    return base + min(exact + int(far * np.float32(buckets - exact)), buckets - 1)


@pytest.mark.parametrize("bidirectional", [0, 1])
def test_relative_position_bias(bidirectional, one_node, agrees):
    table, queries, keys = normal(8, N), 6, 21
    places = [[bucket(j - i, bidirectional, 8, 16) for j in range(keys)] for i in range(queries)]
    operands = [table, np.array([queries]), np.array([keys])]
    model = one_node("RelativePositionBias", operands, 21, **MS, max_distance=16, is_bidirectional=bidirectional)
    agrees(model, [], [table[np.array(places)].transpose(2, 0, 1)[None]], rtol=0)


def test_gated_relative_position_bias(one_node, agrees):
    q, q_bias, rel_pos = normal(B, S, H), normal(H), normal(1, N, S, S)
    weight, bias, eco = normal(D, 8) * 0.2, normal(8), normal(1, N, 1, 1)
    x = (q + q_bias).astype(np.float64).reshape(B, S, N, D).transpose(0, 2, 1, 3)
    gates = 1 / (1 + np.exp(-(x @ weight + bias).reshape(B, N, S, 2, 4).sum(-1)))
    u, r = gates[..., :1], gates[..., 1:]
    want = ((u * (r * eco - 1) + 2) * rel_pos).astype(np.float32)
    operands = [(F, [B, S, H]), q_bias, (F, [1, N, S, S]), weight, bias, eco]
    model = one_node("GatedRelativePositionBias", operands, 21, **MS, num_heads=N)
    agrees(model, [q, rel_pos], [want], rtol=RTOL)
