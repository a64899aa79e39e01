"""Quantization: bit for bit against ONNX Runtime and integer arithmetic; decompositions must be equal, not close."""

import ml_dtypes
import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.types import tensor
from irc.testing.operators import check_composite, facts_of, run, run_onnx_node

B, K, M, N = map(symbol, "BKMN")
RNG = np.random.default_rng(0)
X = (RNG.normal(size=(2, 3, 8)) * 40).astype(np.float32)


def f32(*values):
    return np.array(values if len(values) != 1 else values[0], np.float32)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint16], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("axis", [None, 1, -1])
def test_quantize_and_dequantize(dtype, axis):
    count = 1 if axis is None else X.shape[axis]
    scale = (np.abs(RNG.normal(size=count)) + 0.1).astype(np.float32)
    zero = RNG.integers(0, 50, count).astype(dtype)
    scale, zero = (scale.reshape(()), zero.reshape(())) if axis is None else (scale, zero)
    kind = dtypes.DType.from_numpy(dtype)
    attributes = {} if axis is None else {"axis": axis}
    got = check_composite(
        "QuantizeLinear", X, scale, zero, dtype=kind, shapes=["A 3 8", None, None], ulps=0, **attributes
    )
    np.testing.assert_array_equal(got, run_onnx_node("QuantizeLinear", [X, scale, zero], **attributes))
    back = check_composite("DequantizeLinear", got, scale, zero, shapes=["A 3 8", None, None], ulps=0, **attributes)
    np.testing.assert_array_equal(back, run_onnx_node("DequantizeLinear", [got, scale, zero], **attributes))


def test_quantize_ties_saturation_and_nan():
    x = f32(0.5, 1.5, 2.5, -0.5, -1.5, 1e9, -1e9, np.inf, -np.inf, np.nan)
    got = check_composite("QuantizeLinear", x, f32(1), None, dtype=dtypes.i8, shapes=["N", None], ulps=0)
    assert got.tolist() == [0, 2, 2, 0, -2, 127, -128, 127, -128, 0]


@pytest.mark.parametrize("axis, dims", [(0, (1, 3, 8)), (1, (2, 2, 8)), (2, (2, 3, 3))])
def test_blocks(axis, dims):
    block = {0: 2, 1: 2, 2: 3}[axis]
    scale = (np.abs(RNG.normal(size=dims)) + 0.5).astype(np.float32)
    zero = RNG.integers(0, 9, dims).astype(np.int8)
    attributes = {"axis": axis, "block_size": block}
    got = check_composite("QuantizeLinear", X, scale, zero, dtype=dtypes.i8, ulps=0, **attributes)
    spread = [np.repeat(p, block, axis)[tuple(map(slice, X.shape))] for p in (scale, zero)]
    want = np.clip(np.rint(X / spread[0]) + spread[1], -128, 127).astype(np.int8)
    np.testing.assert_array_equal(got, want)
    back = check_composite("DequantizeLinear", got, scale, zero, ulps=0, **attributes)
    np.testing.assert_array_equal(back, (got.astype(np.float32) - spread[1]) * spread[0])


def test_blocks_with_symbolic_sizes():
    types = [tensor(dtypes.f32, B, N * 4), tensor(dtypes.f32, B, N)]
    x, scale = X[0], (np.abs(X[0, :, :2]) + 1).astype(np.float32)
    want = run("QuantizeLinear", x, scale, dtype=dtypes.i8, axis=1, block_size=4)
    for decompose in (False, True):
        got = run("QuantizeLinear", x, scale, dtype=dtypes.i8, axis=1, block_size=4, types=types, decompose=decompose)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("dtype", [ml_dtypes.int4, ml_dtypes.uint4], ids=str)
def test_four_bits(dtype):
    got = check_composite(
        "QuantizeLinear", X, f32(10), np.array(3, dtype), dtype=dtypes.DType.from_numpy(dtype), ulps=0
    )
    low, high = (-8, 7) if dtype is ml_dtypes.int4 else (0, 15)
    np.testing.assert_array_equal(got.astype(int), np.clip(np.rint(X / 10) + 3, low, high))
    back = check_composite("DequantizeLinear", got, f32(10), np.array(3, dtype), ulps=0)
    np.testing.assert_array_equal(back, (got.astype(np.float32) - 3) * 10)


