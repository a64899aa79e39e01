"""The table tests/edges.json: edge cases and their only right results, bitwise, on the reference and the targets.

A row: `operator`, `inputs` as [element type, values] (a list of those for a variadic group, null where absent),
`attributes`, `results`, and the `source` of the rule.  "nan", "inf", "-inf" and "-0.0" are written as texts.  Two NaNs
are equal whatever their bits.  A target joins `REFUSED` when every row holds but those it refuses.
"""

import json
from pathlib import Path

import numpy as np
import pytest

import irc
from irc import targets
from irc.ir import dtypes
from irc.ir.errors import UnsupportedError
from irc.ir.operators import get
from irc.testing.operators import model_of, run

ROWS = json.loads((Path(__file__).parents[1] / "edges.json").read_text(encoding="utf-8"))
COMPOSITES = [row for row in ROWS if get(row["operator"]).decompose is not None]
REFUSED: dict[str, set[str]] = {"reference": set(), "xla": set()}  # target -> rows it says it cannot run


def by_id(row):
    return row["id"]


def array(spec):
    if spec is None:
        return None
    if spec and isinstance(spec[0], list):
        return [array(s) for s in spec]
    name, values = spec
    dtype = dtypes.DType.of(name)
    numbers = np.array(values, object)
    plain = np.float64 if dtype.is_float else np.uint64 if dtype is dtypes.u64 else np.int64
    return (
        np.array([plain(float(v) if isinstance(v, str) else v) for v in numbers.reshape(-1)], plain)
        .reshape(numbers.shape)
        .astype(dtype.numpy)
    )


def operands(row):
    return [array(spec) for spec in row["inputs"]]


def keywords(row):
    return row.get("attributes", {})


def check(row, results):
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


@pytest.mark.parametrize("row", ROWS, ids=by_id)
def test_reference(row):
    check(row, run(row["operator"], *operands(row), **keywords(row)))


@pytest.mark.parametrize("row", COMPOSITES, ids=by_id)
def test_decomposition(row):
    check(row, run(row["operator"], *operands(row), decompose=True, **keywords(row)))


@pytest.mark.parametrize("target", REFUSED)
@pytest.mark.parametrize("row", ROWS, ids=by_id)
def test_target(row, target):
    if absent := targets.missing(target):
        pytest.skip(f"{absent[0]} is not installed")
    model, inputs = model_of(row["operator"], *operands(row), **keywords(row))
    if row["id"] in REFUSED[target]:
        with pytest.raises(UnsupportedError, match=row["operator"]):
            irc.compile(model, target=target)
    else:
        check(row, tuple(irc.compile(model, target=target)(*inputs)))


def test_rows_are_distinct_and_say_where_they_come_from():
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert all(row["source"] for row in ROWS)
