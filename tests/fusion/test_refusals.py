"""Where fusions must not fire: each graph is one step away from one that they take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.ir.reference import evaluate
from irc.passes import run_passes
from irc.testing.patterns import model_of, random_inputs, try_fusions

SIZES = {"B": 2, "S": 5}


def attention(b: Any, q: Any, k: Any, v: Any, between: Any = None, axis: int = 3) -> Any:
    s = b.multiply(b.MatMul(q, b.transpose(k, permutation=(0, 1, 3, 2))), 0.5)
    s = between(b, s) if between else s
    return b.MatMul(b.Softmax(s, axis=axis), v)


QKV = {"q": "f32[B,2,S,4]", "k": "f32[B,2,S,4]", "v": "f32[B,2,S,4]"}


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lambda b, q, k, v: attention(b, q, k, v, lambda b, s: b.erf(s)), "the scores pass through erf"),
        (lambda b, q, k, v: attention(b, q, k, v, lambda b, s: b.tanh(b.tanh(s))), "no softcap"),
        (
            lambda b, q, k, v: attention(b, q, k, v, lambda b, s: b.select(b.compare(s, 0.0, direction="gt"), s,
                                                                            b.constant(-3.0))),
            "which hides nothing",
        ),
        (
            lambda b, q, k, v: attention(b, q, k, v, lambda b, s: b.reshape(
                b.transpose(s, permutation=(0, 2, 1, 3)), dims=s.dims)),
            "a reshape mixes",
        ),
        (lambda b, q, k, v: attention(b, b.Softmax(q, axis=3), k, v, axis=2), ""),
    ],
)  # fmt: skip
def test_attention_is_refused(body: Any, reason: str) -> None:
    outcome = try_fusions(model_of(body, **QKV), "attention")
    assert outcome.fired == {}
    assert any(reason in why for why in outcome.reasons) or not reason


def test_weights_that_others_need_are_computed_once() -> None:
    def body(b: Any, q: Any, k: Any, v: Any) -> Any:
        p = b.Softmax(b.MatMul(q, b.transpose(k, permutation=(0, 1, 3, 2))), axis=3)
        return b.MatMul(p, v), p

    outcome = try_fusions(model_of(body, **QKV), "attention")
    assert outcome.fired == {}
    assert any("also used elsewhere" in why for why in outcome.reasons)


def test_values_that_are_scaled_keep_their_scale() -> None:
    model = model_of(lambda b, q, k, v: attention(b, q, k, b.multiply(v, 3.0)), **QKV)
    outcome = try_fusions(model, "attention")
    assert outcome.fired == {"attention": 1}
    assert outcome.largest_difference(random_inputs(model, SIZES)) < 1e-5


def test_a_scale_behind_a_mask_scales_the_mask_too() -> None:
    def body(b: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        return attention(b, q, k, v, lambda b, s: b.multiply(b.add(s, mask), 0.25))

    model = model_of(body, **QKV, mask="f32[B,1,S,S]")
    outcome = try_fusions(model, "attention")
    assert outcome.fired == {"attention": 1}
    assert outcome.largest_difference(random_inputs(model, SIZES)) < 1e-6


@pytest.mark.parametrize("fill", [-np.inf, float(np.finfo(np.float32).min), -1e4])
def test_rows_that_see_nothing_stay_as_they_were(fill: float) -> None:
    """NaN for -inf, equal weights for a finite fill."""

    def body(b: Any, q: Any, k: Any, v: Any, mask: Any) -> Any:
        return attention(b, q, k, v, lambda b, s: b.select(mask, s, b.constant(np.float32(fill))))

    model = model_of(body, **QKV, mask="bool[B,1,S,S]")
    inputs = random_inputs(model, SIZES)
    inputs[3][0, 0, 2] = False
    outcome = try_fusions(model, "attention")
    assert outcome.fired == {"attention": 1}
    assert outcome.largest_difference(inputs) < 1e-6


@pytest.mark.parametrize(
    ("rows", "offset", "expected"),
    [
        ("S", 0, {"causal": True, "kv_offset": 0, "window": -1}),
        ("S", -1, {"causal": False, "kv_offset": 0, "window": -1}),  # the first row sees nothing: the fill counts
    ],
)
def test_a_causal_mask_is_proved_where_every_row_sees_a_key(rows: str, offset: int, expected: dict[str, Any]) -> None:
    def body(b: Any, q: Any, k: Any, v: Any) -> Any:
        from irc.ir import dims, dtypes

        n = dims.symbol(rows)
        i = b.reshape(b.iota(dtype=dtypes.i64, dims=(n,), axis=0), dims=(n, 1))
        j = b.iota(dtype=dtypes.i64, dims=(n,), axis=0)
        seen = b.compare(j, b.add(i, offset) if offset else i, direction="le")
        return attention(b, q, k, v, lambda b, s: b.select(seen, s, b.constant(np.float32(-1e30))))

    model = model_of(body, **QKV)
    outcome = try_fusions(model, "attention")
    (node,) = [n for n in outcome.after.main.body.nodes if n.op.name == "Attention"]
    assert {name: node.keywords[name] for name in expected} == expected
    assert outcome.largest_difference(random_inputs(model, SIZES)) < 1e-6


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_rotation_the_other_way_is_the_same_with_minus_sin_only(sign: float) -> None:
    """x * cos - rotate(x) * sin is no rotation by the table's angles: the numbers decide."""

    def body(b: Any, x: Any, cos: Any, sin: Any) -> Any:
        first, second = b.Split(x, axis=3, sizes=(4, 4))
        turned = b.concatenate((b.negate(second), first), axis=3)
        half = [b.concatenate((t, t), axis=1) for t in (cos, sin)]
        return b.add(b.multiply(x, half[0]), b.multiply(b.multiply(turned, half[1]), sign) if sign < 0 else
                     b.multiply(turned, half[1]))  # fmt: skip

    model = model_of(body, x="f32[B,2,S,8]", cos="f32[S,4]", sin="f32[S,4]")
    outcome = try_fusions(model, "rotary")
    assert bool(outcome.fired) is (sign > 0)


