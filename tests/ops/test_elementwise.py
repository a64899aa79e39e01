"""Elementwise operators: references against NumPy and SciPy, decompositions against references, types and known integers."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special
from irc.ir import dims, dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError, InputError
from irc.ir.facts import Fact, shape_fact
from irc.ir.operators import all_operators, get
from irc.ir.types import tensor
from irc.testing.operators import assumptions_of, facts_of, run

B, S = symbol("B"), symbol("S")
X = np.array([[-2.5, -1.0, -0.0, 0.25], [0.0, 0.75, 1.0, 40.0]], np.float32)
Y = np.array([[2.0], [-0.5]], np.float32)
FLOATS = [d for d in dtypes.ALL if d.is_float]
INTEGERS = [d for d in dtypes.ALL if d.is_integer]
COMPOSITES = [op.name for op in all_operators() if op.family == "elementwise" and op.is_composite]

UNARY = {
    "exponential": np.exp, "exponential_minus_one": np.expm1, "log": np.log, "log_plus_one": np.log1p, "tanh": np.tanh,
    "sqrt": np.sqrt, "cbrt": np.cbrt, "ceil": np.ceil, "floor": np.floor, "round_nearest_even": np.round, "sine": np.sin,
    "cosine": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh, "logistic": scipy.special.expit, "erf": scipy.special.erf,
    "erfc": scipy.special.erfc, "erf_inv": scipy.special.erfinv, "lgamma": scipy.special.gammaln,
    "digamma": scipy.special.psi, "abs": np.abs, "negate": np.negative,
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
            np.testing.assert_array_less(np.abs(got.astype(float) - want)[np.isfinite(want)], 1.0001 * np.ldexp(1.0, exponent - 9)[np.isfinite(want)])
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
            "not": ~v, "popcnt": pattern.bit_count(), "count_leading_zeros": dtype.bits - pattern.bit_length(), "abs": abs(v),
            "negate": -v, "sign": (v > 0) - (v < 0),
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
    want = {"eq": [1, 0, 0], "ne": [0, 1, 1], "lt": [0, 0, 1], "le": [1, 0, 1], "gt": [0, 0, 0], "ge": [1, 0, 0]}[direction]
    assert run("compare", x, y, direction=direction).tolist() == [bool(v) for v in want]


def test_strings_are_only_equal_or_not():
    x, y = np.array(["a", "b"], object), np.array(["a", "c"], object)
    assert run("compare", x, y, direction="eq").tolist() == [True, False]
    assert run("select", np.array([True, False]), x, y).tolist() == ["a", "c"]
    with pytest.raises(InferenceError, match="direction must be eq or ne, got lt"):
        run("compare", x, y, direction="lt")


# Composites


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
    """Within `ulps` units in the last place of the type, at the scale of each element (subnormals: at the least normal's)."""
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


@pytest.mark.parametrize("x, y", [("f32", "i64"), ("i32", "f32"), ("i8", "i64"), ("u8", "i32"), ("f16", "f32"), ("bf16", "f16"), ("i64", "u8"), ("f32", "f64")])
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
    with pytest.raises(InferenceError, match=r"dims of x and of the slope broadcast to it \(axis 0\) must be equal, got 1 and 3"):
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


# Types and known integers


def test_result_types():
    f = tensor(dtypes.f32, B, 1)
    assert facts_of("add", f, tensor(dtypes.f32, S)).type == tensor(dtypes.f32, B, S)
    assert facts_of("compare", f, tensor(dtypes.f32, S), direction="lt").type == tensor(dtypes.bool_, B, S)
    assert facts_of("is_finite", f).type == tensor(dtypes.bool_, B, 1)
    assert facts_of("Pow", f, tensor(dtypes.i64, S)).type == tensor(dtypes.f32, B, S)
    assert facts_of("select", tensor(dtypes.bool_), f, tensor(dtypes.f32, S)).type == tensor(dtypes.f32, B, S)
    assert facts_of("optimization_barrier", (f, tensor(dtypes.i8)))[1].type == tensor(dtypes.i8)
    with pytest.raises(InferenceError, match="one element type, got f32, f16"):
        facts_of("add", f, tensor(dtypes.f16, S))
    with pytest.raises(InferenceError, match=r"operand x of not has type f32\[B,1\]; expected bool or an integer type"):
        facts_of("not", f)
    with pytest.raises(InferenceError, match="do not broadcast"):
        facts_of("add", tensor(dtypes.f32, 2), tensor(dtypes.f32, 3))


def scalar(value, dtype=dtypes.i64):
    return Fact(tensor(dtype), (value,))


INTS = [
    ("add", (shape_fact((B, S)), scalar(1)), (B + 1, S + 1)),
    ("subtract", (shape_fact((B, 7)), shape_fact((1, 3))), (B - 1, 4)),
    ("multiply", (shape_fact((B, S)), shape_fact((S, 2))), (B * S, S * 2)),
    ("divide", (shape_fact((B * 4, 7)), scalar(2)), (B * 2, 3)),
    ("divide", (scalar(-7), scalar(2)), (-3,)),
    ("divide", (scalar(B - 5), scalar(2)), None),
    ("remainder", (scalar(-7), scalar(2)), (-1,)),
    ("Mod", (shape_fact((-7, B * 2)), scalar(2)), (1, 0)),
    ("maximum", (shape_fact((B, 3)), scalar(1)), (dims.maximum(B, 1), 3)),
    ("negate", (shape_fact((B, 3)),), (-B, -3)),
    ("abs", (shape_fact((B, -3)),), (B, 3)),
    ("sign", (shape_fact((B + 1, -3)),), (1, -1)),
    ("sign", (shape_fact((B, -3)),), (None, -1)),
    ("power", (shape_fact((B, 3)), scalar(2)), (B * B, 9)),
    ("clamp", (scalar(0), shape_fact((-3, 9)), scalar(5)), (0, 5)),
    ("Clip", (shape_fact((-3, 9)), scalar(0), None), (0, 9)),
    ("and", (scalar(6), scalar(3)), (2,)),
    ("not", (scalar(6),), (-7,)),
    ("select", (Fact(tensor(dtypes.bool_, 2), (1, 0)), shape_fact((B, S)), shape_fact((1, 2))), (B, 2)),
    ("select", (Fact(tensor(dtypes.bool_, 2), (1, None)), shape_fact((B, S)), shape_fact((1, S))), (B, S)),
]


@pytest.mark.parametrize("name, operands, want", INTS)
def test_known_integers_flow(name, operands, want):
    assert facts_of(name, *operands).ints == want


def test_broadcast_of_known_integers_respects_shapes():
    column = Fact(tensor(dtypes.i64, 2, 1), (B, 10))
    row = Fact(tensor(dtypes.i64, 1, 3), (1, None, 3))
    assert facts_of("add", column, row).ints == (B + 1, None, B + 3, 11, None, 13)


def test_a_comparison_of_sizes_decides_where_it_can():
    got = facts_of("compare", shape_fact((B + 1, B, 3)), scalar(0), direction="gt")
    assert got.type == tensor(dtypes.bool_, 3)
    assert got.ints == (1, None, 1)


def test_sizes_do_not_wrap_silently_in_narrow_types():
    assert facts_of("convert", shape_fact((B, 300)), dtype=dtypes.i32).ints == (B, 300)
    assert facts_of("convert", shape_fact((B, 300)), dtype=dtypes.u8).ints == (None, 44)
    assert facts_of("convert", shape_fact((B - 1, 3)), dtype=dtypes.u32).ints == (None, 3)
    assert facts_of("convert", shape_fact((B + 1, 0)), dtype=dtypes.bool_).ints == (1, 0)
    assert facts_of("convert", shape_fact((B, 3)), dtype=dtypes.f32).ints is None


def test_a_divisor_that_may_be_zero_is_assumed_not_to_be():
    assert assumptions_of("divide", scalar(B * S), scalar(B)) == ["1 <= B"]


# Conversion


@pytest.mark.parametrize("source", dtypes.ALL, ids=str)
@pytest.mark.parametrize("target", dtypes.ALL, ids=str)
def test_convert_between_every_pair(source, target):
    powers = dtypes.f8e8m0fnu in (source, target)  # it has no zero and no three
    if {1, 2} & {source.bits, target.bits}:
        values = [1, 1, 1, 1] if powers else [0, 1, 1, 0]
    else:
        values = [1, 1, 2, 4] if powers else [0, 1, 2, 3]
    x = np.array([str(v) for v in values], object) if source.is_string else np.array(values).astype(source.numpy)
    got = run("convert", x, dtype=target)
    assert got.dtype == target.numpy
    if target.is_string:
        back = [v == "True" for v in got] if source.is_bool else [complex(v).real for v in got]
        assert back == values
    else:
        assert [v.real for v in got.astype(np.complex128)] == values


@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_float_to_integer_saturates(target):
    low, high = int(target.min_value()), int(target.max_value())
    x = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 1.9, -0.9, float(high), float(low)])
    assert [int(v) for v in run("convert", x, dtype=target)] == [0, high, low, high, low, min(1, high), 0, high, low]


