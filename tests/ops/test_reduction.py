"""Reductions: references against NumPy and SciPy, decompositions against references, edges, types."""

import ml_dtypes
import numpy as np
import pytest
import scipy.special

from irc.ir import dims, dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.facts import Fact, shape_fact
from irc.ir.types import tensor
from irc.testing.operators import assumptions_of, check_composite, facts_of, run

B, N = symbol("B"), symbol("N")
X = np.random.default_rng(0).normal(size=(3, 4, 5)).astype(np.float32)
FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
INTEGERS = [np.int64, np.int32, np.int16, np.int8, np.uint8, np.uint32, np.uint64, ml_dtypes.int4]

FORMULAS = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, **k: np.sum(np.abs(x), **k),
    "ReduceL2": lambda x, **k: np.sqrt(np.sum(x * x, **k)),
    "ReduceLogSum": lambda x, **k: np.log(np.sum(x, **k)),
    "ReduceLogSumExp": scipy.special.logsumexp,
    "ReduceSumSquare": lambda x, **k: np.sum(x * x, **k),
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("axes", [(1,), (0, 2), (-1,), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_floats(name, dtype, axes, keepdims):
    x = X.astype(dtype)
    got = check_composite(name, x, axes=axes, keepdims=keepdims, shapes=["A B C"], ulps=4)
    with np.errstate(invalid="ignore"):
        want = FORMULAS[name](x.astype(np.float64), axis=axes, keepdims=keepdims)
    limits = ml_dtypes.finfo(dtype)
    np.testing.assert_allclose(
        got.astype(np.float64), want, rtol=2 * float(limits.eps), atol=float(limits.smallest_subnormal)
    )


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", INTEGERS, ids=lambda d: np.dtype(d).name)
def test_integers_agree_with_the_decomposition(name, dtype):
    x = np.random.default_rng(1).integers(0, 8, (4, 7)).astype(dtype)
    check_composite(name, x, axes=(1,), shapes=["A B"])


def test_integers_wrap_and_mean_truncates():
    x = np.array([[100, 100, 100], [-3, -2, 0]], np.int8)
    assert run("ReduceSum", x, axes=(1,), keepdims=False).tolist() == [44, -5]
    assert run("ReduceMean", x, axes=(1,), keepdims=False).tolist() == [14, -1]
    check_composite("ReduceMean", np.full((300,), -1, np.int8), axes=(0,), shapes=["N"])
    assert run("ReduceL2", np.array([3, 4, 1], np.int32), axes=(0,), keepdims=False) == 5


@pytest.mark.parametrize("v", [0, 1, 2, 3, 46340**2, 46340**2 - 1, 2**31 - 1, 46339**2 + 1, 46339**2 - 1])
def test_integer_root_is_exact(v):
    root = int(np.sqrt(np.float64(v)))
    parts = [root, *(1 for _ in range(min(v - root * root, 40)))]
    total = sum(p * p for p in parts)
    x = np.array(parts, np.int32)
    assert check_composite("ReduceL2", x, axes=(0,), keepdims=False) == int(np.sqrt(np.float64(total)))


EMPTY = {
    "ReduceSum": (0.0, 0), "ReduceProd": (1.0, 1), "ReduceMax": (-np.inf, -128), "ReduceMin": (np.inf, 127),
    "ReduceMean": (np.nan, 0), "ReduceL1": (0.0, 0), "ReduceL2": (0.0, 0), "ReduceSumSquare": (0.0, 0),
    "ReduceLogSum": (-np.inf, -128), "ReduceLogSumExp": (-np.inf, -128),
}  # fmt: skip


@pytest.mark.parametrize("name", EMPTY)
def test_empty(name):
    for dtype, want in zip((np.float32, np.int8), EMPTY[name], strict=True):
        got = check_composite(name, np.zeros((2, 0), dtype), axes=(1,), keepdims=False, shapes=["A B"])
        np.testing.assert_array_equal(got, np.array([want, want], dtype))
        assert check_composite(name, np.zeros((0, 3), dtype), axes=(1,)).shape == (0, 1)


def test_bool_extremes_are_or_and_and():
    x = np.array([[True, False], [False, False]])
    assert check_composite("ReduceMax", x, axes=(1,), keepdims=False).tolist() == [True, False]
    assert check_composite("ReduceMin", x, axes=(0,), keepdims=False).tolist() == [False, False]
    assert run("ReduceMax", np.zeros((0,), bool), axes=(0,), keepdims=False).tolist() is False
    assert run("ReduceMin", np.zeros((0,), bool), axes=(0,), keepdims=False).tolist() is True


def test_nan_wins_and_rows_of_minus_infinity():
    x = np.array([[1, np.nan, 3], [-np.inf, -np.inf, -np.inf], [np.inf, 0, 0]], np.float32)
    for name in ("ReduceMax", "ReduceMin"):
        assert np.isnan(check_composite(name, x, axes=(1,), keepdims=False)[0])
    got = check_composite("ReduceLogSumExp", x, axes=(1,), keepdims=False)
    np.testing.assert_array_equal(got, np.array([np.nan, -np.inf, np.inf], np.float32))


def test_no_axes_reduce_nothing():
    np.testing.assert_array_equal(check_composite("ReduceSum", X, axes=()), X)
    np.testing.assert_array_equal(check_composite("ReduceMean", X, axes=()), X)
    np.testing.assert_array_equal(run("reduce", [X], axes=(), kind="max"), X)


@pytest.mark.parametrize("kind, ufunc", [("and", np.bitwise_and), ("or", np.bitwise_or), ("xor", np.bitwise_xor)])
@pytest.mark.parametrize("dtype", [bool, np.uint8, np.int32])
def test_bitwise_kinds(kind, ufunc, dtype):
    x = np.random.default_rng(2).integers(0, 2 if dtype is bool else 100, (5, 3)).astype(dtype)
    np.testing.assert_array_equal(run("reduce", [x], axes=(0,), kind=kind), ufunc.reduce(x, axis=0))
    empty = run("reduce", [x[:0]], axes=(0,), kind=kind)
    assert (
        empty.tolist() == [(True if dtype is bool else np.array(-1).astype(dtype).tolist()) if kind == "and" else 0] * 3
    )


def test_complex_sum_and_product():
    x = (X + 1j * X[::-1]).astype(np.complex64)
    np.testing.assert_allclose(run("reduce", [x], axes=(1,), kind="sum"), x.sum(1), rtol=1e-5)
    check_composite("ReduceMean", x, axes=(0, 1), shapes=["A B C"])


def test_custom_reduction_of_value_and_index():
    def body(b):
        def step(b, v, i, w, j):
            first = b.compare(v, w, direction="ge")
            return b.select(first, v, w), b.select(first, i, j)

        scalars = [tensor(dtypes.f32), tensor(dtypes.i32)] * 2
        return b.region(scalars, step)

    places = np.broadcast_to(np.arange(4, dtype=np.int32)[:, None], (3, 4, 5)).copy()
    operands = [X, places, np.array(-np.inf, np.float32), np.array(-1, np.int32)]
    value, index = run("reduce", operands, axes=(1,), kind="custom", body=body)
    np.testing.assert_array_equal(value, X.max(1))
    np.testing.assert_array_equal(index, X.argmax(1))


@pytest.mark.parametrize("name, pick", [("ArgMax", np.argmax), ("ArgMin", np.argmin)])
@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize(
    "dtype", [np.float32, ml_dtypes.bfloat16, np.int8, np.uint64, bool], ids=lambda d: np.dtype(d).name
)
def test_index_of_extreme(name, pick, last, dtype):
    x = np.array([[1, 3, 3, 0, 0], [0, 0, 1, 0, 1]]).astype(dtype)
    got = check_composite(name, x, axis=1, keepdims=False, select_last_index=last, shapes=["A B"])
    want = pick(x, 1) if not last else 4 - pick(x[:, ::-1], 1)
    assert got.dtype == np.int64
    np.testing.assert_array_equal(got, want)


def test_index_of_nan():
    x = np.array([[1, np.nan, np.nan, 9]], np.float32)
    for name in ("ArgMax", "ArgMin"):
        assert check_composite(name, x, axis=1).tolist() == [[1]]
        assert check_composite(name, x, axis=-1, select_last_index=True).tolist() == [[2]]


@pytest.mark.parametrize("name, run_along", [("CumSum", np.cumsum), ("CumProd", np.cumprod)])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int32, np.uint8], ids=lambda d: np.dtype(d).name)
def test_running(name, run_along, exclusive, reverse, dtype):
    x = (np.abs(X) * 2 + 0.5).astype(dtype)
    got = check_composite(name, x, axis=1, exclusive=exclusive, reverse=reverse, shapes=["A B C"])
    wide = np.flip(x, 1) if reverse else x
    wide = run_along(wide.astype(np.int64 if np.dtype(dtype).kind in "iu" else np.float64), axis=1)
    if exclusive:
        wide = np.concatenate([np.full_like(wide[:, :1], name == "CumProd"), wide[:, :-1]], 1)
    want = (np.flip(wide, 1) if reverse else wide).astype(dtype)
    np.testing.assert_array_equal(got, want)
    assert check_composite(name, x[:, :0], axis=1, exclusive=exclusive, reverse=reverse, shapes=["A B C"]).size == 0


