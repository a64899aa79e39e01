"""Sliding windows: pools against ONNX Runtime, the core operators against plain loops, edges, types."""

import itertools

import ml_dtypes
import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.types import tensor
from irc.testing.operators import check_composite, facts_of, run, run_onnx_node

H, W, N = symbol("H"), symbol("W"), symbol("N")
X = np.random.default_rng(0).normal(size=(2, 3, 9, 8)).astype(np.float32)

POOLS = [
    # kernel, strides, dilations, pads (low, high) an axis, ceil_mode
    ((2, 2), (2, 2), (1, 1), ((0, 0), (0, 0)), False),
    ((3, 2), (2, 1), (1, 1), ((1, 1), (0, 1)), False),
    ((3, 3), (2, 2), (1, 1), ((1, 1), (1, 1)), True),
    ((2, 2), (2, 2), (1, 1), ((0, 0), (0, 0)), True),
    ((2, 3), (3, 3), (1, 1), ((1, 0), (1, 1)), True),
    ((3, 3), (2, 1), (2, 3), ((2, 2), (0, 1)), False),
    ((3, 3), (2, 2), (2, 2), ((1, 2), (2, 1)), True),
]


def attributes_of(row):
    return dict(zip(("kernel_shape", "strides", "dilations", "pads", "ceil_mode"), row, strict=True))


def onnx_attributes_of(row):
    kernel, strides, dilations, pads, ceil = row
    pads = [p[0] for p in pads] + [p[1] for p in pads]
    return {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "ceil_mode": int(ceil)}


@pytest.mark.parametrize("row", POOLS, ids=range(len(POOLS)))
@pytest.mark.parametrize("order", [0, 1])
def test_max_pool(row, order):
    value, place = check_composite(
        "MaxPool", X, **attributes_of(row), storage_order=order, with_indices=True, shapes=["N C H W"], ulps=0
    )
    want, places = run_onnx_node("MaxPool", [X], outputs=2, storage_order=order, **onnx_attributes_of(row))
    np.testing.assert_array_equal(value, want)
    np.testing.assert_array_equal(place, places)
    np.testing.assert_array_equal(check_composite("MaxPool", X, **attributes_of(row), shapes=["N C H W"], ulps=0), want)


@pytest.mark.parametrize("row", POOLS, ids=range(len(POOLS)))
@pytest.mark.parametrize("include", [False, True])
def test_average_pool(row, include):
    got = check_composite("AveragePool", X, **attributes_of(row), count_include_pad=include, shapes=["N C H W"])
    want = run_onnx_node("AveragePool", [X], count_include_pad=int(include), **onnx_attributes_of(row))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("row", POOLS, ids=range(len(POOLS)))
@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(row, p):
    got = check_composite("LpPool", X, **attributes_of(row), p=p, shapes=["N C H W"], ulps=8)
    want = run_onnx_node("LpPool", [X], p=p, **onnx_attributes_of(row))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16], ids=lambda d: np.dtype(d).name)
def test_global_pools(name, dtype):
    got = check_composite(name, X.astype(dtype), shapes=["N C H W"])
    if dtype is np.float32:
        np.testing.assert_allclose(got, run_onnx_node(name, [X]), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float64], ids=lambda d: np.dtype(d).name)
def test_max_pool_of_other_types(dtype):
    x = (X * 20).astype(dtype)
    value, _ = check_composite("MaxPool", x, **attributes_of(POOLS[1]), with_indices=True, ulps=0)
    want = run("MaxPool", x.astype(np.float64), **attributes_of(POOLS[1]))
    np.testing.assert_array_equal(value.astype(np.float64), want)


def test_max_pool_takes_nan_and_minus_infinity_but_never_padding():
    x = np.array([[[[-np.inf, -np.inf, 1, np.nan, 2, np.nan]]]], np.float32)
    row = {"kernel_shape": (1, 2), "strides": (1, 1), "dilations": (1, 1), "pads": ((0, 0), (1, 1))}
    value, place = check_composite("MaxPool", x, **row, with_indices=True)
    np.testing.assert_array_equal(
        value[0, 0, 0], np.array([-np.inf, -np.inf, 1, np.nan, np.nan, np.nan, np.nan], np.float32)
    )
    assert place[0, 0, 0].tolist() == [0, 0, 2, 3, 3, 5, 5]
    np.testing.assert_array_equal(check_composite("MaxPool", x, **row), value)


def test_average_of_a_window_in_the_padding_is_nan_unless_padding_counts():
    x = np.ones((1, 1, 1, 2), np.float32)
    row = {"kernel_shape": (1, 1), "strides": (1, 1), "dilations": (1, 1), "pads": ((0, 0), (1, 0))}
    got = check_composite("AveragePool", x, **row)
    np.testing.assert_array_equal(got[0, 0, 0], np.array([np.nan, 1, 1], np.float32))
    assert check_composite("AveragePool", x, **row, count_include_pad=True)[0, 0, 0].tolist() == [0, 1, 1]


@pytest.mark.parametrize("name", ["MaxPool", "AveragePool", "LpPool"])
def test_empty_batch(name):
    for row in POOLS:
        assert check_composite(name, X[:0], **attributes_of(row), shapes=["N C H W"]).shape[0] == 0