def test_nan_is_true():
    assert run("convert", np.array([np.nan, 0.0, -0.0, 1e-30], np.float32), dtype=dtypes.bool_).tolist() == [True, False, False, True]


@pytest.mark.parametrize("target", [d for d in FLOATS if d.bits < 16 and d is not dtypes.f8e8m0fnu], ids=str)
def test_narrow_floats_saturate_on_demand(target):
    greatest = float(target.finfo().max)
    x = np.array([1e9, -1e9, np.inf, 1.0], np.float32)
    assert run("convert", x, dtype=target, saturate=True).astype(float).tolist() == [greatest, -greatest, greatest, 1.0]
    plain = run("convert", x, dtype=target).astype(float)
    if target is dtypes.f8e5m2:
        assert plain.tolist() == [np.inf, -np.inf, np.inf, 1.0]
    elif target.bits < 8:
        assert plain.tolist() == [greatest, -greatest, greatest, 1.0]
    else:
        assert np.isnan(plain[:3]).all()


@pytest.mark.parametrize("dtype", [d for d in FLOATS if d.bits <= 16 and d is not dtypes.f8e8m0fnu], ids=str)
def test_every_value_rounds_to_the_nearest_even_once(dtype):
    """A hair above and below each midpoint between neighbours, which a detour over f32 would take for the midpoint."""
    patterns = np.arange(1 << dtype.bits, dtype=np.uint16 if dtype.bits == 16 else np.uint8).view(dtype.numpy)
    with np.errstate(invalid="ignore"):
        wide = patterns.astype(np.float64)
    values = np.unique(wide[np.isfinite(wide)])
    middle = (values[1:] + values[:-1]) / 2
    np.testing.assert_array_equal(run("convert", values, dtype=dtype).astype(float), values)
    np.testing.assert_array_equal(run("convert", np.nextafter(middle, np.inf), dtype=dtype).astype(float), values[1:])
    np.testing.assert_array_equal(run("convert", np.nextafter(middle, -np.inf), dtype=dtype).astype(float), values[:-1])


