"""com.microsoft MoE and QMoE against ONNX Runtime's kernels on the CPU, or the formula of their documentation."""

import numpy as np
import pytest
import scipy.special
from onnx import TensorProto

F = TensorProto.FLOAT
RNG = np.random.default_rng(5)
MS = {"domain": "com.microsoft"}
E, H, I = 4, 32, 48


def normal(*shape, scale=1.0):
    return (RNG.standard_normal(shape) * scale).astype(np.float32)


def dense(activation, rows):
    """Operands of MoE behind the router: fc1, its bias, fc2, its bias."""
    return [normal(E, rows, H, scale=0.2), normal(E, rows), normal(E, H, I, scale=0.2), normal(E, H)]


@pytest.mark.parametrize("k, normalize, activation", [
    (1, 0, "relu"), (1, 1, "gelu"), (2, 0, "silu"), (2, 1, "identity"), (4, 0, "gelu"), (4, 1, "relu"),
])  # fmt: skip
def test_moe(k, normalize, activation, one_node, agrees):
    operands = [(F, ["N", H]), (F, ["N", E]), *dense(activation, I)]
    model = one_node("MoE", operands, 21, **MS, k=k, normalize_routing_weights=normalize, activation_type=activation)
    agrees(model, [normal(7, H), normal(7, E)], rtol=3e-6)


@pytest.mark.parametrize("given", [
    {"swiglu_fusion": 1}, {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 2.0},
], ids=str)  # fmt: skip
def test_moe_with_interleaved_swiglu(given, one_node, agrees):
    operands = [(F, ["B", "S", H]), (F, ["R", E]), *dense("swiglu", 2 * I)]
    model = one_node("MoE", operands, 21, **MS, k=2, activation_type="swiglu", **given)
    agrees(model, [normal(2, 3, H), normal(6, E)], rtol=3e-6)


def silu(x, alpha=1.0):
    return x * scipy.special.expit(alpha * x)


def formula(x, router, fc1, fc2, activation, normalize):
    """Two experts a row, from layers (weights, bias); the activation takes the products with fc1."""
    x, out = x.astype(np.float64), np.zeros(x.shape)
    shares = scipy.special.softmax(router.astype(np.float64), -1)
    for t, row in enumerate(x):
        chosen = np.argsort(-router[t], kind="stable")[:2]
        for e in chosen:
            share = shares[t, e] / (shares[t, chosen].sum() if normalize else 1)
            out[t] += share * (fc2[0][e] @ activation(fc1[0][e] @ row + fc1[1][e]) + fc2[1][e])
    return out.astype(np.float32)


@pytest.mark.parametrize("fusion", [0, 2])
def test_moe_with_other_layouts_of_swiglu(fusion, one_node, agrees):
    """ONNX Runtime has kernels for them on GPUs only."""
    x, router = normal(5, H), normal(5, E)
    (w1, b1, w2, b2), w3, b3 = dense("swiglu", I), normal(E, I, H, scale=0.2), normal(E, I)
    both = np.concatenate([w1, w3], 1), np.concatenate([b1, b3], 1)

    def activation(y):
        return silu(np.minimum(y[:I], 3)) * np.clip(y[I:], -3, 3)

    want = formula(x, router, both, (w2, b2), activation, False)
    if fusion == 2:
        operands = [*both, w2, b2]
    else:
        operands = [w1, b1, w2, b2, w3, b3]
    model = one_node("MoE", [(F, ["N", H]), (F, ["N", E]), *operands], 21, **MS, k=2, activation_type="swiglu",
                     swiglu_fusion=fusion, swiglu_limit=3.0)  # fmt: skip
    agrees(model, [x, router], [want], rtol=3e-6)


def packed(rows, columns, bits, block, zeros):
    """(weights, scales, zero points) of E experts."""
    w = RNG.integers(0, 256, (E, rows, columns * bits // 8), np.uint8)
    blocks = columns // block if block else 0
    shape = (E, rows, blocks) if block else (E, rows)
    bytes_ = (*shape[:-1], -(-shape[-1] * bits // 8))
    s = RNG.uniform(0.02, 0.1, shape).astype(np.float32) * 8 / (1 << bits)
    return w, s, RNG.integers(0, 256, bytes_, np.uint8) if zeros else None


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("zeros, activation", [(False, "silu"), (True, "swiglu")])
def test_qmoe(bits, block, zeros, activation, one_node, agrees):
    rows = 2 * I if activation == "swiglu" else I
    w1, s1, z1 = packed(rows, H, bits, block, zeros)
    w2, s2, z2 = packed(H, I, bits, block, zeros)
    operands = [(F, ["N", H]), (F, ["N", E]), w1, s1, normal(E, rows), w2, s2, normal(E, H), None, None, None, z1, z2]
    given = {"swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 1.0} if activation == "swiglu" else {}
    given |= {"block_size": block} if block else {}
    model = one_node("QMoE", operands, 21, **MS, k=2, activation_type=activation, expert_weight_bits=bits,
                     normalize_routing_weights=1, accuracy_level=1, **given)  # fmt: skip
    x, router = normal(6, H), normal(6, E)
    want = None
    if bits == 8 and block:  # ONNX Runtime's kernel rounds activations to 8 bits here
        gated = activation == "swiglu"
        fc1, fc2 = ((real(w, s, z, block), operands[i]) for w, s, z, i in ((w1, s1, z1, 4), (w2, s2, z2, 7)))
        want = [formula(x, router, fc1, fc2, (lambda y: silu(y[::2], 1.702) * (y[1::2] + 1)) if gated else silu, True)]
    agrees(model, [x, router], want, rtol=3e-6)


def real(weights, scales, zeros, block):
    """Weights of 8 bits as floats."""
    zeros = 128.0 if zeros is None else np.repeat(zeros.astype(np.float64), block, -1)
    return (weights - zeros) * np.repeat(scales, block, -1)


def test_qmoe_weights_apart_from_the_choice(one_node, agrees):
    """The experts are chosen by one tensor and weighted by another."""
    w1, s1, _ = packed(I, H, 4, 0, False)
    w2, s2, _ = packed(H, I, 4, 0, False)
    operands = [(F, ["N", H]), (F, ["N", E]), w1, s1, None, w2, s2, *[None] * 7, (F, ["N", E])]
    for normalize in (0, 1):
        model = one_node("QMoE", operands, 21, **MS, k=2, activation_type="relu", normalize_routing_weights=normalize)
        agrees(model, [normal(6, H), normal(6, E), RNG.random((6, E), np.float32)], rtol=3e-6)
