"""ONNX's elementwise composites: formulas, and decompositions against references."""

import numpy as np
import pytest
import scipy.special

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.operators import all_operators, get
from irc.ir.types import tensor
from irc.testing.operators import facts_of, run

B, S = symbol("B"), symbol("S")
X = np.array([[-2.5, -1.0, -0.0, 0.25], [0.0, 0.75, 1.0, 40.0]], np.float32)
Y = np.array([[2.0], [-0.5]], np.float32)
FLOATS = [d for d in dtypes.ALL if d.is_float]
COMPOSITES = [op.name for op in all_operators() if op.family == "elementwise" and op.is_composite]


FORMULAS = {
    "Relu": lambda x: np.maximum(x, 0),
    "LeakyRelu": lambda x: np.where(x >= 0, x, np.float64(np.float32(0.01)) * x),
    "Elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "Celu": lambda x: np.maximum(x, 0) + np.minimum(np.exp(x) - 1, 0),
    "Selu": lambda x: 1.05070102214813232421875 * np.where(x > 0, x, 1.67326319217681884765625 * (np.exp(x) - 1)),
    "Gelu": lambda x: x * scipy.special.ndtr(x),
    "HardSigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "HardSwish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "Softplus": lambda x: np.log1p(np.exp(x)),
    "Softsign": lambda x: x / (1 + np.abs(x)),
    "Swish": lambda x: x * scipy.special.expit(x),
    "ThresholdedRelu": lambda x: np.where(x > 1, x, 0),
    "Shrink": lambda x: np.where(x < -0.5, x, np.where(x > 0.5, x, 0)),
    "Reciprocal": lambda x: 1 / x,
    "IsNaN": np.isnan,
    "IsInf": np.isinf,
}


def close(got, want, dtype, ulps):
    """Within `ulps` units in the last place of the type, at the scale of each element (at least the least normal's)."""
    got, want = np.asarray(got).astype(np.float64), np.asarray(want).astype(np.float64)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    info = dtype.finfo()
    finite = np.isfinite(want)
    np.testing.assert_array_equal(got[~finite], want[~finite])
    ulp = float(info.eps) * np.maximum(np.abs(want), float(info.tiny))
    assert (np.abs(got - want) <= ulps * ulp)[finite].all(), (got, want)


@pytest.mark.parametrize("name", FORMULAS)
def test_activation_is_its_formula(name):
    x = np.array([-30, -5, -1.5, -0.6, -0.1, 0.0, 0.2, 0.7, 1.5, 6.0, 20.0])
    with np.errstate(all="ignore"):
        want = FORMULAS[name](x)
    np.testing.assert_allclose(run(name, x).astype(float), want, rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [d for d in FLOATS if d is not dtypes.f8e8m0fnu], ids=str)
def test_decomposition_of_an_activation_agrees(name, dtype):
    x = np.array([-30, -5, -1.5, -0.6, -0.1, 0.2, 0.7, 1.5, 6.0, 20.0, np.nan]).astype(dtype.numpy)
    got, want = run(name, x, decompose=True), run(name, x)
    assert got.dtype == want.dtype
    if want.dtype == bool:
        assert got.tolist() == want.tolist()
    else:
        # narrow types are computed in f32 and rounded: one unit; f32 and f64 in their own arithmetic: a few operations,
        # and a rounded argument of e^-(x^2) moves the result by x^2 units.
        close(got, want, dtype, 1 if dtype.bits < 32 else 8 + 2 * np.nan_to_num(x.astype(np.float64)) ** 2)


def test_gelu_by_tanh():
    x = np.linspace(-4, 4, 33)
    want = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    np.testing.assert_allclose(run("Gelu", x, approximate="tanh"), want, rtol=1e-12)
    np.testing.assert_allclose(run("Gelu", x, approximate="tanh", decompose=True), want, rtol=1e-12)