def test_bf16_is_rounded_once_from_f64_and_from_i64():
    x = np.array([1 + 2.0**-8 + 2.0**-40, 1 + 2.0**-8, 1 + 2.0**-8 - 2.0**-40])
    assert run("convert", x, dtype=dtypes.bf16).astype(float).tolist() == [1 + 2.0**-7, 1.0, 1.0]
    big = np.array([2**62 + 2**54 + 1, 2**62 + 2**54, -(2**62) - 2**54 - 1], np.int64)
    assert run("convert", big, dtype=dtypes.bf16).astype(float).tolist() == [2.0**62 + 2.0**55, 2.0**62, -(2.0**62) - 2.0**55]


def test_strings():
    text = np.array(["3.14", "1e-5", "-INF", "NaN", "100.5"], object)
    np.testing.assert_array_equal(run("convert", text, dtype=dtypes.f32), np.array([3.14, 1e-5, -np.inf, np.nan, 100.5], np.float32))
    assert run("convert", np.array(["100.5", "-7", "999"], object), dtype=dtypes.i8).tolist() == [100, -7, 127]
    assert run("convert", np.array([0.1, 1.5], np.float32), dtype=dtypes.string).tolist() == ["0.1", "1.5"]
    assert run("convert", np.array([True, False]), dtype=dtypes.string).tolist() == ["True", "False"]
    assert run("convert", np.array([1.1], ml_dtypes.bfloat16), dtype=dtypes.string).tolist() == ["1.1015625"]
    with pytest.raises(InputError, match="the string 'pi' cannot be converted to f32"):
        run("convert", np.array(["pi"], object), dtype=dtypes.f32)