def plain_windows(x, combine, start, window, strides, padding, base, dilations):
    """reduce_window, one element after the other."""
    for axis, d in enumerate(base):
        shape = list(x.shape)
        shape[axis] = max((shape[axis] - 1) * d + 1, 0)
        wide = np.full(shape, start, x.dtype)
        wide[tuple(slice(None, None, d if i == axis else 1) for i in range(x.ndim))] = x
        x = wide
    x = np.pad(x, [(max(low, 0), max(high, 0)) for low, high in padding], constant_values=start)
    x = x[tuple(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape, padding, strict=True))]
    dims = [
        max((n - ((w - 1) * d + 1)) // s + 1, 0) for n, w, s, d in zip(x.shape, window, strides, dilations, strict=True)
    ]
    y = np.full(dims, start, x.dtype)
    for place in np.ndindex(*dims):
        for offset in itertools.product(*map(range, window)):
            at = tuple(o * s + k * d for o, s, k, d in zip(place, strides, offset, dilations, strict=True))
            y[place] = combine(y[place], x[at])
    return y


WINDOWS = [
    ((2, 3), (1, 2), ((0, 0), (1, 2)), (1, 1), (1, 1)),
    ((3, 1), (2, 1), ((2, 1), (0, 0)), (2, 1), (1, 1)),
    ((2, 2), (1, 1), ((-1, 2), (3, -2)), (1, 3), (2, 2)),
    ((7, 2), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
]


@pytest.mark.parametrize("row", WINDOWS, ids=range(len(WINDOWS)))
@pytest.mark.parametrize(
    "kind, combine, start",
    [("sum", np.add, 0), ("prod", np.multiply, 1), ("max", np.maximum, -(2**31)), ("and", np.bitwise_and, -1)],
)
def test_reduce_window(row, kind, combine, start):
    x = np.random.default_rng(3).integers(-9, 9, (5, 6)).astype(np.int32)
    names = ("window_dimensions", "window_strides", "padding", "base_dilations", "window_dilations")
    attributes = dict(zip(names, row, strict=True))
    window, strides, padding, base, dilations = row
    want = plain_windows(x, combine, start, window, strides, padding, base, dilations)
    np.testing.assert_array_equal(check_composite("reduce_window", [x], kind=kind, **attributes, shapes=["A B"]), want)
    if kind != "sum":
        return

    def body(b):
        return b.scalar_region("add", dtypes.i32)

    got = run("reduce_window", [x, np.array(0, np.int32)], kind="custom", body=body, **attributes)
    np.testing.assert_array_equal(got[0] if isinstance(got, tuple) else got, want)


@pytest.mark.parametrize("select", ["max", "min"])
def test_select_and_scatter(select):
    x = np.array([[7, 2, 5, 3, 8], [3, 8, 9, 3, 4], [1, 5, 7, 5, 6], [0, 6, 2, 10, 2]], np.float32)
    source = np.array([[2, 6], [3, 1]], np.float32)
    got = run(
        "select_and_scatter", x, source, select=select, window_dimensions=(2, 3), window_strides=(2, 3),
        padding=((0, 0), (0, 1)),
    )  # fmt: skip
    want = np.zeros_like(x)
    if select == "max":
        want[1, 2], want[1, 2] = 0, 2
        want[0, 4], want[2, 2], want[3, 3] = 6, 3, 1
    else:
        want[0, 1], want[0, 3], want[3, 0], want[3, 4] = 2, 6, 3, 1
    np.testing.assert_array_equal(got, want)


def test_select_and_scatter_adds_overlaps_and_prefers_the_first():
    x = np.array([1, 5, 5, np.nan, 0], np.float32)
    source = np.array([1, 2, 3, 4], np.float32)
    got = run(
        "select_and_scatter", x, source, select="max", window_dimensions=(2,), window_strides=(1,), padding=((0, 0),)
    )
    assert got.tolist() == [0, 3, 0, 7, 0]


def test_types():
    x = tensor(dtypes.f32, N, 3, H, W)
    row = {"kernel_shape": (3, 3), "strides": (2, 2), "dilations": (1, 1), "pads": ((1, 1), (0, 0))}
    assert str(facts_of("MaxPool", x, **row).type) == "f32[N,3,(H + 1)//2,max((W + 1)//2 - 1, 0)]"
    values, places = facts_of("MaxPool", x, **row, with_indices=True)
    assert str(places.type) == str(values.type).replace("f32", "i64")


def test_ceil_mode_counts_partial_windows_but_none_that_starts_in_the_padding():
    row = {"kernel_shape": (1,), "strides": (2,), "dilations": (1,), "pads": ((0, 0),)}
    assert str(facts_of("MaxPool", tensor(dtypes.f32, 1, 1, 4), **row, ceil_mode=True).type) == "f32[1,1,2]"
    assert str(facts_of("MaxPool", tensor(dtypes.f32, 1, 1, 5), **row, ceil_mode=True).type) == "f32[1,1,3]"
    row["kernel_shape"] = (3,)
    assert str(facts_of("MaxPool", tensor(dtypes.f32, 1, 1, 4), **row, ceil_mode=True).type) == "f32[1,1,2]"


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kernel_shape": (2,)}, "kernel_shape needs 2 entries"),
        ({"strides": (0, 1)}, "strides must be at least 1"),
        ({"pads": ((0,), (0, 0))}, "pads needs pairs"),
    ],
)
def test_errors(change, message):
    row = {**attributes_of(POOLS[0]), **change}
    with pytest.raises(InferenceError, match=message):
        facts_of("AveragePool", tensor(dtypes.f32, 1, 1, 8, 8), **row)
