"""Resize against ONNX Runtime and exact coordinates in fractions; static and symbolic sizes, edges."""

from fractions import Fraction
from math import ceil, floor

import ml_dtypes
import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.ops.resize import coordinates, simplest
from irc.ir.types import tensor
from irc.testing.operators import check_composite, facts_of, run, run_onnx_node

N, C, H, W = map(symbol, "NCHW")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(1, 2, 5, 6)).astype(np.float32)
SHAPE = ["N 2 H W"]

PLAIN = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
SIZES = [(10, 12), (7, 9), (3, 4), (5, 11), (1, 1), (2, 13)]


def runtime(x, dims=None, scales=None, mode="nearest", coordinate_mode="half_pixel", roi=None, **more):
    """ONNX Runtime's Resize."""
    sizes = None if dims is None else np.array(dims, np.int64)
    factors = None if scales is None else np.array(scales, np.float32)
    roi = None if roi is None else np.array(roi, np.float32)
    return run_onnx_node(
        "Resize", [x, roi, factors, sizes] if sizes is not None else [x, roi, factors], opset=19, mode=mode,
        coordinate_transformation_mode=coordinate_mode, **more,
    )  # fmt: skip


@pytest.mark.parametrize("coordinate_mode", PLAIN)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_sizes(coordinate_mode, mode, sizes):
    dims = (1, 2, *sizes)
    got = check_composite("Resize", X, dims=dims, mode=mode, coordinate_mode=coordinate_mode, shapes=SHAPE, ulps=8)
    want = runtime(X, dims, mode=mode, coordinate_mode=coordinate_mode)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("coordinate_mode", PLAIN)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.6, 0.5), (1, 1, 1.5, 3), (1, 1, 1.3, 1)], ids=str)
def test_scales(coordinate_mode, mode, scales):
    dims = tuple(floor(n * Fraction(str(s))) for n, s in zip(X.shape, scales, strict=True))
    got = check_composite(
        "Resize", X, dims=dims, scales=scales, mode=mode, coordinate_mode=coordinate_mode, shapes=SHAPE, ulps=8
    )
    if coordinate_mode == "align_corners":
        return  # ONNX Runtime takes the unrounded size for the last coordinate, which the specification leaves open
    want = runtime(X, scales=scales, mode=mode, coordinate_mode=coordinate_mode)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


def nearest_places(n, m, scale, mode, rounding):
    """Indices by exact fractions, place by place."""
    out = []
    for o in range(m):
        x = {
            "half_pixel": (o + Fraction(1, 2)) / scale - Fraction(1, 2),
            "asymmetric": o / scale,
            "tf_half_pixel_for_nn": (o + Fraction(1, 2)) / scale,
            "align_corners": Fraction(o * (n - 1), max(m - 1, 1)),
            "pytorch_half_pixel": (o + Fraction(1, 2)) / scale - Fraction(1, 2) if m > 1 else Fraction(0),
        }[mode]
        half = Fraction(1, 2)
        index = {
            "floor": floor(x),
            "ceil": ceil(x),
            "round_prefer_floor": ceil(x - half),
            "round_prefer_ceil": floor(x + half),
        }[rounding]
        out.append(min(max(index, 0), n - 1))
    return out


@pytest.mark.parametrize(
    "mode", ["half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners", "pytorch_half_pixel"]
)
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest_is_exact(mode, rounding):
    for n, m in ((5, 10), (6, 4), (7, 3), (3, 7), (4, 1), (9, 12), (10, 4)):
        x = np.arange(n, dtype=np.int32)
        got = check_composite("Resize", x, dims=(m,), coordinate_mode=mode, nearest_mode=rounding, shapes=["N"])
        assert got.tolist() == nearest_places(n, m, Fraction(m, n), mode, rounding)


@pytest.mark.parametrize("antialias_mode", ["linear", "cubic"])
@pytest.mark.parametrize("sizes", [(3, 4), (2, 3), (10, 12), (4, 9), (1, 1)], ids=str)
@pytest.mark.parametrize("exclude", [False, True])
def test_antialias(antialias_mode, sizes, exclude):
    from onnx import helper
    from onnx.reference import ReferenceEvaluator

    node = helper.make_node(
        "Resize", ["x", "", "", "sizes"], ["y"], mode=antialias_mode, antialias=1, exclude_outside=int(exclude)
    )
    kinds = [helper.make_tensor_value_info("x", 1, X.shape), helper.make_tensor_value_info("sizes", 7, [4])]
    graph = helper.make_graph([node], "g", kinds, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)])
    want = ReferenceEvaluator(model).run(None, {"x": X, "sizes": np.array([1, 2, *sizes], np.int64)})[0]
    # Two sums of up to 16 rounded and normalized weights.
    got = check_composite(
        "Resize",
        X,
        dims=(1, 2, *sizes),
        mode=antialias_mode,
        antialias=True,
        exclude_outside=exclude,
        shapes=SHAPE,
        ulps=16,
    )
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("a", [-0.75, -0.5])
@pytest.mark.parametrize("exclude", [False, True])
@pytest.mark.parametrize("scales", [(1, 1, 2, 2), (1, 1, 0.8, 0.8)], ids=str)
def test_cubic_parameters(a, exclude, scales):
    dims = tuple(floor(n * Fraction(str(s))) for n, s in zip(X.shape, scales, strict=True))
    got = check_composite(
        "Resize",
        X,
        dims=dims,
        scales=scales,
        mode="cubic",
        cubic_coeff_a=a,
        exclude_outside=exclude,
        shapes=SHAPE,
        ulps=8,
    )
    want = runtime(X, scales=scales, mode="cubic", cubic_coeff_a=a, exclude_outside=int(exclude))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("roi", [(0, 0, 0.4, 0.6, 1, 1, 0.6, 0.8), (0, 0, -0.2, 0.4, 1, 1, 1.3, 0.6)], ids=str)
