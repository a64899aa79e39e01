"""What fuzzing found, each as small as it goes: one or two nodes on every target against the reference, to the bit."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import irc
from irc.ir import build, dims, dtypes
from irc.ir.dtypes import DType
from irc.ir.errors import UnsupportedError
from irc.ir.reference import evaluate
from irc.ir.text import parse_model
from irc.ir.types import TensorType
from irc.ir.verify import check

TARGETS = ["xla", "mlx{compile=off}", "onnx"]
BIG = [0, 1, 2**64 - 1, 2**64 - 2, 2**63]


def _or(b, x):
    return b.or_(1, x)


def _one_hot(b, indices, values):
    return b.OneHot(indices, values, depth=3)


CASES: dict[str, tuple[Any, list[Any]]] = {
    "mlx has no `1 | array`": (_or, [np.array([1, 2, 4], np.int64)]),
    "mlx has no `1 & array`": (lambda b, x: b.and_(1, x), [np.array([1, 2, 4], np.int16)]),
    "integers saturated to f64 stay exact": (
        lambda b, x: b.convert(x, dtype=dtypes.f64, saturate=True),
        [np.array([2**31 - 1, 2**31 - 2, -(2**31) + 1], np.int32)],
    ),
    "saturate concerns types of 8 bits and less": (
        lambda b, x: b.convert(x, dtype=dtypes.f16, saturate=True),
        [np.array([1e6, -1e6, np.inf, np.nan], np.float32)],
    ),
    "u64 indices are never negative": (
        lambda b, x, i: b.take(x, i, axis=0), [np.arange(5, dtype=np.float32), np.array(BIG, np.uint64)]
    ),
    "u64 sorts by all of its bits": (lambda b, x: b.sort((x,), axis=0, kind="descending"), [np.array(BIG, np.uint64)]),
    "u64 has its top elements": (lambda b, x: b.TopK(x, k=2), [np.array(BIG, np.uint64)]),
    "Shrink of i16 is computed in f32": (
        lambda b, x: b.Shrink(x, bias=1e-5), [np.array([-32768, 32767, 0, -3], np.int16)]
    ),
    "gather of u64 indices": (
        lambda b, x, i: b.gather(x, i, offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,),
                                 index_vector_dim=1, slice_sizes=(1,)),
        [np.arange(5, dtype=np.float32), np.array(BIG, np.uint64).reshape(5, 1)],
    ),
    "put_along_axis drops u64 indices": (
        lambda b, x, i, u: b.put_along_axis(x, i, u, axis=0),
        [np.zeros(5, np.float32), np.array(BIG, np.uint64), np.ones(5, np.float32)],
    ),
    "GatherND of u64 indices": (
        lambda b, x, i: b.GatherND(x, i), [np.arange(5, dtype=np.float32), np.array(BIG, np.uint64).reshape(5, 1)]
    ),
    "XLA takes log(exp(x)) for x": (
        lambda b, x: b.log(b.exponential(x)), [np.array([1000, -1000, np.inf], np.float32)]
    ),
    "XLA takes log(x^y) for y log|x|": (lambda b, x: b.log(b.power(x, 3.0)), [np.array([-1, -2, -0.5], np.float32)]),
    "XLA takes log(rsqrt(x)) for -log(x) / 2": (lambda b, x: b.log(b.rsqrt(x)), [np.array([-0.0, 0], np.float32)]),
    **{
        f"{name} of float8": (
            lambda b, x, name=name: b.apply(name, x),
            [np.array([[[np.nan, 1, 2], [-1, -4, 3]]], ml_dtypes.float8_e4m3fn)],
        )
        for name in ("GlobalAveragePool", "GlobalMaxPool")
    },
    "an empty batch is convolved": (
        lambda b, x, w: b.ConvInteger(x, w, strides=(1,), dilations=(1,), pads=((0, 0),)),
        [np.zeros((0, 2, 4), np.int8), np.ones((3, 2, 2), np.int8)],
    ),
    "Gemm times 0 keeps NaN": (
        lambda b, x, y: b.Gemm(x, y, 1.0, alpha=0.0), [np.array([[np.inf]], np.float32), np.ones((1, 1), np.float32)]
    ),
    **{
        f"a NaN stays when updates are combined by {kind}": (
            lambda b, x, i, u, kind=kind: b.put_along_axis(x, i, u, axis=0, kind=kind),
            [np.array([np.nan, 1, 2], np.float32), np.array([0, 1, 1]), np.array([-1, np.nan, 0], np.float32)],
        )
        for kind in ("min", "max")
    },
    "a convolution without spatial axes": (
        lambda b, x, w: b.Conv(x, w, strides=(), dilations=(), pads=()),
        [np.ones((2, 3), np.float32), np.ones((4, 3), np.float32)],
    ),
    "output_padding may take away": (
        lambda b, x, w: b.ConvTranspose(x, w, strides=(1,), dilations=(2,), pads=((0, 0),), output_padding=(-1,)),
        [np.arange(3, dtype=np.float32).reshape(1, 1, 3), np.ones((1, 1, 2), np.float32)],
    ),
    "Clip of i16": (lambda b, x, y: b.Clip(x, y), [np.array([-5, 7], np.int16), np.array(0, np.int16)]),
    **{
        f"OneHot of {i} and {v}": (_one_hot, [np.array([2, 0, 5], i), np.array([2, 3], v)])
        for i, v in (("i2", "i2"), ("f2", "f2"), ("f2", "i8"), ("i4", "f4"), ("u8", "f4"), ("i8", "f8"), ("u1", "?"))
    },
}  # fmt: skip


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_found(case: str, target: str):
    body, arrays = CASES[case]
    model = irc.Model("found")
    types = [TensorType(DType.from_numpy(a.dtype), a.shape) for a in arrays]
    build.function(model, "main", [(f"x{i}", t) for i, t in enumerate(types)], body)
    wanted = evaluate(model, arrays)
    try:
        got = irc.compile(model, target=target, passes="")(*arrays)
    except UnsupportedError as refusal:
        pytest.skip(f"refused, which is not wrong: {str(refusal)[:80]}")
    for a, b in zip(got, wanted, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        wide = np.float32 if b.dtype == ml_dtypes.float8_e4m3fn else b.dtype  # NumPy knows no NaN of the narrow type
        np.testing.assert_array_equal(np.asarray(a).astype(wide), b.astype(wide))


def test_a_u64_index_beyond_i64_clamps_to_the_last():
    model = irc.Model("clamp")
    types = [TensorType(dtypes.f32, (5,)), TensorType(dtypes.u64, (5,))]
    build.function(model, "main", [("x", types[0]), ("i", types[1])], lambda b, x, i: b.take(x, i, axis=0))
    (got,) = evaluate(model, [np.arange(5, dtype=np.float32), np.array(BIG, np.uint64)])
    assert got.tolist() == [0, 1, 4, 4, 4]


def test_floats_are_not_convolved_to_integers():
    model = irc.Model("convolution")
    type_ = TensorType(dtypes.f32, (1, 1, 3))
    with pytest.raises(irc.IrcError, match=r"a convolution of f32\[1,1,3\] cannot have the type i32"):
        build.function(
            model,
            "main",
            [("x", type_), ("w", type_)],
            lambda b, x, w: b.convolution(
                x, w, lhs_spec="bf0", rhs_spec="oi0", out_spec="bf0", window_strides=(1,), padding=((0, 0),),
                lhs_dilation=(1,), rhs_dilation=(1,), window_reversal=(False,), result=dtypes.i32,
            ),
        )  # fmt: skip


def test_operands_may_be_exchanged_under_an_assumption():
    """canonicalize puts constants to the right; the node then needs bcast(N, 2) where bcast(2, N) is recorded."""
    text = """irc 1 vocabulary 1
