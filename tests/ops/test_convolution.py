"""Convolutions against ONNX Runtime, SciPy and plain loops; decompositions, types, errors."""

import itertools
import time

import ml_dtypes
import numpy as np
import pytest
import scipy.signal

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.types import tensor
from irc.testing.operators import assumptions_of, check_composite, facts_of, run, run_onnx_node

N, H, W = map(symbol, "NHW")


def random(*dims, dtype=np.float32, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind in "iu":
        return rng.integers(0, 100, dims).astype(dtype)
    return rng.normal(size=dims).astype(dtype)


CONVS = [
    # x, w, strides, dilations, pads, group
    ((2, 4, 7, 8), (6, 4, 3, 3), (1, 1), (1, 1), ((1, 1), (1, 1)), 1),
    ((2, 4, 7, 8), (6, 4, 1, 1), (1, 1), (1, 1), ((0, 0), (0, 0)), 1),
    ((2, 4, 7, 8), (6, 2, 3, 2), (2, 1), (1, 2), ((0, 2), (1, 0)), 2),
    ((2, 4, 7, 8), (8, 1, 3, 3), (1, 2), (2, 1), ((2, 2), (1, 1)), 4),
    ((2, 4, 9), (3, 4, 4), (3,), (1,), ((2, 1),), 1),
    ((1, 2, 4, 5, 6), (3, 2, 2, 3, 1), (1, 2, 1), (2, 1, 1), ((0, 1), (1, 1), (0, 0)), 1),
]


def onnx_pads(pads):
    return [p[0] for p in pads] + [p[1] for p in pads]


@pytest.mark.parametrize("x, w, strides, dilations, pads, group", CONVS, ids=str)
@pytest.mark.parametrize("bias", [False, True])
def test_conv(x, w, strides, dilations, pads, group, bias):
    shape = f"N {x[1]} " + " ".join("HWD"[: len(x) - 2])
    x, b = random(*x), random(w[0], seed=2) if bias else None
    w = random(*w, seed=1)
    attributes = {"strides": strides, "dilations": dilations, "group": group}
    got = check_composite("Conv", x, w, b, pads=pads, **attributes, shapes=[shape, None, *([None] if bias else [])])
    want = run_onnx_node("Conv", [x, w, b], pads=onnx_pads(pads), **attributes)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16], ids=lambda d: np.dtype(d).name)
def test_conv_types(dtype):
    x, w, b = random(1, 4, 6, 6, dtype=dtype), random(2, 4, 3, 3, dtype=dtype), random(2, dtype=dtype)
    check_composite(
        "Conv", x, w, b, strides=(1, 1), dilations=(1, 1), pads=((1, 1), (1, 1)), shapes=["N 4 H W", None, None]
    )


def test_conv_of_an_empty_batch_and_of_no_channels():
    w = random(3, 2, 3, 3)
    row = {"strides": (1, 1), "dilations": (1, 1), "pads": ((1, 1), (1, 1))}
    assert check_composite("Conv", random(0, 2, 5, 5), w, **row, shapes=["N 2 H W", None]).shape == (0, 3, 5, 5)
    assert not check_composite("Conv", random(1, 0, 5, 5), random(3, 0, 3, 3), **row).any()


TRANSPOSES = [
    # x, w, strides, dilations, pads, output_padding, group
    ((2, 4, 5, 6), (4, 3, 3, 3), (1, 1), (1, 1), ((0, 0), (0, 0)), (0, 0), 1),
    ((2, 4, 5, 6), (4, 3, 3, 2), (2, 3), (1, 1), ((1, 1), (0, 1)), (1, 0), 1),
    ((2, 4, 5, 6), (4, 3, 2, 2), (2, 2), (1, 1), ((0, 0), (0, 0)), (0, 0), 2),
    ((2, 4, 5, 6), (4, 1, 3, 3), (2, 1), (2, 2), ((2, 1), (3, 2)), (1, 0), 4),
    ((1, 2, 7), (2, 3, 4), (3,), (1,), ((1, 2),), (2,), 1),
    ((1, 2, 3, 4, 3), (2, 2, 2, 3, 2), (2, 1, 2), (1, 1, 1), ((0, 1), (1, 1), (0, 0)), (0, 0, 1), 1),
]


