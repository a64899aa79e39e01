"""The models of the golden files, small enough to read, built in Python.  `GOLDEN_MODELS` maps names to builders."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irc.ir import build, dtypes
from irc.ir.data import ArrayData
from irc.ir.dims import symbol
from irc.ir.model import Model
from irc.ir.types import tensor

B = symbol("B")
f32, i32, i64 = dtypes.f32, dtypes.i32, dtypes.i64


def weight(model: Model, name: str, *shape: int, scale: float = 0.2):
    """A seeded weight; the seed is the name."""
    generator = np.random.default_rng(list(name.encode()))
    return model.add_constant(name, ArrayData((generator.standard_normal(shape) * scale).astype(np.float32)))


def conv_bn_relu() -> Model:
    """3x3 convolution, batch normalization, ReLU."""
    m = Model("conv_bn_relu")

    def body(b, image):
        w = weight(m, "conv.weight", 8, 3, 3, 3)
        h = b.Conv(image, w, strides=(2, 2), dilations=(1, 1), pads=((1, 1), (1, 1)), name="conv")
        parts = [weight(m, f"bn.{n}", 8) for n in ("weight", "bias", "mean")]
        variance = m.add_constant("bn.var", ArrayData(np.linspace(0.5, 2, 8, dtype=np.float32)))
        h = b.BatchNormalization(h, *parts, variance, name="bn")
        return {"features": b.Relu(h, name="features")}

    build.function(m, "main", [("image", tensor(f32, B, 3, 16, 16))], body)
    return m


def depthwise_block() -> Model:
    """Depthwise 3x3, HardSwish, 1x1, residual."""
    m = Model("depthwise_block")

    def body(b, x):
        depthwise = weight(m, "depthwise.weight", 16, 1, 3, 3)
        pointwise, bias = weight(m, "pointwise.weight", 16, 16, 1, 1), weight(m, "pointwise.bias", 16)
        ones = {"strides": (1, 1), "dilations": (1, 1)}
        h = b.Conv(x, depthwise, pads=((1, 1), (1, 1)), group=16, **ones, name="depthwise")
        h = b.HardSwish(h, name="activated")
        h = b.Conv(h, pointwise, bias, pads=((0, 0), (0, 0)), **ones, name="pointwise")
        return {"y": b.add(x, h, name="y")}

    build.function(m, "main", [("x", tensor(f32, B, 16, 8, 8))], body)
    return m


def attention() -> Model:
    """One self-attention block with an additive mask, from projections to projection."""
    m = Model("attention")
    heads, size = 4, 8
    t = symbol("T")

    def body(b, x, mask):
        def project(name):
            y = b.add(b.MatMul(x, weight(m, f"{name}.weight", 32, 32)), weight(m, f"{name}.bias", 32), name=name)
            split = b.reshape(y, dims=(B, t, heads, size))
            return b.transpose(split, permutation=(0, 2, 1, 3), name=f"{name}_heads")

        q, k, v = project("query"), project("key"), project("value")
        y = b.Attention(q, k, v, mask, scale=size**-0.5, name="context")
        merged = b.reshape(b.transpose(y, permutation=(0, 2, 1, 3)), dims=(B, t, heads * size), name="merged")
        return {"out": b.MatMul(merged, weight(m, "out.weight", 32, 32), name="out")}

    build.function(m, "main", [("x", tensor(f32, B, t, 32)), ("mask", tensor(f32, B, 1, t, t))], body)
    return m


def lstm() -> Model:
    """A forward LSTM over T steps."""
    m = Model("lstm")
    t = symbol("T")

    def body(b, x):
        w, r, bias = weight(m, "lstm.w", 1, 32, 4), weight(m, "lstm.r", 1, 32, 8), weight(m, "lstm.b", 1, 64)
        y, h, c = b.LSTM(x, w, r, bias, hidden_size=8, names=("y", "h", "c"))
        return {"y": y, "h": h, "c": c}

    build.function(m, "main", [("x", tensor(f32, t, B, 4))], body)
    return m


def mlp() -> Model:
    """Two dense layers and a softmax for any batch."""
    m = Model("mlp")

    def body(b, x):
        h = b.Gemm(x, weight(m, "fc1.weight", 32, 16), weight(m, "fc1.bias", 32), transpose_b=True, name="fc1")
        h = b.Gelu(h, name="hidden")
        h = b.Gemm(h, weight(m, "fc2.weight", 10, 32), weight(m, "fc2.bias", 10), transpose_b=True, name="logits")
        return {"probabilities": b.Softmax(h, axis=1, name="probabilities")}

    build.function(m, "main", [("x", tensor(f32, B, 16))], body)
    return m


def while_captures() -> Model:
    """Repeated squaring of a matrix that is captured, until a count that is an input."""
    m = Model("while_captures")

    def body(b, matrix, steps):
        cond = b.region(
            [tensor(i32), tensor(f32, 4, 4)], lambda c, i, acc: c.compare(i, steps, direction="lt"), ("i", "acc")
        )
        step = b.region(
            [tensor(i32), tensor(f32, 4, 4)],
            lambda c, i, acc: (c.add(i, 1, name="next_i"), c.MatMul(acc, matrix, name="product")),
            ("i", "acc"),
        )
        eye = b.EyeLike(dtype=f32, dims=(4, 4), name="eye")
        _, power = b.while_((b.constant(0, i32), eye), cond=cond, body=step, names=("count", "power"))
        return {"power": power}

    build.function(m, "main", [("matrix", tensor(f32, 4, 4)), ("steps", tensor(i32))], body)
    return m


def if_branches() -> Model:
    """A branch that captures a value both sides need."""
    m = Model("if_branches")

    def body(b, x, training):
        scaled = b.multiply(x, 2.0, name="scaled")
        then = b.region([], lambda t: t.subtract(scaled, t.ReduceMean(scaled, axes=(1,), name="mean"), name="centred"))
        orelse = b.region([], lambda e: e.tanh(scaled, name="squashed"))
        y = b.if_(training, then=then, else_=orelse, names=("y",))
        return {"y": y}

    build.function(m, "main", [("x", tensor(f32, B, 8)), ("training", tensor(dtypes.bool_))], body)
    return m


def qdq_convolution() -> Model:
    """An int8 convolution in quantize/dequantize form."""
    m = Model("qdq_convolution")

    def body(b, x):
        generator = np.random.default_rng(7)
        codes = m.add_constant("conv.weight_q", ArrayData(generator.integers(-127, 128, (8, 3, 3, 3)).astype(np.int8)))
        scales = m.add_constant("conv.weight_scale", ArrayData(np.linspace(0.01, 0.02, 8, dtype=np.float32)))
        step, zero = b.constant(0.05, f32), b.constant(3, dtypes.u8)
        q = b.QuantizeLinear(x, step, zero, dtype=dtypes.u8, name="x_q")
        h = b.DequantizeLinear(q, step, zero, name="x_dq")
        w = b.DequantizeLinear(codes, scales, None, axis=0, name="w_dq")
        h = b.Conv(h, w, strides=(1, 1), dilations=(1, 1), pads=((1, 1), (1, 1)), name="conv")
        out_step = b.constant(0.1, f32)
        y = b.QuantizeLinear(h, out_step, zero, dtype=dtypes.u8, name="y_q")
        return {"y": b.DequantizeLinear(y, out_step, zero, name="y")}

    build.function(m, "main", [("x", tensor(f32, B, 3, 8, 8))], body)
    return m


def resize_concat() -> Model:
    """Upsampling of a coarse map to a fine one, and their concatenation."""
    m = Model("resize_concat")
    h, w = symbol("H"), symbol("W")

    def body(b, coarse, fine):
        up = b.Resize(
            coarse,
            dims=(B, 4, 2 * h, 2 * w),
            scales=(1.0, 1.0, 2.0, 2.0),
            coordinate_mode="asymmetric",
            nearest_mode="floor",
            name="up",
        )
        return {"merged": b.concatenate((up, fine), axis=1, name="merged")}

    build.function(m, "main", [("coarse", tensor(f32, B, 4, h, w)), ("fine", tensor(f32, B, 2, 2 * h, 2 * w))], body)
    return m


def embedding() -> Model:
    """Token and position embeddings, added and normalized."""
    m = Model("embedding")
    t = symbol("T")

    def body(b, tokens):
        words = b.take(weight(m, "tokens.weight", 50, 16), tokens, axis=0, name="words")
        positions = b.take(
            weight(m, "positions.weight", 32, 16), b.iota(dtype=i64, dims=(t,), axis=0), axis=0, name="places"
        )
        scale = m.add_constant("norm.weight", ArrayData(np.linspace(0.5, 1.5, 16, dtype=np.float32)))
        both = b.add(words, positions, name="both")
        return {"embedded": b.LayerNormalization(both, scale, weight(m, "norm.bias", 16), names=("embedded",))[0]}

    build.function(m, "main", [("tokens", tensor(i64, B, t))], body)
    return m


MODELS: dict[str, tuple[Callable[[], Model], dict[str, int]]] = {
    "conv_bn_relu": (conv_bn_relu, {"B": 2}),
    "depthwise_block": (depthwise_block, {"B": 2}),
    "attention": (attention, {"B": 2, "T": 6}),
    "lstm": (lstm, {"B": 2, "T": 5}),
    "mlp": (mlp, {"B": 3}),
    "while_captures": (while_captures, {}),
    "if_branches": (if_branches, {"B": 2}),
    "qdq_convolution": (qdq_convolution, {"B": 1}),
    "resize_concat": (resize_concat, {"B": 1, "H": 3, "W": 4}),
    "embedding": (embedding, {"B": 2, "T": 7}),
}


@pytest.fixture(scope="session")
def golden_models() -> dict[str, tuple[Callable[[], Model], dict[str, int]]]:
    """Name -> (builder, sizes at which the xla golden is taken and everything is run)."""
    return MODELS