model "m" {
  func @main<N>(%x: i32[1,N], %z: i32[1,2]) -> (%y: i32[1,2]) {
    assume bcast(2, N) from "multiply"
    %y = multiply(%x, %z) : i32[1,2]
    return %y
  }
}
"""
    model = parse_model(text)
    check(model)
    assert [a.relation for a in model.main.assumptions] == ["bcast"]


def test_sizes_beyond_64_bits_are_refused():
    model = irc.Model("resize")
    with pytest.raises(irc.IrcError, match="would have a size beyond 64 bits"):
        build.function(
            model,
            "main",
            [("x", TensorType(dtypes.f32, (3,)))],
            lambda b, x: b.Resize(x, dims=(3 * 10**38,), scales=(1e38,), mode="linear"),
        )


def test_a_size_that_repeats_to_a_number_is_1_or_that_number():
    model = irc.Model("repeat")
    n = dims.symbol("N")
    build.function(
        model,
        "main",
        [("x", TensorType(dtypes.i8, (n, 1)))],
        lambda b, x: b.broadcast_in_dim(x, dims=(n, 2, 5), broadcast_dimensions=(1, 2)),
    )
    assert [str(a) for a in model.main.assumptions] == ["bcast(N, 2)"]
    with pytest.raises(irc.IrcError, match=r"bcast\(N, 2\)"):
        irc.compile(model, target="xla")(np.zeros((4, 1), np.int8))


def test_attention_of_nothing_is_left_alone():
    """Sizes of 0 are multiples of everything; the fusion took a remainder by one."""
    text = """irc 1 vocabulary 1