def test_types():
    x = tensor(dtypes.f16, B, 4, N)
    assert str(facts_of("reduce", (x,), axes=(2, 0), kind="max").type) == "f16[4]"
    assert str(facts_of("ReduceSum", x, axes=(-1,)).type) == "f16[B,4,1]"
    assert str(facts_of("ArgMax", x, axis=2, keepdims=False).type) == "i64[B,4]"
    assert assumptions_of("ArgMax", x, axis=2) == ["1 <= N"]
    assert assumptions_of("ArgMax", x, axis=1) == []


def test_known_integers_are_carried():
    x = shape_fact((B, 4, N))
    assert facts_of("ReduceProd", x, axes=(0,), keepdims=False).ints == (4 * B * N,)
    assert facts_of("ReduceSum", x, axes=(0,)).ints == (B + N + 4,)
    assert facts_of("reduce", (x,), axes=(0,), kind="max").ints == (dims.maximum(B, N, 4),)
    assert facts_of("ReduceMin", shape_fact((3, 2)), axes=(0,)).ints == (2,)
    assert facts_of("ReduceProd", shape_fact(()), axes=(0,)).ints == (1,)
    unknown = Fact(tensor(dtypes.i64, 2, 2), (1, None, 3, B))
    assert facts_of("ReduceSum", unknown, axes=(1,), keepdims=False).ints == (None, B + 3)
    assert facts_of("ReduceSum", unknown, axes=(0,), keepdims=False).ints == (4, None)
    wraps = Fact(tensor(dtypes.i8, 2), (100, 100))
    assert facts_of("ReduceSum", wraps, axes=(0,), keepdims=False).ints == (-56,)


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({"axes": (3,), "kind": "sum"}, "axes 3 is out of range for rank 3"),
        ({"axes": (-1,), "kind": "sum"}, "must not be negative"),
        ({"axes": (1, 1), "kind": "sum"}, "name one axis twice"),
        ({"axes": (1,), "kind": "mean"}, "kind must be one of sum, prod, max"),
        ({"axes": (1,), "kind": "and"}, "kind and needs bool or an integer type"),
        ({"axes": (1,), "kind": "custom"}, "custom takes n inputs and n inits"),
    ],
)
def test_errors(attributes, message):
    with pytest.raises(InferenceError, match=message):
        facts_of("reduce", (tensor(dtypes.f32, 2, 3, 4),), **attributes)


def test_index_of_an_empty_axis_is_refused():
    with pytest.raises(InferenceError, match="must not be empty"):
        facts_of("ArgMin", tensor(dtypes.f32, 2, 0), axis=1)