def test_complex_to_real_drops_the_imaginary_part():
    assert run("convert", np.array([2.5 + 1j]), dtype=dtypes.f32).tolist() == [2.5]
    assert run("convert", np.array([2.5 + 1j]), dtype=dtypes.i32).tolist() == [2]
    assert run("convert", np.array([1j, 0]), dtype=dtypes.bool_).tolist() == [True, False]


@pytest.mark.parametrize("source, target", [("f32", "i32"), ("f64", "u8"), ("u8", "f64"), ("u16", "u4"), ("i4", "i32"), ("f8e4m3fn", "u8"), ("i2", "u8"), ("u8", "u8")])
def test_bits_stay(source, target):
    source, target = dtypes.DType.of(source), dtypes.DType.of(target)
    count = max(1, target.bits // source.bits)
    x = np.arange(-3, count * 3 - 3).reshape(3, count).astype(source.numpy)
    there = run("bitcast_convert", x, dtype=target)
    back = run("bitcast_convert", there, dtype=source)
    np.testing.assert_array_equal(back.reshape(x.shape).view(np.uint8), x.view(np.uint8))
    if source.bits >= 8 and target.bits >= 8:
        want = x.view(target.numpy) if source.bits >= target.bits else x.reshape(3, -1, target.bits // source.bits).view(target.numpy)
        np.testing.assert_array_equal(there.reshape(-1).view(np.uint8), want.reshape(-1).view(np.uint8))


def test_bitcast_dims_and_errors():
    assert facts_of("bitcast_convert", tensor(dtypes.f32, B), dtype=dtypes.u8).type == tensor(dtypes.u8, B, 4)
    assert facts_of("bitcast_convert", tensor(dtypes.u4, B, 8), dtype=dtypes.i32).type == tensor(dtypes.i32, B)
    with pytest.raises(InferenceError, match="the last dim of x, read as the wider f32, and 4 must be equal, got 3 and 4"):
        facts_of("bitcast_convert", tensor(dtypes.u8, B, 3), dtype=dtypes.f32)
    with pytest.raises(InferenceError, match="the bits of c64 cannot be read as f64"):
        facts_of("bitcast_convert", tensor(dtypes.c64, B), dtype=dtypes.f64)


def test_low_bits_come_first():
    assert run("bitcast_convert", np.array([0x4321], np.uint16), dtype=dtypes.u4).astype(int).tolist() == [[1, 2, 3, 4]]


def test_reduce_precision_is_rounding_to_the_narrower_format():
    x = np.array([1.0009765625, 65519.0, 65520.0, 1e-8, -3.14159, np.nan, -np.inf, 6.1e-5], np.float32)
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    half[3] = half[7] = 0  # below the least normal number of the format
    np.testing.assert_array_equal(run("reduce_precision", x, exponent_bits=5, mantissa_bits=10), half)
    brain = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(run("reduce_precision", x, exponent_bits=8, mantissa_bits=7), brain)
    with pytest.raises(InferenceError, match="exponent_bits must be at least 1, got 0"):
        run("reduce_precision", x, exponent_bits=0, mantissa_bits=3)
