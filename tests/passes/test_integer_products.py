"""The pass integer-products: equal bits where it says so, else at most the proved number of quanta, on all targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import dtypes
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.passes import DEFAULT, run_passes
from irc.passes.fusions import composites_in, left_apart
from irc.testing.patterns import model_of

RNG = np.random.default_rng(5)
TARGETS = ["xla", "mlx{compile=off,device=cpu}", "onnx"]
LOW, HIGH = -64, 64
"""Weights of 7 bits: ONNX Runtime's kernels for x86 without VNNI saturate sums of two products at 16 bits."""
POWERS = {"x": 2.0**-5, "w": 2.0**-6, "y": 2.0**-3}
OTHERS = {"x": 0.021, "w": 0.013, "y": 0.17}


def dequantized(b: Any, x: Any, scale: Any, zero: Any, axis: int = 0) -> Any:
    return b.DequantizeLinear(x, b.constant(np.float32(scale)), b.constant(zero), axis=axis)


def quantized(b: Any, x: Any, scale: float, zero: int = 120) -> Any:
    return b.QuantizeLinear(x, b.constant(np.float32(scale)), b.constant(np.uint8(zero)), dtype=dtypes.u8)


def product(
    scales: dict[str, Any], *, relu: bool = False, zero: int = 120, channels: bool = False, gemm: bool = False
) -> Model:
    """u8[B,16] by i8[16,8]: one scale a column, or Gemm with the weights turned."""
    w = RNG.integers(LOW, HIGH, (8, 16) if gemm else (16, 8)).astype(np.int8)
    factors = np.array([1, 2, 4, 1, 2, 8, 1, 1]) * scales["w"] if channels else scales["w"]
    zeros = np.zeros(8, np.int8) if channels else np.int8(3)

    def body(b: Any, x: Any) -> Any:
        left = dequantized(b, x, scales["x"], np.uint8(131))
        right = dequantized(b, b.constant(w), factors, zeros, axis=0 if gemm else 1)
        y = b.Gemm(left, right, transpose_b=True) if gemm else b.MatMul(left, right)
        return quantized(b, b.Relu(y) if relu else y, scales["y"], zero)

    return model_of(body, x="u8[B,16]")


