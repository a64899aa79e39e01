"""Published models through the default pipeline and back to ONNX: nodes against other optimizers, and outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest

import irc

# The fewest nodes, constants not counted, that onnxsim 0.8.1, onnxslim 0.1.98 or onnxscript 0.7.2 leave of each file
# (bench/node_counts.py prints the table), and a shape to run it at.
BEST_OTHER = {
    "rec": (383, (1, 3, 48, 320)),
    "cls": (179, (2, 3, 48, 192)),
    "det": (297, (1, 3, 96, 128)),
    "basic_pitch": (180, (1, 43844, 1)),
    "magika": (93, (2, 2048)),
    "common_det": (275, (1, 3, 416, 416)),
    "nudenet": (323, (1, 3, 160, 160)),
}


def session(path: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def nodes_of(graph: onnx.GraphProto) -> int:
    inner = sum(nodes_of(a.g) for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH)
    return inner + sum(node.op_type != "Constant" for node in graph.node)


@pytest.mark.parametrize("name", BEST_OTHER)
def test_no_more_nodes_than_the_best_other_optimizer(name: str, model_path: Callable[[str], Path], tmp_path: Path):
    best, shape = BEST_OTHER[name]
    path = model_path(name)
    smaller = tmp_path / "smaller.onnx"
    irc.save(irc.run_passes(irc.import_onnx(path)), smaller)
    proto = onnx.load(smaller)
    onnx.checker.check_model(proto, full_check=True)
    assert nodes_of(proto.graph) <= best

    before, after = session(path), session(smaller)
    rng = np.random.default_rng(3)
    x = rng.integers(0, 256, shape, np.int32) if name == "magika" else rng.standard_normal(shape, np.float32)
    expected, got = (s.run(None, {s.get_inputs()[0].name: x}) for s in (before, after))
    assert [o.name for o in after.get_outputs()] == [o.name for o in before.get_outputs()]
    for want, have in zip(expected, got, strict=True):
        # Batch normalization moves into weights, which rounds each product once more; the bound of test_agreement.py.
        np.testing.assert_allclose(have, want, rtol=0, atol=1e-4 * np.abs(want).max() + 1e-6)