@pytest.mark.parametrize("sizes", [(3, 3), (8, 7), (1, 1)], ids=str)
def test_crop_and_resize(mode, roi, sizes):
    dims = (1, 2, *sizes)
    more = {"mode": mode, "coordinate_mode": "tf_crop_and_resize", "extrapolation_value": 10.0, "roi": roi}
    got = check_composite("Resize", X, dims=dims, **more, shapes=SHAPE, ulps=8)
    np.testing.assert_allclose(got, runtime(X, dims, **more), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "dtype", [np.float64, np.float16, ml_dtypes.bfloat16, np.uint8, np.int32], ids=lambda d: np.dtype(d).name
)
def test_other_types(dtype):
    x = (X * 30 + 100).astype(dtype)
    near = check_composite("Resize", x, dims=(1, 2, 7, 9), shapes=SHAPE, ulps=0)
    np.testing.assert_array_equal(near.astype(float), run("Resize", x.astype(np.float64), dims=(1, 2, 7, 9)))
    linear = check_composite("Resize", x, dims=(1, 2, 10, 12), mode="linear", shapes=SHAPE)
    assert linear.dtype == np.dtype(dtype)


@pytest.mark.parametrize("coordinate_mode", [*PLAIN, "tf_half_pixel_for_nn", "tf_crop_and_resize"])
@pytest.mark.parametrize("mode, antialias", [("nearest", False), ("linear", False), ("cubic", False), ("linear", True)])
def test_symbolic_result_sizes(coordinate_mode, mode, antialias):
    x = X[:, :, :4]
    roi = (0.0, 0.0, 0.25, -0.5, 1.0, 1.0, 0.75, 1.5) if coordinate_mode == "tf_crop_and_resize" else ()
    more = {"mode": mode, "coordinate_mode": coordinate_mode, "antialias": antialias, "roi": roi}
    want = run("Resize", x, dims=(1, 2, 8, 3), **more)
    types = [tensor(dtypes.f32, N, C, H, W)]
    for decompose in (False, True):
        got = run("Resize", x, dims=(N, C, 2 * H, W // 2), **more, types=types, decompose=decompose)
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6)


def test_axes_that_stay_are_not_touched():
    x = np.array([[np.inf, 1], [np.nan, 2]], np.float32)
    got = check_composite("Resize", x, dims=(2, 4), mode="linear", coordinate_mode="asymmetric", shapes=["2 N"])
    assert got[0, 0] == np.inf
    np.testing.assert_array_equal(run("Resize", x, dims=(2, 2), scales=(1.0, 1.0), mode="cubic"), x)


def test_empty():
    assert check_composite("Resize", X[:0], dims=(0, 2, 10, 12), mode="linear", shapes=SHAPE).shape == (0, 2, 10, 12)
    assert check_composite("Resize", X, dims=(1, 2, 0, 12), mode="cubic").shape == (1, 2, 0, 12)


def test_scales_are_read_as_simple_fractions():
    assert simplest(float(np.float32(4 / 3))) == Fraction(4, 3)
    assert simplest(0.6) == Fraction(3, 5)
    assert simplest(float(np.float32(np.pi))).denominator > 100
    assert np.float32(simplest(float(np.float32(np.pi)))) == np.float32(np.pi)


def test_coordinates_are_affine_and_exact():
    a, b, c = coordinates("half_pixel", 5, 10, None, (0.0, 1.0))
    assert [Fraction(a * o + b, c) for o in (0, 1, 9)] == [Fraction(-1, 4), Fraction(1, 4), Fraction(17, 4)]
    a, b, c = coordinates("tf_crop_and_resize", 5, 1, None, (0.2, 0.6))
    assert Fraction(b, c) == Fraction(2, 5) * 4


def test_types_and_errors():
    x = tensor(dtypes.f32, N, C, H, W)
    assert str(facts_of("Resize", x, dims=(N, C, 2 * H, 2 * W)).type) == "f32[N,C,2*H,2*W]"
    for change, message in (
        ({"dims": (1, 2)}, "dims needs one size an axis"),
        ({"scales": (1.0,)}, "scales needs one factor an axis"),
        ({"scales": (1.0, 1.0, 0.0, 1.0)}, "scales must be positive"),
        ({"scales": (1.0, 1.0, float("inf"), 1.0)}, "scales must be positive and finite"),
        ({"scales": (1.0, 1.0, 1e-5, 1.0), "antialias": True}, "at least 1.52587890625e-05 with antialias"),
        ({"coordinate_mode": "half"}, "coordinate_mode must be one of"),
        ({"coordinate_mode": "tf_crop_and_resize"}, "needs roi with 8 entries"),
    ):
        with pytest.raises(InferenceError, match=message):
            facts_of("Resize", x, **{"dims": (N, C, H, W), **change})