def test_columns_that_are_not_provably_equal_are_no_table() -> None:
    def body(b: Any, x: Any, cos: Any, sin: Any) -> Any:
        first, second = b.Split(x, axis=3, sizes=(4, 4))
        turned = b.concatenate((b.negate(second), first), axis=3)
        return b.add(b.multiply(x, cos), b.multiply(turned, sin))

    outcome = try_fusions(model_of(body, x="f32[B,2,S,8]", cos="f32[S,8]", sin="f32[S,8]"), "rotary")
    assert outcome.fired == {}
    assert any("columns are not provably equal" in why for why in outcome.reasons)


def norm(b: Any, x: Any, axes: tuple[int, ...], add: Any = None) -> Any:
    d = b.subtract(x, b.ReduceMean(x, axes=axes))
    y = b.divide(d, b.sqrt(b.add(b.ReduceMean(b.multiply(d, d), axes=axes), 1e-5)))
    return y if add is None else b.add(y, add)


def test_a_residual_is_no_bias() -> None:
    model = model_of(lambda b, x, r: norm(b, x, (2,), r), x="f32[B,S,8]", r="f32[B,S,8]")
    outcome = try_fusions(model, "layer-norm")
    assert outcome.operators == ["LayerNormalization", "add"]
    assert outcome.largest_difference(random_inputs(model, SIZES)) < 1e-6


def test_a_norm_along_the_first_axis_is_refused() -> None:
    outcome = try_fusions(model_of(lambda b, x: norm(b, x, (0,)), x="f32[B,S,8]"), "layer-norm")
    assert outcome.fired == {}
    assert any("are not the last ones" in why for why in outcome.reasons)


@pytest.mark.parametrize("clipped", [False, True])
def test_a_variance_in_one_pass_is_refused_with_the_reason(clipped: bool) -> None:
    """As flax writes it; where the mean is large beside the deviation, LayerNormalization gives something else."""

    def body(b: Any, x: Any, scale: Any, bias: Any) -> Any:
        mean = b.ReduceMean(x, axes=(1,))
        variance = b.subtract(b.ReduceMean(b.multiply(x, x), axes=(1,)), b.multiply(mean, mean))
        variance = b.maximum(variance, 0.0) if clipped else variance
        factor = b.multiply(b.rsqrt(b.add(variance, 1e-6)), scale)
        return b.add(b.multiply(b.subtract(x, mean), factor), bias)

    outcome = try_fusions(model_of(body, x="f32[B,8]", scale="f32[8]", bias="f32[8]"), "layer-norm")
    assert outcome.fired == {}
    assert any("the variance is mean(x^2) - mean(x)^2, which cancels" in why for why in outcome.reasons)


