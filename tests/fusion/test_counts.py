"""Every attention, rotary embedding, norm and activation of every fixture is found, and results stay."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.passes import run_passes
from irc.passes.fusions import composites_in, explain

COUNTS = json.loads((Path(__file__).parent / "counts.json").read_text())

# f32: the reference rounds each node once, so a fusion takes roundings of 2^-24 away; about a hundred add up in two
# layers.  Exporters round constants like sqrt(1/2) to f32 as well.  f16: one rounding of a value near 1.
BOUNDS = {"float32": 1e-5, "float16": 2e-3}


@pytest.fixture
def model(fixture_name: str, load: Callable[[str], Model]) -> Model:
    return load(fixture_name)


def test_counts_are_exact(fixture_name: str, model: Model) -> None:
    assert composites_in(run_passes(model, verify_each=True)) == COUNTS[fixture_name]


def test_results_stay(model: Model, inputs_of: Callable[[Model], list[Any]]) -> None:
    inputs = inputs_of(model)
    for old, new in zip(evaluate(model, inputs), evaluate(run_passes(model), inputs), strict=True):
        assert np.isfinite(old).all()
        bound = BOUNDS[old.dtype.name] * max(1.0, float(np.abs(old).max()))
        assert np.abs(old.astype(np.float64) - new).max() <= bound


def test_explain_sees_what_the_pipeline_does(fixture_name: str, model: Model) -> None:
    report = explain(model)
    assert report.composites == COUNTS[fixture_name]
    assert not any(miss.fusion == "attention" for miss in report.misses)


def test_the_table_has_no_other_rows(fixture_names: list[str]) -> None:
    assert sorted(COUNTS) == sorted(fixture_names)
