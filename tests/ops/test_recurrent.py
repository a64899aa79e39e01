"""Recurrent layers against ONNX Runtime and plain steps; the decomposition is a loop over a symbolic time and batch."""

import itertools

import numpy as np
import pytest
import scipy.special

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.ops.gates import PARAMETERS, activations
from irc.ir.types import tensor
from irc.testing.operators import check_composite, facts_of, run, run_onnx_node

T, B = symbol("T"), symbol("B")
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
H, I = 5, 4


def layer(name, directions=1, t=6, b=3, *, bias=True, lens=True, initial=True, peepholes=True, seed=0):
    """Operands in ONNX's order, and shapes with symbolic time and batch for those present."""
    rng = np.random.default_rng(seed)
    g = GATES[name]
    rows = [
        ((t, b, I), f"T B {I}", True),
        ((directions, g * H, I), None, True),
        ((directions, g * H, H), None, True),
        ((directions, 2 * g * H), None, bias),
        ((b,), "B", lens),
        ((directions, b, H), f"{directions} B {H}", initial),
    ]
    if name == "LSTM":
        rows += [((directions, b, H), f"{directions} B {H}", initial), ((directions, 3 * H), None, peepholes)]
    operands = [rng.normal(size=dims).astype(np.float32) * 0.7 if given else None for dims, _, given in rows]
    if lens:
        operands[4] = np.array([t, t - 2, t - 5], np.int32)[:b]
    return operands, [shape for _, shape, given in rows if given]


def outputs(name):
    return 3 if name == "LSTM" else 2


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("given", [True, False])
def test_against_onnx_runtime(name, direction, given):
    operands, shapes = layer(
        name, 2 if direction == "bidirectional" else 1, bias=given, lens=given, initial=given, peepholes=given
    )
    got = check_composite(name, *operands, hidden_size=H, direction=direction, shapes=shapes, ulps=32)
    want = run_onnx_node(name, operands, hidden_size=H, direction=direction, outputs=outputs(name), opset=14)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", GATES)
def test_batch_first(name):
    operands, _ = layer(name, 2, peepholes=False)
    want = run(name, *operands, hidden_size=H, direction="bidirectional")
    turned = [v.swapaxes(0, 1) if v is not None and i in (0, 5, 6) else v for i, v in enumerate(operands)]
    shapes = [f"B T {I}", None, None, None, "B", *[f"B 2 {H}"] * (outputs(name) - 1)]
    got = check_composite(name, *turned, hidden_size=H, direction="bidirectional", layout=1, shapes=shapes, ulps=32)
    np.testing.assert_array_equal(got[0], want[0].transpose(2, 0, 1, 3))
    for mine, theirs in zip(got[1:], want[1:], strict=True):
        np.testing.assert_array_equal(mine, theirs.swapaxes(0, 1))


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_gru_variants(linear, clip):
    operands, shapes = layer("GRU")
    got = check_composite(
        "GRU", *operands, hidden_size=H, linear_before_reset=linear, clip=clip, shapes=shapes, ulps=32
    )
    more = {"clip": clip} if clip else {}
    want = run_onnx_node("GRU", operands, hidden_size=H, linear_before_reset=int(linear), outputs=2, opset=14, **more)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("couple", [False, True])
@pytest.mark.parametrize("clip", [0.0, 0.3])
def test_lstm_variants(couple, clip):
    operands, shapes = layer("LSTM")
    got = check_composite("LSTM", *operands, hidden_size=H, input_forget=couple, clip=clip, shapes=shapes, ulps=32)
    more = {"clip": clip} if clip else {}
    want = run_onnx_node("LSTM", operands, hidden_size=H, input_forget=int(couple), outputs=3, opset=14, **more)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


