"""The operator cases of all targets: a test that takes `case` runs once for each of them."""

from __future__ import annotations

import pytest

from irc.testing import cases
from irc.testing.targets import operator_cases

CASES = operator_cases()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES, ids=[c.id for c in CASES])


@pytest.fixture(scope="session")
def all_cases() -> list:
    return CASES


@pytest.fixture(scope="session")
def check():
    """check(case, results, expected, ulps=None): see irc.testing.cases."""
    return cases.check
