"""Batch normalization and per-channel maps folded into the weights before them, within a few roundings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.ir.data import ArrayData
from irc.ir.reference import evaluate

Run = Callable[..., Any]
RNG = np.random.default_rng(3)


def constant(b: Any, name: str, *shape: int, positive: bool = False, dtype: str = "f4") -> Any:
    array = RNG.standard_normal(shape).astype(dtype)
    return b.constant(ArrayData(np.abs(array) + 0.5 if positive else array), name=name)


def norm(b: Any, x: Any, channels: int, dtype: str = "f4") -> Any:
    scale, bias, mean = (constant(b, n, channels, dtype=dtype) for n in ("scale", "bias", "mean"))
    return b.BatchNormalization(x, scale, bias, mean, constant(b, "variance", channels, positive=True, dtype=dtype))


def conv(b: Any, x: Any, bias: bool = True, group: int = 1, dtype: str = "f4") -> Any:
    w = constant(b, "w", 6, 4 // group, 3, 3, dtype=dtype)
    c = constant(b, "b", 6, dtype=dtype) if bias else None
    return b.Conv(x, w, c, strides=(1, 1), dilations=(1, 1), pads=((1, 1), (1, 1)), group=group)


def conv_transpose(b: Any, x: Any, group: int = 1) -> Any:
    w = constant(b, "w", 4, 6 // group, 3, 3)
    return b.ConvTranspose(
        x,
        w,
        constant(b, "b", 6),
        strides=(2, 2),
        dilations=(1, 1),
        pads=((0, 0),) * 2,
        output_padding=(0, 0),
        group=group,
    )


def gemm(b: Any, x: Any, bias: tuple[int, ...] | None = (6,), transpose_b: bool = False, **attributes: float) -> Any:
    w = constant(b, "w", *((6, 20) if transpose_b else (20, 6)))
    c = constant(b, "c", *bias) if bias is not None else None
    return b.Gemm(x, w, c, transpose_b=transpose_b, **attributes)


def in_branch(b: Any, x: Any) -> Any:
    """The norm stands in a branch, the layer before it."""
    zeros = b.multiply(b.reduce((x,), axes=(0, 1, 2, 3), kind="sum"), 0.0)
    then = b.region([], lambda i: norm(i, x, 6))
    return b.if_(b.compare(zeros, 0.0, direction="eq"), then=then, else_=b.region([], lambda i: x))


FOLDED: list[tuple[str, str, Any]] = [
    ("Conv", "f32[B,4,5,5]", lambda b, x: norm(b, conv(b, x), 6)),
    ("Conv without bias", "f32[B,4,5,5]", lambda b, x: norm(b, conv(b, x, bias=False), 6)),
    ("grouped Conv", "f32[B,4,5,5]", lambda b, x: norm(b, conv(b, x, group=2), 6)),
    ("ConvTranspose", "f32[B,4,5,5]", lambda b, x: norm(b, conv_transpose(b, x), 6)),
    ("grouped ConvTranspose", "f32[B,4,5,5]", lambda b, x: norm(b, conv_transpose(b, x, group=2), 6)),
    ("Gemm", "f32[B,20]", lambda b, x: norm(b, gemm(b, x), 6)),
    ("Gemm, transposed", "f32[B,20]", lambda b, x: norm(b, gemm(b, x, transpose_b=True), 6)),
    ("Gemm, factors", "f32[B,20]", lambda b, x: norm(b, gemm(b, x, alpha=0.5, beta=3.0), 6)),
    ("Gemm without bias", "f32[B,20]", lambda b, x: norm(b, gemm(b, x, bias=None), 6)),
    ("Gemm, scalar bias", "f32[B,20]", lambda b, x: norm(b, gemm(b, x, bias=()), 6)),
    ("scale", "f32[B,4,5,5]", lambda b, x: b.multiply(conv(b, x), constant(b, "k", 6, 1, 1))),
    ("scale by one number", "f32[B,4,5,5]", lambda b, x: b.multiply(conv(b, x), 0.37)),
    ("shift", "f32[B,4,5,5]", lambda b, x: b.add(conv(b, x), constant(b, "k", 1, 6, 1, 1))),
    (
        "shift where there was none",
        "f32[B,4,5,5]",
        lambda b, x: b.add(conv(b, x, bias=False), constant(b, "k", 6, 1, 1)),
    ),
    ("shift by one number", "f32[B,4,5,5]", lambda b, x: b.add(conv(b, x, bias=False), 2.0)),
    ("Gemm, scale and shift", "f32[B,20]", lambda b, x: b.add(b.multiply(gemm(b, x), constant(b, "k", 6)), 0.25)),
    (
        "all of them",
        "f32[B,4,5,5]",
        lambda b, x: b.multiply(norm(b, b.add(conv(b, x), constant(b, "k", 6, 1, 1)), 6), 2.0),
    ),
]


@pytest.mark.parametrize("name, type_, body", FOLDED, ids=[n for n, _, _ in FOLDED])
def test_folded(run: Run, name: str, type_: str, body: Any):
    case = run("batch-norm,dce", body, x=type_)
    (node,) = case.nodes
    assert node.op.name in ("Conv", "ConvTranspose", "Gemm")
    assert node.result.type == case.before.main.outputs[0].type
    shape = [2 if not isinstance(d, int) else d for d in case.before.main.inputs[0].dims]
    x = RNG.standard_normal(shape).astype("f4")
    (old,), (new,) = evaluate(case.before, [x]), evaluate(case.after, [x])
    # At most 36 products of size about 1 are summed, each weight with up to three new roundings a map (2^-24 each).
    scale = float(np.abs(old).max())
    np.testing.assert_allclose(new, old, rtol=0, atol=max(scale, 10.0) * 16 * 2.0**-24)


def test_weights_are_computed_in_init(run: Run):
    case = run("batch-norm,dce", lambda b, x: norm(b, conv(b, x), 6), x="f32[B,4,5,5]")
    assert [c.name for c in case.after.derived] == ["w.folded", "b.folded"]
    assert case.nodes[0].operands[1:] == tuple(case.after.derived)
    assert "sqrt" in case.init_ops
    again = run("batch-norm,dce,batch-norm,dce", lambda b, x: norm(b, conv(b, x), 6), x="f32[B,4,5,5]")
    assert again.init_ops == case.init_ops


KEPT: list[tuple[str, str, Any]] = [
    ("used twice", "f32[B,4,5,5]", lambda b, x: b.add(c := conv(b, x), norm(b, c, 6))),
    (
        "weights unknown",
        "f32[B,4,5,5]",
        lambda b, x: norm(
            b,
            b.Conv(
                x,
                b.reshape(b.slice(x, starts=(0, 0, 0, 0), limits=(1, 4, 3, 3), strides=(1,) * 4), dims=(1, 4, 3, 3)),
                strides=(1, 1),
                dilations=(1, 1),
                pads=((0, 0),) * 2,
            ),
            1,
        ),
    ),
    ("not per channel", "f32[B,4,5,5]", lambda b, x: b.multiply(conv(b, x), constant(b, "k", 5))),
    ("a wider result", "f32[1,4,5,5]", lambda b, x: b.multiply(conv(b, x), constant(b, "k", 2, 6, 1, 1))),
    ("half precision", "f16[B,4,5,5]", lambda b, x: norm(b, conv(b, x, dtype="f2"), 6, dtype="f2")),
    (
        "a graph apart",
        "f32[B,4,5,5]",
        lambda b, x: in_branch(b, conv(b, x)),
    ),
    ("no layer before", "f32[B,4,5,5]", lambda b, x: norm(b, x, 4)),
]


@pytest.mark.parametrize("name, type_, body", KEPT, ids=[n for n, _, _ in KEPT])
def test_kept(run: Run, name: str, type_: str, body: Any):
    case = run("batch-norm,dce", body, x=type_).same_bits(B=2)
    assert case.after.derived == []
