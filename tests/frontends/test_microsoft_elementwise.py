"""com.microsoft: activations, fused products and convolutions, shapes, indices, FFT: ONNX Runtime or formulas."""

import numpy as np
import pytest
import scipy.special
from onnx import TensorProto

F, I64 = TensorProto.FLOAT, TensorProto.INT64
RNG = np.random.default_rng(7)
MS = {"domain": "com.microsoft"}


def normal(*shape, dtype=np.float32, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(dtype)


def gelu(x):
    return 0.5 * x * (1 + scipy.special.erf(x / np.sqrt(2)))


def fast_gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


@pytest.mark.parametrize("op, operands, attributes", [
    ("Gelu", [(F, ["N", 8])], {}),
    ("FastGelu", [(F, ["N", 8])], {}),
    ("FastGelu", [(F, ["N", 8]), normal(8)], {}),
    ("BiasGelu", [(F, ["N", 8]), normal(8)], {}),
    ("QuickGelu", [(F, ["N", 8])], {}),
    ("QuickGelu", [(F, ["N", 8])], {"alpha": 0.5}),
])  # fmt: skip
def test_activations(op, operands, attributes, one_node, agrees):
    # ONNX Runtime takes erf and tanh from its own approximations, which are within a few 2^-24 of 1.
    agrees(one_node(op, operands, 21, **MS, **attributes), [normal(5, 8, scale=3)], rtol=2e-6)


@pytest.mark.parametrize("op, count", [("BiasSplitGelu", 2), ("BiasAdd", 3)])
def test_additions_without_a_kernel_on_the_cpu(op, count, one_node, agrees):
    x, bias, skip = normal(2, 5, 8), normal(8), normal(2, 5, 8)
    wide = x.astype(np.float64) + bias
    want = wide[..., :4] * gelu(wide[..., 4:]) if count == 2 else wide + skip
    operands = [(F, ["B", "S", 8]), bias, (F, ["B", "S", 8])][:count]
    agrees(one_node(op, operands, 21, **MS), [x, skip][: count - 1], [want.astype(np.float32)], rtol=2e-6)


def test_bias_dropout_drops_nothing(one_node, agrees):
    x, bias, residual = normal(2, 8), normal(8), normal(2, 8)
    operands = [(F, ["N", 8]), bias, (F, ["N", 8]), np.array(0.5, np.float32), np.array(False)]
    model = one_node("BiasDropout", operands, 21, outputs=2, **MS)
    agrees(model, [x, residual], [x + bias + residual, np.ones((2, 8), bool)], rtol=1e-6)


@pytest.mark.parametrize("conjugate", [False, True])
def test_complex_products(conjugate, one_node, agrees):
    x, y = normal(2, 3, 4, 2), normal(3, 4, 2)
    other = (y[..., 0] + 1j * y[..., 1]).astype(np.complex128)
    product = (x[..., 0] + 1j * x[..., 1]) * (other.conj() if conjugate else other)
    want = np.stack([product.real, product.imag], -1).astype(np.float32)
    op = "ComplexMulConj" if conjugate else "ComplexMul"
    agrees(one_node(op, [(F, ["N", 3, 4, 2]), y], 21, **MS), [x], [want], rtol=1e-6)


@pytest.mark.parametrize("attributes", [{}, {"isnan_only": 1}, {"isinf_only": 1}], ids=str)
@pytest.mark.parametrize("spoilt", [None, np.nan, -np.inf])
def test_is_all_finite(attributes, spoilt, one_node, agrees):
    x, y = normal(3, 4), normal(5)
    y[2] = y[2] if spoilt is None else spoilt
    bad = {0: ~np.isfinite(y), 1: np.isnan(y), 2: np.isinf(y)}[len(attributes) and 1 + ("isinf_only" in attributes)]
    model = one_node("IsAllFinite", [(F, ["N", 4]), (F, ["M"])], 21, out_type=TensorProto.BOOL, **MS, **attributes)
    agrees(model, [x, y], [np.array(not bad.any())])


@pytest.mark.parametrize("a, b, attributes", [
    ((3, 4), (4, 5), {"alpha": 0.25}),
    ((2, 4, 3), (2, 4, 5), {"transA": 1}),
    ((2, 3, 4), (2, 5, 4), {"transB": 1, "alpha": -2.0}),
    ((3, 2, 4), (2, 4, 5), {"transBatchA": 1}),
    ((3, 2, 7, 4), (4, 2, 7, 5), {"transBatchA": 1, "transBatchB": 1}),
    ((4, 2, 3), (5, 2, 4), {"transBatchA": 1, "transA": 1, "transBatchB": 1, "transB": 1}),
    ((2, 1, 3, 4), (5, 4, 6), {}),
    ((4,), (4, 5), {"transA": 1}),
])  # fmt: skip
def test_fused_matmul(a, b, attributes, one_node, agrees):
    agrees(one_node("FusedMatMul", [(F, a), (F, b)], 21, **MS, **attributes), [normal(*a), normal(*b)], rtol=1e-6)


def test_transpose_matmul_and_symbolic_sizes(one_node, agrees):
    model = one_node("TransposeMatMul", [(F, ["B", 4, "S"]), (F, ["B", 4, 5])], 21, **MS, transA=1, alpha=0.5)
    agrees(model, [normal(2, 4, 3), normal(2, 4, 5)], rtol=1e-6)


@pytest.mark.parametrize("activation, function, given", [
    ("Relu", lambda x: np.maximum(x, 0), {}),
    ("LeakyRelu", lambda x: np.where(x > 0, x, 0.3 * x), {"activation_alpha": 0.3}),
    ("HardSigmoid", lambda x: np.clip(0.1 * x + 0.4, 0, 1), {"activation_alpha": 0.1, "activation_beta": 0.4}),
    ("Softmax", lambda x: scipy.special.softmax(x, -1), {"activation_axis": -1}),
])  # fmt: skip
def test_fused_matmul_activation(activation, function, given, one_node, agrees):
    x, y = normal(3, 4), normal(5, 4)
    want = function(0.5 * x.astype(np.float64) @ y.T).astype(np.float32)
    model = one_node("FusedMatMulActivation", [(F, ["N", 4]), y], 21, **MS, activation=activation, alpha=0.5, transB=1,
                     **given)  # fmt: skip
    agrees(model, [x], [want], rtol=2e-6)


@pytest.mark.parametrize("bias", [False, True])
def test_gemm_fast_gelu(bias, one_node, agrees):
    x, w, b = normal(2, 3, 4), normal(4, 5), normal(5)
    want = fast_gelu(x.astype(np.float64) @ w + (b if bias else 0)).astype(np.float32)
    agrees(one_node("GemmFastGelu", [(F, ["B", 3, 4]), w, *([b] if bias else [])], 21, **MS), [x], [want], rtol=2e-6)


GEMM_ACTIVATIONS = [
    ("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"activation_alpha": 0.2}), ("Softplus", {}),
    ("Elu", {"activation_alpha": 0.7}), ("HardSigmoid", {"activation_alpha": 0.3, "activation_beta": 0.4}),
    ("Softsign", {}), ("ThresholdedRelu", {"activation_alpha": 0.8}),
]  # fmt: skip


@pytest.mark.parametrize("activation, given", GEMM_ACTIVATIONS)
@pytest.mark.parametrize("transposed", [0, 1])
def test_fused_gemm(activation, given, transposed, one_node, agrees):
    a, b, c = normal(3, 4), normal(4, 5), normal(5)
    if transposed:
        a, b = np.ascontiguousarray(a.T), np.ascontiguousarray(b.T)
    model = one_node("FusedGemm", [(F, a.shape), b, c], 21, **MS, activation=activation, transA=transposed,
                     transB=transposed, alpha=0.5, beta=2.0, **given)  # fmt: skip
    agrees(model, [a], rtol=2e-6)


@pytest.mark.parametrize("activation, given", [
    ("Relu", []), ("Sigmoid", []), ("Tanh", []), ("LeakyRelu", [0.2]), ("Clip", [-0.5, 1.5]), ("HardSwish", []),
    ("HardSigmoid", [0.3, 0.4]),
])  # fmt: skip
def test_fused_conv(activation, given, one_node, agrees):
    given = {"activation_params": given} if given else {}
    model = one_node("FusedConv", [(F, ["N", 3, "H", 8]), normal(4, 3, 3, 3), normal(4)], 21, **MS, pads=[1, 1, 1, 1],
                     activation=activation, **given)  # fmt: skip
    agrees(model, [normal(2, 3, 7, 8)], rtol=2e-6)


def test_fused_conv_adds_before_it_activates(one_node, agrees):
    model = one_node("FusedConv", [(F, [1, 4, 7, 8]), normal(4, 2, 3, 3), normal(4), (F, [1, 4, 4, 4])], 21, **MS,
                     strides=[2, 2], group=2, auto_pad="SAME_UPPER", activation="Relu")  # fmt: skip
    agrees(model, [normal(1, 4, 7, 8), normal(1, 4, 4, 4)], rtol=2e-6)


@pytest.mark.parametrize("op", ["NhwcConv", "NhwcFusedConv"])
def test_convolutions_with_channels_last(op, one_node, run_ort, agrees):
    x, w, b, z = normal(2, 6, 7, 3), normal(4, 3, 3, 3), normal(4), normal(2, 6, 7, 4)
    fused = op == "NhwcFusedConv"
    plain = one_node("Conv", [(F, [2, 3, 6, 7]), w, b], 21, pads=[1, 1, 1, 1])
    (want,) = run_ort(plain, [np.ascontiguousarray(x.transpose(0, 3, 1, 2))])
    want = want.transpose(0, 2, 3, 1)
    want = np.maximum(want + z, 0) if fused else want
    operands = [(F, ["N", "H", 7, 3]), w, b, *([(F, ["N", "H", 7, 4])] if fused else [])]
    model = one_node(op, operands, 21, **MS, pads=[1, 1, 1, 1], **({"activation": "Relu"} if fused else {}))
    agrees(model, [x, z][: 1 + fused], [want], rtol=2e-6)


def test_transposed_convolution_with_pads_as_an_input(one_node, agrees):
    operands = [(F, [1, 2, 5, 5]), normal(2, 3, 3, 3), np.array([1, 1, 1, 1])]
    model = one_node("ConvTransposeWithDynamicPads", operands, 21, **MS, strides=[2, 2])
    agrees(model, [normal(1, 2, 5, 5)], rtol=2e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 5, 5), (1, 1), (0, 3, 3)])
