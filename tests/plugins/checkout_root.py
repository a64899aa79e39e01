"""A pytest plugin of this repository: keeps pytest from importing the checkout's root folder as a package of its own.

The root has an __init__.py, because it is the package `irc`.  pytest would take it for a package of tests and import
that file once more, under the name of the checkout's folder.  pyproject.toml loads this plugin; a conftest.py cannot do
it, since one in the root would be imported in the same wrong way.
"""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.hookimpl(tryfirst=True)
def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if path.resolve() == ROOT:
        return pytest.Dir.from_parent(parent, path=path)
    return None
