"""Private functions that emitted modules carry: what MLX has no single call for, as real and tested code.

An emitted module gets the source text of those it uses, so they may use nothing but `mx`, `math` and one another.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import textwrap
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

_MODULES = ("integers", "floats", "special", "narrow", "places", "windows", "matrices", "ordering")


@cache
def functions() -> dict[str, Callable[..., Any]]:
    """Every recipe by name."""
    out: dict[str, Callable[..., Any]] = {}
    for name in _MODULES:
        module = importlib.import_module(f".{name}", __package__)
        for key, value in vars(module).items():
            if key.startswith("_") and inspect.isfunction(value) and value.__module__ == module.__name__:
                out[key] = value
    return out


@cache
def _text(name: str) -> tuple[str, tuple[str, ...]]:
    """Source of a recipe, and the recipes that it calls."""
    text = textwrap.dedent(inspect.getsource(functions()[name]))
    names = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    return text, tuple(sorted(n for n in names if n in functions() and n != name))


def source(names: Iterable[str]) -> list[str]:
    """Sources of recipes and of all that they call, callees first."""
    out: dict[str, str] = {}

    def visit(name: str) -> None:
        if name not in out:
            text, called = _text(name)
            for other in called:
                visit(other)
            out[name] = text

    for name in names:
        visit(name)
    return list(out.values())