def test_inverse(dtype, shape, one_node, agrees):
    kind = F if dtype is np.float32 else TensorProto.DOUBLE
    x = normal(*shape, dtype=dtype) + (3 * np.eye(shape[-1])).astype(dtype)
    model = one_node("Inverse", [(kind, list(shape))], 21, out_type=kind, **MS)
    # Condition numbers below 100 times a few roundings.
    agrees(model, [x], [np.linalg.inv(x.astype(np.float64)).astype(dtype)], rtol=3e-5 if dtype is np.float32 else 1e-12)


def test_inverse_exchanges_rows(one_node, agrees):
    x = np.array([[0, 2, 0], [0, 0, 4], [8, 0, 0]], np.float32)
    agrees(one_node("Inverse", [(F, ["N", "N"])], 21, **MS), [x], rtol=1e-7)


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -3])
def test_expand_dims(axis, one_node, agrees):
    agrees(one_node("ExpandDims", [(F, ["N", 3]), np.array(axis, np.int32)], 21, **MS), [normal(2, 3)], rtol=0)


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -1, 2])
def test_trilu(upper, k, one_node, agrees):
    operands = [(F, ["B", "N", 5])] + ([] if k is None else [np.array(k)])
    agrees(one_node("Trilu", operands, 21, **MS, upper=upper), [normal(2, 4, 5)], rtol=0)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("flat", [True, False])
