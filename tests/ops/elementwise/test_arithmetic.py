"""Core elementwise operators: references against NumPy and SciPy, integers against exact arithmetic."""

import numpy as np
import pytest
import scipy.special

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.operators import get
from irc.ir.types import tensor
from irc.testing.operators import facts_of, run

B, S = symbol("B"), symbol("S")
X = np.array([[-2.5, -1.0, -0.0, 0.25], [0.0, 0.75, 1.0, 40.0]], np.float32)
Y = np.array([[2.0], [-0.5]], np.float32)
INTEGERS = [d for d in dtypes.ALL if d.is_integer]

UNARY = {
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p,
    "tanh": np.tanh, "sqrt": np.sqrt, "cbrt": np.cbrt, "ceil": np.ceil, "floor": np.floor,
    "round_nearest_even": np.round, "sine": np.sin, "cosine": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "logistic": scipy.special.expit, "erf": scipy.special.erf, "erfc": scipy.special.erfc,
    "erf_inv": scipy.special.erfinv, "lgamma": scipy.special.gammaln, "digamma": scipy.special.psi, "abs": np.abs,
    "negate": np.negative,
}  # fmt: skip
BINARY = {
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide, "remainder": np.fmod,
    "power": np.power, "maximum": np.maximum, "minimum": np.minimum, "atan2": np.arctan2, "Mod": np.mod,
}  # fmt: skip


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.parametrize("dtype", [dtypes.f64, dtypes.f32, dtypes.f16, dtypes.bf16], ids=str)
def test_unary_is_the_formula_in_f64_rounded_once(name, dtype):
    x = X.astype(dtype.numpy)
    got = run(name, x)
    with np.errstate(all="ignore"):
        want = UNARY[name](x.astype(np.float64))
        if dtype is not dtypes.bf16:  # ml_dtypes rounds f64 to bf16 twice
            np.testing.assert_array_equal(got, want.astype(dtype.numpy))
        else:
            exponent = np.maximum(np.frexp(want)[1], -125)
            np.testing.assert_array_less(
                np.abs(got.astype(float) - want)[np.isfinite(want)],
                1.0001 * np.ldexp(1.0, exponent - 9)[np.isfinite(want)],
            )
            np.testing.assert_array_equal(np.isnan(got), np.isnan(want))


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", [dtypes.f64, dtypes.f32, dtypes.f16], ids=str)
def test_binary_is_the_formula_in_f64_rounded_once(name, dtype):
    x, y = X.astype(dtype.numpy), Y.astype(dtype.numpy)
    with np.errstate(all="ignore"):
        want = BINARY[name](x.astype(np.float64), y.astype(np.float64)).astype(dtype.numpy)
    np.testing.assert_array_equal(run(name, x, y), want)


def c_divide(x, y, bits, signed):
    """x / y of a C compiler, with the results that irc fixes where C has none.  Python integers."""
    if y == 0:
        return -1 if signed else (1 << bits) - 1
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def stored(value, dtype):
    low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
    return (value - low) % (1 << dtype.bits) + low


INTEGER_RULES = {
    "add": lambda x, y, d: x + y,
    "subtract": lambda x, y, d: x - y,
    "multiply": lambda x, y, d: x * y,
    "divide": lambda x, y, d: c_divide(x, y, d.bits, d.kind == "int"),
    "remainder": lambda x, y, d: x if y == 0 else x - y * c_divide(x, y, d.bits, True),
    "Mod": lambda x, y, d: x if y == 0 else x % y,
    "maximum": lambda x, y, d: max(x, y),
    "minimum": lambda x, y, d: min(x, y),
    "and": lambda x, y, d: x & y,
    "or": lambda x, y, d: x | y,
    "xor": lambda x, y, d: x ^ y,
    "power": lambda x, y, d: x**y if y >= 0 else {1: 1, -1: 1 - 2 * (y % 2)}.get(x, 0),
    "shift_left": lambda x, y, d: x << y if 0 <= y < d.bits else 0,
    "shift_right_logical": lambda x, y, d: (x % (1 << d.bits)) >> y if 0 <= y < d.bits else 0,
    "shift_right_arithmetic": lambda x, y, d: stored_signed(x, d) >> (y if 0 <= y < d.bits else d.bits - 1),
}


def stored_signed(value, dtype):
    half = 1 << (dtype.bits - 1)
    return (value + half) % (1 << dtype.bits) - half


