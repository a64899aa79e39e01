"""Whether outputs are what a case expects: the number, kinds, shapes, element types and values of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from suite import Case

BFLOAT16_RTOL = 2.0**-6
"""The suite's own tolerance for bfloat16 results: two units in the last place."""

SIGMAS = 4
"""How far from the expected fraction a random mask may be."""


def fault(case: Case, inputs: Sequence[Any], want: Sequence[Any], got: Sequence[Any]) -> str | None:
    """What is wrong with the outputs `got`, or None."""
    if len(got) != len(want):
        return f"{len(got)} outputs instead of {len(want)}"
    rule = RANDOM.get(case.short)
    for i, (a, b) in enumerate(zip(got, want, strict=True)):
        reason = _shape_fault(a, b) if rule else _value_fault(a, b, case)
        if reason:
            return f"output {i}: {reason}"
    return rule(case, inputs, got) if rule else None


def _shape_fault(got: Any, want: Any) -> str | None:
    if not isinstance(got, np.ndarray):
        return f"{type(got).__name__} instead of an array"
    if got.shape != want.shape:
        return f"shape {got.shape} instead of {want.shape}"
    if _is_text(got) and _is_text(want):
        return None
    return f"dtype {got.dtype} instead of {want.dtype}" if got.dtype != want.dtype else None


def _is_text(array: Any) -> bool:
    return bool(array.dtype.kind in "OSU")


def _value_fault(got: Any, want: Any, case: Case) -> str | None:
    if want is None or isinstance(want, list):
        if want is None or not isinstance(got, list):
            return None if got is None and want is None else f"{type(got).__name__} instead of {type(want).__name__}"
        if len(got) != len(want):
            return f"{len(got)} elements instead of {len(want)}"
        faults = (_value_fault(a, b, case) for a, b in zip(got, want, strict=True))
        return next((f"element {i}: {f}" for i, f in enumerate(faults) if f), None)
    if reason := _shape_fault(got, want):
        return reason
    if _is_text(want):
        return None if got.astype(str).tolist() == want.astype(str).tolist() else "other strings"
    rtol = max(case.rtol, BFLOAT16_RTOL) if want.dtype.name == "bfloat16" else case.rtol
    if want.dtype.kind not in "biufc":  # types of ml_dtypes, which NumPy cannot promote
        got, want = got.astype(np.float32), want.astype(np.float32)
    if want.dtype.kind in "bc":
        close = np.isclose(got, want, rtol=rtol, atol=case.atol, equal_nan=True)
    else:
        wide = np.longdouble
        close = np.isclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=case.atol, equal_nan=True)
    if close.all():
        return None
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    return f"{int((~close).sum())} of {close.size} elements differ, first at {at}: {got[at]} instead of {want[at]}"


def _bernoulli(case: Case, inputs: Sequence[Any], got: Sequence[Any]) -> str | None:
    values = set(np.unique(got[0].astype(np.float64)).tolist())
    return None if values <= {0.0, 1.0} else f"values other than 0 and 1: {sorted(values)[:4]}"


def _dropout(case: Case, inputs: Sequence[Any], got: Sequence[Any]) -> str | None:
    x = inputs[0]
    ratio = float(inputs[1]) if len(inputs) > 1 else 0.5
    y, mask = got[0], got[1] if len(got) > 1 else got[0] != 0
    scale = 1 / (1 - ratio)
    if not np.allclose(y, x * mask * scale, rtol=case.rtol, atol=case.atol):
        return "output is not x * mask * scale"
    kept, spread = mask.mean(), np.sqrt(ratio * (1 - ratio) / mask.size)
    if abs(kept - (1 - ratio)) > SIGMAS * spread:
        return f"a fraction of {kept:.3f} is kept, expected {1 - ratio:.3f}"
    return None


RANDOM: dict[str, Callable[[Case, Sequence[Any], Sequence[Any]], str | None]] = {
    **{f"test_bernoulli{kind}{form}": _bernoulli for kind in ("", "_double", "_seed") for form in ("", "_expanded")},
    **{f"test_training_dropout{kind}": _dropout for kind in ("", "_default", "_mask", "_default_mask")},
}
"""Cases whose expected values are one engine's random numbers: judged by what must hold of any engine's."""