def test_pad(mode, flat, one_node, agrees):
    pads = np.array([1, 0, 0, 2] if flat else [[0, 1, 2, 0]])
    value = [np.array(7, np.float32)] if mode == "constant" else []
    agrees(one_node("Pad", [(F, ["N", 4]), pads, *value], 21, **MS, mode=mode), [normal(3, 4)], rtol=0)


@pytest.mark.parametrize("numbers", [(1, 9), (1, 9, 3), (5, -4, -2)])
def test_range(numbers, one_node, agrees):
    operands = [np.array([n], np.int64) for n in numbers]
    agrees(one_node("Range", operands, 21, out_type=I64, **MS), [])


@pytest.mark.parametrize("given", [{"size": 3}, {"size": 2, "dim": 1, "step": 2}, {"size": 2, "dim": 0}], ids=str)
def test_unfold_tensor(given, one_node, agrees):
    agrees(one_node("UnfoldTensor", [(F, ["N", 6, 7])], 21, **MS, **given), [normal(3, 6, 7)], rtol=0)


def test_gather_nd(one_node, agrees):
    places = np.array([[0, 1], [1, 2]])
    agrees(one_node("GatherND", [(F, ["N", 3, 4]), places], 21, **MS), [normal(2, 3, 4)], rtol=0)


