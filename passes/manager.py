"""What a pass is: base class, levels, options, and the registry by name.  Running pipelines is in `pipeline`."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import pkgutil
import types as python_types
import typing
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, TypeVar

from ..ir import plugins
from ..ir.errors import IrcError, did_you_mean
from ..ir.model import Model
from ..ir.rewrite import Rewriter

LEVEL_KEY = "irc.level"
"""The entry of `Model.metadata` that keeps a model's level, so that files and clones keep it too."""


class Level(enum.IntEnum):
    """How far a model has come.  It only rises: nothing is raised back to composites once a model is legal."""

    IMPORTED = 0
    """As a front door made it."""
    CANONICAL = 1
    """The highest form: canonical spellings, composites recognised."""
    LEGAL = 2
    """Only what one target lowers."""

    def __str__(self) -> str:
        return self.name.lower()


def level_of(model: Model) -> Level:
    """The model's level; IMPORTED where nothing is recorded."""
    name = model.metadata.get(LEVEL_KEY, str(Level.IMPORTED))
    try:
        return Level[name.upper()]
    except KeyError:
        raise IrcError(f"model metadata {LEVEL_KEY} is {name!r}{did_you_mean(name, map(str, Level))}") from None


def set_level(model: Model, level: Level) -> None:
    """Record that the model has reached `level` (a higher one stays)."""
    if level > level_of(model):
        model.metadata[LEVEL_KEY] = str(level)


class PassError(IrcError):
    """A pass that broke: a defect of the pass, not of the model.

    `reproducer` is the file that shows it again, `step` the pass with its options.
    """

    def __init__(self, message: str, name: str, reproducer: str | None = None, step: Pass | None = None) -> None:
        self.name = name
        self.step = step
        self.reproducer = reproducer
        super().__init__(message)


@dataclasses.dataclass(frozen=True)
class Pass:
    """Base of all passes: a frozen dataclass; its fields are its options, `max_bytes` spelled `max-bytes` in pipelines.

    `level` is the highest level that a model may have when the pass runs, `reaches` the level it has afterwards.  `run`
    changes the model through the rewriter, whose log says whether anything happened.

    `requires` names passes that a pipeline must run before this one.  `after` and `before` name passes that, where a
    pipeline has them, first run before this one first runs, or behind it.  A pipeline that breaks this is refused.
    """

    name: ClassVar[str] = ""
    level: ClassVar[Level] = Level.LEGAL
    reaches: ClassVar[Level] = Level.IMPORTED
    requires: ClassVar[tuple[str, ...]] = ()
    after: ClassVar[tuple[str, ...]] = ()
    before: ClassVar[tuple[str, ...]] = ()

    def run(self, model: Model, rewriter: Rewriter) -> None:
        """Change the model; raise IrcError if it cannot be what the options ask for."""
        raise IrcError(f"the pass {self.name!r} defines no run")

    def check_level(self, model: Model) -> None:
        """IrcError unless the pass may run on a model of this level."""
        have = level_of(model)
        if have > self.level:
            raise IrcError(
                f"the pass {self.name!r} runs on models up to level {self.level}; this one is already {have}"
            )

    def __str__(self) -> str:
        """As a pipeline spells it: options that differ from their defaults in braces."""
        given = [
            f"{option_name(field.name)}={_spell(getattr(self, field.name))}"
            for field in dataclasses.fields(self)
            if field.default is dataclasses.MISSING or getattr(self, field.name) != field.default
        ]
        return f"{self.name}{{{','.join(given)}}}" if given else self.name


P = TypeVar("P", bound=type[Pass])
_REGISTRY: dict[str, type[Pass]] = {}
_loaded = False


def register(cls: P) -> P:
    """Make a pass known under its `name`; two passes of one name are an error."""
    if not cls.name:
        raise IrcError(f"the pass {cls.__name__} has no name")
    if not dataclasses.is_dataclass(cls) or "__dataclass_fields__" not in cls.__dict__:
        raise IrcError(f"the pass {cls.name!r} must be a frozen dataclass: its fields are its options")
    doc = (cls.__doc__ or "").strip()
    if not doc or doc.startswith(f"{cls.__name__}("):  # what dataclass writes for want of one
        raise IrcError(f"the pass {cls.name!r} needs a docstring that shows before and after")
    if (other := _REGISTRY.setdefault(cls.name, cls)) is not cls:
        raise IrcError(f"two passes are called {cls.name!r}: {other.__module__} and {cls.__module__}")
    plugins.registered(cls.__module__, lambda: _REGISTRY.pop(cls.name, None))
    return cls


