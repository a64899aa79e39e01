"""Fused models on the targets: what a fusion raised, each target computes as the reference does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir.model import Model
from irc.ir.reference import evaluate

# Two layers of f32 products of some 32 terms on values near 1: a few hundred roundings of 2^-24.  f16: two roundings.
BOUNDS = {"float32": 2e-5, "float16": 4e-3}


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off,device=cpu}", "onnx"])
def test_targets_agree_with_the_reference(
    fixture_name: str, target: str, load: Callable[[str], Model], inputs_of: Callable[[Model], list[Any]]
) -> None:
    """The reference runs the model as it was read, the target as the default pipeline left it."""
    model = load(fixture_name)
    inputs = inputs_of(model)
    got = irc.compile(model, target=target)(*inputs)
    for want, have in zip(evaluate(model, inputs), got, strict=True):
        bound = BOUNDS[want.dtype.name] * max(1.0, float(np.abs(want).max()))
        assert np.abs(want.astype(np.float64) - np.asarray(have)).max() <= bound
