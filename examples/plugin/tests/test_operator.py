"""sample.SquaredRelu: formula and decomposition, ONNX, targets, text."""

import numpy as np
import pytest
from onnx import TensorProto, helper

import irc
from irc.ir.text import parse_model, print_model
from irc.testing import check_composite

X = np.array([[-3, -0.0, 0.5, 2], [np.inf, -np.inf, np.nan, 7]], np.float32)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_formula_and_decomposition_agree(dtype):
    got = check_composite("sample.SquaredRelu", X.astype(dtype), scale=0.5, shapes=["B 4"])
    np.testing.assert_array_equal(got, np.array([[0, 0, 0.125, 2], [np.inf, 0, np.nan, 24.5]], dtype))


def model():
    node = helper.make_node("SquaredRelu", ["x"], ["y"], domain="irc.sample", scale=0.5)
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4]) for name in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("irc.sample", 1)]
    return irc.import_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=10))


@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}", "onnx", "numpy"])
def test_every_target_runs_it(target):
    exe = irc.compile(model(), target=target)
    np.testing.assert_allclose(exe(X)[0], 0.5 * np.square(np.maximum(X, 0)), rtol=1e-6)
    assert bool(exe.report.decomposed) == (target == "onnx")


def test_text_says_what_must_be_installed():
    text = print_model(model())
    assert '  requires sample from "irc-sample-plugin"\n' in text
    assert "%y = sample.SquaredRelu(%x) {scale = 0.5} : f32[N,4]" in text
    assert print_model(parse_model(text)) == text
