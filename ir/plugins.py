"""Plug-ins: what other distributions add to irc through entry points.  Their contents register in the usual tables.

Distributions are looked at only when a name is not one of irc's own, or when a listing is asked for.  A plug-in that
cannot be loaded is known by its distribution, its entry point and the reason; it never takes anything else down.
"""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from .errors import IrcError

OPERATORS: Final = "irc.operators"
"""Entry point `namespace = module`: importing the module defines operators `namespace.Name`."""
FRONTENDS: Final = "irc.frontends"
"""Entry point `ONNX domain = module`: importing the module registers handlers of the domain."""
FUSIONS: Final = "irc.fusions"
"""Entry point `any name = module`: importing the module registers fusions, which the pass `fuse` then runs too."""
PASSES: Final = "irc.passes"
"""Entry point `name of the pass = module:Class`."""
LOWERINGS: Final = "irc.lowerings"
"""Entry point `name of the target = module`: importing the module enters rules for operators of the plug-in."""
TARGETS: Final = "irc.targets"
"""Entry point `name of the target = module:Class`."""

GROUPS: Final = (OPERATORS, FRONTENDS, FUSIONS, PASSES, LOWERINGS, TARGETS)
_UNIQUE: Final = (OPERATORS, PASSES, TARGETS)
"""Groups in which two distributions must not use one name."""


class PluginWarning(UserWarning):
    """A plug-in that is left out."""


class PluginError(IrcError):
    """A plug-in that cannot be used was asked for by name."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One entry point of one installed distribution."""

    group: str
    name: str
    value: str
    distribution: str
    version: str

    def __str__(self) -> str:
        return f"{self.distribution} {self.version} ({self.group}: {self.name} = {self.value})"


@dataclass(frozen=True, slots=True)
class Broken:
    """A plug-in that cannot be used, and why."""

    plugin: Plugin
    reason: str

    def __str__(self) -> str:
        return f"the plug-in {self.plugin} cannot be used: {self.reason}"


_lock = threading.RLock()
_entries: dict[tuple[str, ...], dict[str, tuple[Plugin, ...]]] = {}
_results: dict[Plugin, Any] = {}
_loading: list[tuple[Plugin, list[tuple[str, Callable[[], object]]]]] = []
"""The plug-ins being loaded, outermost first, each with (module, undo) of what it has registered so far."""


def entries(group: str, name: str | None = None) -> tuple[Plugin, ...]:
    """What installed distributions declare in a group, sorted; nothing is imported.  With `name` only those."""
    with _lock:
        path = tuple(sys.path)
        if path not in _entries:
            _entries.clear()
            _entries[path] = _scan()
        found = _entries[path].get(group, ())
    return found if name is None else tuple(p for p in found if p.name == name)


def _scan() -> dict[str, tuple[Plugin, ...]]:
    from importlib.metadata import entry_points  # 20 ms that most runs need not spend

    rows: dict[str, dict[Plugin, None]] = {}
    for group in GROUPS:
        for entry in entry_points(group=group):
            dist = entry.dist
            owner, version = (dist.name, dist.version) if dist is not None else ("an unknown distribution", "?")
            rows.setdefault(group, {})[Plugin(group, entry.name, entry.value, owner, version)] = None
    return {g: tuple(sorted(r, key=lambda p: (p.name, p.distribution, p.value))) for g, r in rows.items()}


def load(plugin: Plugin, builtin: Collection[str] = (), accept: Callable[[Any], str | None] | None = None) -> Any:
    """What the entry point names, imported once, or a Broken.  Never raises.

    `builtin` are irc's own names in the group.  `accept(object)` says why what was loaded is not what the group needs,
    or enters it into a table; an IrcError that it raises is a reason too.
    """
    with _lock:
        if plugin in _results:
            return _results[plugin]
        if (clash := _clash(plugin, builtin)) is not None:
            return _results.setdefault(plugin, Broken(plugin, clash))
        registered: list[tuple[str, Callable[[], object]]] = []
        _loading.append((plugin, registered))
        why: str | None
        try:
            from importlib.metadata import EntryPoint

            found = EntryPoint(plugin.name, plugin.value, plugin.group).load()
            why = accept(found) if accept is not None else None
        except (Exception, SystemExit) as error:  # whatever the code of others raises
            why = str(error) if isinstance(error, IrcError) else f"{type(error).__name__}: {error}"
        finally:
            _loading.pop()
        if why is not None:
            for module, undo in reversed(registered):
                if module not in sys.modules:  # an import that failed takes back what its module had registered
                    undo()
            found = Broken(plugin, why)
        return _results.setdefault(plugin, found)


def _clash(plugin: Plugin, builtin: Collection[str]) -> str | None:
    if plugin.group not in _UNIQUE:
        return None
    if plugin.name in builtin:
        return f"its name clashes with irc's own {plugin.name!r}; rename the entry point"
    others = [p for p in entries(plugin.group, plugin.name) if p != plugin]
    if others:
        return f"its name clashes with {' and '.join(map(str, others))}; uninstall one of them"
    return None


def load_named(
    group: str, name: str, builtin: Collection[str] = (), accept: Callable[[Any], str | None] | None = None
) -> Any | None:
    """The plug-in of that name, None if there is none; PluginError if it, or one of several, is broken."""
    found = [load(plugin, builtin, accept) for plugin in entries(group, name)]
    for one in found:
        if isinstance(one, Broken):
            raise PluginError(str(one))
    return found[0] if found else None


def load_group(
    group: str,
    name: str | None = None,
    builtin: Collection[str] = (),
    accept: Callable[[Any], str | None] | None = None,
) -> list[Broken]:
    """Load all plug-ins of a group (of that name).  Those that are broken are left out with a PluginWarning, once."""
    broken = []
    for plugin in entries(group, name):
        known = plugin in _results
        found = load(plugin, builtin, accept)
        if isinstance(found, Broken):
            broken.append(found)
            if not known:
                warnings.warn(str(found), PluginWarning, stacklevel=3)
    return broken


def loading() -> Plugin | None:
    """The plug-in whose code runs at this moment."""
    return _loading[-1][0] if _loading else None


def registered(module: str, undo: Callable[[], object]) -> None:
    """Told by every table of what `module` has entered; `undo` takes it out again if the module cannot be loaded."""
    if _loading and not is_own(module):
        _loading[-1][1].append((module, undo))


def is_own(module: str) -> bool:
    """Whether a module is irc's."""
    return module.partition(".")[0] == __name__.partition(".")[0]


def namespace(name: str) -> str:
    """`sample` of `sample.Gate`; empty for irc's own operators."""
    return name.rpartition(".")[0]


def check_name(name: str, module: str) -> None:
    """IrcError unless an operator that a plug-in defines has a namespace of the same distribution."""
    plugin = loading()
    if plugin is None or is_own(module):
        return
    own = [p.name for p in entries(OPERATORS) if p.distribution == plugin.distribution and p.name.isidentifier()]
    if namespace(name) not in own:
        listed = " or ".join(f"'{n}.{name.rpartition('.')[2]}'" for n in own)
        want = f"; call it {listed}" if own else f"; its distribution has no entry point in the group {OPERATORS}"
        raise IrcError(f"the operator {name!r} of a plug-in needs the plug-in's namespace{want}")


def distribution_of(namespace: str) -> str | None:
    """The distribution that has the operators of a namespace, if it is installed; nothing is imported."""
    found = entries(OPERATORS, namespace)
    return found[0].distribution if len(found) == 1 else None
