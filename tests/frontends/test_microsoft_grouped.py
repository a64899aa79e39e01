"""com.microsoft GroupQueryAttention against ONNX Runtime, from one node to a decoder that generates."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import irc

F, F16, I32, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT32, TensorProto.INT64
RNG = np.random.default_rng(7)
MS = {"domain": "com.microsoft"}
B, S, P, N, G, D = 2, 4, 3, 4, 2, 16
H = N * D
# Products of 16 terms, a softmax of some 7 and a sum of 7: both sides round in f32, in other orders.
RTOL = 3e-6


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def group_query(
    one_node, *, batch=B, length=S, past=P, totals=None, total=None, packed=False, extra=(), half=False, **attributes
):
    """A GroupQueryAttention node and inputs for it; `totals`: tokens held by each entry after the step."""
    T = F16 if half else F
    totals = [past + length] * batch if totals is None else totals
    width = (N + 2 * G) * D if packed else H
    queries = [(T, [batch, "S", width]), *([None, None] if packed else [(T, [batch, "S", G * D])] * 2)]
    cache = [(T, [batch, G, "P", D])] * 2
    total = np.array(max(totals), np.int32) if total is None else total
    extra = [x.astype(np.float16) if half and x is not None and x.dtype == np.float32 else x for x in extra]
    operands = [*queries, *cache, (I32, [batch]), total, *extra]
    model = one_node(
        "GroupQueryAttention", operands, 21, outputs=3, out_type=T, **MS, num_heads=N, kv_num_heads=G, **attributes
    )
    inputs = [normal(batch, length, width)]
    inputs += [] if packed else [normal(batch, length, G * D), normal(batch, length, G * D)]
    inputs += [normal(batch, G, past, D), normal(batch, G, past, D)]
    inputs = [x.astype(np.float16) for x in inputs] if half else inputs
    return model, [*inputs, np.array(totals, np.int32) - 1]


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
    [{"local_window_size": 2}, {"local_window_size": 0}, {"softcap": 5.0}, {"smooth_softmax": 1}, {"scale": 0.1}],
    ids=lambda a: "-".join(f"{k}={v}" for k, v in a.items()),
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


@pytest.mark.parametrize("length, past", [(S, 0), (S, P)], ids=["prompt", "chunk"])
def test_positions_of_a_prompt_count_from_the_first_that_is_given(length, past, one_node, agrees):
    positions = np.array([[3, 9, 1, 20]], np.int64)
    model, inputs = group_query(one_node, batch=1, length=length, past=past, extra=(*TABLES, positions), do_rotary=1)
    agrees(model, inputs, rtol=RTOL)


@pytest.mark.parametrize("step", STEPS)
def test_group_query_attention_of_half_precision(step, one_node, agrees):
    """Two units of f16: irc rounds rotated queries, powers of e and results, ONNX Runtime the results alone."""
    model, inputs = group_query(one_node, half=True, extra=TABLES, do_rotary=1, **STEPS[step])
    agrees(model, inputs, rtol=2e-3)


@pytest.mark.parametrize("attributes", [{}, {"softcap": 5.0}, {"local_window_size": 2}], ids=str)
def test_half_precision_with_sinks(attributes, one_node, agrees):
    extra = (None, None, None, None, normal(N))
    model, inputs = group_query(one_node, half=True, past=0, extra=extra, **attributes)
    agrees(model, inputs, rtol=2e-3)


@pytest.mark.parametrize("room", [0, 9], ids=["cache grows", "cache has room"])
@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}"])
def test_a_prompt_with_shorter_entries(target, room, one_node, run_ort):
    """Rows of an entry behind its length are padding; what they become is not specified."""
    model, inputs = group_query(one_node, past=room, totals=[4, 2], extra=TABLES, do_rotary=1)
    y, *caches = map(np.asarray, irc.compile(model, target=target)(*inputs))
    want, *expected = run_ort(model, inputs)
    for got, wanted in ((y[0], want[0]), (y[1, :2], want[1, :2]), *zip(caches, expected, strict=True)):
        np.testing.assert_allclose(got, wanted, rtol=0, atol=RTOL * np.abs(wanted).max())


def test_lengths_known_only_at_run_time(one_node, agrees):
    model, inputs = group_query(one_node, length=1, total=(I32, []), extra=TABLES, do_rotary=1)
    agrees(model, [*inputs, np.array(P + 1, np.int32)], rtol=RTOL)


def test_norms_of_queries_and_keys(one_node, agrees):
    """CUDA alone has them: as RMSNormalization in front, with weights a head."""
    weights = normal(D), normal(D)
    model, inputs = group_query(one_node, extra=(*TABLES, *[None] * 5, *weights), do_rotary=1, qk_norm_epsilon=1e-3)

    def normed(x, weight):
        wide = x.astype(np.float64).reshape(*x.shape[:2], -1, D)
        wide /= np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-3)
        return (wide * weight).reshape(x.shape).astype(np.float32)

    plain, _ = group_query(one_node, extra=TABLES, do_rotary=1)
    q, k, *others = inputs
    want = irc.compile(plain, target="reference")(normed(q, weights[0]), normed(k, weights[1]), *others)
    agrees(model, inputs, list(want), rtol=RTOL)


@pytest.mark.parametrize("extra, attributes, fault", [
    ((*TABLES, *[None] * 5, normal(D)), {}, "stand together"),
    ((), {"causal": 0, "local_window_size": 2}, "needs causal=1"),
    ((), {"do_rotary": 1}, "needs cos_cache and sin_cache"),
])  # fmt: skip
def test_wrong_attributes_are_named(extra, attributes, fault, one_node):
    model, _ = group_query(one_node, extra=extra, **attributes)
    with pytest.raises(irc.IrcError, match=rf"'node' \(.*GroupQueryAttention\): .*{fault}"):
        irc.import_onnx(model)


@pytest.mark.parametrize("place, operand, fault", [
    (4, None, "past_key and past_value stand together"),
    (5, (F, [B]), "seqlens_k must be of integers"),
    (1, (F, [S, G * D]), "the key must be .batch, time, features."),
    (0, (I64, [B, S, H]), "expected a floating-point type"),
    (0, (F16, [B, S, H]), "must have one element type, got f16, f32, f32"),
])  # fmt: skip
def test_wrong_operands_are_named(place, operand, fault, one_node):
    operands = [(F, [B, S, H]), *[(F, [B, S, G * D])] * 2, *[(F, [B, G, P, D])] * 2, (I32, [B]), np.array(S + P)]
    operands[place] = operand
    model = one_node("GroupQueryAttention", operands, 21, outputs=3, **MS, num_heads=N, kv_num_heads=G)
    with pytest.raises(irc.IrcError, match=rf"'node' \(.*GroupQueryAttention\): .*{fault}"):
        irc.import_onnx(model)


def decoder_step(batch="batch", sequence="sequence", past="past", total="total") -> onnx.ModelProto:
    """As genai writes it: lengths from the attention mask, sizes symbolic."""
    q, kv = [F, [batch, sequence, H]], [F, [batch, sequence, G * D]]
    cache = [F, [batch, G, past, D]]
    inputs = {"q": q, "k": kv, "v": kv, "past_key": cache, "past_value": cache, "mask": [I64, [batch, total]]}
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


def test_a_decoder_step_of_fixed_sizes(agrees):
    model = decoder_step(B, 1, P, P + 1)
    inputs = [normal(B, 1, H), normal(B, 1, G * D), normal(B, 1, G * D), normal(B, G, P, D), normal(B, G, P, D)]
    agrees(model, [*inputs, np.ones((B, P + 1), np.int64)], rtol=RTOL)


def test_they_become_the_composites_that_fusions_find():
    from irc.passes import run_passes
    from irc.passes.fusions import composites_in

    assert composites_in(run_passes(irc.import_onnx(decoder_step()))) == {"attention": 1, "rope": 2}
