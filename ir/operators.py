"""How an operator is defined, and the one table of all operators.  The definitions live in `ir/ops/<family>.py`."""

from __future__ import annotations

import dataclasses
import enum
import importlib
import inspect
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from . import plugins
from .attributes import AttributeKind, Attributes
from .dtypes import DType
from .errors import InferenceError, IrcError, did_you_mean

FAMILIES: Final = (
    "elementwise", "shape", "indexing", "reduction", "window", "linalg", "convolution", "control", "random", "sort",
    "fft", "quantization", "normalization", "attention", "recurrent", "resize", "sequence", "text", "detection",
    "training", "classical",
)  # fmt: skip
"""The families of the grid.  Every layer names its files after them."""


class Trait(enum.Flag):
    """What passes and targets may assume of an operator without knowing it."""

    PURE = enum.auto()
    """Same operands, same results, nothing else: may be merged, moved, folded, dropped."""
    EFFECTS = enum.auto()
    """Happens in node order and is never dropped, merged or moved (hooks, host calls, traps, bind_dim, freeze)."""
    ELEMENTWISE = enum.auto()
    """Operands broadcast as in NumPy; every result element depends on one element of each operand."""
    COMMUTATIVE = enum.auto()
    """The first two operands may change places."""
    HOST = enum.auto()
    """Only in host functions."""
    LATE = enum.auto()
    """Only in late functions; legalization at run time replaces it."""
    MOVES_DATA = enum.auto()
    """Results hold only elements of the operands, so folding is exact for every dtype."""
    EXACT = enum.auto()
    """Real results are rounded correctly or not at all, so every machine computes the same bits."""


PURE: Final = Trait.PURE
EFFECTS: Final = Trait.EFFECTS
ELEMENTWISE: Final = Trait.ELEMENTWISE
COMMUTATIVE: Final = Trait.COMMUTATIVE
HOST: Final = Trait.HOST
LATE: Final = Trait.LATE
MOVES_DATA: Final = Trait.MOVES_DATA
EXACT: Final = Trait.EXACT


@dataclass(frozen=True, slots=True)
class Constraint:
    """A set of element types that an operand may have."""

    name: str
    accepts: Callable[[DType], bool]


ANY: Final = Constraint("any element type", lambda d: True)
TENSOR: Final = Constraint("a numeric or bool type", lambda d: not d.is_string)
FLOAT: Final = Constraint("a floating-point type", lambda d: d.is_float)
INTEGER: Final = Constraint("an integer type", lambda d: d.is_integer)
BOOL: Final = Constraint("bool", lambda d: d.is_bool)
NUMERIC: Final = Constraint("a numeric type", lambda d: d.is_float or d.is_integer or d.is_complex)
REAL: Final = Constraint("an integer or floating-point type", lambda d: d.is_float or d.is_integer)
ORDERED: Final = Constraint("an ordered type", lambda d: d.is_float or d.is_integer or d.is_bool)
INEXACT: Final = Constraint("a floating-point or complex type", lambda d: d.is_float or d.is_complex)
COMPLEX: Final = Constraint("a complex type", lambda d: d.is_complex)
LOGICAL: Final = Constraint("bool or an integer type", lambda d: d.is_bool or d.is_integer)
STRING: Final = Constraint("string", lambda d: d.is_string)


@dataclass(frozen=True, slots=True)
class OperandSpec:
    """One declared operand.  `variadic` groups take one tuple; several groups of one operator have equal lengths."""

    name: str = ""
    constraint: Constraint = TENSOR
    optional: bool = False
    variadic: bool = False
    any_type: bool = False
    """Sequences and optionals are allowed too."""

    def __getitem__(self, constraint: Constraint) -> OperandSpec:
        return dataclasses.replace(self, constraint=constraint)

    def __or__(self, other: None) -> OperandSpec:
        return dataclasses.replace(self, optional=True)


@dataclass(frozen=True, slots=True)
class RegionSpec:
    """One declared sub-graph of a control-flow or custom-bodied operator; `variadic` takes a tuple of graphs (case)."""

    name: str = ""
    optional: bool = False
    variadic: bool = False

    def __or__(self, other: None) -> RegionSpec:
        return dataclasses.replace(self, optional=True)


if TYPE_CHECKING:
    Operand: Any
    Variadic: Any
    AnyValue: Any
    AnyValues: Any
    Region: Any
    Regions: Any
else:
    Operand = OperandSpec()
    Variadic = OperandSpec(variadic=True)
    AnyValue = OperandSpec(any_type=True, constraint=ANY)
    AnyValues = OperandSpec(any_type=True, variadic=True, constraint=ANY)
    Region = RegionSpec()
    Regions = RegionSpec(variadic=True)

Rule = Callable[..., Any]
RULES: Final = ("infer", "reference", "decompose", "vjp", "bucket")
"""The functions of a definition."""


