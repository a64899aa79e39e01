"""Suppression of boxes and RoiAlign, against plain loops; both also against ONNX Runtime."""

import numpy as np
import pytest

from irc.testing.operators import check_composite, run_onnx_node


def overlap(a, b):
    (y1, x1, y2, x2), (v1, u1, v2, u2) = ((*np.minimum(r[:2], r[2:]), *np.maximum(r[:2], r[2:])) for r in (a, b))
    shared = max(min(y2, v2) - max(y1, v1), 0) * max(min(x2, u2) - max(x1, u1), 0)
    union = (y2 - y1) * (x2 - x1) + (v2 - v1) * (u2 - u1) - shared
    return shared / union if union > 0 else 0.0


def suppressed(boxes, scores, iou, threshold, most):
    out = np.full((*scores.shape[:2], most), -1)
    for n, c in np.ndindex(scores.shape[:2]):
        kept = []
        for i in np.argsort(-scores[n, c], kind="stable"):
            good = scores[n, c, i] > threshold and all(overlap(boxes[n, i], boxes[n, j]) <= iou for j in kept)
            if good and len(kept) < most:
                kept.append(i)
        out[n, c, : len(kept)] = kept
    return out


@pytest.mark.parametrize("most", [1, 4, 30])
def test_suppression(most):
    generator = np.random.default_rng(5)
    boxes = generator.random((2, 30, 4), np.float32)
    scores = generator.random((2, 3, 30), np.float32)
    iou, threshold = np.array(0.3, np.float32), np.array(0.2, np.float32)
    got = check_composite("SuppressedBoxes", boxes, scores, iou, threshold, most=most)
    np.testing.assert_array_equal(got, suppressed(boxes, scores, 0.3, 0.2, most))


def test_equal_scores_keep_the_lower_index():
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1], [0, 2, 1, 3]]], np.float32)
    scores = np.full((1, 1, 3), 0.5, np.float32)
    got = check_composite("SuppressedBoxes", boxes, scores, np.array(0.5, np.float32), None, most=3)
    assert got.tolist() == [[[0, 2, -1]]]


@pytest.mark.parametrize("half_pixel", [True, False])
@pytest.mark.parametrize("mode", ["avg", "max"])
def test_roi_align(mode, half_pixel):
    generator = np.random.default_rng(6)
    x = generator.standard_normal((2, 3, 9, 11)).astype(np.float32)
    regions = np.array([[0, 0, 6, 5], [2.5, 1.25, 10, 8], [-3, -2, 14, 12]], np.float32)
    batch = np.array([0, 1, 1], np.int64)
    got = check_composite(
        "RoiAlign", x, regions, batch, output_height=4, output_width=3, sampling_ratio=2, mode=mode,
        half_pixel=half_pixel,
    )  # fmt: skip
    want = run_onnx_node(
        "RoiAlign", [x, regions, batch], output_height=4, output_width=3, sampling_ratio=2, mode=mode,
        coordinate_transformation_mode="half_pixel" if half_pixel else "output_half_pixel",
    )  # fmt: skip
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
