"""Fused models on the targets: what a fusion raised, each target computes as the reference does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir.model import Model
from irc.ir.reference import evaluate

# Attention with causal mask, window, softcap, sinks, groups; rotary embedding of each kind; norms and gates.
MODELS = ["llama", "gemma2", "gpt_oss_sinks", "gpt2", "bert_sdpa", "rope_interleaved", "rope_partial", "t5_eager_18"]


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off,device=cpu}", "onnx"])
@pytest.mark.parametrize("name", MODELS)
def test_targets_agree_with_the_reference(
    name: str, target: str, load: Callable[[str], Model], inputs_of: Callable[[Model], list[Any]]
) -> None:
    model = load(name)
    inputs = inputs_of(model)
    got = irc.compile(model, target=target)(*inputs)
    for want, have in zip(evaluate(model, inputs), got, strict=True):
        # Two layers of f32 products of some 32 terms on values near 1: a few hundred roundings of 2^-24.
        assert np.abs(want.astype(np.float64) - np.asarray(have)).max() <= 2e-5 * max(1.0, float(np.abs(want).max()))