FORMULAS = {
    "Affine": lambda x: 0.6 * x + 0.3,
    "Elu": lambda x: np.where(x > 0, x, 0.6 * np.expm1(x)),
    "HardSigmoid": lambda x: np.clip(0.6 * x + 0.3, 0, 1),
    "LeakyRelu": lambda x: np.where(x < 0, 0.6 * x, x),
    "Relu": lambda x: np.maximum(x, 0),
    "ScaledTanh": lambda x: 0.6 * np.tanh(0.3 * x),
    "Sigmoid": scipy.special.expit,
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + abs(x)),
    "Tanh": np.tanh,
    "ThresholdedRelu": lambda x: np.where(x > 0.6, x, 0),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_activations(name):
    operands, shapes = layer("RNN", lens=False)
    alpha, beta = ((v,) if d is not None else () for v, d in zip((0.6, 0.3), PARAMETERS[name], strict=True))
    got = check_composite(
        "RNN", *operands, hidden_size=H, activations=(name,), activation_alpha=alpha, activation_beta=beta,
        shapes=shapes, ulps=64,
    )  # fmt: skip
    x, w, r, b, _, hidden = (None if v is None else v.astype(float) for v in operands)
    hidden = hidden[0]
    for t in range(len(x)):
        hidden = FORMULAS[name](x[t] @ w[0].T + hidden @ r[0].T + b[0, :H] + b[0, H:])
        np.testing.assert_allclose(got[0][t, 0], hidden, rtol=1e-5, atol=1e-6)


def test_parameters_of_activations_fill_in_order():
    rows = activations(("LeakyRelu", "Tanh", "HardSigmoid", "Elu"), (0.5, 0.7), (0.1,), 2, 2)
    assert rows == [[("LeakyRelu", 0.5, 0.0), ("Tanh", 0.0, 0.0)], [("HardSigmoid", 0.7, 0.1), ("Elu", 1.0, 0.0)]]
    assert activations(("Tanh",), (), (), 1, 2) == [[("Tanh", 0.0, 0.0)]] * 2


@pytest.mark.parametrize("name", GATES)
def test_no_time_and_no_batch(name):
    for t, b in ((0, 3), (4, 0)):
        operands, _ = layer(name, t=t, b=b, lens=False)
        y, *states = check_composite(name, *operands, hidden_size=H)
        assert y.shape == (t, 1, b, H)
        if not t:
            np.testing.assert_array_equal(states[0], operands[5])


@pytest.mark.parametrize("name", GATES)
def test_halves_keep_their_state_in_f32(name):
    operands, shapes = layer(name, 1)
    halves = [v.astype(np.float16) if v is not None and v.dtype == np.float32 else v for v in operands]
    got = check_composite(name, *halves, hidden_size=H, shapes=shapes, ulps=1)
    assert got[0].dtype == np.float16


def test_types_and_errors():
    x, w, r = tensor(dtypes.f32, T, B, I), tensor(dtypes.f32, 1, 4 * H, I), tensor(dtypes.f32, 1, 4 * H, H)
    y, h, c = facts_of("LSTM", x, w, r, hidden_size=H)
    assert [str(f.type) for f in (y, h, c)] == [f"f32[T,1,B,{H}]", f"f32[1,B,{H}]", f"f32[1,B,{H}]"]
    for change, message in (
        ({"direction": "backward"}, "direction must be one of forward, reverse, bidirectional"),
        ({"direction": "bidirectional"}, "dims of w"),
        ({"activations": ("Sigmoid", "Tanh", "Tank")}, "no activation is called 'Tank'"),
        ({"activations": ("Sigmoid",)}, "activations needs 3 names"),
        ({"layout": 2}, "layout must be 0 or 1"),
    ):
        with pytest.raises(InferenceError, match=message):
            facts_of("LSTM", x, w, r, **{"hidden_size": H, **change})


@pytest.mark.parametrize("lens", list(itertools.product([0, 1, 6], repeat=2))[:4], ids=str)
def test_rows_past_their_length_are_zero_and_keep_their_state(lens):
    operands, shapes = layer("GRU", 2, b=2)
    operands[4] = np.array(lens, np.int32)
    y, h = check_composite("GRU", *operands, hidden_size=H, direction="bidirectional", shapes=shapes, ulps=32)
    for row, n in enumerate(lens):
        assert not y[n:, :, row].any()
        if n == 0:
            np.testing.assert_array_equal(h[:, row], operands[5][:, row])
        else:
            np.testing.assert_array_equal(h[0, row], y[n - 1, 0, row])
            np.testing.assert_array_equal(h[1, row], y[0, 1, row])