def test_unique_keeps_the_order(one_node, agrees):
    model = one_node("Unique", [(F, ["N"])], 21, outputs=3, **MS)
    model.graph.output[1].type.tensor_type.elem_type = model.graph.output[2].type.tensor_type.elem_type = I64
    agrees(model, [np.array([2, 1, 1, 3, 4, 3], np.float32)], rtol=0)


@pytest.mark.parametrize("ndim", [1, 2])
def test_fourier_transforms(ndim, one_node, agrees):
    x = normal(2, 6, 8)
    spectrum = np.fft.rfftn(x.astype(np.float64), axes=(1, 2)[2 - ndim :])
    parts = np.stack([spectrum.real, spectrum.imag], -1).astype(np.float32)
    there = one_node("Rfft", [(F, ["N", 6, 8])], 21, **MS, signal_ndim=ndim, onesided=1, normalized=0)
    agrees(there, [x], [parts], rtol=2e-6)
    back = one_node("Irfft", [(F, ["N", 6, 5, 2])], 21, **MS, signal_ndim=ndim, onesided=1, normalized=0)
    agrees(back, [parts], [x], rtol=2e-6)


@pytest.mark.parametrize("given", [{}, {"strides": [2, 2], "pads": [1, 1, 0, 0]}, {"dilations": [2, 1]},
                                   {"auto_pad": "SAME_UPPER"}], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_nhwc_max_pool(given, dtype, one_node, agrees):
    kind = TensorProto.UINT8 if dtype is np.uint8 else TensorProto.INT8
    x = RNG.integers(np.iinfo(dtype).min, np.iinfo(dtype).max, (2, 7, 6, 3), dtype, endpoint=True)
    model = one_node("NhwcMaxPool", [(kind, ["N", 7, 6, 3])], 21, out_type=kind, **MS, kernel_shape=[3, 2], **given)
    agrees(model, [x])


@pytest.mark.parametrize("mode", ["bilinear", "nearest"])
@pytest.mark.parametrize("size", [(4, 3), (1, 5), (2, 2)])
def test_crop_and_resize(mode, size, one_node, agrees):
    regions = np.array([[0, 0, 1, 1], [0.2, 0.1, 0.7, 0.85], [0.9, 0.4, 0.3, 1.2], [-0.1, 0.5, 0.4, 0.6]], np.float32)
    operands = [(F, [2, 3, "H", 7]), (F, ["R", 4]), np.array([0, 1, 1, 0], np.int32), np.array(size, np.int32)]
    model = one_node("CropAndResize", operands, 21, **MS, mode=mode, extrapolation_value=9.0)
    agrees(model, [normal(2, 3, 6, 7), regions], rtol=2e-6)


@pytest.mark.parametrize("mode, padding", [
    ("bilinear", "zeros"), ("bilinear", "border"), ("nearest", "zeros"), ("nearest", "border"), ("bicubic", "zeros"),
])  # fmt: skip
def test_grid_sample(mode, padding, one_node, agrees):
    """For bicubic at a border ONNX Runtime clamps the place, ONNX its neighbours."""
    model = one_node("GridSample", [(F, ["N", 2, 5, 6]), (F, ["N", 3, 4, 2])], 21, **MS, mode=mode,
                     padding_mode=padding, align_corners=1)  # fmt: skip
    agrees(model, [normal(2, 2, 5, 6), RNG.uniform(-1.2, 1.2, (2, 3, 4, 2)).astype(np.float32)], rtol=5e-6)