@pytest.mark.parametrize("x, w, strides, dilations, pads, extra, group", TRANSPOSES, ids=str)
def test_conv_transpose(x, w, strides, dilations, pads, extra, group):
    shape = f"N {x[1]} " + " ".join("HWD"[: len(x) - 2])
    x, w, b = random(*x), random(*w, seed=1), random(w[1] * group, seed=2)
    attributes = {"strides": strides, "dilations": dilations, "group": group, "output_padding": extra}
    got = check_composite("ConvTranspose", x, w, b, pads=pads, **attributes, shapes=[shape, None, None])
    want = run_onnx_node("ConvTranspose", [x, w, b], pads=onnx_pads(pads), **attributes)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_conv_transpose_that_crops_more_than_the_kernel_reaches():
    x, w = random(1, 1, 6, 6), random(1, 1, 2, 2)
    row = {"strides": (1, 1), "dilations": (1, 1), "output_padding": (0, 0)}
    got = check_composite("ConvTranspose", x, w, pads=((2, 3), (0, 2)), **row, shapes=["N 1 H W", None])
    whole = run("ConvTranspose", x, w, pads=((0, 0), (0, 0)), **row)
    np.testing.assert_array_equal(got, whole[:, :, 2:-3, :-2])


def plain_convolution(x, w, strides, padding, lhs_dilation, rhs_dilation, reversal, groups):
    """NCHW convolution, one product after the other."""
    wide = np.zeros((*x.shape[:2], *((n - 1) * d + 1 for n, d in zip(x.shape[2:], lhs_dilation, strict=True))))
    wide[(..., *(slice(None, None, d) for d in lhs_dilation))] = x
    x = np.pad(wide, [(0, 0), (0, 0), *((max(low, 0), max(high, 0)) for low, high in padding)])
    x = x[(..., *(slice(max(-low, 0), n - max(-high, 0)) for n, (low, high) in zip(x.shape[2:], padding, strict=True)))]
    w = np.flip(w, [i + 2 for i, r in enumerate(reversal) if r])
    dims = [(n - ((k - 1) * d + 1)) // s + 1
            for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, rhs_dilation, strict=True)]  # fmt: skip
    y = np.zeros((x.shape[0], w.shape[0], *dims))
    for b, o, *place in np.ndindex(*y.shape):
        start = o // (w.shape[0] // groups) * w.shape[1]
        at = tuple(
            slice(p * s, p * s + (k - 1) * d + 1, d)
            for p, s, k, d in zip(place, strides, w.shape[2:], rhs_dilation, strict=True)
        )
        y[(b, o, *place)] = np.sum(x[(b, slice(start, start + w.shape[1]), *at)] * w[o])
    return y