def convolution(scales: dict[str, Any], *, group: int = 1, bias: str = "integers") -> Model:
    w = RNG.integers(LOW, HIGH, (4, 4 // group, 3, 3)).astype(np.int8)
    steps = np.float32(scales["x"]) * np.float32(scales["w"])
    integers = RNG.integers(-900, 900, 4).astype(np.int32)

    def body(b: Any, x: Any) -> Any:
        left = dequantized(b, x, scales["x"], np.uint8(131))
        right = dequantized(b, b.constant(w), scales["w"], np.int8(0))
        c = None
        if bias == "integers":
            c = dequantized(b, b.constant(integers), np.full(4, steps), np.zeros(4, np.int32))
        elif bias == "steps":
            c = b.constant(integers.astype(np.float32) * steps)
        y = b.Conv(left, right, c, strides=(1, 1), dilations=(1, 1), pads=((1, 1), (1, 1)), group=group)
        return quantized(b, y, scales["y"])

    return model_of(body, x="u8[1,4,6,6]")


def bytes_for(model: Model) -> Any:
    shape = [d if isinstance(d, int) else 40 for d in model.main.inputs[0].dims]
    return RNG.integers(0, 256, shape).astype(np.uint8)


CASES = {
    "one scale": lambda s: product(s),
    "relu that quantization clips": lambda s: product(s, relu=True, zero=0),
    "relu": lambda s: product(s, relu=True),
    "a scale a column": lambda s: product(s, channels=True),
    "turned weights": lambda s: product(s, gemm=True, channels=True),
    "convolution": lambda s: convolution(s),
    "depthwise": lambda s: convolution(s, group=4, bias="none"),
}


@pytest.mark.parametrize("case", CASES)
def test_powers_of_two_are_equal_bit_for_bit(case: str) -> None:
    model = CASES[case](POWERS)
    x = bytes_for(model)
    (want,) = evaluate(model, [x])
    assert len(np.unique(want)) > 20
    better = run_passes(model, f"{DEFAULT},integer-products,fold,dce", verify_each=True)
    assert [n.op.name for n in better.nodes() if n.op.name.startswith("QLinear")]
    assert not [n for n in better.nodes() if n.op.name in ("DequantizeLinear", "QuantizeLinear")]
    assert np.array_equal(evaluate(better, [x])[0], want)
    for target in TARGETS:
        for each in (model, better):
            assert np.array_equal(np.asarray(irc.compile(each, target=target)(x)[0]), want), target


@pytest.mark.parametrize("case", CASES)
def test_other_scales_need_leave_to_depart_by_one_step_at_most(case: str) -> None:
    model = CASES[case](OTHERS)
    x = bytes_for(model)
    assert "QuantizeLinear" in [n.op.name for n in run_passes(model, f"{DEFAULT},integer-products").nodes()]
    better = run_passes(model, f"{DEFAULT},integer-products{{quanta=1}},fold,dce", verify_each=True)
    assert [n.op.name for n in better.nodes() if n.op.name.startswith("QLinear")]
    (want,) = (v.astype(int) for v in evaluate(model, [x]))
    outs = [evaluate(better, [x])[0], *(np.asarray(irc.compile(better, target=t)(x)[0]) for t in TARGETS)]
    assert max(np.abs(out.astype(int) - want).max() for out in outs) <= 1


def test_a_tie_is_where_they_depart() -> None:
    """0.5 quanta exactly in integers; in f32 the products round to less or more."""
    w = np.ones((3, 1), np.int8)

    def body(b: Any, x: Any) -> Any:
        y = b.MatMul(dequantized(b, x, 0.1, np.uint8(0)), dequantized(b, b.constant(w), 0.1, np.int8(0)))
        return quantized(b, y, 0.02, 0)

    model = model_of(body, x="u8[B,3]")
    x = np.stack(np.meshgrid(*[np.arange(12)] * 3), -1).reshape(-1, 3).astype(np.uint8)
    better = run_passes(model, "fold,integer-products{quanta=1},dce")
    difference = np.abs(evaluate(model, [x])[0].astype(int) - evaluate(better, [x])[0])
    assert 0 < np.count_nonzero(difference) < len(x)
    assert difference.max() == 1


def bare(b: Any, y: Any) -> Any:
    return y


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda b, x, w: bare(b, b.MatMul(x, w)), "used unquantized too"),
        (lambda b, x, w: quantized(b, b.tanh(b.MatMul(x, w)), 0.1), "tanh stands before its quantization"),
        (lambda b, x, w: quantized(b, b.Gemm(x, w, b.constant(np.ones(4, np.float32))), 0.1), "takes no bias"),
        (lambda b, x, w: quantized(b, b.Gemm(x, w, alpha=2.0), 0.1), "has factors"),
        (
            lambda b, x, w: b.QuantizeLinear(b.MatMul(x, w), b.constant(np.float32(1)), None, dtype=dtypes.i16),
            "is not quantized to bytes",
        ),
    ],
)
def test_what_has_no_integer_form_says_why(make: Any, why: str) -> None:
    w = RNG.integers(LOW, HIGH, (16, 4)).astype(np.int8)

    def body(b: Any, x: Any) -> Any:
        return make(b, dequantized(b, x, 0.5, np.uint8(1)), dequantized(b, b.constant(w), 0.5, np.int8(0)))

    model = run_passes(model_of(body, x="u8[B,16]"), "fold,integer-products{quanta=9}")
    assert composites_in(model) == {"qdq_matmul": 1}
    (found,) = left_apart(model)
    assert why in found.why


def test_scales_along_the_sum_have_no_integer_form() -> None:
    w = RNG.integers(LOW, HIGH, (16, 4)).astype(np.int8)
    rows = RNG.random(16).astype(np.float32)

    def body(b: Any, x: Any) -> Any:
        right = dequantized(b, b.constant(w), rows, np.zeros(16, np.int8))
        return quantized(b, b.MatMul(dequantized(b, x, 0.5, np.uint8(1)), right), 0.1)

    (found,) = left_apart(run_passes(model_of(body, x="u8[B,16]"), "fold"))
    assert "varies along an axis that is summed over" in found.why


@pytest.mark.parametrize(
    ("scales", "why"),
    [(POWERS, "is the same bit for bit"), (OTHERS, "may depart by a step")],
)
def test_what_is_left_is_told(scales: dict[str, Any], why: str) -> None:
    model = run_passes(product(scales))
    assert composites_in(model) == {"qdq_matmul": 1}
    (found,) = left_apart(model)
    assert why in found.why
    assert "integer-products" in found.why
    made = run_passes(model, "integer-products{quanta=1},dce")
    assert composites_in(made) == {"integer_matmul": 1}


def test_what_cannot_be_proved_to_be_near_stays() -> None:
    """A quantum of a millionth of the sums: f32's roundings alone are several."""
    model = product({**OTHERS, "y": 1e-7})
    assert "QuantizeLinear" in [n.op.name for n in run_passes(model, "fold,integer-products{quanta=1}").nodes()]
    assert [n.op.name for n in run_passes(model, "fold,integer-products{quanta=99999},dce").nodes()] == [
        "QLinearMatMul"
    ]
