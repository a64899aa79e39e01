"""What errors suggest."""

import numpy as np
import pytest

from irc.ir.errors import LISTED, InferenceError, IrcError, did_you_mean
from irc.ir.operators import all_operators, get
from irc.testing.operators import model_of

Q, Q0, S, X = np.zeros((2, 2), np.int8), np.int8(0), np.float32(1), np.zeros((1, 1, 2, 2), np.float32)


def test_a_near_name_is_suggested():
    assert did_you_mean("tarnspose", ["transpose", "take"]) == "; did you mean 'transpose'?"


def test_few_names_are_listed():
    assert did_you_mean("zzz", ["b", "a"]) == "; expected one of a, b"


def test_many_names_are_cut_and_the_command_that_lists_them_is_named():
    known = [f"n{i:02}" for i in range(LISTED + 1)]
    assert did_you_mean("zzz", known).endswith(f"{known[LISTED - 1]}, ... ({LISTED + 1} in all)")
    with pytest.raises(IrcError) as caught:
        get("zzzzzzzz")
    assert f"`irc ops` lists all {len(all_operators())}" in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    "name, operands, attributes, fault",
    [
        ("Unique", [np.zeros(3, np.float32)], {"count": -1}, "would have a negative size"),
        ("DequantizeLinear", [np.zeros(3, np.int8), np.float32(1), None], {"dtype": "u8"}, "must be a float"),
        ("QLinearMatMul", [Q, S, Q0, Q, S, Q0, S, S], {}, "quantized values are integers"),
        ("DeformConv", [X, X, X], {"pads": ((), (1,))}, "two entries"),
        ("DeformConv", [X, X, np.zeros((1, 3, 2, 2), np.float32)], {}, "places of offset"),
    ],
)
def test_what_fuzzing_found_untyped_is_refused(name, operands, attributes, fault):
    with pytest.raises(InferenceError, match=fault):
        model_of(name, *map(np.asarray, [o for o in operands if o is not None]), **attributes)
