"""Fused models as ONNX files of opset 23: one node for each composite that ONNX says, and back again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import onnx

import irc
from irc.ir.model import Model
from irc.passes import DEFAULT, run_passes

KINDS = ("Attention", "LayerNormalization", "RMSNormalization", "RotaryEmbedding")


def composites(model: Model) -> Counter[str]:
    """How many there are of each kind.  Attention with sinks, which ONNX does not say, is not counted."""
    found = [n for n in model.nodes() if n.op.name in KINDS]
    return Counter(n.op.name for n in found if n.op.name != "Attention" or all(v is None for v in n.operands[4:]))


def test_each_composite_is_one_node_and_comes_back(
    fixture_name: str, load: Callable[[str], Model], tmp_path: Path
) -> None:
    fused = run_passes(load(fixture_name), DEFAULT)
    irc.save(fused, tmp_path / "m.onnx", opset=23)
    proto = onnx.load(tmp_path / "m.onnx")
    onnx.checker.check_model(proto, full_check=True)
    assert Counter(n.op_type for n in proto.graph.node if n.op_type in KINDS) == composites(fused)
    again = run_passes(irc.read(proto), DEFAULT)
    assert composites(again) == composites(fused)
