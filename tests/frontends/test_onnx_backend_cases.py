"""ONNX's own node test cases: imported, verified, run by the reference evaluator.  The names that pass are committed.

A name that disappears from the list fails here.  `backend_cases.txt` has one name a line.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from irc.frontends.onnx import import_onnx
from irc.ir import verify
from irc.ir.reference import evaluate

NAMES = (Path(__file__).parent / "backend_cases.txt").read_text().split()


@lru_cache(maxsize=1)
def cases() -> dict[str, Any]:
    from onnx.backend.test.case.node import collect_testcases

    return {case.name: case for case in collect_testcases(None)}


def plain(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    if isinstance(value, onnx.SequenceProto):
        return numpy_helper.to_list(value)
    if isinstance(value, onnx.OptionalProto):
        return numpy_helper.to_optional(value)
    return np.asarray(value) if isinstance(value, np.generic) else value


def compare(got: Any, want: Any, rtol: float, atol: float) -> None:
    if isinstance(want, list):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            compare(g, w, rtol, atol)
        return
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if want.dtype.kind in "OU":
        assert np.array_equal(got, want)
        return
    wide = np.complex128 if want.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), rtol=rtol, atol=atol)


GROUPS = sorted({name.split("_")[1] for name in NAMES})


@pytest.mark.parametrize("group", GROUPS)
def test_cases_of_onnx(group):
    """All committed cases whose name begins with test_<group>_; a version of onnx that lacks a case leaves it out."""
    checked = 0
    for name in NAMES:
        case = cases().get(name) if name.split("_")[1] == group else None
        if case is None:
            continue
        model = import_onnx(case.model)
        assert verify.verify(model) == [], name
        for inputs, outputs in case.data_sets:
            results = evaluate(model, [plain(v) for v in inputs])
            for got, want in zip(results, map(plain, outputs), strict=True):
                compare(got, want, case.rtol, case.atol)
        checked += 1
    if not checked:
        pytest.skip(f"onnx {onnx.__version__} has none of the cases called test_{group}")