def _load() -> None:
    """Import the modules of this package once, so that their passes register."""
    global _loaded
    if not _loaded:
        _loaded = True
        package = importlib.import_module(__package__)
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f".{module.name}", __package__)


def get_pass(name: str) -> type[Pass]:
    """The pass registered as `name`, perhaps by a plug-in; IrcError with a suggestion if there is none."""
    _load()
    if name not in _REGISTRY:
        plugins.load_named(plugins.PASSES, name, _own(), _accept)
    try:
        return _REGISTRY[name]
    except KeyError:
        raise IrcError(f"no pass is called {name!r}{did_you_mean(name, _REGISTRY, 'irc passes')}") from None


def all_passes() -> Iterable[type[Pass]]:
    """Every pass of irc and of the plug-ins loaded so far, sorted by name."""
    _load()
    return [_REGISTRY[name] for name in sorted(_REGISTRY)]


def load_plugins() -> list[plugins.Broken]:
    """Register the passes of all plug-ins; those that cannot be loaded."""
    _load()
    return plugins.load_group(plugins.PASSES, None, _own(), _accept)


def _own() -> set[str]:
    return {name for name, cls in _REGISTRY.items() if plugins.is_own(cls.__module__)}


def _accept(found: Any) -> str | None:
    """Why what an entry point names is no pass of that name; registers it if it is one."""
    plugin = plugins.loading()
    if not isinstance(found, type) or not issubclass(found, Pass):
        return f"expected a subclass of irc.passes.Pass, got {found!r}"
    if plugin is not None and found.name != plugin.name:
        return f"the pass calls itself {found.name!r}; entry point and pass must have one name"
    register(found)
    return None


def option_name(field: str) -> str:
    """How pipelines spell a field."""
    return field.replace("_", "-")


def make_pass(cls: type[Pass], options: dict[str, str]) -> Pass:
    """An instance from option texts; IrcError names an unknown, missing or ill-typed option."""
    fields = {option_name(f.name): f for f in dataclasses.fields(cls)}
    hints = typing.get_type_hints(cls)
    values = {}
    for name, text in options.items():
        if name not in fields:
            hint = did_you_mean(name, fields) if fields else "; it has none"
            raise IrcError(f"the pass {cls.name!r} has no option {name!r}{hint}")
        values[fields[name].name] = _read(text, hints[fields[name].name], f"option {name} of {cls.name}")
    for name, field in fields.items():
        if field.default is dataclasses.MISSING and field.name not in values:
            raise IrcError(f"the pass {cls.name!r} needs the option {name}: {cls.name}{{{name}=...}}")
    return cls(**values)


def _read_bool(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


_READERS: dict[Any, tuple[str, Callable[[str], Any]]] = {
    bool: ("true or false", _read_bool),
    int: ("a whole number", int),
    float: ("a number", float),
    str: ("a text", str),
}


def _read(text: str, type_: Any, what: str) -> Any:
    """The value that an option's text spells."""
    if typing.get_origin(type_) in (python_types.UnionType, typing.Union):
        if text == "none":
            return None
        (type_,) = [a for a in typing.get_args(type_) if a is not type(None)]
    if typing.get_origin(type_) is tuple:
        return tuple(_read(part, typing.get_args(type_)[0], what) for part in text.split(";") if part)
    expected, reader = _READERS[type_]
    try:
        return reader(text)
    except (KeyError, ValueError):
        raise IrcError(f"{what} must be {expected}, got {text!r}") from None


def _spell(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    text = ";".join(map(str, value)) if isinstance(value, tuple) else str(value)
    plain = text and not set(text) & set("{}(),=\"' \t\n")
    return text if plain else f'"{text}"'
