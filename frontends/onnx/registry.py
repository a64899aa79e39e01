"""The table of ONNX operator handlers, by domain, operator and operator-set version; they stand in the family files."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...ir import plugins
from ...ir.errors import IrcError
from ...ir.operators import FAMILIES

Handler = Callable[..., Any]
MISSING = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Entry:
    """A handler and the inclusive range of operator-set versions that it reads."""

    function: Handler
    since: int
    until: int | None
    attributes: frozenset[str]
    """Names of those that the handler takes; it takes all of them if `open`."""
    open: bool
    positional: int
    variadic: bool
    required: tuple[int, ...]
    """Positions of the inputs that must be there."""
    defaults: Mapping[str, Any]
    """What attributes are where the node does not say; MISSING for those that it must."""


_TABLE: dict[tuple[str, str], list[Entry]] = {}
_loaded = False


def onnx_op(
    *types: str, since: int = 1, until: int | None = None, domain: str = "", absent: Container[str] = ()
) -> Callable[[Handler], Handler]:
    """Register `f(ctx, *inputs, **attributes)` for operators of a domain in the operator sets [since, until].

    Inputs come as values by position, None where absent; attributes by keyword under ONNX's names, absent ones with the
    schema's default or the handler's.  It returns the results, one value or a tuple (None: not available).
    Inputs without a default must be there, those named in `absent` apart: optional ones in front of others.
    """

    def register(function: Handler) -> Handler:
        parameters = list(inspect.signature(function).parameters.values())[1:]
        positional = [p for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
        keywords = frozenset(p.name.rstrip("_") for p in parameters if p.kind is p.KEYWORD_ONLY)
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        required = tuple(i for i, p in enumerate(positional) if p.default is p.empty and p.name not in absent)
        defaults = {p.name.rstrip("_"): p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
        entry = Entry(function, since, until, keywords, takes_all, len(positional), variadic, required, defaults)
        for type_ in types:
            rows = _TABLE.setdefault((domain, type_), [])
            if other := next((row for row in rows if _overlap(entry, row)), None):
                raise IrcError(f"{domain or 'ai.onnx'}.{type_} has two handlers for one operator-set version: "
                               f"{other.function.__module__} and {function.__module__}")  # fmt: skip
            rows.append(entry)
            plugins.registered(function.__module__, partial(rows.remove, entry))
        return function

    return register


def _overlap(a: Entry, b: Entry) -> bool:
    return (b.until is None or a.since <= b.until) and (a.until is None or b.since <= a.until)


def load() -> None:
    """Import the handlers of all families (once)."""
    global _loaded
    if not _loaded:
        _loaded = True
        for folder in (__package__, f"{__package__}.microsoft"):
            for family in FAMILIES:
                name = f"{folder}.{family}"
                if importlib.util.find_spec(name) is not None:
                    importlib.import_module(name)


def find(domain: str, type_: str, version: int) -> Entry | None:
    """The handler that reads this operator in this version of the domain's operator set."""
    load()
    for load_more in (lambda: None, lambda: plugins.load_group(plugins.FRONTENDS, domain or "ai.onnx")):
        load_more()
        for entry in _TABLE.get((domain, type_), ()):
            if entry.since <= version and (entry.until is None or version <= entry.until):
                return entry
    return None


def broken(domain: str) -> list[plugins.Broken]:
    """Plug-ins with handlers of the domain that cannot be loaded."""
    return plugins.load_group(plugins.FRONTENDS, domain or "ai.onnx")


def known(domain: str, type_: str) -> list[Entry]:
    """All handlers of the operator, whatever the version."""
    load()
    return _TABLE.get((domain, type_), [])


def handled() -> list[tuple[str, str]]:
    """Every (domain, operator) that has a handler, sorted."""
    load()
    return sorted(_TABLE)


def domains() -> set[str]:
    """Domains that have handlers."""
    load()
    return {domain for domain, _ in _TABLE}
