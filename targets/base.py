"""What every target shares: the lowering table (which is the claim), options, and the `Target` base class.

A rule is `f(ctx, *operands, **attributes)` and returns expressions of its target, or calls `ctx.refuse("why")`.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from ..ir import plugins
from ..ir.dtypes import DType
from ..ir.errors import IrcError, did_you_mean
from ..ir.model import Model, Node
from ..ir.operators import Rule, check_rule, get
from ..runtime.backend import Program


class Refusal(Exception):
    """A rule's word that it cannot lower a node, and why.  Composites are then decomposed, core operators reported."""


def refuse(why: str) -> NoReturn:
    raise Refusal(why)


@dataclass(frozen=True, slots=True)
class Lowering:
    """One entry of a table: the rule that emits, and an optional look at the facts that refuses without emitting.

    `when(ctx, *facts, **attributes)` has the rule's signature and returns None to claim the node, or the reason not to.
    """

    rule: Rule
    when: Rule | None = None


class LoweringTable:
    """Operator name to lowering.  `@table.lower("take")` registers a rule and checks its signature."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.entries: dict[str, Lowering] = {}

    def lower(self, *names: str, when: Rule | None = None) -> Callable[[Rule], Rule]:
        """Register one rule for operators of equal signature."""

        def register(rule: Rule) -> Rule:
            for name in names:
                op = get(name)
                check_rule(op, rule, f"{self.target} lowering of {name}")
                if when is not None:
                    check_rule(op, when, f"{self.target} claim of {name}")
                plugin = plugins.loading()
                if plugin is not None and plugin.group == plugins.LOWERINGS and "." not in name:
                    raise IrcError(f"a plug-in lowers operators of plug-ins; {name} is irc's own")
                if name in self.entries:
                    other = self.entries[name].rule.__module__
                    raise IrcError(f"{self.target} has two lowerings of {name}: {other} and {rule.__module__}")
                self.entries[name] = Lowering(rule, when)
                plugins.registered(rule.__module__, partial(self.entries.pop, name, None))
            return rule

        return register

    def find(self, name: str) -> Lowering | None:
        """The entry of an operator; for one of a plug-in, rules that plug-ins have for this target are loaded first."""
        entry = self.entries.get(name)
        if entry is None and "." in name:
            plugins.load_group(plugins.LOWERINGS, self.target)
            entry = self.entries.get(name)
        return entry


@dataclass(frozen=True)
class Options:
    """Base of a target's options; the fields are what `name{key=value}` may set."""

    def text(self) -> str:
        """`{key=value,...}` of the fields that differ from their defaults, or the empty string."""
        changed = [
            f"{f.name}={_spell(getattr(self, f.name))}"
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default
        ]
        return "{" + ",".join(changed) + "}" if changed else ""


def _spell(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Target(ABC):
    """A place to run models.  irc's own stand in `targets/__init__.py`, those of plug-ins in the group `irc.targets`.

    The first line of a subclass's docstring is what `irc targets` shows.  `requires` are modules that must be there;
    `per_shape`: `compile` needs every size to be a number.  What `irc.testing` knows of its engine: `ulps` are errors
    of operators where greater than usual, in units in the last place, and `deviations` the cases whose results
    are otherwise, each with the reason.
    """

    name: ClassVar[str]
    options_class: ClassVar[type[Options]] = Options
    per_shape: ClassVar[bool] = False
    holds_any_value: ClassVar[bool] = False
    requires: ClassVar[tuple[str, ...]] = ()
    deviations: ClassVar[Mapping[str, str]] = {}
    ulps: ClassVar[Mapping[str, float]] = {}

    def __init__(self, options: Options | None = None) -> None:
        self.options = options if options is not None else self.options_class()

    @property
    def spec(self) -> str:
        return self.name + self.options.text()

    @abstractmethod
    def claims(self, node: Node) -> str | None:
        """None if the target lowers the node natively, else why not.  Decided from types and attributes alone."""

    @abstractmethod
    def compile(self, model: Model, entry: str, state: dict[str, Any]) -> Program:
        """See `runtime.backend.Backend`."""

    @abstractmethod
    def load(self, folder: Path, model: Model, entry: str, state: dict[str, Any]) -> Program:
        """See `runtime.backend.Backend`."""

    @abstractmethod
    def to_numpy(self, array: Any) -> Any:
        """An owned NumPy copy of one of the target's arrays."""

    @abstractmethod
    def dtype_of(self, array: Any) -> DType | None:
        """Element type of one of the target's arrays; None if `array` is not one."""

    def to_device(self, array: Any) -> Any:
        """The target's own array with the contents of a NumPy array; itself where the target takes NumPy's."""
        return array

    def wait(self, arrays: Sequence[Any]) -> None:
        """Return when these arrays of the target are there; a target that is never ahead of its caller need not."""
        return

    def memory(self, program: Program, call: Callable[[], object]) -> int | None:
        """Bytes on the device at the peak of `call`, which runs `program`; weights included; None if unknown."""
        return None

    @abstractmethod
    def versions(self) -> dict[str, str]:
        """Versions that compiled code depends on."""

    @abstractmethod
    def devices(self) -> Sequence[str]:
        """Names of the devices there are."""

    def claim_by_table(self, table: LoweringTable, node: Node, ctx: Any) -> str | None:
        """The usual `claims`: an entry exists and its `when` does not object."""
        entry = table.find(node.op.name)
        if entry is None:
            return f"{self.name} has no lowering of {node.op.name}"
        if entry.when is None:
            return None
        facts = [None if v is None else v.fact for v in node.operands]
        try:
            reason = entry.when(ctx, *node.op.group(facts), **node.keywords)
        except Refusal as refusal:
            return str(refusal)
        return None if reason is None else str(reason)


def options_from(cls: type[Options], values: dict[str, str], target: str) -> Options:
    """Options from text values; IrcError names an unknown key or a value of the wrong kind."""
    fields = {f.name: f for f in dataclasses.fields(cls)}
    out: dict[str, Any] = {}
    for key, text in values.items():
        if key not in fields:
            raise IrcError(f"target {target} has no option {key!r}{did_you_mean(key, fields)}")
        default = fields[key].default
        if isinstance(default, bool):
            if text not in ("true", "false"):
                raise IrcError(f"option {key} of target {target} must be true or false, got {text!r}")
            out[key] = text == "true"
        elif isinstance(default, int):
            try:
                out[key] = int(text)
            except ValueError:
                raise IrcError(f"option {key} of target {target} must be a number, got {text!r}") from None
        else:
            out[key] = text
        choices = fields[key].metadata.get("choices")
        if choices and out[key] not in choices:
            known = ", ".join(map(str, choices))
            raise IrcError(f"option {key} of target {target} must be one of {known}, got {text!r}")
    return cls(**out)