@pytest.mark.parametrize("saturate", [False, True])
def test_float8(saturate):
    x = f32(1, 3.3, 1000, -1000, 0.01)
    got = check_composite("QuantizeLinear", x, f32(2), None, dtype=dtypes.f8e4m3fn, saturate=saturate, ulps=0)
    want = (x / 2).clip(-448, 448) if saturate else x / 2
    np.testing.assert_array_equal(got.astype(float), want.astype(ml_dtypes.float8_e4m3fn).astype(float))
    back = check_composite("DequantizeLinear", got, f32(2), None, ulps=0)
    np.testing.assert_array_equal(back, got.astype(np.float32) * 2)


def test_halves():
    x, scale = X.astype(np.float16), np.array(0.37, np.float16)
    got = check_composite("QuantizeLinear", x, scale, None, dtype=dtypes.u8, ulps=0)
    back = check_composite("DequantizeLinear", got, scale, None, ulps=0)
    assert back.dtype == np.float16
    assert check_composite("DequantizeLinear", got, scale, None, dtype=dtypes.f32).dtype == np.float32


def test_integers_of_32_bits_are_dequantized():
    x = np.array([2**31 - 1, -5, 7], np.int32)
    got = check_composite("DequantizeLinear", x, f32(0.1), None, ulps=0, shapes=["N", None])
    np.testing.assert_array_equal(got, x.astype(np.float32) * np.float32(0.1))


