"""Suppression of boxes and RoiAlign, against plain loops; both also against ONNX Runtime."""

import itertools
import re

import numpy as np
import pytest
from onnx import helper

import irc
from irc.testing.operators import check_composite, model_of, run_onnx_node


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


def sampled(low, extent, cells, length, samples):
    """For each cell of one axis: samples on the grid as (place, next place, weight of the next), how many are off."""
    side = np.float32(extent / np.float32(cells))
    count = samples or (int(np.ceil(side)) if side > 0 else 0)
    step = np.float32(side / np.float32(max(count, 1)))
    out = []
    for cell in range(cells):
        at = np.float32(low + np.float32(cell) * side) + (np.arange(count, dtype=np.float32) + np.float32(0.5)) * step
        on = at[(at >= -1) & (at <= length)]
        on = np.clip(on, 0, length - 1)
        near = np.floor(on).astype(int)
        out.append((list(zip(near, np.minimum(near + 1, length - 1), on - near, strict=True)), count - len(on)))
    return out, count


def aligned(x, regions, batch, height, width, *, samples=0, scale=1.0, mode="avg", half_pixel=True):
    """RoiAlign as its text says, one region, cell and sample at a time."""
    out = np.zeros((len(regions), x.shape[1], height, width))
    for r, (corners, entry) in enumerate(
        zip(regions * np.float32(scale) - np.float32(half_pixel / 2), batch, strict=True)
    ):
        image, (left, top, right, bottom) = x[entry].astype(np.float64), corners
        extents = (bottom - top, right - left) if half_pixel else (max(bottom - top, 1), max(right - left, 1))
        rows, down = sampled(top, extents[0], height, x.shape[2], samples)
        columns, across = sampled(left, extents[1], width, x.shape[3], samples)
        for (i, (ys, off)), (j, (zs, beside)) in itertools.product(enumerate(rows), enumerate(columns)):
            parts = [
                [image[:, y, z] * (1 - a) * (1 - c), image[:, y, w] * (1 - a) * c, image[:, v, z] * a * (1 - c),
                 image[:, v, w] * a * c] for y, v, a in ys for z, w, c in zs
            ]  # fmt: skip
            if mode == "avg":
                out[r, :, i, j] = np.sum(parts, axis=(0, 1)) / (down * across) if parts else 0
            elif down * across:
                found = np.max(parts, axis=(0, 1)) if parts else 0
                out[r, :, i, j] = np.maximum(found, 0) if off or beside else found
    return out


SIZES = np.array([
    [0, 0, 6, 5], [2.5, 1.25, 10, 8], [-3, -2, 14, 12], [4, 4, 4, 4], [5, 5, 5, 8], [-40, -3, 60, 30], [1, 2, 1.1, 8.9],
    [-20, -20, -9, -9], [0, 0, 1000, 1000],
], np.float32)  # fmt: skip
"""Regions of very different sizes: small, none, far larger than the image, outside of it."""


@pytest.fixture
def image():
    return np.random.default_rng(6).standard_normal((2, 3, 9, 11)).astype(np.float32)


