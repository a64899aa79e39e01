"""Every core operator on XLA against the reference."""

from __future__ import annotations

import pytest

from irc import targets
from irc.ir.operators import all_operators


@pytest.fixture(scope="module")
def xla():
    return targets.get("xla{optimization_level=0}")


def test_operator(case, xla, check):
    model = case.model()
    refused = [why for node in model.nodes() if (why := xla.claims(node))]
    assert not refused
    results = xla.compile(model, "main", {}).run(case.arrays, True)
    check(case, results, case.expected(model))


def test_every_core_operator_has_a_case(all_cases):
    covered = {c.op for c in all_cases}
    elsewhere = {"call", "trap", "bind_dim", "freeze", "onnx", "custom_call"}  # test_xla_control, or not for devices
    missing = {op.name for op in all_operators() if not op.is_composite} - covered - elsewhere
    assert not missing
