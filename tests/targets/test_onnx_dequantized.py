"""Weights of products between dequantization and quantization stay integers in written files; others are evaluated."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import irc
from irc.ir import dtypes
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.passes import run_passes
from irc.testing.patterns import model_of

RNG = np.random.default_rng(11)
# 7 bits: ONNX Runtime's kernels for x86 without VNNI saturate sums of two products at 16 bits.
W = RNG.integers(-64, 64, (16, 8)).astype(np.int8)


def weights(b: Any, turned: bool = False) -> Any:
    scales = b.constant(2.0 ** RNG.integers(-8, -4, 8).astype(np.float32))
    zeros = b.constant(np.zeros(8, np.int8))
    if turned:
        w = b.DequantizeLinear(b.constant(W.T.copy(), name="stored"), scales, zeros, axis=0)
        return b.transpose(w, permutation=(1, 0))
    return b.DequantizeLinear(b.constant(W, name="stored"), scales, zeros, axis=1)


def quantized(turned: bool = False, shared: bool = False) -> Model:
    def body(b: Any, x: Any) -> Any:
        w = weights(b, turned)
        a = b.DequantizeLinear(x, b.constant(np.float32(0.25)), b.constant(np.uint8(9)))
        y = b.QuantizeLinear(b.MatMul(a, w), b.constant(np.float32(0.5)), b.constant(np.uint8(128)), dtype=dtypes.u8)
        return (y, b.MatMul(b.tanh(a), w)) if shared else y

    return model_of(body, x="u8[5,16]")


def written(model: Model, folder: Path) -> onnx.ModelProto:
    irc.save(run_passes(model), folder / "m.onnx")
    proto = onnx.load(folder / "m.onnx")
    onnx.checker.check_model(proto, full_check=True)
    return proto


@pytest.mark.parametrize("turned", [False, True])
def test_integers_are_written_and_results_are_the_same_bits(turned: bool, tmp_path: Path) -> None:
    model = quantized(turned)
    proto = written(model, tmp_path)
    assert Counter(n.op_type for n in proto.graph.node)["DequantizeLinear"] == 2
    (stored,) = [onnx.numpy_helper.to_array(t) for t in proto.graph.initializer if len(t.dims) == 2]
    assert np.array_equal(stored, W)
    x = RNG.integers(0, 256, (5, 16)).astype(np.uint8)
    (want,) = evaluate(model, [x])
    assert len(np.unique(want)) > 10
    assert np.array_equal(evaluate(irc.read(tmp_path / "m.onnx"), [x])[0], want)
    assert np.array_equal(np.asarray(irc.compile(model, target="onnx")(x)[0]), want)


@pytest.mark.parametrize(
    "model", [quantized(shared=True), model_of(lambda b, x: b.MatMul(x, weights(b)), x="f32[5,16]")]
)
def test_weights_that_a_product_of_floats_uses_are_evaluated(model: Model, tmp_path: Path) -> None:
    proto = written(model, tmp_path)
    (stored,) = [t for t in proto.graph.initializer if len(t.dims) == 2]
    assert stored.data_type == onnx.TensorProto.FLOAT
