"""Random graphs on every target against the reference; a bounded, repeatable run.  `make fuzz` runs for longer."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent


def _load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


run = _load("run")
TARGETS = {"xla": 8, "mlx{compile=off}": 40}
"""Graphs a seed; XLA takes a third of a second to compile one."""
SEEDS = range(8)
GRAPHS = 30
"""Graphs a seed for the passes."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("target", TARGETS)
def test_targets_agree_node_by_node(target: str, seed: int):
    for number in range(TARGETS[target]):
        run.check_target(f"{seed}.{number}", target)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_default_pipeline_keeps_results(seed: int):
    for number in range(GRAPHS):
        run.check_passes(f"{seed}.{number}")


def test_a_wrong_lowering_is_found(monkeypatch: pytest.MonkeyPatch):
    """The judge tells a result that is one unit off by more than it may."""
    tanh = [o for o in run.generate.candidates() if o.name == "tanh"]
    model = next(m for n in range(9) if (m := run.generate.Grower(Random(n), tanh).grow(1)).main.inputs)
    x = [np.linspace(-1, 1, max(1, int(v.type.size)), dtype=np.float64).astype(v.dtype.numpy).reshape(v.dims)
         for v in model.main.inputs]  # fmt: skip
    from irc.ir.reference import evaluate

    right = evaluate(model, x)
    assert run.judge.fault(model, x, right) is None
    wrong = [np.asarray(r.astype(np.float64) * 1.1 + 0.1).astype(r.dtype) for r in right]
    if right[0].size:
        assert "differ" in run.judge.fault(model, x, wrong)
