"""Every operator is whole: typed, computed by the reference, and every core operator lowered on both targets."""

from __future__ import annotations

import importlib.util

import pytest

import irc
from irc import targets
from irc.ir.operators import ELEMENTWISE, all_operators

# Core operators that no device code holds when a target sees it, and why.
NEVER_ON_A_DEVICE = {
    "custom_call": "names code that irc does not know",
    "onnx": "late: replaced at run time by what the importer would have built",
    "freeze": "late: the host has read its values by then",
    "bind_dim": "the host reads the size between device functions",
}
# Core operators that the reference cannot compute, and why.
WITHOUT_REFERENCE = {"custom_call": "names code that irc does not know"}


def core():
    return [op for op in all_operators() if not op.is_composite]


@pytest.mark.parametrize("op", all_operators(), ids=lambda op: op.name)
def test_every_operator_is_documented_typed_and_computed(op):
    assert op.doc.strip()
    assert op.infer is not None or ELEMENTWISE in op.traits or op.decompose is not None
    if op.is_composite:
        assert op.decompose is not None or op.reference is not None
    else:
        assert op.reference is not None or op.name in WITHOUT_REFERENCE


def test_every_core_operator_is_lowered_on_xla_and_mlx():
    from irc.targets.mlx import lowering as mlx
    from irc.targets.xla import lowering as xla

    for table in (xla.load(), mlx.load()):
        missing = {op.name for op in core()} - set(table.entries) - set(NEVER_ON_A_DEVICE)
        assert not missing, table.target


def test_no_operator_names_differ_only_in_case():
    names = [op.name.lower() for op in all_operators()]
    assert len(names) == len(set(names))


def test_a_missing_package_is_named(monkeypatch):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "mlx" else find(name, *rest))
    with pytest.raises(irc.IrcError, match=r"target mlx needs the package 'mlx', which is not installed; pip install"):
        targets.get("mlx")