@pytest.mark.parametrize("x", [X, np.abs(X), -np.abs(X), np.zeros((2, 2), np.float32)], ids=range(4))
def test_dynamic(x):
    shapes = [" ".join("ABC"[: x.ndim])]
    got = check_composite("DynamicQuantizeLinear", x, shapes=shapes, ulps=0)
    for mine, theirs in zip(got, run_onnx_node("DynamicQuantizeLinear", [x], outputs=3), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_dynamic_of_nothing():
    y, scale, zero = check_composite("DynamicQuantizeLinear", X[:0], shapes=["A 3 8"])
    assert y.shape == (0, 3, 8)
    assert (scale, zero) == (1, 0)


def integers(dtype, *dims):
    info = np.iinfo(dtype)
    return RNG.integers(info.min, info.max + 1, dims).astype(dtype)


@pytest.mark.parametrize("a, b", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
@pytest.mark.parametrize("zeros", ["none", "scalar", "vector"])
def test_matmul_integer(a, b, zeros):
    x, y = integers(a, 2, 3, 20), integers(b, 20, 4)
    zx, zy = {
        "none": (None, None),
        "scalar": (np.array(7, a), np.array(3, b)),
        "vector": (np.array([1, 2, 3], a), np.array([4, 5, 6, 7], b)),
    }[zeros]
    given = [None, None] if zeros != "none" else []
    got = check_composite("MatMulInteger", x, y, zx, zy, shapes=["A 3 K", "K 4", *given])
    moved = x.astype(int) - (0 if zx is None else zx.astype(int).reshape(-1, 1))
    np.testing.assert_array_equal(got, moved @ (y.astype(int) - (0 if zy is None else zy.astype(int))))
    assert got.dtype == np.int32


CONV = {"strides": (1, 2), "dilations": (1, 1), "pads": ((1, 1), (0, 1)), "group": 1}


@pytest.mark.parametrize("zeros", [False, True])
def test_conv_integer(zeros):
    x, w = integers(np.uint8, 2, 3, 5, 6), integers(np.uint8, 4, 3, 3, 3)
    zx, zw = (np.array(7, np.uint8), np.array(9, np.uint8)) if zeros else (None, None)
    got = check_composite(
        "ConvInteger", x, w, zx, zw, **CONV, shapes=["N 3 H W", None, *([None, None] if zeros else [])]
    )
    onnx = {"strides": (1, 2), "pads": [1, 0, 1, 1]}
    np.testing.assert_array_equal(got, run_onnx_node("ConvInteger", [x, w, zx, zw], **onnx))


def test_conv_integer_has_a_zero_point_a_channel():
    x, w, zero = integers(np.uint8, 1, 3, 5, 6), integers(np.int8, 4, 3, 3, 3), np.array([1, -2, 3, -4], np.int8)
    got = check_composite("ConvInteger", x, w, np.array(7, np.uint8), zero, **CONV)
    each = [run("ConvInteger", x, w[i : i + 1], np.array(7, np.uint8), zero[i], **CONV) for i in range(4)]
    np.testing.assert_array_equal(got, np.concatenate(each, 1))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_qlinear_conv(bias, kind):
    x, w = integers(kind, 2, 4, 5, 6), integers(np.int8, 6, 2, 3, 3)
    scales = (np.abs(RNG.normal(size=6)) * 0.02 + 0.01).astype(np.float32)
    b = RNG.integers(-500, 500, 6).astype(np.int32) if bias else None
    operands = [x, f32(0.05), np.array(11, kind), w, scales, np.zeros(6, np.int8), f32(0.9), np.array(5, kind), b]
    got = check_composite(
        "QLinearConv", *operands, **{**CONV, "group": 2}, shapes=["N 4 H W", *[None] * (8 if bias else 7)]
    )
    want = run_onnx_node("QLinearConv", operands, strides=(1, 2), pads=[1, 0, 1, 1], group=2)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_qlinear_matmul(kind):
    a, b = integers(kind, 2, 3, 20), integers(kind, 20, 4)
    operands = [a, f32(0.02), np.array(3, kind), b, f32(0.03), np.array(9, kind), f32(0.4), np.array(7, kind)]
    got = check_composite("QLinearMatMul", *operands, shapes=["A M K", *[None] * 2, "K N", *[None] * 4])
    np.testing.assert_array_equal(got, run_onnx_node("QLinearMatMul", operands))


def test_qlinear_matmul_by_rows_and_columns():
    a, b = integers(np.int8, 3, 20), integers(np.int8, 20, 4)
    rows, columns = f32(0.01, 0.02, 0.03), f32(0.1, 0.2, 0.3, 0.4)
    za, zb = np.array([1, 2, 3], np.int8), np.array([-1, 0, 1, 2], np.int8)
    got = check_composite("QLinearMatMul", a, rows, za, b, columns, zb, f32(0.4), np.array(7, np.int8))
    total = (a.astype(int) - za[:, None]) @ (b.astype(int) - zb)
    factor = rows[:, None] * columns / np.float32(0.4)
    np.testing.assert_array_equal(got, np.clip(np.rint(total.astype(np.float32) * factor) + 7, -128, 127))


def test_types_and_errors():
    x, y = tensor(dtypes.u8, B, M, K), tensor(dtypes.i8, K, N)
    assert str(facts_of("MatMulInteger", x, y).type) == "i32[B,M,N]"
    one = tensor(dtypes.f32)
    assert str(facts_of("DequantizeLinear", x, tensor(dtypes.f16)).type) == "f16[B,M,K]"
    with pytest.raises(InferenceError, match="zero_point must have the result's type i8, got u8"):
        facts_of("QuantizeLinear", tensor(dtypes.f32, 4), one, tensor(dtypes.u8), dtype=dtypes.i8)
    with pytest.raises(InferenceError, match="the dim of scale and of x along axis 1 must be equal, got 3 and 5"):
        facts_of("DequantizeLinear", tensor(dtypes.u8, 4, 5), tensor(dtypes.f32, 3))
    with pytest.raises(InferenceError, match="dims of scale"):
        facts_of("DequantizeLinear", tensor(dtypes.u8, 4, 5), tensor(dtypes.f32, 4, 2), block_size=2)


def packed(rows, size, bits, block, zeros):
    """Operands of QuantizedMatMul behind x, and the weights that they stand for."""
    blocks = -(-size // block)
    q = RNG.integers(0, 1 << bits, (rows, blocks, block))
    each = 8 // bits
    weights = (q.reshape(rows, -1, each) << (np.arange(each) * bits)).sum(-1).astype(np.uint8)
    scales = RNG.uniform(0.5, 1, (rows, blocks)).astype(np.float32)
    zero = {None: None, "bytes": RNG.integers(0, 1 << bits, (rows, blocks)).astype(np.uint8),
            "floats": RNG.uniform(0, 3, (rows, blocks)).astype(np.float32)}[zeros]  # fmt: skip
    moved = q - ((1 << (bits - 1)) if zero is None else zero.astype(np.float64)[..., None])
    return [weights, scales, zero], (moved * scales[..., None]).reshape(rows, -1)[:, :size]


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("zeros", [None, "bytes", "floats"])
@pytest.mark.parametrize("size, block", [(64, 32), (40, 16), (12, 12)])
def test_quantized_matmul(bits, zeros, size, block):
    operands, real = packed(6, size, bits, block, zeros)
    x = RNG.normal(size=(2, 3, size)).astype(np.float32)
    shapes = [f"A B {size}", None, None, *([] if zeros is None else [None])]
    got = check_composite("QuantizedMatMul", x, *operands, size=size, bits=bits, block_size=block, shapes=shapes)
    np.testing.assert_allclose(got, x.astype(np.float64) @ real.T, rtol=1e-5, atol=1e-4)
    half = run("QuantizedMatMul", x.astype(np.float16), *operands, size=size, bits=bits, block_size=block)
    assert half.dtype == np.float16


def test_quantized_matmul_takes_a_vector_and_nothing():
    operands, real = packed(6, 32, 4, 16, None)
    x = RNG.normal(size=32).astype(np.float32)
    got = check_composite("QuantizedMatMul", x, *operands, size=32, block_size=16)
    np.testing.assert_allclose(got, real @ x, rtol=1e-5, atol=1e-4)
    assert check_composite("QuantizedMatMul", x[None][:0], *operands, size=32, block_size=16).shape == (0, 6)


@pytest.mark.parametrize("change, message", [
    ({"bits": 3}, "bits must be 2, 4 or 8, got 3"),
    ({"size": 48}, "the last dim of x and the size of a row of weights must be equal, got 32 and 48"),
    ({"bits": 8}, r"dims of weights \(axis 1\) must be equal, got 16 and 32"),
    ({"bits": 2, "block_size": 2}, "blocks of 2 elements do not fill whole bytes"),
])  # fmt: skip
def test_errors_of_quantized_matmul(change, message):
    given = {"size": 32, "bits": 4, "block_size": 16} | change
    weights, scales = tensor(dtypes.u8, 6, 16), tensor(dtypes.f32, 6, 2)
    with pytest.raises(InferenceError, match=message):
        facts_of("QuantizedMatMul", tensor(dtypes.f32, M, 32), weights, scales, **given)


@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("columns", [False, True])
def test_dynamic_quantize_lstm(direction, columns):
    d, size, hidden = 2 if direction == "bidirectional" else 1, 3, 4
    shape = (d, 4 * hidden) if columns else (d,)
    x = RNG.normal(size=(5, 2, size)).astype(np.float32)
    operands = [
        x, integers(np.int8, d, size, 4 * hidden), integers(np.uint8, d, hidden, 4 * hidden),
        RNG.normal(size=(d, 8 * hidden)).astype(np.float32), np.array([5, 3], np.int32), None, None, None,
        RNG.uniform(0.004, 0.008, shape).astype(np.float32), RNG.integers(-3, 3, shape).astype(np.int8),
        RNG.uniform(0.004, 0.008, shape).astype(np.float32), RNG.integers(120, 130, shape).astype(np.uint8),
    ]  # fmt: skip
    # A state next to a tie may be quantized to either neighbour: a step of 2 / 255, times a weight of about 1.
    given = {"hidden_size": hidden, "direction": direction, "activations": ("Sigmoid", "Tanh", "Tanh") * d}
    y, *_ = check_composite("DynamicQuantizeLSTM", *operands, **given, ulps=1e-2 * 2**23, shapes=["T B 3", *[None] * 8])
    assert y.shape == (5, d, 2, hidden)
    assert not y[3:, :, 1].any()  # past the second row's length
    # The same layer with the weights as floats is near: products are right, but for what x and h lose in quantization.
    real = [(w.astype(np.float32) - z.reshape(d, 1, -1)) * s.reshape(d, 1, -1)
            for w, s, z in ((operands[1], *operands[8:10]), (operands[2], *operands[10:]))]  # fmt: skip
    turned = [w.transpose(0, 2, 1).astype(np.float32) for w in real]
    near = run("LSTM", x, *turned, operands[3], operands[4], **given)[0]
    assert np.abs(near - y).max() < 0.05