class Operator:
    """One operator: its signature, traits and rules.  Everything that needs to know an operator asks this object.

    Rules are functions `f(ctx, *operands, **attributes)`; graphs are passed as keywords beside the attributes.
    `infer` sees and returns facts; `reference` sees and returns NumPy arrays; `decompose` sees and returns values.
    `vjp` sees the values of operands and, in its ctx, results and their cotangents; it returns a cotangent an operand.
    `bucket` sees values of which only a beginning along some axes counts and returns such results; see `ir.buckets`.
    """

    def __init__(
        self,
        name: str,
        family: str,
        doc: str,
        traits: Trait,
        since: int,
        operands: Sequence[OperandSpec],
        regions: Sequence[RegionSpec],
        fields: Sequence[tuple[str, AttributeKind, Any]],
        rules: dict[str, Rule],
    ) -> None:
        self.name = name
        self.family = family
        self.doc = doc
        self.traits = traits
        self.since = since
        self.operands = tuple(operands)
        self.regions = tuple(regions)
        self.fields = tuple(fields)
        self.kinds = {name: kind for name, kind, _ in fields}
        self.infer: Rule | None = rules.get("infer")
        self.reference: Rule | None = rules.get("reference")
        self.decompose: Rule | None = rules.get("decompose")
        self.vjp: Rule | None = rules.get("vjp")
        self.bucket: Rule | None = rules.get("bucket")
        self.groups = sum(o.variadic for o in self.operands)

    @property
    def is_composite(self) -> bool:
        """CamelCase operators are composites: no target is forced to know them."""
        return self.name[self.name.rfind(".") + 1].isupper()

    @property
    def has_effects(self) -> bool:
        return Trait.EFFECTS in self.traits

    @property
    def is_pure(self) -> bool:
        return Trait.PURE in self.traits

    @cached_property
    def attributes(self) -> type[Attributes]:
        """The frozen dataclass of this operator's attributes."""
        rows = [
            (n, Any, dataclasses.field(default=d)) if d is not dataclasses.MISSING else (n, Any)
            for n, _, d in self.fields
        ]
        return dataclasses.make_dataclass(
            f"{self.name.replace('.', '_')}_attributes", rows, bases=(Attributes,), frozen=True, eq=False, kw_only=True
        )

    def make_attributes(self, values: dict[str, Any]) -> Attributes:
        """Checked attributes with defaults filled in; InferenceError names an unknown, missing or ill-typed one."""
        out = {}
        for name, kind, default in self.fields:
            if name in values:
                out[name] = kind.coerce(values[name], f"attribute {name} of {self.name}")
            elif default is dataclasses.MISSING:
                raise InferenceError(f"{self.name} needs the attribute {name} ({kind})")
        for name in values:
            if name not in self.kinds:
                hint = did_you_mean(name, self.kinds) if self.kinds else "; it has none"
                raise InferenceError(f"{self.name} has no attribute {name!r}{hint}")
        return self.attributes(**out)

    def group(self, operands: Sequence[Any]) -> list[Any]:
        """Flat operands as the rules take them: variadic groups as tuples, absent trailing ones as None."""
        fixed = len(self.operands) - self.groups
        if not self.groups:
            if len(operands) > fixed:
                raise InferenceError(f"{self.name} takes at most {fixed} operands, got {len(operands)}")
            return [*operands, *[None] * (fixed - len(operands))]
        count, rest = divmod(len(operands) - fixed, self.groups)
        if rest or count < 0:
            raise InferenceError(f"{self.name} cannot share {len(operands)} operands out among its groups")
        out: list[Any] = []
        i = 0
        for spec in self.operands:
            if spec.variadic:
                out.append(tuple(operands[i : i + count]))
                i += count
            else:
                out.append(operands[i])
                i += 1
        return out

    def flatten(self, operands: Sequence[Any]) -> list[Any]:
        """The inverse of `group`: one flat list, trailing None dropped."""
        out: list[Any] = []
        for spec, operand in zip(self.operands, operands, strict=False):
            if spec.variadic:
                out.extend(operand if isinstance(operand, tuple | list) else (operand,))
            else:
                out.append(operand)
        if len(operands) > len(self.operands):
            raise InferenceError(f"{self.name} takes {len(self.operands)} operands, got {len(operands)}")
        if not self.groups:
            while out and out[-1] is None:
                out.pop()
        return out

    def __repr__(self) -> str:
        return f"<operator {self.name}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return (get, (self.name,))


_TABLE: dict[str, Operator] = {}
_FOLDED: dict[str, str] = {}
_MODULES: dict[str, str] = {}
_loaded = False


