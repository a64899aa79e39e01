"""The table testing/edges.json: edge cases and their only right results, bitwise, on the reference and the targets.

How a row is written stands in `irc.testing.edges`.  A target joins `REFUSED` when every row holds but those it refuses.
"""

import pytest

import irc
from irc import targets
from irc.ir.errors import UnsupportedError
from irc.ir.operators import get
from irc.testing.edges import attributes_of as keywords
from irc.testing.edges import check, operands, rows
from irc.testing.operators import model_of, run

ROWS = rows()
COMPOSITES = [row for row in ROWS if get(row["operator"]).decompose is not None]
REFUSED: dict[str, set[str]] = {"reference": set(), "xla": set()}  # target -> rows it says it cannot run


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
