"""Fusions by name: the decorator, what it checks when a fusion is defined, and the order in which fusions run."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ...ir import plugins
from ...ir.errors import IrcError, did_you_mean
from .terms import Term
from .tracing import roots, trace

C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class Fusion:
    """One registered fusion: its traced pattern and the instance whose `check` and `rewrite` decide and build."""

    name: str
    after: tuple[str, ...]
    doc: str
    instance: Any
    terms: tuple[Term, ...]
    roots: frozenset[str]
    near: int
    """Nodes that must have matched before a failure is worth telling."""
    names: frozenset[str] = field(default_factory=frozenset)


_REGISTRY: dict[str, Fusion] = {}


def fusion(name: str, *, after: str | Iterable[str] = "canonicalize", near: int = 3) -> Callable[[C], C]:
    """Register a class with `pattern(self, p, ...)`, `rewrite(self, m)` and perhaps `check(self, m)` as a fusion.

    `after` names passes or fusions that come before it.  A pattern that could never match, an unknown operator or
    attribute, a missing docstring are errors here, where the fusion is defined.
    """

    def add(cls: C) -> C:
        made = define(cls, name, after=after, near=near)
        if (other := _REGISTRY.get(name)) is not None and type(other.instance) is not cls:
            raise IrcError(f"two fusions are called {name!r}: {type(other.instance).__module__} and {cls.__module__}")
        _REGISTRY[name] = made
        plugins.registered(cls.__module__, lambda: _REGISTRY.pop(name, None))
        return cls

    return add


def define(cls: type, name: str, *, after: str | Iterable[str] = "canonicalize", near: int = 3) -> Fusion:
    """The fusion that a class describes, without registering it; IrcError says what is wrong with the class."""
    doc = inspect.cleandoc(cls.__doc__ or "")
    if "->" not in doc:
        raise IrcError(f"the fusion {name!r} needs a docstring that shows before -> after")
    for method in ("pattern", "rewrite"):
        if not callable(getattr(cls, method, None)):
            raise IrcError(f"the fusion {name!r} needs a method {method}")
    instance = cls()
    try:
        terms, _ = trace(cls.pattern, instance)  # type: ignore[attr-defined]  # just looked for
    except IrcError as error:
        raise IrcError(f"the pattern of the fusion {name!r}: {error}") from None
    found = roots(terms[0])
    if not found:
        raise IrcError(f"the pattern of the fusion {name!r} could start at any value; its result must be an operator")
    names = frozenset(n for term in terms for n in term.names())
    before = (after,) if isinstance(after, str) else tuple(after)
    return Fusion(name, before, doc, instance, terms, frozenset(found), near, names)


def get_fusion(name: str) -> Fusion:
    """The fusion registered as `name`, perhaps by a plug-in; IrcError with a suggestion if there is none."""
    if name not in _REGISTRY:
        load_plugins()
    try:
        return _REGISTRY[name]
    except KeyError:
        raise IrcError(f"no fusion is called {name!r}{did_you_mean(name, _REGISTRY)}") from None


def load_plugins() -> list[plugins.Broken]:
    """Register the fusions of all plug-ins; those that cannot be loaded."""
    return plugins.load_group(plugins.FUSIONS)


def all_fusions() -> list[Fusion]:
    """Every registered fusion, each behind those it names in `after`; else in order of registration."""
    order: dict[str, Fusion] = {}
    visiting: set[str] = set()

    def visit(name: str) -> None:
        if name in order or name not in _REGISTRY:
            return
        if name in visiting:
            raise IrcError(f"the fusion {name!r} comes after itself")
        visiting.add(name)
        for before in _REGISTRY[name].after:
            visit(before)
        order[name] = _REGISTRY[name]

    for name in _REGISTRY:
        visit(name)
    return list(order.values())
