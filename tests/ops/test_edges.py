"""The table testing/edges.json: edge cases and their only right results, bitwise, on the reference and the targets.

How a row is written stands in `irc.testing.edges`.  A target joins `REFUSED` when every row holds but those it refuses.
ONNX Runtime gives other results where `ONNX_RUNTIME` says so; docs/semantics.md says which are right.
"""

import numpy as np
import pytest

import irc
from irc import targets
from irc.ir.errors import UnsupportedError
from irc.ir.operators import get
from irc.targets.onnx.kernels import DEVIATIONS
from irc.testing.edges import attributes_of as keywords
from irc.testing.edges import check, operands, rows
from irc.testing.operators import model_of, run

ROWS = rows()
COMPOSITES = [row for row in ROWS if get(row["operator"]).decompose is not None]
REFUSED: dict[str, set[str]] = {"reference": set(), "xla": set(), "mlx{compile=off}": set()}
"""Target -> rows it says it cannot run."""
ONNX_RUNTIME = {**DEVIATIONS, "reduce-mean-of-nothing-f32": "ReduceMean of nothing is 0"}
"""Rows whose results ONNX Runtime 1.32 gives otherwise."""


def by_id(row):
    return row["id"]


@pytest.mark.parametrize("row", ROWS, ids=by_id)
def test_reference(row):
    check(row, run(row["operator"], *operands(row), **keywords(row)))


@pytest.mark.parametrize("row", COMPOSITES, ids=by_id)
def test_decomposition(row):
    check(row, run(row["operator"], *operands(row), decompose=True, **keywords(row)))


@pytest.mark.parametrize("target", REFUSED)
@pytest.mark.parametrize("row", ROWS, ids=by_id)
def test_target(row, target):
    if absent := targets.missing(target.partition("{")[0]):
        pytest.skip(f"{absent[0]} is not installed")
    model, inputs = model_of(row["operator"], *operands(row), **keywords(row))
    if row["id"] in REFUSED[target]:
        with pytest.raises(UnsupportedError, match=row["operator"]):
            irc.compile(model, target=target)
    else:
        check(row, tuple(irc.compile(model, target=target)(*inputs)))


def test_onnx_runtime():
    """Every row that the ONNX target takes and whose element types its Python interface can pass."""
    if absent := targets.missing("onnx"):
        pytest.skip(f"{absent[0]} is not installed")
    ran, wrong = 0, []
    for row in (r for r in ROWS if r["id"] not in ONNX_RUNTIME):
        model, inputs = model_of(row["operator"], *operands(row), **keywords(row))
        try:
            results = tuple(irc.compile(model, target="onnx")(*inputs))
        except UnsupportedError:
            continue
        except irc.IrcError as error:
            if "cannot pass" not in str(error) and "NOT_IMPLEMENTED" not in str(error):
                wrong.append(f"{row['id']}: {error}")
            continue
        ran += 1
        try:
            check(row, results)
        except AssertionError as error:
            wrong.append(f"{row['id']}: {error}")
    assert not wrong, "\n".join(wrong)
    assert ran > 100
    assert {name for name in ONNX_RUNTIME if ":" not in name} <= {row["id"] for row in ROWS}


SUBNORMAL = np.array([1e-40, -1e-40, 1.4e-45, 0.0, 1.2e-38], np.float32)


def flush(x):
    return np.where(np.abs(x) < np.finfo(np.float32).tiny, np.copysign(np.zeros_like(x), x), x)


@pytest.mark.parametrize("target", REFUSED)
@pytest.mark.parametrize(
    "op, others, attributes",
    [
        ("add", [np.zeros_like(SUBNORMAL)], {}),
        ("multiply", [np.full_like(SUBNORMAL, 0.5)], {}),
        ("maximum", [np.full_like(SUBNORMAL, -1)], {}),
        ("sqrt", [], {}),
        ("convert", [], {"dtype": "f64"}),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_subnormal_numbers_are_kept_or_zeros_of_their_sign(op, others, attributes, target):
    """XLA on the CPU takes subnormal f32 and f64 for zeros; the other targets compute with them."""
    if absent := targets.missing(target.partition("{")[0]):
        pytest.skip(f"{absent[0]} is not installed")
    x = np.abs(SUBNORMAL) if op == "sqrt" else SUBNORMAL
    model, inputs = model_of(op, x, *others, **attributes)
    [got] = irc.compile(model, target=target)(*inputs)
    exact = np.asarray(run(op, x, *others, **attributes))
    flushed = flush(np.asarray(run(op, flush(x), *others, **attributes)))
    for want in (exact,) if target != "xla" else (exact, flushed):
        if np.allclose(got, want, rtol=1e-6, atol=0) and (np.signbit(got) == np.signbit(want)).all():
            return
    raise AssertionError(f"{op} of {x.tolist()} gives {np.asarray(got).tolist()}, expected {exact.tolist()}")


def test_rows_are_distinct_and_say_where_they_come_from():
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    assert all(row["source"] for row in ROWS)