def corners(dtype):
    low, high = int(dtype.min_value()), int(dtype.max_value())
    values = sorted({v for v in (low, low + 1, -3, -1, 0, 1, 2, 3, high // 2, high - 1, high) if low <= v <= high})
    return np.array(values, object)


@pytest.mark.parametrize("name", INTEGER_RULES)
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_follow_exact_arithmetic_and_wrap(name, dtype):
    values = corners(dtype)
    exponents = [v for v in values if abs(v) <= 3] if name == "power" else values
    pairs = [(x, y) for x in values for y in exponents]
    wide = np.uint64 if dtype is dtypes.u64 else np.int64
    x, y = (np.array(column, wide).astype(dtype.numpy) for column in zip(*pairs, strict=True))
    want = [stored(INTEGER_RULES[name](int(a), int(b), dtype), dtype) for a, b in pairs]
    assert [int(v) for v in run(name, x, y)] == want
    if get(name).is_composite:
        assert [int(v) for v in run(name, x, y, decompose=True)] == want


@pytest.mark.parametrize("name", ["not", "popcnt", "count_leading_zeros", "abs", "negate", "sign"])
@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_unary_integers(name, dtype):
    def rule(v):
        pattern = v % (1 << dtype.bits)
        return {
            "not": ~v, "popcnt": pattern.bit_count(), "count_leading_zeros": dtype.bits - pattern.bit_length(),
            "abs": abs(v), "negate": -v, "sign": (v > 0) - (v < 0),
        }[name]  # fmt: skip

    values = [int(v) for v in corners(dtype)]
    x = np.array(values, np.uint64 if dtype is dtypes.u64 else np.int64).astype(dtype.numpy)
    assert [int(v) for v in run(name, x)] == [stored(rule(v), dtype) for v in values]


def test_signs_and_nan():
    x = np.array([-0.0, 0.0, np.nan, -3.0, np.inf], np.float32)
    got = run("sign", x)
    np.testing.assert_array_equal(got, np.array([-0.0, 0.0, np.nan, -1, 1], np.float32))
    assert np.signbit(got[:2]).tolist() == [True, False]
    np.testing.assert_array_equal(run("rsqrt", x[:2]), np.array([-np.inf, np.inf], np.float32))
    nan = np.array([np.nan, 1.0], np.float32)
    for name in ("maximum", "minimum"):
        assert np.isnan(run(name, nan, nan[::-1].copy())).all()
    one = np.array([1.0, 1.0], np.float32)
    assert np.isnan(run("clamp", nan[:1], one[:1], one[:1])).all()
    assert run("clamp", np.float32(5), np.float32(1), np.float32(2)) == 2, "low above high gives high"


def test_rounding_half_away_from_zero_does_not_round_below_the_half():
    x = np.array([0.5, -0.5, 1.5, 2.5, 0.49999999999999994, -0.2, 4503599627370497.0])
    got = run("round_nearest_afz", x)
    assert got.tolist() == [1, -1, 2, 3, 0, 0, 4503599627370497.0]
    assert np.signbit(got[5])


def test_complex_numbers():
    z = np.array([3 + 4j, 0, -1j], np.complex64)
    assert run("abs", z).dtype == np.float32
    np.testing.assert_allclose(run("abs", z), [5, 0, 1])
    np.testing.assert_allclose(run("sign", z), [0.6 + 0.8j, 0, -1j], rtol=1e-7)
    np.testing.assert_array_equal(run("complex", run("real", z), run("imag", z)), z)
    np.testing.assert_array_equal(run("conj", z), z.conj())
    assert facts_of("real", tensor(dtypes.c128, B)).type == tensor(dtypes.f64, B)
    with pytest.raises(InferenceError, match="f32 or f64, got f16"):
        facts_of("complex", tensor(dtypes.f16, 2), tensor(dtypes.f16, 2))


@pytest.mark.parametrize("direction", ["eq", "ne", "lt", "le", "gt", "ge"])
def test_compare_with_nan(direction):
    x, y = np.array([1, np.nan, 2], np.float32), np.array([1, np.nan, 3], np.float32)
    want = {"eq": [1, 0, 0], "ne": [0, 1, 1], "lt": [0, 0, 1], "le": [1, 0, 1], "gt": [0, 0, 0], "ge": [1, 0, 0]}[
        direction
    ]
    assert run("compare", x, y, direction=direction).tolist() == [bool(v) for v in want]


def test_strings_are_only_equal_or_not():
    x, y = np.array(["a", "b"], object), np.array(["a", "c"], object)
    assert run("compare", x, y, direction="eq").tolist() == [True, False]
    assert run("select", np.array([True, False]), x, y).tolist() == ["a", "c"]
    with pytest.raises(InferenceError, match="direction must be eq or ne, got lt"):
        run("compare", x, y, direction="lt")
