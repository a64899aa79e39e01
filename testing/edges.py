"""The table `edges.json`: edge cases of operators and their only right results, bitwise equal on all targets.

A row: `operator`, `inputs` as [element type, values] (a list of those for a variadic group, null where absent),
`attributes`, `results`, and the `source` of the rule.  "nan", "inf", "-inf" and "-0.0" are written as texts.  Two NaNs
are equal whatever their bits.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from ..ir import dtypes


def rows() -> list[dict[str, Any]]:
    """All rows of the table."""
    found: list[dict[str, Any]] = json.loads(Path(__file__).with_name("edges.json").read_text(encoding="utf-8"))
    return found


def array(spec: Any) -> Any:
    """The array that a spec describes; a list of arrays for a variadic group, None where absent."""
    if spec is None:
        return None
    if spec and isinstance(spec[0], list):
        return [array(s) for s in spec]
    name, values = spec
    dtype = dtypes.DType.of(name)
    numbers = np.array(values, object)
    plain: Any = np.float64 if dtype.is_float else np.uint64 if dtype is dtypes.u64 else np.int64
    return (
        np.array([plain(float(v) if isinstance(v, str) else v) for v in numbers.reshape(-1)], plain)
        .reshape(numbers.shape)
        .astype(dtype.numpy)
    )


def operands(row: dict[str, Any]) -> list[Any]:
    return [array(spec) for spec in row["inputs"]]


def attributes_of(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = row.get("attributes", {})
    return found


def check(row: dict[str, Any], results: Any) -> None:
    """AssertionError unless these are the row's results."""
    results = results if isinstance(results, tuple | list) else (results,)
    for got, want in zip(results, (array(spec) for spec in row["results"]), strict=True):
        got = np.asarray(got)
        assert (got.dtype, got.shape) == (want.dtype, want.shape), row["source"]
        if want.dtype.kind in "fV":
            wide_got, wide_want = got.astype(np.float64), want.astype(np.float64)
            np.testing.assert_array_equal(wide_got, wide_want, err_msg=row["source"])
            numbers = ~np.isnan(wide_want)
            np.testing.assert_array_equal(
                np.signbit(wide_got[numbers]), np.signbit(wide_want[numbers]), err_msg=row["source"]
            )
        else:
            np.testing.assert_array_equal(got.astype(object), want.astype(object), err_msg=row["source"])