@pytest.mark.parametrize("name", ["Max", "Min", "Sum", "Mean"])
def test_variadic(name):
    xs = [X, Y, np.float32(3)]
    rule = {"Max": np.maximum, "Min": np.minimum}.get(name, np.add)
    want = rule(rule(xs[0], xs[1]), xs[2])
    if name == "Mean":
        want = want / np.float32(3)
    np.testing.assert_array_equal(run(name, xs), want)
    assert facts_of(name, (tensor(dtypes.f32, B, 1), tensor(dtypes.f32, S))).type == tensor(dtypes.f32, B, S)


@pytest.mark.parametrize("constants", [False, True])
def test_clip(constants):
    low, high = np.float32(-1), np.float32(0.5)
    for bounds in ((low, high), (low, None), (None, high), (None, None), (high, low)):
        got = run("Clip", X, *bounds, constants=constants)
        want = X if bounds[0] is None else np.maximum(X, bounds[0])
        want = want if bounds[1] is None else np.minimum(want, bounds[1])
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(run("Clip", X, *bounds, decompose=True), want)


@pytest.mark.parametrize(
    "x, y",
    [
        ("f32", "i64"),
        ("i32", "f32"),
        ("i8", "i64"),
        ("u8", "i32"),
        ("f16", "f32"),
        ("bf16", "f16"),
        ("i64", "u8"),
        ("f32", "f64"),
    ],
)
def test_pow_of_mixed_types(x, y):
    x, y = dtypes.DType.of(x), dtypes.DType.of(y)
    a = np.array([[1], [2], [3]]).astype(x.numpy)
    b = np.array([0, 1, 2, 3]).astype(y.numpy)
    want = (np.array([[1], [2], [3]]) ** np.array([0, 1, 2, 3])).astype(x.numpy)
    for decompose in (False, True):
        got = run("Pow", a, b, decompose=decompose)
        assert got.dtype == x.numpy
        np.testing.assert_array_equal(got.astype(float), want.astype(float))


def test_is_inf_of_one_sign():
    x = np.array([np.inf, -np.inf, np.nan, 1], np.float32)
    for negative in (False, True):
        for positive in (False, True):
            keywords = {"detect_negative": negative, "detect_positive": positive}
            want = [positive, negative, False, False]
            assert run("IsInf", x, **keywords).tolist() == want
            assert run("IsInf", x, decompose=True, **keywords).tolist() == want


def test_float_mod_has_the_sign_of_the_divisor_also_at_zero():
    x = np.array([-7.5, 7.5, -4.0, 4.0, -1.0, 1.0, -0.0], np.float32)
    y = np.array([2.0, -2.0, 2.0, -2.0, np.inf, np.inf, 3.0], np.float32)
    for decompose in (False, True):
        got = run("Mod", x, y, decompose=decompose)
        np.testing.assert_array_equal(got, np.mod(x, y))
        np.testing.assert_array_equal(np.signbit(got), np.signbit(y))


@pytest.mark.parametrize("name", ["PRelu", "LeakyRelu", "Relu"])
def test_relus_of_symbolic_dims(name):
    operands = [tensor(dtypes.f32, B, 3, S)] + ([tensor(dtypes.f32, 3, 1)] if name == "PRelu" else [])
    assert facts_of(name, *operands).type == tensor(dtypes.f32, B, 3, S)


def test_slope_does_not_widen_x():
    with pytest.raises(
        InferenceError, match=r"dims of x and of the slope broadcast to it \(axis 0\) must be equal, got 1 and 3"
    ):
        facts_of("PRelu", tensor(dtypes.f32, 1, 4), tensor(dtypes.f32, 3, 4))


def test_prelu():
    slope = np.array([[0.5], [2.0]], np.float32)
    want = np.where(X >= 0, X, slope * X)
    for decompose in (False, True):
        np.testing.assert_array_equal(run("PRelu", X, slope, decompose=decompose), want)


def test_every_composite_has_a_decomposition_that_types():
    for name in COMPOSITES:
        op = get(name)
        assert op.decompose is not None, name
        operands = [tensor(dtypes.f32, B, 4) for spec in op.operands if not spec.optional]
        grouped = [tuple(operands)] if op.groups else operands
        native = facts_of(name, *grouped)
        assert native.type.dims == (B, 4), name
