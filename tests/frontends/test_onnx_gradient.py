"""ONNX's Gradient operator: what it differentiates, from where, and what it refuses."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import irc


def model_of(body: str) -> onnx.ModelProto:
    """A model from ONNX's textual syntax."""
    head = '<ir_version: 10, opset_import: ["" : 21, "ai.onnx.preview.training" : 1]>'
    return onnx.parser.parse_model(head + body)


MLP = """
agraph (float[N, 3] x, float[3, 4] w, float[4] b, float[N, 4] target) => (float loss, float[3, 4] dw, float[4] db) {
    h = MatMul (x, w)
    z = Add (h, b)
    y = Tanh (z)
    e = Sub (y, target)
    s = Mul (e, e)
    loss = ReduceMean <keepdims = 0> (s)
    dw, db = ai.onnx.preview.training.Gradient <xs = ["w", "b"], zs = ["x"], y = "loss"> (w, b, x)
}
"""


@pytest.mark.parametrize("target", ["reference", "xla", "mlx{compile=off}"])
def test_a_training_step(target):
    rng = np.random.default_rng(0)
    x, w, b, goal = (rng.standard_normal(s).astype(np.float32) for s in ((5, 3), (3, 4), (4,), (5, 4)))
    loss, dw, db = irc.compile(irc.import_onnx(model_of(MLP)), target=target)(x, w, b, goal)
    y = np.tanh(x @ w + b)
    dz = 2 * (y - goal) / y.size * (1 - y * y)
    np.testing.assert_allclose(loss, np.mean((y - goal) ** 2), rtol=1e-5)
    np.testing.assert_allclose(dw, x.T @ dz, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(db, dz.sum(0), rtol=1e-4, atol=1e-6)


def test_inputs_take_the_place_of_what_they_name():
    """y = a * a + b at a = 2 c, b of the outer graph; y of a itself stays."""
    model = model_of("""
    agraph (float a, float b, float c) => (float y, float dy) {
        aa = Mul (a, a)
        y = Mul (aa, b)
        cc = Add (c, c)
        dy = ai.onnx.preview.training.Gradient <xs = ["a"], y = "y"> (cc)
    }""")
    y, dy = irc.compile(irc.import_onnx(model), target="reference")(*(np.float32(v) for v in (3, 5, 7)))
    assert (float(y), float(dy)) == (45.0, 2 * 14 * 5)


def test_intermediate_values_may_be_variables():
    model = model_of("""
    agraph (float a) => (float ds, float da) {
        s = Sin (a)
        y = Mul (s, a)
        ds, da = ai.onnx.preview.training.Gradient <xs = ["s", "a"], y = "y"> (s, a)
    }""")
    ds, da = irc.compile(irc.import_onnx(model), target="reference")(np.float32(0.5))
    assert float(ds) == 0.5
    assert float(da) == pytest.approx(np.sin(0.5), rel=1e-6)


def test_what_cannot_be_differentiated_is_named():
    model = model_of("""
    agraph (float[4, 4] a) => (float[4, 4] da) {
        d = Det (a)
        da = ai.onnx.preview.training.Gradient <xs = ["a"], y = "d"> (a)
    }""")
    with pytest.raises(irc.IrcError, match=r"Gradient.*cannot be differentiated: while"):
        irc.import_onnx(model)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [('xs = ["a", "a"], y = "s"', "one input for each of xs and zs, 2, got 1"), ('xs = ["a"], y = "q"', "'q' is read")],
)
def test_faults_are_named(attributes, message):
    model = model_of(f"""
    agraph (float a) => (float da) {{
        s = Sin (a)
        da = ai.onnx.preview.training.Gradient <{attributes}> (a)
    }}""")
    with pytest.raises(irc.IrcError, match=message):
        irc.import_onnx(model)
