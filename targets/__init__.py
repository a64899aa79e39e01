"""Targets by name.  A target's module is imported when someone asks for it, so listing them loads nothing heavy."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..ir import plugins
from ..ir.errors import IrcError, did_you_mean

if TYPE_CHECKING:
    from .base import Target

_MODULES = {
    "xla": (".xla.target", "XlaTarget", ("jax", "jaxlib"), "StableHLO compiled and run by XLA"),
    "mlx": (".mlx.target", "MlxTarget", ("mlx",), "Python code for MLX"),
    "onnx": (".onnx.target", "OnnxTarget", ("onnx", "onnxruntime"), "an ONNX model run by ONNX Runtime"),
    "reference": (".reference.target", "ReferenceTarget", (), "the NumPy evaluator that defines right results"),
}


def names() -> list[str]:
    """Names of irc's own targets."""
    return list(_MODULES)


def plugin_names() -> tuple[list[str], list[plugins.Broken]]:
    """Names of the targets of plug-ins, which are imported for it, and the plug-ins that cannot be."""
    broken = plugins.load_group(plugins.TARGETS, None, _MODULES, _accept)
    bad = {b.plugin for b in broken}
    return [p.name for p in plugins.entries(plugins.TARGETS) if p not in bad], broken


def describe(name: str) -> str:
    """One line about a target."""
    return _MODULES[name][3] if name in _MODULES else (_class(name).__doc__ or name).strip().splitlines()[0]


def missing(name: str) -> list[str]:
    """Modules that the target needs and this environment lacks."""
    needed = _MODULES[name][2] if name in _MODULES else _class(name).requires
    return [m for m in needed if importlib.util.find_spec(m) is None]


def _class(name: str) -> type[Target]:
    """The class of a target; IrcError if there is none of that name."""
    if name in _MODULES:
        module, cls, _, _ = _MODULES[name]
        own: type[Target] = getattr(importlib.import_module(module, __package__), cls)
        return own
    found: type[Target] | None = plugins.load_named(plugins.TARGETS, name, _MODULES, _accept)
    if found is None:
        known = (*_MODULES, *(p.name for p in plugins.entries(plugins.TARGETS)))
        raise IrcError(f"no target is called {name!r}{did_you_mean(name, known)}")
    return found


def _accept(found: Any) -> str | None:
    """Why what an entry point names is no target of that name."""
    from .base import Target

    plugin = plugins.loading()
    if not isinstance(found, type) or not issubclass(found, Target):
        return f"expected a subclass of irc.targets.base.Target, got {found!r}"
    if plugin is not None and getattr(found, "name", None) != plugin.name:
        return f"the target calls itself {getattr(found, 'name', None)!r}; entry point and target must have one name"
    if found.__abstractmethods__:
        return f"the target lacks {', '.join(sorted(found.__abstractmethods__))}"
    return None


def get(spec: str) -> Target:
    """The target that `name` or `name{key=value,...}` spells; IrcError: unknown name or option, missing package."""
    from .base import options_from

    name, brace, rest = spec.strip().partition("{")
    name = name.strip()
    if name not in _MODULES:
        _class(name)
    if brace and not rest.endswith("}"):
        raise IrcError(f"target {spec!r}: expected }} at the end")
    values: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in rest[:-1].split(","))) if brace else ():
        key, equals, value = item.partition("=")
        if not equals:
            raise IrcError(f"target {spec!r}: expected key=value, got {item!r}")
        values[key.strip().replace("-", "_")] = value.strip()
    if absent := missing(name):
        raise IrcError(
            f"target {name} needs the package {absent[0]!r}, which is not installed; pip install {absent[0]}"
        )
    target_class = _class(name)
    return target_class(options_from(target_class.options_class, values, name))


def configured(target: str | Target, options: Mapping[str, Any]) -> Target:
    """A target from its name and further options as Python values, or a target as it is (then without options)."""
    from .base import Target

    if isinstance(target, Target):
        if options:
            raise IrcError(
                f"target {target.spec} has its options already; {', '.join(options)} cannot be set beside it: "
                "give the target by name"
            )
        return target
    if not isinstance(target, str):
        raise IrcError(f"expected the name of a target ({', '.join(_MODULES)}) or a Target, got {target!r}")
    if not options:
        return get(target)
    inside = target.rstrip().removesuffix("}")
    given = ",".join(f"{k}={str(v).lower() if isinstance(v, bool) else v}" for k, v in options.items())
    return get(f"{inside},{given}}}" if "{" in inside else f"{inside}{{{given}}}")
