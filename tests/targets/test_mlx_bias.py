"""A bias behind a matrix product on MLX: mx.addmm where it computes the same, the product and the sum elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import dtypes
from irc.ir.reference import evaluate
from irc.testing.patterns import model_of

TARGET = "mlx{compile=off,device=cpu}"
RNG = np.random.default_rng(7)


def weights(*shape: int, dtype: Any = np.float32) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


W, C, D = weights(8, 6), weights(6), weights(6)


def run(body: Callable[..., Any], shape: tuple[int, ...], dtype: str = "f32", **dims: str) -> str:
    """The emitted module, whose results were compared with the reference's."""
    model = model_of(body, x=f"{dtype}[{','.join(dims.get(str(i), str(n)) for i, n in enumerate(shape))}]")
    exe = irc.compile(model, target=TARGET)
    x = RNG.standard_normal(shape).astype(model.main.inputs[0].dtype.numpy)
    for want, have in zip(evaluate(model, [x]), exe(x), strict=True):
        assert want.shape == np.asarray(have).shape
        # f32 sums of 9 terms near 1, in another order; one rounding of a value below 16 in f16.
        bound = 1e-5 if want.dtype != np.float16 else 8e-3
        assert np.abs(want.astype(np.float64) - np.asarray(have)).max(initial=0) <= bound
    return str(exe.source)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8), (2, 1, 3, 8), (0, 3, 8)])
def test_one_call_for_product_and_bias(shape: tuple[int, ...], turned: bool) -> None:
    def body(b: Any, x: Any) -> Any:
        terms = b.MatMul(x, b.constant(W)), b.constant(C)
        return b.add(*(terms[::-1] if turned else terms))

    text = run(body, shape, **{"0": "B"})
    assert text.count("mx.addmm(") == 1
    assert " @ " not in text


def test_long_names_do_not_part_them() -> None:
    name = "model.layers.0.self_attention.query_projection"
    source = run(
        lambda b, x: b.tanh(b.add(b.MatMul(x, b.constant(weights(8, 64), name=f"{name}.weight")),
                                  b.constant(weights(64), name=f"{name}.bias"))),
        (2, 3, 8),
    )  # fmt: skip
    assert f'mx.addmm(w["{name}.bias"],x,w["{name}.weight"],)' in "".join(source.split())


def test_a_computed_bias_is_one_too() -> None:
    assert "mx.addmm(" in run(lambda b, x: b.add(b.MatMul(x, b.constant(W)), b.exponential(b.slice(
        b.reshape(x, dims=(48,)), starts=(0,), limits=(6,), strides=(1,)))), (2, 3, 8))  # fmt: skip


def twice(b: Any, x: Any) -> Any:
    y = b.MatMul(x, b.constant(W))
    return b.add(y, b.constant(C)), b.tanh(y)


def itself(b: Any, x: Any) -> Any:
    y = b.MatMul(x, b.constant(weights(8, 1)))
    return b.add(y, y)


def residual(b: Any, x: Any) -> Any:
    return b.add(b.MatMul(x, b.constant(weights(8, 8))), x)


def wider(b: Any, x: Any) -> Any:
    return b.add(b.MatMul(x, b.constant(weights(8, 1))), b.constant(C))


def number(b: Any, x: Any) -> Any:
    return b.add(b.MatMul(x, b.constant(W)), 2.0)


def stacked(b: Any, x: Any) -> Any:
    return b.add(b.MatMul(x, b.constant(weights(2, 8, 6))), b.constant(C))


def half(b: Any, x: Any) -> Any:
    y = b.MatMul(b.convert(x, dtype=dtypes.f16), b.constant(W.astype(np.float16)))
    return b.add(y, b.constant(C.astype(np.float16)))


@pytest.mark.parametrize("body", [twice, itself, residual, wider, number, stacked, half])
def test_what_is_no_bias_of_its_own_stays_a_sum(body: Callable[..., Any]) -> None:
    assert "mx.addmm(" not in run(body, (2, 3, 8))


def test_sums_of_no_products_stay_sums() -> None:
    """mx.addmm refuses stacks of matrices without columns."""
    text = run(lambda b, x: b.add(b.MatMul(x, b.constant(weights(0, 6))), b.constant(C)), (2, 3, 0))
    assert "mx.addmm(" not in text
