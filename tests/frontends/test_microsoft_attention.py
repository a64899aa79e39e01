"""com.microsoft attention and rotary embedding against ONNX Runtime, or a formula where it has no kernel."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc

F, I32, I64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64
RNG = np.random.default_rng(7)
MS = {"domain": "com.microsoft"}
B, S, P, N, G, D = 2, 4, 3, 4, 2, 16
H = N * D
# Products of 16 terms, a softmax of some 7 and a sum of 7: both sides round in f32, in other orders.
RTOL = 3e-6


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


MASKS = {
    "none": None,
    "lengths": np.array([4, 2], np.int32),
    "keys": np.array([[1, 1, 1, 1], [1, 1, 0, 0]], np.int32),
    "pairs": (RNG.random((B, S, S)) < 0.7).astype(np.int32) | np.eye(S, dtype=np.int32),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("causal", [0, 1])
def test_attention_of_merged_weights(causal, mask, one_node, agrees):
    operands = [(F, [B, "S", 10]), normal(10, 3 * H) * 0.3, normal(3 * H), MASKS[mask]]
    model = one_node("Attention", operands, 21, **MS, num_heads=N, unidirectional=causal)
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
@pytest.mark.parametrize("mask", ["none", "lengths", "keys"])
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


def group_query(one_node, *, batch=B, length=S, past=P, totals=None, packed=False, extra=(), **attributes):
    """A GroupQueryAttention node and inputs for it; `totals`: tokens held by each entry after the step."""
    totals = [past + length] * batch if totals is None else totals
    width = (N + 2 * G) * D if packed else H
    queries = [(F, [batch, "S", width]), *([None, None] if packed else [(F, [batch, "S", G * D])] * 2)]
    cache = [(F, [batch, G, "P", D])] * 2
    operands = [*queries, *cache, (I32, [batch]), np.array(max(totals), np.int32), *extra]
    model = one_node("GroupQueryAttention", operands, 21, outputs=3, **MS, num_heads=N, kv_num_heads=G, **attributes)
    inputs = [normal(batch, length, width)]
    inputs += [] if packed else [normal(batch, length, G * D), normal(batch, length, G * D)]
    inputs += [normal(batch, G, past, D), normal(batch, G, past, D), np.array(totals, np.int32) - 1]
    return model, inputs


TABLES = (normal(32, D // 2), normal(32, D // 2))
STEPS = {
    "prompt": {"length": S, "past": 0},
    "one token": {"length": 1, "past": P},
    "several tokens": {"batch": 1, "length": S, "past": P},  # ONNX Runtime takes one entry then
    "entries of two lengths": {"length": 1, "past": P, "totals": [4, 2]},
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("step", STEPS)
def test_group_query_attention(step, packed, one_node, agrees):
    model, inputs = group_query(one_node, packed=packed, **STEPS[step])
    agrees(model, inputs, rtol=RTOL)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("interleaved", [0, 1])
def test_group_query_attention_rotates(interleaved, step, one_node, agrees):
    model, inputs = group_query(one_node, extra=TABLES, do_rotary=1, rotary_interleaved=interleaved, **STEPS[step])
    agrees(model, inputs, rtol=RTOL)


@pytest.mark.parametrize(
    "attributes",
    [{"local_window_size": 2}, {"softcap": 5.0}, {"smooth_softmax": 1}, {"scale": 0.1}],
    ids=lambda a: next(iter(a)),
)
@pytest.mark.parametrize("step", ["prompt", "several tokens"])
def test_group_query_attention_options(step, attributes, one_node, agrees):
    model, inputs = group_query(one_node, **STEPS[step], **attributes)
    agrees(model, inputs, rtol=RTOL)


def test_group_query_attention_with_sinks_and_a_bias(one_node, agrees):
    extra = (None, None, None, normal(1, N, S, S + P), normal(N))
    model, inputs = group_query(one_node, extra=extra, batch=1)
    agrees(model, inputs, rtol=RTOL)


def test_positions_may_be_given(one_node, agrees):
    positions = np.array([[3], [9]], np.int64)
    model, inputs = group_query(one_node, length=1, extra=(*TABLES, positions), do_rotary=1)
    agrees(model, inputs, rtol=RTOL)


def decoder_step() -> onnx.ModelProto:
    """As genai writes it: lengths from the attention mask, sizes symbolic."""
    q, kv = [F, ["batch", "sequence", H]], [F, ["batch", "sequence", G * D]]
    cache = [F, ["batch", G, "past", D]]
    inputs = {"q": q, "k": kv, "v": kv, "past_key": cache, "past_value": cache, "mask": [I64, ["batch", "total"]]}
    nodes = [
        helper.make_node("ReduceSum", ["mask", "one"], ["sum"], keepdims=0),
        helper.make_node("Sub", ["sum", "one"], ["less"]),
        helper.make_node("Cast", ["less"], ["lengths"], to=I32),
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "index"], ["width"]),
        helper.make_node("Cast", ["width"], ["total_length"], to=I32),
        helper.make_node(
            "GroupQueryAttention",
            ["q", "k", "v", "past_key", "past_value", "lengths", "total_length", "cos", "sin"],
            ["y", "present_key", "present_value"],
            domain="com.microsoft", num_heads=N, kv_num_heads=G, do_rotary=1,
        ),
    ]  # fmt: skip
    constants = {"one": np.array([1]), "index": np.array(1), "cos": TABLES[0], "sin": TABLES[1]}
    graph = helper.make_graph(
        nodes, "step", [helper.make_tensor_value_info(n, *t) for n, t in inputs.items()],
        [helper.make_tensor_value_info(n, F, None) for n in ("y", "present_key", "present_value")],
        [onnx.numpy_helper.from_array(v, n) for n, v in constants.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}"])
def test_a_decoder_generates(target, run_ort):
    """A prompt and three tokens, caches fed back, one executable."""
    model = decoder_step()
    run = irc.compile(model, target=target)
    caches = [np.zeros((B, G, 0, D), np.float32)] * 2
    expected = caches
    for step, length in enumerate((S, 1, 1, 1)):
        mask = np.ones((B, S + step), np.int64)
        fresh = [normal(B, length, H), normal(B, length, G * D), normal(B, length, G * D)]
        y, *caches = map(np.asarray, run(*fresh, *caches, mask))
        want, *expected = run_ort(model, [*fresh, *expected, mask])
        np.testing.assert_allclose(y, want, rtol=0, atol=RTOL * np.abs(want).max())
        for got, cache in zip(caches, expected, strict=True):
            assert got.shape == (B, G, S + step, D)
            np.testing.assert_allclose(got, cache, rtol=0, atol=RTOL * np.abs(cache).max())


def test_they_become_the_composites_that_fusions_find():
    from irc.passes import run_passes
    from irc.passes.fusions import composites_in

    assert composites_in(run_passes(irc.import_onnx(decoder_step()))) == {"attention": 1, "rope": 2}


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


@pytest.mark.parametrize("type_", ["PackedAttention", "PagedAttention", "SparseAttention", "LongformerAttention"])
def test_what_is_refused_says_why(type_, one_node):
    model = one_node(type_, [(F, [B, S, H]), normal(H, 3 * H)], 21, **MS)
    with pytest.raises(irc.UnsupportedError, match=f"{type_}.*(padding|pages|sparse|windows)"):
        irc.import_onnx(model)


def test_a_missing_value_names_the_node(one_node):
    model = one_node("MultiHeadAttention", [(F, [B, S, H]), (F, [B, S, H])], 21, **MS, num_heads=N)
    with pytest.raises(irc.IrcError, match=r"'node' \(.*MultiHeadAttention\).*value is missing"):
        irc.import_onnx(model)
