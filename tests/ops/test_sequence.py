"""Sequence operators: what the host does with lists, element types, positions out of range."""

import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.build import function
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError, IrcError
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import SequenceType, TensorType, tensor
from irc.testing.operators import facts_of

B = symbol("B")
F, I = dtypes.f32, dtypes.i64
ROW = SequenceType(tensor(F, 2))
ONE, TWO = np.array([1, 1], np.float32), np.array([2, 2], np.float32)


def evaluated(body):
    """Results of a function that takes the two rows."""
    model = Model()
    function(model, "main", [("one", tensor(F, 2)), ("two", tensor(F, 2))], body)
    return evaluate(model, [ONE, TWO])


def test_construct_insert_erase_length():
    def body(b, one, two):
        xs = b.SequenceConstruct((one, two))
        more = b.SequenceInsert(xs, one)
        front = b.SequenceInsert(more, two, b.constant(0))
        before_last = b.SequenceInsert(xs, two, b.constant(-1))
        return (
            front,
            b.SequenceErase(front),
            b.SequenceErase(front, b.constant(1)),
            b.SequenceLength(front),
            before_last,
        )

    front, without_last, without_second, length, before_last = evaluated(body)
    assert [int(x[0]) for x in front] == [2, 1, 2, 1]
    assert [int(x[0]) for x in without_last] == [2, 1, 2]
    assert [int(x[0]) for x in without_second] == [2, 2, 1]
    assert length == 4
    assert length.dtype == np.int64
    assert [int(x[0]) for x in before_last] == [1, 2, 2]


@pytest.mark.parametrize("position, want", [(0, 1), (1, 2), (-1, 2), (-2, 1)])
def test_at(position, want):
    (row,) = evaluated(lambda b, one, two: b.SequenceAt(b.SequenceConstruct((one, two)), b.constant(position)))
    assert row.tolist() == [want, want]


@pytest.mark.parametrize("name", ["SequenceAt", "SequenceErase"])
@pytest.mark.parametrize("position", [2, -3])
def test_a_position_out_of_range_is_an_error(name, position):
    def body(b, one, two):
        return b.apply(name, b.SequenceConstruct((one, two)), b.constant(position))

    with pytest.raises(IrcError, match=f"position {position} is out of range for a sequence of 2 elements"):
        evaluated(body)


def test_an_empty_sequence_has_no_last_element():
    def body(b, one, two):
        empty = b.SequenceEmpty(element=tensor(F, 2))
        return b.SequenceErase(b.SequenceErase(b.SequenceInsert(empty, one)))

    with pytest.raises(IrcError, match="position -1 is out of range for a sequence of 0 elements"):
        evaluated(body)


def test_element_types():
    assert facts_of("SequenceConstruct", (tensor(F, B), tensor(F, B))).type == SequenceType(tensor(F, B))
    assert facts_of("SequenceConstruct", (tensor(F, 2), tensor(F, 3))).type == SequenceType(TensorType(F, None))
    assert facts_of("SequenceInsert", ROW, tensor(F, 2), None).type == ROW
    assert facts_of("SequenceInsert", ROW, tensor(F, 2, 2), None).type == SequenceType(TensorType(F, None))
    assert facts_of("SequenceAt", ROW, tensor(I)).type == tensor(F, 2)
    assert facts_of("SequenceErase", ROW, None).type == ROW
    assert facts_of("SequenceLength", ROW).type == tensor(I)


def test_refusals():
    with pytest.raises(
        InferenceError, match=r"the elements of a sequence must have one element type, got f32\[2\] and i64\[2\]"
    ):
        facts_of("SequenceConstruct", (tensor(F, 2), tensor(I, 2)))
    with pytest.raises(
        InferenceError, match="SequenceConstruct needs at least one element; SequenceEmpty makes an empty sequence"
    ):
        facts_of("SequenceConstruct", ())
    with pytest.raises(InferenceError, match=r"expected a sequence, got f32\[2\]"):
        facts_of("SequenceLength", tensor(F, 2))
    with pytest.raises(InferenceError, match=r"the position must be a scalar, got i64\[2\]"):
        facts_of("SequenceAt", ROW, tensor(I, 2))