def operator(name: str, *, family: str, traits: Trait, since: int = 1) -> Callable[[type], Operator]:
    """Define the operator `name` from a class: annotations are operands, regions and attributes; functions are rules.

    The rules' parameters are checked against the declaration, so a misspelt or missing one fails at import.
    """

    def define(cls: type) -> Operator:
        namespace = vars(sys.modules[cls.__module__])
        operands: list[OperandSpec] = []
        regions: list[RegionSpec] = []
        fields: list[tuple[str, AttributeKind, Any]] = []
        for key, written in inspect.get_annotations(cls).items():
            annotation = eval(written, namespace) if isinstance(written, str) else written  # our own source text
            if isinstance(annotation, OperandSpec):
                operands.append(dataclasses.replace(annotation, name=key))
            elif isinstance(annotation, RegionSpec):
                regions.append(dataclasses.replace(annotation, name=key))
            else:
                fields.append((key, AttributeKind.of(annotation), cls.__dict__.get(key, dataclasses.MISSING)))
        rules = {r: cls.__dict__[r] for r in RULES if r in cls.__dict__}
        op = Operator(
            name, family, inspect.cleandoc(cls.__doc__ or ""), traits, since, operands, regions, fields, rules
        )
        _check_definition(op)
        plugins.check_name(name, cls.__module__)
        if name in _TABLE:
            raise IrcError(f"operator {name} is defined twice: in {_MODULES[name]} and in {cls.__module__}")
        if (other := _FOLDED.setdefault(name.lower(), name)) != name:
            raise IrcError(
                f"operators {name} ({cls.__module__}) and {other} ({_MODULES[other]}) differ only in case; rename one"
            )
        _TABLE[name] = op
        _MODULES[name] = cls.__module__
        plugins.registered(cls.__module__, lambda: (_TABLE.pop(name), _FOLDED.pop(name.lower()), _MODULES.pop(name)))
        return op

    return define


def _check_definition(op: Operator) -> None:
    if op.family not in FAMILIES:
        raise IrcError(f"operator {op.name}: no family {op.family!r}{did_you_mean(op.family, FAMILIES, 'irc ops')}")
    if op.is_pure == op.has_effects:
        raise IrcError(f"operator {op.name} must be either PURE or have EFFECTS")
    if not op.doc:
        raise IrcError(f"operator {op.name} has no docstring")
    for rule in RULES:
        if (function := getattr(op, rule)) is not None:
            check_rule(op, function, f"{rule} of {op.name}")


def check_rule(op: Operator, rule: Rule, what: str) -> None:
    """Raise IrcError unless `rule` has the calling convention of `op`: (ctx, *operands, **attributes and graphs)."""
    parameters = list(inspect.signature(rule).parameters.values())
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    takes_all = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    keywords = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    takes_all_keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
    if not takes_all and positional[1:] != [o.name for o in op.operands]:
        raise IrcError(
            f"{what}: operands are ({', '.join(o.name for o in op.operands)}), the rule takes {positional[1:]}"
        )
    declared = {name for name, _, _ in op.fields} | {r.name for r in op.regions}
    if keywords - declared or (declared - keywords and not takes_all_keywords):
        raise IrcError(f"{what}: attributes and graphs are {sorted(declared)}, the rule takes {sorted(keywords)}")


def load() -> None:
    """Import the definitions of all families (once)."""
    global _loaded
    if not _loaded:
        _loaded = True
        importlib.import_module(".ops", __package__)


def get(name: str) -> Operator:
    """The operator called `name`; IrcError with a suggestion if there is none, or its plug-in is missing or broken."""
    found = find(name)
    if found is None:
        raise IrcError(f"no operator is called {name!r}{missing_plugin(name) or did_you_mean(name, _TABLE, 'irc ops')}")
    return found


def find(name: str) -> Operator | None:
    """The operator called `name`, or None.  `namespace.Name` loads its plug-in; PluginError if that is broken."""
    load()
    found = _TABLE.get(name)
    if found is None and (namespace := plugins.namespace(name)):
        plugins.load_named(plugins.OPERATORS, namespace)
        found = _TABLE.get(name)
    return found


def missing_plugin(name: str, distribution: str | None = None) -> str:
    """What must be installed so that there is the operator `namespace.Name`; empty if that is not what is missing.

    `distribution` is where the operator came from, if that is known.
    """
    namespace = plugins.namespace(name)
    if not namespace or any(known.startswith(f"{namespace}.") for known in _TABLE):
        return ""
    which = f"pip install {distribution}" if distribution else (
        f"install the distribution that has the entry point {namespace!r} in the group {plugins.OPERATORS}"
    )  # fmt: skip
    return f"; the plug-in of the namespace {namespace!r} is not installed: {which}"


def is_namespace(name: str) -> bool:
    """Whether operators `name.Something` may exist: some are defined, or a plug-in that is installed declares them."""
    load()
    return any(known.startswith(f"{name}.") for known in _TABLE) or bool(plugins.entries(plugins.OPERATORS, name))


def load_plugins() -> list[plugins.Broken]:
    """Define the operators of all plug-ins; those that cannot be loaded."""
    load()
    return plugins.load_group(plugins.OPERATORS)


def all_operators() -> Iterable[Operator]:
    """Every operator of irc and of the plug-ins loaded so far, sorted by family (grid order) and name."""
    load()
    return sorted(_TABLE.values(), key=lambda op: (FAMILIES.index(op.family), op.name))


class Namespace:
    """`owner.sample.Gate` for owners that have a method for every operator: asks `owner` for `sample.Gate`."""

    def __init__(self, owner: Any, name: str) -> None:
        self._owner = owner
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._owner, f"{self._name}.{name}")
