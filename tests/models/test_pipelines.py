"""Pipelines of scikit-learn as skl2onnx writes them, and a detector with NonMaxSuppression, against ONNX Runtime."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import irc

FIXTURES = Path(__file__).parent / "fixtures"
TARGETS = ["xla", "mlx{compile=off}"]


def session(source: str | bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("batch", [1, 64])
def test_gradient_boosting(batch: int, target: str):
    """Imputer, scaler, 24 trees: labels equal, scores within roundings of f32."""
    path = FIXTURES / "sklearn_boosting.onnx"
    x = np.random.default_rng(batch).standard_normal((batch, 6)).astype(np.float32)
    x[:: max(1, batch // 8), 1] = np.nan
    labels, scores = session(str(path)).run(None, {"X": x})
    got_labels, got_scores = irc.compile(path, target=target)(x)
    assert np.asarray(got_labels).tolist() == labels.tolist()
    np.testing.assert_allclose(np.asarray(got_scores), scores, rtol=0, atol=1e-6)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["text", "text_lower"])
def test_text_classifier(name: str, target: str):
    """Tokens, n-grams, TF-IDF, logistic regression; labels are strings.  Against scikit-learn's own answers, in f64.

    ONNX Runtime judges the one without a StringNormalizer too, for which it wants a locale that machines may lack.
    """
    path = FIXTURES / f"sklearn_{name}.onnx"
    lines, topics, *scores = zip(*json.loads(path.with_suffix(".json").read_text()), strict=True)
    x = np.array(lines, object)[:, None]
    labels, got = map(np.asarray, irc.compile(path, target=target)(x))
    assert labels.tolist() == list(topics)
    np.testing.assert_allclose(got, np.array(scores).T, rtol=0, atol=2e-6)
    if name == "text":
        judged, wanted = session(str(path)).run(None, {"text": x})
        assert labels.tolist() == judged.tolist()
        np.testing.assert_allclose(got, wanted, rtol=0, atol=2e-6)


def with_suppression(path: Path) -> onnx.ModelProto:
    """nudenet's detector [1, 4 + classes, anchors] with boxes and scores taken apart and suppressed in the graph."""
    model = onnx.load(path)
    (head,) = (o.name for o in model.graph.output)
    constants = {
        "parts": np.array([4, 18]), "most": np.array(20), "overlap": np.float32(0.45), "least": np.float32(1e-4),
    }  # fmt: skip
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(v), n) for n, v in constants.items())
    model.graph.node.extend(
        [
            helper.make_node("Split", [head, "parts"], ["corners", "scores"], axis=1),
            helper.make_node("Transpose", ["corners"], ["boxes"], perm=[0, 2, 1]),
            helper.make_node(
                "NonMaxSuppression", ["boxes", "scores", "most", "overlap", "least"], ["kept"], center_point_box=1
            ),
        ]
    )
    model.graph.output.append(helper.make_tensor_value_info("kept", TensorProto.INT64, [None, 3]))
    return model


@pytest.mark.parametrize("target", TARGETS)
def test_detection_with_suppression_in_the_graph(target: str, model_path: Callable[[str], Path]):
    model = with_suppression(model_path("nudenet"))
    rng = np.random.default_rng(1)
    blocks = rng.random((1, 3, 8, 8)).astype(np.float32)
    x = np.kron(blocks, np.ones((1, 1, 40, 40), np.float32))
    raw, kept = session(model.SerializeToString()).run(None, {"images": x})
    got_raw, got_kept = map(np.asarray, irc.compile(model, target=target)(x))
    np.testing.assert_allclose(got_raw, raw, rtol=0, atol=1e-4 * np.abs(raw).max())
    assert len(kept) > 0
    assert got_kept.tolist() == kept.tolist()
