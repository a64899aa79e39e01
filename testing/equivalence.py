"""Do passes keep results?  A model before and after, on the reference, bit by bit or within units in the last place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..ir.dtypes import DType
from ..ir.model import Model
from ..ir.reference import evaluate
from ..ir.verify import check
from ..passes import Pass, Pipeline, run_passes
from .patterns import random_inputs


def check_passes(
    model: Model,
    pipeline: str | Pipeline | Sequence[Pass],
    dims: Mapping[str, int] | None = None,
    *,
    inputs: Sequence[Any] | None = None,
    ulps: float = 0,
) -> Model:
    """The model after the passes, verified after each; AssertionError unless its results are those of before.

    `dims` are sizes for the symbols of `main`, of which random inputs are made; `inputs` are arrays instead.
    """
    after = run_passes(model, pipeline, verify_each=True)
    check_equivalent(model, after, dims, inputs=inputs, ulps=ulps)
    return after


def check_equivalent(
    before: Model,
    after: Model,
    dims: Mapping[str, int] | None = None,
    *,
    inputs: Sequence[Any] | None = None,
    ulps: float = 0,
) -> None:
    """AssertionError unless both models are sound and `main` gives equal results on the reference.

    With `ulps` floats may differ by that many units in the last place of the output's greatest magnitude.
    """
    check(before)
    check(after)
    given = random_inputs(before, dims or {}) if inputs is None else list(inputs)
    wanted, found = evaluate(before, given), evaluate(after, given)
    assert len(found) == len(wanted), f"{len(wanted)} outputs before, {len(found)} after"
    for name, want, got in zip(before.main.output_names, wanted, found, strict=True):
        assert (got.dtype, got.shape) == (want.dtype, want.shape), (
            f"output {name!r} was {want.dtype}{list(want.shape)}, is {got.dtype}{list(got.shape)}"
        )
        _check_output(name, got, want, ulps)


def _check_output(name: str, got: Any, want: Any, ulps: float) -> None:
    if got.tobytes() == want.tobytes() and got.dtype != object:
        return
    dtype = DType.from_numpy(want.dtype) if want.dtype != object else None
    if dtype is None or not dtype.is_float or not ulps:
        different = np.count_nonzero(np.asarray(got != want))
        raise AssertionError(f"output {name!r} has other bits than before: {different} of {want.size} elements differ")
    a, b = got.astype(np.float64), want.astype(np.float64)
    finite = np.isfinite(b)
    np.testing.assert_array_equal(np.where(finite, 0, a), np.where(finite, 0, b), err_msg=f"{name}: NaN and infinity")
    unit = float(dtype.finfo().eps) * max(float(np.abs(b[finite]).max(initial=0)), float(dtype.finfo().tiny))
    error = float(np.abs(a[finite] - b[finite]).max(initial=0)) / unit
    assert error <= ulps, f"output {name!r} is {error:.3g} ulps from what it was, {ulps:g} are allowed"
