"""The operator cases of all targets: a test that takes `case` runs once for each of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _beside(name: str, file: str) -> ModuleType:
    """A module of this folder, which is no package; loaded once."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, Path(__file__).with_name(file))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


target_cases = _beside("target_cases", "cases.py")
family_cases = _beside("target_family_cases", "cases_of_families.py")
CASES = [*target_cases.cases(), *family_cases.cases()]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        metafunc.parametrize("case", CASES, ids=[c.id for c in CASES])


@pytest.fixture(scope="session")
def all_cases() -> list:
    return CASES


@pytest.fixture(scope="session")
def check():
    """check(case, results, expected, ulps=None): see cases.py."""
    return target_cases.check
