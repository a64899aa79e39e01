"""Result types of elementwise operators, and integers that are known when a model is typed."""

import numpy as np
import pytest

from irc.ir import dims, dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.facts import Fact, shape_fact
from irc.ir.types import tensor
from irc.testing.operators import assumptions_of, facts_of, run

B, S = symbol("B"), symbol("S")


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


CARRIED = "add subtract multiply divide remainder Mod maximum minimum and or xor Max Min Sum".split()


@pytest.mark.parametrize("name", CARRIED)
@pytest.mark.parametrize("dtype", [dtypes.i8, dtypes.u8, dtypes.i4, dtypes.i64, dtypes.u64], ids=str)
def test_known_integers_are_what_the_reference_computes(name, dtype):
    low, high = int(dtype.min_value()), int(dtype.max_value())
    values = sorted({v for v in (low, -3, -1, 0, 1, 2, high) if low <= v <= high})
    plain = np.uint64 if dtype is dtypes.u64 else np.int64
    column = np.array(values, plain).astype(dtype.numpy).reshape(-1, 1)
    row = column.reshape(1, -1)
    facts = [Fact(tensor(dtype, *a.shape), tuple(values)) for a in (column, row)]
    variadic = name in ("Max", "Min", "Sum")
    known = facts_of(name, tuple(facts)) if variadic else facts_of(name, *facts)
    want = run(name, [column, row]) if variadic else run(name, column, row)
    assert known.ints == tuple(int(v) for v in want.reshape(-1))


@pytest.mark.parametrize("name", ["abs", "negate", "sign", "not"])
@pytest.mark.parametrize("dtype", [dtypes.i8, dtypes.u8, dtypes.i4], ids=str)
def test_known_unary_integers_are_what_the_reference_computes(name, dtype):
    values = tuple(range(int(dtype.min_value()), int(dtype.max_value()) + 1))[-40:]
    x = np.array(values, np.int64).astype(dtype.numpy)
    known = facts_of(name, Fact(tensor(dtype, len(values)), values))
    assert known.ints == tuple(int(v) for v in run(name, x))


def test_known_bools_are_what_the_reference_computes():
    flags = np.array([False, False, True, True]), np.array([False, True, False, True])
    facts = [Fact(tensor(dtypes.bool_, 4), tuple(int(v) for v in f)) for f in flags]
    for name in ("and", "or", "xor", "maximum", "minimum"):
        assert facts_of(name, *facts).ints == tuple(int(v) for v in run(name, *flags)), name
    assert facts_of("not", facts[0]).ints == (1, 1, 0, 0)
    assert facts_of("add", *facts).ints is None
