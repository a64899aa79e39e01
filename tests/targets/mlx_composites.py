"""Composites as one-node models of symbolic sizes B and S, for the tests of the MLX target.

A row is (name, inputs, body, bound): errors are at most `bound` units of f32's last place of the greatest magnitude.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.ir.dims import symbol
from irc.ir.dtypes import f32, i8, i32, i64, u8
from irc.ir.types import tensor

B, S = symbol("B"), symbol("S")
Row = tuple[str, list[tuple[str, Any]], Callable[..., Any], float]
IMAGE = [("x", tensor(f32, B, 6, S, 8))]
STEPS = [("x", tensor(f32, B, S, 8))]
NUMBERS = [("x", tensor(i32, B, S))]
SEQUENCE = [("x", tensor(f32, S, B, 3))]
QKV = [(n, tensor(f32, B, 4, S, 8)) for n in "qkv"]


def weight(b: Any, *dims: int, name: str = "w", positive: bool = False) -> Any:
    array = np.random.default_rng(len(name) + sum(dims)).standard_normal(dims).astype(np.float32)
    return b.constant(np.abs(array) + np.float32(0.5) if positive else array, name=name)


def _single(name: str, inputs: Any = None, bound: float = 16, label: str = "", **attributes: Any) -> Row:
    """A composite of one operand."""
    return f"{name}{label}", inputs or IMAGE, lambda b, x: getattr(b, name)(x, **attributes), bound


def elementwise() -> list[Row]:
    names = (
        "Relu Gelu HardSwish HardSigmoid Mish Softplus Softsign Swish Elu Celu Selu LeakyRelu ThresholdedRelu Shrink"
        " Reciprocal IsNaN IsInf"
    )
    return [
        *(_single(n, bound=32) for n in names.split()),
        _single("Gelu", label="-tanh", approximate="tanh", bound=32),
        ("Pow", STEPS, lambda b, x: b.Pow(x, b.constant(np.int64(3))), 8),
        ("Mod", NUMBERS, lambda b, x: b.Mod(x, b.constant(np.int32(-3))), 0),
        ("Max", STEPS, lambda b, x: b.Max((x, b.negate(x), b.constant(np.float32(0.5)))), 0),
        ("Min", NUMBERS, lambda b, x: b.Min((x, b.negate(x))), 0),
        ("Sum", STEPS, lambda b, x: b.Sum((x, x, x)), 2),
        ("Mean", STEPS, lambda b, x: b.Mean((x, b.abs(x))), 2),
        ("Clip", STEPS, lambda b, x: b.Clip(x, b.constant(np.float32(-1)), b.constant(np.float32(1))), 0),
        ("Clip-high", NUMBERS, lambda b, x: b.Clip(x, None, b.constant(np.int32(1))), 0),
    ]


def reductions() -> list[Row]:
    kinds = "Sum Mean Max Min Prod L1 L2 LogSum LogSumExp SumSquare"
    rows = [_single(f"Reduce{k}", label="-keep", axes=(1, -1), bound=64) for k in kinds.split()]
    rows += [_single(f"Reduce{k}", label="-drop", axes=(1,), keepdims=False, bound=64) for k in kinds.split()]
    rows += [_single(f"Reduce{k}", NUMBERS, label="-int", axes=(1,)) for k in kinds.split()]
    for name in ("ArgMax", "ArgMin"):
        for inputs, kind in ((STEPS, "float"), (NUMBERS, "int")):
            rows += [
                _single(name, inputs, label=f"-{kind}-{last}", axis=1, keepdims=not last, select_last_index=last)
                for last in (False, True)
            ]
    flags = ((e, r) for e in (False, True) for r in (False, True))
    rows += [
        _single(n, STEPS, 64, f"-{e}-{r}", axis=1, exclusive=e, reverse=r)
        for e, r in flags
        for n in ("CumSum", "CumProd")
    ]
    return rows


def convolutions() -> list[Row]:
    uneven = {"strides": (2, 1), "dilations": (1, 1), "pads": ((1, 1), (0, 1))}
    even = {"strides": (1, 1), "dilations": (2, 1), "pads": ((2, 2), (1, 1))}

    def normalized(b: Any, x: Any) -> Any:
        y = b.Conv(x, weight(b, 4, 6, 3, 3), group=1, **even)
        parameters = [weight(b, 4, name=n, positive=True) for n in ("s", "bi", "mea", "vari")]
        return b.Relu(b.BatchNormalization(y, *parameters))

    def transposed(b: Any, x: Any) -> Any:
        pads = {"strides": (2, 1), "dilations": (1, 1), "pads": ((1, 1), (0, 1)), "output_padding": (1, 0)}
        return b.ConvTranspose(x, weight(b, 6, 4, 3, 3), weight(b, 4, name="bias"), group=1, **pads)

    def grouped(b: Any, x: Any) -> Any:
        pads = {"strides": (2, 2), "dilations": (1, 1), "pads": ((0, 0), (0, 0)), "output_padding": (0, 0)}
        return b.ConvTranspose(x, weight(b, 6, 2, 2, 2), group=3, **pads)

    def line(b: Any, x: Any) -> Any:
        x = b.transpose(x, permutation=(0, 2, 1))
        return b.Conv(x, weight(b, 4, 8, 3), group=1, strides=(1,), dilations=(1,), pads=((1, 1),))

    def residual(b: Any, x: Any) -> Any:
        ones = {"strides": (1, 1), "dilations": (1, 1), "group": 1}
        y = b.Relu(b.Conv(x, weight(b, 6, 6, 3, 3), pads=((1, 1), (1, 1)), **ones))
        z = b.Conv(y, weight(b, 6, 6, 1, 1, name="w2"), pads=((0, 0), (0, 0)), **ones)
        return b.concatenate((b.add(y, z), b.multiply(y, b.logistic(z))), axis=1)

    return [
        ("Conv", IMAGE, lambda b, x: b.Conv(x, weight(b, 4, 6, 3, 3), weight(b, 4, name="b"), group=1, **uneven), 64),
        ("Conv-depthwise", IMAGE, lambda b, x: b.Conv(x, weight(b, 12, 1, 3, 3), group=6, **even), 64),
        ("Conv-batch-normalization", IMAGE, normalized, 64),
        ("Conv-residual", IMAGE, residual, 64),
        ("Conv-1d", STEPS, line, 64),
        ("ConvTranspose", IMAGE, transposed, 64),
        ("ConvTranspose-grouped", IMAGE, grouped, 64),
    ]


def windows() -> list[Row]:
    window = {"kernel_shape": (3, 2), "strides": (2, 2), "dilations": (1, 1), "pads": ((1, 1), (0, 0))}
    rows = [_single(n, bound=32) for n in ("GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool")]
    for ceil in (False, True):
        rows += [
            _single("MaxPool", label=f"-{ceil}", ceil_mode=ceil, **window),
            _single("MaxPool", label=f"-indices-{ceil}", ceil_mode=ceil, with_indices=True, **window),
            _single("AveragePool", label=f"-{ceil}", ceil_mode=ceil, **window),
            _single("AveragePool", label=f"-padded-{ceil}", ceil_mode=ceil, count_include_pad=True, **window),
            _single("LpPool", label=f"-{ceil}", ceil_mode=ceil, **window),
        ]
    return rows


def products() -> list[Row]:
    def of(*shapes: Any) -> Any:
        return [(n, tensor(f32, *s)) for n, s in zip("xyz", shapes, strict=False)]

    def gemm(b: Any, x: Any) -> Any:
        c = weight(b, 5, name="bias")
        return b.Gemm(x, weight(b, 5, 8), c, alpha=0.5, beta=2.0, transpose_b=True)

    return [
        ("MatMul", of((B, S, 8), (8, 5)), lambda b, x, y: b.MatMul(x, y), 32),
        ("MatMul-batches", of((B, 1, S, 8), (3, 8, 5)), lambda b, x, y: b.MatMul(x, y), 32),
        ("MatMul-vector", of((B, S, 8), (8,)), lambda b, x, y: b.MatMul(x, y), 32),
        ("Gemm", of((B, 8)), gemm, 32),
        ("Einsum", of((B, S, 8), (B, 8, 5)), lambda b, x, y: b.Einsum((x, y), equation="bij,bjk->bik"), 32),
        ("Einsum-ellipsis", of((B, S, 8), (8, 5)), lambda b, x, y: b.Einsum((x, y), equation="...ij,jk->...ik"), 32),
        ("Det", of((B, 4, 4)), lambda b, x: b.Det(x), 256),
    ]


def moves() -> list[Row]:
    backwards = {"starts": (0, S - 1, 6), "limits": (B, -1, 1), "strides": (1, -1, -2)}
    modes = ("edge", "reflect", "wrap")
    rows = [_single("PadMode", STEPS, 0, f"-{m}", low=(0, 1, 2), high=(0, 0, 3), mode=m) for m in modes]
    places = [("x", tensor(f32, B, S, 8)), ("i", tensor(i64, B, 2))]
    one_hot = np.array([0, 1], np.float32)
    steps = lambda b: b.Range(b.constant(1.0), b.constant(0.5), count=S)  # noqa: E731
    return [
        *rows,
        _single("Split", STEPS, 0, "-unequal", axis=2, sizes=(3, 5)),
        _single("Split", STEPS, 0, "-equal", axis=2, sizes=(4, 4)),
        _single("Tile", STEPS, 0, repeats=(1, 2, 3)),
        _single("DepthToSpace", [("x", tensor(f32, B, 8, S, 3))], 0, blocksize=2),
        _single("SpaceToDepth", [("x", tensor(f32, B, 2, 4, 2 * S))], 0, blocksize=2),
        _single("StridedSlice", STEPS, 0, **backwards),
        _single("Trilu", STEPS, 0, "-upper", k=1),
        _single("Trilu", STEPS, 0, "-lower", k=-1, upper=False),
        ("EyeLike", STEPS, lambda b, x: b.add(x, b.EyeLike(dtype=f32, dims=(S, 8), k=1)), 0),
        ("Range", STEPS, lambda b, x: b.add(x, b.reshape(steps(b), dims=(S, 1))), 1),
        _single("TopK", STEPS, 0, k=3, axis=2),
        _single("TopK", STEPS, 0, "-all", k=S, axis=1, largest=False),
        ("OneHot", NUMBERS, lambda b, x: b.OneHot(x, b.constant(one_hot), depth=9), 0),
        ("GatherND", places, lambda b, x, i: b.GatherND(x, i), 0),
        ("ScatterND", [*places, ("u", tensor(f32, B, 8))], lambda b, x, i, u: b.ScatterND(x, i, u, kind="sum"), 4),
        ("take", [("x", tensor(f32, B, S, 8)), ("i", tensor(i64, 3, B))], lambda b, x, i: b.take(x, i, axis=1), 0),
        _single("Resize", label="-floor", dims=(B, 6, 2 * S, 16), coordinate_mode="asymmetric", nearest_mode="floor"),
        _single("Resize", label="-nearest", dims=(B, 6, 2 * S, 16)),
        _single("Resize", label="-linear", dims=(B, 6, 2 * S, 12), mode="linear", bound=32),
        _single("Resize", label="-cubic", dims=(B, 6, 2 * S, 12), mode="cubic", bound=64),
    ]


def normalizations() -> list[Row]:
    def both(b: Any) -> Any:
        return weight(b, 8), weight(b, 8, name="bias")

    def channels(b: Any) -> Any:
        return weight(b, 6), weight(b, 6, name="bias")

    return [
        *(_single(n, bound=64) for n in ("Softmax", "LogSoftmax", "Hardmax", "MeanVarianceNormalization")),
        ("LayerNormalization", STEPS, lambda b, x: b.LayerNormalization(x, *both(b))[0], 64),
        ("LayerNormalization-statistics", STEPS, lambda b, x: b.LayerNormalization(x, *both(b)), 64),
        ("RMSNormalization", STEPS, lambda b, x: b.RMSNormalization(x, weight(b, 8)), 64),
        ("InstanceNormalization", IMAGE, lambda b, x: b.InstanceNormalization(x, *channels(b)), 64),
        ("GroupNormalization", IMAGE, lambda b, x: b.GroupNormalization(x, *channels(b), num_groups=2), 64),
        _single("LpNormalization", STEPS, 64),
        _single("LRN", size=3, bound=64),
    ]


def sequences() -> list[Row]:
    def layer(b: Any, x: Any, name: str, gates: int, direction: str) -> Any:
        n = 2 if direction == "bidirectional" else 1
        w, r = weight(b, n, 4 * gates, 3), weight(b, n, 4 * gates, 4, name="r")
        return getattr(b, name)(x, w, r, weight(b, n, 8 * gates, name="bias"), hidden_size=4, direction=direction)

    rows: list[Row] = [
        (f"{n}-{d}", SEQUENCE, lambda b, x, n=n, g=g, d=d: layer(b, x, n, g, d), 256)
        for n, g in (("LSTM", 4), ("GRU", 3), ("RNN", 1))
        for d in ("forward", "bidirectional")
    ]
    angles = [("x", tensor(f32, B, 4, S, 8)), ("c", tensor(f32, B, S, 4)), ("s", tensor(f32, B, S, 4))]
    limited = {"scale": 0.3, "softcap": 5.0, "window": 2, "causal": True}
    return [
        *rows,
        ("Attention", QKV, lambda b, q, k, v: b.Attention(q, k, v, scale=0.3), 64),
        ("Attention-causal", QKV, lambda b, q, k, v: b.Attention(q, k, v, scale=0.3, causal=True), 64),
        ("Attention-limited", QKV, lambda b, q, k, v: b.Attention(q, k, v, **limited), 64),
        ("RotaryEmbedding", angles, lambda b, x, c, s: b.RotaryEmbedding(x, c, s), 4),
    ]


def quantized() -> list[Row]:
    matrices = [("x", tensor(u8, B, S, 8)), ("y", tensor(i8, 8, 5))]
    images = [("x", tensor(u8, B, 6, S, 8)), ("y", tensor(u8, 4, 6, 3, 3))]
    even = {"strides": (1, 1), "dilations": (1, 1), "pads": ((1, 1), (1, 1))}
    scale, zero = np.float32(0.125), np.uint8(128)
    return [
        ("QuantizeLinear", STEPS, lambda b, x: b.QuantizeLinear(x, b.constant(scale), b.constant(zero), dtype=u8), 0),
        (
            "DequantizeLinear",
            [("x", tensor(u8, B, S, 8))],
            lambda b, x: b.DequantizeLinear(x, b.constant(scale), b.constant(zero)),
            0,
        ),
        ("MatMulInteger", matrices, lambda b, x, y: b.MatMulInteger(x, y, b.constant(np.uint8(3))), 0),
        ("ConvInteger", images, lambda b, x, y: b.ConvInteger(x, y, b.constant(np.uint8(3)), **even), 0),
    ]


def rows() -> list[Row]:
    """All rows in a fixed order."""
    parts = (
        elementwise, reductions, convolutions, windows, products, moves, normalizations, sequences, quantized,
    )  # fmt: skip
    return [row for part in parts for row in part()]