model "m" {
  func @main(%x: f32[1,0,1,8], %y: f32[1,0,2,8], %z: f32[1,1,1,2]) -> (%o: f32[1,0,1,8]) {
    %0 = transpose(%y) {permutation = [0, 1, 3, 2]} : f32[1,0,8,2]
    %1 = MatMul(%x, %0) : f32[1,0,1,2]
    %2 = add(%z, %1) : f32[1,0,1,2]
    %3 = Softmax(%2) {axis = 3} : f32[1,0,1,2]
    %o = MatMul(%3, %y) : f32[1,0,1,8]
    return %o
  }
}
"""
    irc.run_passes(parse_model(text), "canonicalize,fuse", verify_each=True)


@pytest.mark.parametrize(
    "attributes, message",
    [
        ({"counts": (-1, 4)}, "counts must be positions in the pool in rising order"),
        ({"counts": (0,), "columns": 1}, "places must be columns, of which there are 1"),
        ({"counts": (0, 2), "most": 2, "places": [0, 1]}, "the number of grams in the pool"),
    ],
)
def test_n_grams_fit_their_pool(attributes, message):
    given = {"columns": 3, **attributes}
    places = np.array(given.pop("places", [0, 1, 2, 1, 0]))
    model = irc.Model("grams")
    with pytest.raises(irc.IrcError, match=message):
        build.function(
            model,
            "main",
            [("x", TensorType(dtypes.i64, (2, 6)))],
            lambda b, x: b.TfIdfVectorizer(x, b.constant(np.arange(6)), b.constant(places), **given),
        )


@pytest.mark.parametrize("dtype", ["u8", "u32", "u64", "i8", "i64"])
def test_the_magnitude_of_a_negative_is_that_of_the_number_unless_it_wraps(dtype):
    type_ = TensorType(DType.of(dtype), (3,))
    model = irc.Model("magnitude")
    build.function(model, "main", [("x", type_)], lambda b, x: b.abs(b.negate(x)))
    x = np.array([0, 1, 100], type_.dtype.numpy)
    np.testing.assert_array_equal(evaluate(irc.run_passes(model), [x])[0], evaluate(model, [x])[0])
