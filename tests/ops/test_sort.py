"""sort and TopK: order, stability, NaN and signed zeros, comparators, symbolic dims, errors."""

import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.operators import ORDERED
from irc.ir.types import TensorType, tensor
from irc.testing.operators import assumptions_of, facts_of, run

B, S = symbol("B"), symbol("S")
F = dtypes.f32
SPECIAL = np.array([3, np.nan, -0.0, 1, 0.0, -np.inf, np.nan, np.inf, 1], np.float32)


def python_order(x, descending):
    """Positions by Python's stable sort with NaN greatest and -0 equal to +0."""

    def key(i):
        sign = -1 if descending else 1
        return (sign, 0.0) if np.isnan(x[i]) else (0, sign * float(x[i]))

    return sorted(range(len(x)), key=key)


@pytest.mark.parametrize("kind", ["ascending", "descending"])
def test_order_of_special_values_is_stable(kind):
    places = np.arange(len(SPECIAL))
    got, order = run("sort", [SPECIAL, places], axis=0, kind=kind)
    want = python_order(SPECIAL, kind == "descending")
    assert order.tolist() == want
    np.testing.assert_array_equal(got.view(np.uint32), SPECIAL[want].view(np.uint32))


@pytest.mark.parametrize("kind", ["ascending", "descending"])
@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if ORDERED.accepts(d)], ids=str)
def test_every_ordered_type(kind, dtype):
    x = np.array([[1, 0, 3, 1], [2, 2, 0, 1]]).astype(dtype.numpy)
    got = run("sort", [x], axis=1, kind=kind)
    wide = x.astype(np.float64)
    want = np.sort(wide, 1)
    if kind == "descending":
        want = np.concatenate([np.flip(want[~np.isnan(want).any(1)], 1), np.flip(want[np.isnan(want).any(1)], 1)])
    np.testing.assert_array_equal(np.sort(got.astype(np.float64), 0), np.sort(want, 0))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_operands_move_together(axis):
    rng = np.random.default_rng(1)
    x, y, z = rng.integers(0, 5, (4, 6)), rng.random((4, 6)), rng.integers(0, 2, (4, 6)).astype(bool)
    got = run("sort", [x, y, z], axis=axis)
    order = np.argsort(x, axis, kind="stable")
    for a, b in zip(got, (x, y, z), strict=True):
        np.testing.assert_array_equal(a, np.take_along_axis(b, order, axis))


def by_last_digit(b):
    scalar = tensor(dtypes.i64)
    return b.region([scalar, scalar], lambda b, x, y: b.compare(b.remainder(x, 10), b.remainder(y, 10), direction="lt"))


def test_a_comparator_orders_and_equal_elements_stay():
    x = np.array([[31, 12, 21, 2], [9, 8, 19, 18]])
    got = run("sort", [x], axis=1, kind="custom", comparator=by_last_digit)
    assert got.tolist() == [[31, 21, 12, 2], [8, 18, 9, 19]]


def test_comparator_of_two_operands():
    def second_then_first(b):
        def comes_first(b, a0, b0, a1, b1):
            tie = b.and_(b.compare(a1, b1, direction="eq"), b.compare(a0, b0, direction="lt"))
            return b.or_(b.compare(a1, b1, direction="lt"), tie)

        return b.region([tensor(F), tensor(F), tensor(dtypes.i32), tensor(dtypes.i32)], comes_first)

    x, y = np.array([3, 1, 2, 0], np.float32), np.array([1, 1, 0, 2], np.int32)
    a, b = run("sort", [x, y], axis=0, kind="custom", comparator=second_then_first)
    assert a.tolist() == [2, 1, 3, 0]
    assert b.tolist() == [0, 1, 1, 2]


def test_sort_types():
    assert facts_of("sort", (tensor(F, B, S),), axis=1).type == tensor(F, B, S)
    types = [f.type for f in facts_of("sort", (tensor(F, B, S), tensor(dtypes.i8, B, S)), axis=1)]
    assert types == [tensor(F, B, S), tensor(dtypes.i8, B, S)]
    with pytest.raises(InferenceError, match=r"dims of the operands of sort \(axis 0\) must be equal, got 2 and 3"):
        facts_of("sort", (tensor(F, 2), tensor(F, 3)), axis=0)
    with pytest.raises(InferenceError, match="kind must be ascending, descending or custom, got 'up'"):
        facts_of("sort", (tensor(F, 2),), axis=0, kind="up")
    with pytest.raises(InferenceError, match="kind custom, and no other, takes a comparator"):
        facts_of("sort", (tensor(F, 2),), axis=0, kind="custom")
    with pytest.raises(
        InferenceError,
        match=r"the comparator must take two scalars an operand, f32\[\], f32\[\]; it takes i64\[\], i64\[\]",
    ):
        facts_of("sort", (tensor(F, 2),), axis=0, kind="custom", regions=lambda b: {"comparator": by_last_digit(b)})


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("k", [0, 1, 4, 9])
def test_top_k_takes_the_lower_index_of_equals(largest, k):
    want = python_order(SPECIAL, largest)[:k]
    for decompose in (False, True):
        values, places = run("TopK", SPECIAL, k=k, axis=0, largest=largest, decompose=decompose)
        assert places.tolist() == want
        assert places.dtype == np.int64
        np.testing.assert_array_equal(values, SPECIAL[want])


def test_top_k_types():
    values, places = facts_of("TopK", tensor(F, B, 8), k=S, axis=-1)
    assert (values.type, places.type) == (tensor(F, B, S), tensor(dtypes.i64, B, S))
    assert assumptions_of("TopK", tensor(F, B, S), k=3) == ["3 <= S"]
    x = np.arange(10, dtype=np.float32).reshape(2, 5)
    values, places = run("TopK", x, types=[TensorType(F, (B, S))], k=B, axis=1, decompose=True)
    assert values.tolist() == [[4, 3], [9, 8]]
    with pytest.raises(
        InferenceError, match=r"k, the number of elements wanted of axis 0 of f32\[2\]: 3 is more than 2"
    ):
        facts_of("TopK", tensor(F, 2), k=3, axis=0)