LAYOUTS = [("bf01", "oi01", "bf01"), ("b01f", "01io", "b01f"), ("f0b1", "i1o0", "1bf0")]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("groups", [1, 2])
def test_convolution_in_any_layout(layout, groups):
    x, w = random(2, 4, 6, 7), random(4, 4 // groups, 3, 2, seed=1)
    padding, strides, lhs, rhs, reversal = ((-1, 2), (3, -2)), (1, 2), (2, 1), (1, 2), (True, False)
    lhs_spec, rhs_spec, out_spec = layout
    got = run(
        "convolution",
        x.transpose(["bf01".index(c) for c in lhs_spec]),
        w.transpose(["oi01".index(c) for c in rhs_spec]),
        lhs_spec=lhs_spec, rhs_spec=rhs_spec, out_spec=out_spec, window_strides=strides, padding=padding,
        lhs_dilation=lhs, rhs_dilation=rhs, window_reversal=reversal, feature_group_count=groups,
    )  # fmt: skip
    want = plain_convolution(x.astype(float), w.astype(float), strides, padding, lhs, rhs, reversal, groups)
    np.testing.assert_allclose(got.transpose([out_spec.index(c) for c in "bf01"]), want, rtol=1e-5, atol=1e-5)


def plain(rank):
    digits = "".join(map(str, range(rank)))
    ones = (1,) * rank
    return {
        "lhs_spec": "bf" + digits, "rhs_spec": "oi" + digits, "out_spec": "bf" + digits, "window_strides": ones,
        "lhs_dilation": ones, "rhs_dilation": ones, "window_reversal": (False,) * rank,
    }  # fmt: skip


def test_batch_groups():
    x, w = random(6, 2, 5), random(4, 2, 3, seed=1)
    got = run("convolution", x, w, **plain(1), padding=((0, 0),), batch_group_count=2)
    rows = {**plain(1), "padding": ((0, 0),)}
    parts = [run("convolution", x[3 * g : 3 * g + 3], w[2 * g : 2 * g + 2], **rows) for g in (0, 1)]
    np.testing.assert_array_equal(got, np.concatenate(parts, 1))


def test_integers_are_exact_and_wrap():
    x, w = random(1, 3, 8, dtype=np.uint8), random(2, 3, 3, dtype=np.uint8, seed=1)
    wide = [
        sum(scipy.signal.correlate(x[0, c].astype(int), w[o, c].astype(int), "valid") for c in range(3))
        for o in range(2)
    ]
    got = run("convolution", x, w, **plain(1), padding=((0, 0),), result=dtypes.i32)
    np.testing.assert_array_equal(got[0], wide)
    np.testing.assert_array_equal(
        run("convolution", x, w, **plain(1), padding=((0, 0),))[0], np.array(wide).astype(np.uint8)
    )
    big = np.full((1, 1, 3), 2**62, np.int64)
    got = run("convolution", big, np.full((1, 1, 3), 3, np.int64), **plain(1), padding=((0, 0),))
    assert got.tolist() == [[[(9 * 2**62 + 2**63) % 2**64 - 2**63]]]


def test_a_detector_layer_takes_bounded_time():
    x, w = random(1, 64, 80, 80), random(64, 64, 3, 3)
    start = time.perf_counter()
    run("convolution", x, w, **plain(2), padding=((1, 1), (1, 1)))
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed


def test_types():
    x, w = tensor(dtypes.f32, N, 3, H, W), tensor(dtypes.f32, 8, 3, 3, 3)
    row = {"strides": (2, 1), "dilations": (1, 1)}
    assert str(facts_of("Conv", x, w, **row, pads=((1, 1), (1, 1))).type) == "f32[N,8,(H + 1)//2,W]"
    assert assumptions_of("Conv", x, w, **row, pads=((1, 1), (1, 1))) == []
    assert assumptions_of("Conv", x, w, **row, pads=((0, 0), (0, 0))) == ["0 <= (H + 1)//2 - 1", "0 <= W - 2"]
    got = facts_of(
        "ConvTranspose",
        x,
        tensor(dtypes.f32, 3, 8, 2, 2),
        strides=(2, 2),
        dilations=(1, 1),
        pads=((0, 0),) * 2,
        output_padding=(0, 0),
    )
    assert str(got.type) == "f32[N,8,2*H,2*W]"


@pytest.mark.parametrize(
    "x, w, change, message",
    [
        ((1, 3, 8, 8), (8, 4, 3, 3), {}, "channels of x and of w .* must be equal, got 3 and 4"),
        ((1, 3, 2, 8), (8, 3, 5, 3), {}, "a kernel of size 5 .* does not fit an axis of 2"),
        ((1, 3, 8), (8, 3, 3, 3), {}, "must have equal rank"),
        ((1, 4, 8, 8), (3, 2, 3, 3), {"group": 2}, "output channels of w modulo 2"),
        ((1, 3, 8, 8), (8, 3, 3, 3), {"strides": (1,)}, "strides needs 2 entries"),
        ((1, 3, 8, 8), (8, 3, 3, 3), {"dilations": (0, 1)}, "dilations must be at least 1"),
    ],
)
def test_errors(x, w, change, message):
    row = {"strides": (1, 1), "dilations": (1, 1), "pads": ((0, 0), (0, 0)), **change}
    with pytest.raises(InferenceError, match=message):
        facts_of("Conv", tensor(dtypes.f32, *x), tensor(dtypes.f32, *w), **row)


@pytest.mark.parametrize(
    "change", itertools.chain([{"lhs_spec": "bf02"}, {"out_spec": "bb01"}, {"rhs_spec": "bf01"}]), ids=str
)
def test_layouts_are_checked(change):
    row = {**plain(2), "padding": ((0, 0), (0, 0)), **change}
    with pytest.raises(InferenceError, match="must name the axes"):
        facts_of("convolution", tensor(dtypes.f32, 1, 3, 8, 8), tensor(dtypes.f32, 8, 3, 3, 3), **row)