@pytest.mark.parametrize("cells, scale, mode, half_pixel", [
    ((4, 3), 1.0, "avg", True), ((4, 3), 1.0, "max", False), ((1, 1), 0.5, "avg", False), ((1, 1), 0.5, "max", True),
    ((7, 7), 0.25, "avg", False), ((7, 7), 0.25, "max", True),
])  # fmt: skip
def test_roi_align_with_as_many_samples_as_a_region_needs(cells, scale, mode, half_pixel, image):
    batch = np.arange(len(SIZES)) % 2
    height, width = cells
    got = check_composite(
        "RoiAlign", image, SIZES, batch, shapes=["N C H W", "R 4", "R"], output_height=height, output_width=width,
        sampling_ratio=0, spatial_scale=scale, mode=mode, half_pixel=half_pixel,
    )  # fmt: skip
    own = aligned(image, SIZES, batch, height, width, scale=scale, mode=mode, half_pixel=half_pixel)
    np.testing.assert_allclose(got, own, rtol=1e-5, atol=1e-5)
    coordinates = "half_pixel" if half_pixel else "output_half_pixel"
    runtime = run_onnx_node(
        "RoiAlign", [image, SIZES, batch], output_height=height, output_width=width, sampling_ratio=0,
        spatial_scale=scale, mode=mode, coordinate_transformation_mode=coordinates,
    )  # fmt: skip
    np.testing.assert_allclose(got, runtime, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ratio", [0, 2])
def test_roi_align_of_regions_that_are_none(ratio, image):
    """Turned, endless, not a number: nothing is sampled, or all of it lies outside; and no region at all."""
    inf, nan = np.inf, np.nan
    regions = np.array(
        [[3, 3, 1, 1], [3, 1, 1, 3], [0, 0, inf, 4], [-inf, 0, inf, 4], [nan, 0, 3, 3], [1, 1, nan, 3]], np.float32
    )
    fixed = {"output_height": 2, "output_width": 2, "sampling_ratio": ratio}
    for mode in ("avg", "max"):
        got = check_composite("RoiAlign", image, regions, np.zeros(6, np.int64), mode=mode, **fixed)
        assert not got[2 if ratio else 0 :].any()
        if ratio:  # a turned region of fixed samples is read the other way round
            turned = check_composite(
                "RoiAlign", image, regions[:1, [2, 3, 0, 1]], np.zeros(1, np.int64), mode=mode, **fixed
            )
            np.testing.assert_allclose(got[0], turned[0, :, ::-1, ::-1], rtol=1e-5, atol=1e-6)
        assert check_composite("RoiAlign", image, regions[:0], np.zeros(0, np.int64), mode=mode, **fixed).shape == (
            0,
            3,
            2,
            2,
        )


def test_roi_align_visits_no_more_places_than_the_grid_has(image):
    """A billion samples a cell, all but a few of them outside: the sum over them is small, the maximum is there."""
    regions = np.array([[0, 0, 1e9, 1e9], [-1e30, -1e30, 1e30, 1e30]], np.float32)
    batch = np.zeros(2, np.int64)
    fixed = {"output_height": 1, "output_width": 1, "sampling_ratio": 0}
    got = check_composite("RoiAlign", image, regions, batch, **fixed)
    np.testing.assert_allclose(got[:, :, 0, 0], 0, atol=1e-15)
    greatest = check_composite("RoiAlign", image, regions, batch, mode="max", **fixed)
    assert (greatest[0, :, 0, 0] > 0).all()


def test_roi_align_touches_only_the_places_around_its_samples(image):
    """What is not finite elsewhere in the image does not spread."""
    image[0, :, 8, 10] = np.nan
    image[1] = np.inf
    regions = np.array([[0, 0, 6, 5]], np.float32)
    got = check_composite(
        "RoiAlign", image, regions, np.zeros(1, np.int64), output_height=2, output_width=2, sampling_ratio=0
    )
    assert np.isfinite(got).all()


def roi_align_model(version, dtype, **attributes):
    tensor = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    kinds = ("x", tensor, ["N", 3, "H", "W"]), ("r", tensor, ["R", 4]), ("b", 7, ["R"])
    info = [helper.make_tensor_value_info(*kind) for kind in kinds]
    result = helper.make_tensor_value_info("y", tensor, None)
    graph = helper.make_graph([helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], **attributes)], "g", info, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", version)], ir_version=8)


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}", "onnx"])
@pytest.mark.parametrize("version, mode, dtype", [(10, "avg", "f4"), (16, "max", "f8"), (22, "avg", "f4")])
def test_onnx_roi_align_of_each_version(version, mode, dtype, target, image):
    """Version 10 has no coordinate_transformation_mode and means output_half_pixel."""
    exe = irc.compile(roi_align_model(version, dtype, output_height=2, output_width=3, mode=mode), target=target)
    batch = np.arange(len(SIZES)) % 2
    got = exe(image.astype(dtype), SIZES.astype(dtype), batch)[0]
    assert got.dtype == dtype
    want = aligned(image, SIZES, batch, 2, 3, mode=mode, half_pixel=version >= 16)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    assert exe(image.astype(dtype), SIZES[:0].astype(dtype), batch[:0])[0].shape == (0, 3, 2, 3)


def test_a_region_of_whole_cells_has_no_sample_more(image):
    """7 n / 7 is n, also where XLA would multiply by the reciprocal: its sum over n + 1 samples would differ."""
    exe = irc.compile(roi_align_model(16, "f4", output_height=7, output_width=7), target="xla")
    regions = np.array([[0, 0, 7 * n, 7 * n] for n in range(1, 50)], np.float32)
    batch = np.zeros(len(regions), np.int64)
    want = aligned(image, regions, batch, 7, 7)
    np.testing.assert_allclose(exe(image, regions, batch)[0], want, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(exe(image, regions[30:31], batch[:1])[0], want[30:31], rtol=1e-5, atol=1e-5)


def test_the_loop_over_samples_reads_its_length_once(image):
    """On MLX: a Python loop whose length is the only number that the host waits for."""
    model, inputs = model_of(
        "RoiAlign", image, SIZES, np.zeros(len(SIZES), np.int64), output_height=7, output_width=7, sampling_ratio=0
    )
    exe = irc.compile(model, target="mlx{compile=off}")
    exe(*inputs)
    assert exe.source.count(".item()") == 1
    assert re.search(r"for _ in range\(\w+\.item\(\)\):", exe.source)
