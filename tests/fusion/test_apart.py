"""What is recognised and left as several nodes: sums before normalizations, and what only looks like them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from irc.ir import dtypes
from irc.passes.fusions import composites_in, explain, left_apart
from irc.testing.patterns import model_of

RNG = np.random.default_rng(3)


def constant(b: Any, *shape: int) -> Any:
    return b.constant(RNG.standard_normal(shape).astype(np.float32))


def layer_norm(b: Any, x: Any) -> Any:
    return b.LayerNormalization(x, constant(b, 8), constant(b, 8), axis=2)[0]


def rms_norm(b: Any, x: Any) -> Any:
    return b.RMSNormalization(x, constant(b, 8), axis=2)


def names(body: Any, **inputs: str) -> list[str]:
    return [found.name for found in left_apart(model_of(body, **inputs))]


TWO = {"x": "f32[B,S,8]", "y": "f32[B,S,8]"}


@pytest.mark.parametrize(
    "operand",
    [
        lambda b, x, y: b.add(x, y),
        lambda b, x, y: b.add(b.add(x, constant(b, 8)), y),
        lambda b, x, y: b.add(b.add(x, y), constant(b, 8)),
        lambda b, x, y: b.add(constant(b, 1, 1, 8), b.add(x, y)),
        lambda b, x, y: b.reshape(b.add(x, y), dims=(*x.dims[:1], 1 * x.dims[1], 8)),
        lambda b, x, y: b.convert(
            b.add(b.convert(x, dtype=dtypes.f16), b.convert(y, dtype=dtypes.f16)), dtype=dtypes.f32
        ),
    ],
)
def test_a_sum_of_two_computed_values_is_a_residual(operand: Any) -> None:
    assert names(lambda b, x, y: layer_norm(b, operand(b, x, y)), **TWO) == ["skip_layer_norm"]
    assert names(lambda b, x, y: rms_norm(b, operand(b, x, y)), **TWO) == ["skip_rms_norm"]


@pytest.mark.parametrize(
    "operand",
    [
        lambda b, x, y: x,
        lambda b, x, y: b.add(x, constant(b, 8)),
        lambda b, x, y: b.add(x, constant(b, 1, 1, 1)),
        lambda b, x, y: b.multiply(x, y),
        lambda b, x, y: b.add(x, b.reduce((y,), axes=(0, 1), kind="sum")),  # a computed bias
        lambda b, x, y: b.tanh(b.add(x, y)),
        lambda b, x, y: b.reshape(
            b.add(*(b.reshape(v, dims=(x.dims[0] * x.dims[1] * 2, 4)) for v in (x, y))), dims=x.dims
        ),
    ],
)
def test_other_operands_are_no_residual(operand: Any) -> None:
    assert names(lambda b, x, y: layer_norm(b, operand(b, x, y)), **TWO) == []


IDS = {"words": "i64[B,S]", "places": "i64[1,S]", "kinds": "i64[B,S]"}


def rows(b: Any, indices: Any) -> Any:
    return b.take(constant(b, 20, 8), indices, axis=0)


@pytest.mark.parametrize(
    ("operand", "found"),
    [
        (lambda b, w, p, k: b.add(rows(b, w), rows(b, k)), ["embed_layer_norm"]),
        (lambda b, w, p, k: b.add(b.add(rows(b, w), rows(b, k)), rows(b, p)), ["embed_layer_norm"]),
        (lambda b, w, p, k: b.add(rows(b, p), b.multiply(rows(b, w), 5.6)), ["embed_layer_norm"]),
        (lambda b, w, p, k: rows(b, w), []),
        (lambda b, w, p, k: b.add(rows(b, w), constant(b, 8)), []),  # a bias
        (lambda b, w, p, k: b.add(rows(b, w), b.tanh(rows(b, k))), ["skip_layer_norm"]),
        (
            lambda b, w, p, k: b.add(b.add(rows(b, w), rows(b, k)), b.add(rows(b, k), rows(b, w))),
            ["skip_layer_norm"],
        ),
    ],
)
def test_sums_of_two_or_three_rows_of_tables_are_embeddings(operand: Any, found: list[str]) -> None:
    assert names(lambda b, words, places, kinds: layer_norm(b, operand(b, words, places, kinds)), **IDS) == found


def test_they_count_beside_the_normalization() -> None:
    model = model_of(lambda b, x, y: rms_norm(b, layer_norm(b, b.add(x, y))), **TWO)
    assert composites_in(model) == {"layer_norm": 1, "rms_norm": 1, "skip_layer_norm": 1}
    assert [(found.name, found.node) for found in explain(model).apart] == [
        ("skip_layer_norm", next(n.label for n in model.nodes() if n.op.name == "LayerNormalization"))
    ]