def test_the_sum_of_another_number_of_elements_is_no_mean() -> None:
    def body(count: float) -> Any:
        return lambda b, x: b.multiply(
            x, b.rsqrt(b.add(b.divide(b.ReduceSum(b.multiply(x, x), axes=(1,)), count), 1e-5))
        )

    assert try_fusions(model_of(body(8.0), x="f32[B,8]"), "rms-norm").fired == {"rms-norm": 1}
    assert try_fusions(model_of(body(4.0), x="f32[B,8]"), "rms-norm").fired == {}


def _matrix(b: Any, axis: int = 0, block: int = 16, weights: Any = None) -> Any:
    rng = np.random.default_rng(0)
    q = b.constant(rng.integers(0, 16, (32, 32)).astype(np.uint8)) if weights is None else weights
    dims = [32, 32]
    dims[axis] = -(-32 // block) if block else 1
    shape = dims if block else [32]
    s = b.constant(rng.random(shape).astype(np.float32))
    return b.DequantizeLinear(q, s, None, axis=axis, block_size=block)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (lambda b, x, q: b.MatMul(x, _matrix(b, axis=1)), "blocks along the outputs"),
        (lambda b, x, q: b.MatMul(x, _matrix(b, block=24)), "the last block is not whole"),
        (lambda b, x, q: b.MatMul(x, _matrix(b, weights=q)), "weights that are computed"),
        (lambda b, x, q: b.MatMul(x, _matrix(b, block=0)), ""),  # a scale a column: made once, in `init`
        (lambda b, x, q: b.Gemm(x, _matrix(b), alpha=2.0), ""),
        (lambda b, x, q: b.MatMul(_matrix(b), b.transpose(x, permutation=(1, 0))), ""),  # weights on the left
    ],
)
def test_dequantized_weights_stay_where_they_do_not_fit(body: Any, reason: str) -> None:
    outcome = try_fusions(model_of(body, x="f32[S,32]", q="u8[32,32]"), "quantized-matmul")
    assert not outcome.fired
    assert [reason in why for why in outcome.reasons] == [True] * bool(reason)


@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
@pytest.mark.parametrize("turned", [False, True])
def test_every_byte_keeps_its_value_when_it_is_packed(dtype: Any, turned: bool) -> None:
    q = np.arange(256).reshape(16, 16).astype(np.uint8).view(dtype)

    def body(b: Any, x: Any) -> Any:
        s = b.constant(np.full((16, 1) if turned else (1, 16), 0.5, np.float32))
        w = b.DequantizeLinear(b.constant(q), s, None, axis=int(turned), block_size=16)
        return b.MatMul(x, b.transpose(w, permutation=(1, 0)) if turned else w)

    model = model_of(body, x="f32[S,16]")
    outcome = try_fusions(model, "quantized-matmul")
    assert outcome.fired == {"quantized-matmul": 1}
    assert outcome.largest_difference([np.eye(16, dtype=np.float32)]) == 0


@pytest.mark.parametrize("fill", [-1e4, -1e9, float(np.finfo(np.float32).min), float("-inf")])
@pytest.mark.parametrize("order", ["causal first", "padding first"])
def test_two_masks_on_padding_to_the_left(fill, order):
    """The first query sees itself only, which is padding: with finite fills hidden keys of both kinds have weight.

    Beside the least f32 every score vanishes, so that sums of masks say it; beside -1e9 it does not, if summed exactly.
    """
    causal = np.tril(np.ones((1, 1, 5, 5), bool))

    def body(b, q, k, v, real):
        scores = b.MatMul(q, b.transpose(k, permutation=(0, 1, 3, 2)))
        given = b.reshape(real, dims=(2, 1, 1, 5))
        masks = [b.constant(causal), given] if order == "causal first" else [given, b.constant(causal)]
        for mask in masks:
            scores = b.select(mask, scores, b.constant(np.float32(fill)))
        return b.MatMul(b.Softmax(scores, axis=-1), v)

    model = model_of(body, q="f32[2,3,5,4]", k="f32[2,3,5,4]", v="f32[2,3,5,4]", real="bool[2,5]")
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, 3, 5, 4), np.float32) for _ in range(3))
    real = np.array([[False, False, True, True, True], [True] * 5])
    fused = run_passes(model)
    assert ("Attention" in [n.op.name for n in fused.nodes()]) == (fill < -1e30)
    before, after = (evaluate(m, [q, k, v, real])[0] for m in (model, fused))
    np.testing.assert_allclose(after, before, rtol=0, atol=1e-6)
