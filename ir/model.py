"""Functions and models: what is saved, loaded and compiled.  The graphs inside them are in `ir.graph`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from .data import Data
from .dims import Assumption
from .errors import IrcError, did_you_mean
from .graph import Constant, Graph, Location, Node, Value, graphs_inside
from .operators import Trait
from .types import TensorType, Type

__all__ = ["Constant", "Function", "Graph", "Location", "Model", "Node", "Value", "fresh_name", "graphs_inside"]


class Function:
    """A named graph with its own symbolic dims.  Device functions run on a target; host functions are run by irc.

    `assumptions` are relations between dims that typing needed and could not prove; they are checked per shape.
    `input_attributes[i]` holds marks of input i: `role` = "random_key" is filled by the executable, `sharding`, ...
    """

    def __init__(
        self,
        name: str,
        *,
        kind: Literal["device", "host"] = "device",
        public: bool = True,
        dims: Iterable[str] = (),
    ) -> None:
        self.name = name
        self.kind = kind
        self.public = public
        self.dims: list[str] = list(dims)
        self.body = Graph(self)
        self.assumptions: dict[Assumption, None] = {}
        self.input_attributes: list[dict[str, str]] = []
        self.output_names: list[str] = []
        self.metadata: dict[str, str] = {}

    @property
    def inputs(self) -> list[Value]:
        return self.body.inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        return self.body.outputs

    def add_input(self, type_: Type, name: str, **marks: str) -> Value:
        self.input_attributes.append(dict(marks))
        return self.body.add_input(type_, name)

    @property
    def input_names(self) -> list[str]:
        return [v.name or f"input{i}" for i, v in enumerate(self.inputs)]

    @property
    def is_late(self) -> bool:
        """Some node is typed only at run time (operator with the LATE trait, or a value without rank)."""
        for node in self.body.walk():
            if Trait.LATE in node.op.traits:
                return True
            if any(isinstance(r.type, TensorType) and r.type.dims is None for r in node.results):
                return True
        return any(isinstance(v.type, TensorType) and v.type.dims is None for v in self.inputs)

    def __repr__(self) -> str:
        return f"<function @{self.name}>"


@dataclass(eq=False)
class Model:
    """Functions, constants, the `init` graph that derives constants, and metadata.  The unit of saving and compiling.

    `constants` are the named ones, in order; small unnamed ones are made by `inline_constant` and belong to no table.
    `derived[i]` is the constant that output i of `init` defines.
    """

    name: str = "model"
    functions: dict[str, Function] = field(default_factory=dict)
    constants: dict[str, Constant] = field(default_factory=dict)
    metadata: dict[str, str] = field(default_factory=dict)
    init: Graph = field(init=False)
    derived: list[Constant] = field(default_factory=list)
    _inline: dict[tuple[Any, ...], Constant] = field(default_factory=dict, repr=False)
    _suffixes: dict[str, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.init = Graph(self)

    @property
    def main(self) -> Function:
        """The default entry: `main`, or the only public function."""
        return self.entry("main") if "main" in self.functions else self.entry(None)

    def entry(self, name: str | None = None) -> Function:
        """The public function called `name` (default: `main`, or the only one)."""
        public = {n: f for n, f in self.functions.items() if f.public}
        if name is None:
            name = "main" if "main" in public or len(public) != 1 else next(iter(public))
        if name not in public:
            raise IrcError(f"model {self.name!r} has no entry {name!r}{did_you_mean(name, public)}")
        return public[name]

    def add_function(self, function: Function) -> Function:
        if function.name in self.functions:
            raise IrcError(f"the model already has a function @{function.name}")
        self.functions[function.name] = function
        return function

    def add_constant(self, name: str, data: Data) -> Constant:
        """A named constant; a taken name gets a numbered suffix."""
        name = self._fresh(name)
        self.constants[name] = constant = Constant(self, name, data.type, data)
        return constant

    def _fresh(self, base: str) -> str:
        """A name no constant has.  Remembers the last suffix of each base, so many equal bases take linear time."""
        if base not in self.constants:
            return base
        i = self._suffixes.get(base, 0) + 1
        while f"{base}_{i}" in self.constants:
            i += 1
        self._suffixes[base] = i
        return f"{base}_{i}"

    def inline_constant(self, data: Data) -> Constant:
        """The unnamed constant with these contents, made once; large contents become a named constant."""
        if not data.is_inline:
            return self.add_constant("constant", data)
        key = (data.dtype, data.shape, data.tobytes())
        if key not in self._inline:
            self._inline[key] = Constant(self, None, data.type, data)
        return self._inline[key]

    def add_derived(self, name: str, value: Value) -> Constant:
        """A constant that `init` computes: `value` must be a result of a node of `init`."""
        name = self._fresh(name)
        self.init.add_output(value)
        self.constants[name] = constant = Constant(self, name, value.type, None)
        self.derived.append(constant)
        return constant

    def derivation(self, constant: Constant) -> Value | None:
        """The value of `init` that a derived constant stands for; None for any other constant."""
        for _ in range(2):
            if constant.index < len(self.derived) and self.derived[constant.index] is constant:
                return self.init._outputs[constant.index]
            for index, derived in enumerate(self.derived):  # the list has changed since these were set
                derived.index = index
        return None

    def clear_init(self) -> None:
        """Empty `init`, once every derived constant has contents of its own."""
        if any(c.data is None for c in self.derived):
            raise IrcError("init still derives constants")
        self.derived = []
        for graph in list(graphs_inside(self.init)):
            graph.set_outputs(())
            for node in graph.nodes:
                for index, operand in enumerate(node.operands):
                    if operand is not None:
                        operand._uses.pop((node, index), None)
        self.init = Graph(self)

    def graphs(self) -> Iterator[Graph]:
        """Every graph, inner ones first; `init` comes before the functions."""
        for root in [self.init, *(f.body for f in self.functions.values())]:
            yield from graphs_inside(root)

    def nodes(self) -> Iterator[Node]:
        """Every node of every function, sub-graphs included; `init` not."""
        for function in self.functions.values():
            yield from function.body.walk()


def fresh_name(base: str, taken: Any) -> str:
    """`base`, or `base_1`, `base_2`, ... whichever is not in `taken`."""
    if base not in taken:
        return base
    i = 1
    while f"{base}_{i}" in taken:
        i += 1
    return f"{base}_{i}"
