"""Staging: which nodes of a graph run next as one device function, and what the host must do before it can go on.

A graph needs stages where types hang on run-time values (late nodes, `bind_dim`) or values are no tensors of numbers
(sequences, optionals, strings).  `next_stage` takes what is left of a graph and what is known of the values at hand; it
gives a device function that is typed for certain, the host's work after it, and what is left then.  Running stages is
the runtime's work.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..ir import dims as sizes
from ..ir import late
from ..ir.build import Builder
from ..ir.data import INLINE_LIMIT, Data
from ..ir.dims import Size
from ..ir.errors import Diagnostic, InferenceError, UnsupportedError
from ..ir.facts import Fact, NeedsInts, data_of_ints, fact_of_data
from ..ir.graph import Constant, Graph, Node, Value
from ..ir.model import Function, Model
from ..ir.settled import settled
from ..ir.types import NeedsRank, TensorType, Type
from .left import Left, rounded_sizes
from .special import CONTROL, has_special_inside, is_special, is_tensor, mentioned
from .specialize import Step, _run, _Scope, _Specializer


@dataclass(frozen=True)
class Stage:
    """One step of a run.

    `model`, if there is one, has a device function `main` from `inputs` to `outputs`.  Then `host` nodes run in order.
    Then the host reads `reads`; `left` follows, once their contents are known.
    """

    model: Model | None
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    host: tuple[tuple[Node, Mapping[str, Size]], ...]
    reads: tuple[Value, ...]
    left: Left


def next_stage(source: Model, left: Left, known: Mapping[Value, Type]) -> Stage:
    """The next stage.  `known` has the values at hand with their concrete types.

    InferenceError for a node that cannot be typed even now.
    """
    writer = _Writer(source, left, known)
    at_hand = writer.reads_at_hand()
    if at_hand:
        return Stage(None, (), (), (), at_hand, left)
    try:
        writer.write_all(within=True)
    except _NeedsHost:
        writer = _Writer(source, left, known)
        writer.write_all(within=False)
    return writer.stage()


class _NeedsHost(Exception):
    """A special node in a sub-graph cannot be resolved from sizes alone."""


class _Writer(_Specializer):
    """Writes the nodes of one stage into the function `main` of a new model."""

    def __init__(self, source: Model, left: Left, known: Mapping[Value, Type]) -> None:
        super().__init__(source, {})
        self.left = left
        self.known = known
        self.main = Function("main")
        self.build = Builder(self.model, self.main.body)
        self.written: dict[Value, Value] = {}
        self.inputs_used: list[Value] = []
        self.host: list[tuple[Node, Mapping[str, Size]]] = []
        self.host_results: dict[Value, None] = {}
        self.reads: dict[Value, None] = {}
        self.items: list[tuple[Node, int]] = []
        self.aliases = dict(left.aliases)
        self.frozen_now = dict(left.frozen)
        self.sizes = {k: dict(v) for k, v in left.sizes.items()}
        self.models = list(left.models)
        self.symbols = rounded_sizes(left)

    # What is there

    def resolve(self, value: Value) -> Value:
        while (other := self.aliases.get(value)) is not None:
            value = other
        return value

    def has(self, value: Value, *, on_host: bool = False) -> bool:
        """Whether a node of this stage (a host node with `on_host`) may use the value."""
        value = self.resolve(value)
        there = isinstance(value, Constant) or value in self.written or value in self.known or value in self.frozen_now
        return there or (on_host and value in self.host_results)

    def needs(self, node: Node) -> list[Value]:
        inner = [v for graph in node.all_graphs() for v in graph.captures()]
        return [*(v for v in node.operands if v is not None), *inner]

    def value(self, value: Value, scope: _Scope) -> Value:
        """The new value for an old one; values at hand become inputs when they are first used."""
        value = self.resolve(value)
        if (inner := scope.values.get(value)) is not None:
            return inner
        found = self.written.get(value)
        if found is None and (data := self.frozen_now.get(value)) is not None:
            found = self.written[value] = self.model.inline_constant(data)
        if found is None and value in self.known:
            found = self.written[value] = self.main.body.add_input(self.known[value], value.name)
            self.inputs_used.append(value)
        if found is None and isinstance(value, Constant):
            found = self.constants.get(value)
            if found is None:
                found = self.constants[value] = self.foreign(value)
        if found is None:
            raise KeyError(value)
        return found

    def foreign(self, constant: Constant) -> Value:
        """A constant of a late node's own model."""
        if constant.data is None:
            raise InferenceError(f"the constant {constant.name!r} of a late node is derived")
        if constant.name is None:
            return self.model.inline_constant(constant.data)
        return self.model.add_constant(constant.name, constant.data)

    def fact(self, value: Value, scope: _Scope) -> Fact:
        if not is_tensor(self.resolve(value).type):
            resolved = self.resolve(value)
            return Fact(self.known.get(resolved, resolved.type))
        return self.value(value, scope).fact

    # What happens to a node

    def reads_at_hand(self) -> tuple[Value, ...]:
        """Operands of freeze and bind_dim that can be read before anything runs."""
        wanted = [self.resolve(n.operands[0]) for n, _ in self.left.items if n.op.name in ("freeze", "bind_dim")]  # type: ignore[arg-type]  # both have an operand
        known = {*self.left.frozen, *self.left.rounded}
        return tuple(dict.fromkeys(v for v in wanted if v in self.known and v not in known))

    def write_all(self, *, within: bool) -> None:
        """Write what can run now.  `within`: sub-graphs whose late nodes hang on sizes alone are written whole."""
        work = list(reversed(self.left.items))
        while work:
            node, origin = work.pop()
            if not (mentioned(node) <= self.sizes[origin].keys()) or not all(
                self.has(v, on_host=True) for v in self.needs(node)
            ):
                self.items.append((node, origin))
            elif is_special(node) or (not within and has_special_inside(node)):
                work.extend(reversed(self.special(node, origin)))
            elif all(self.has(v) for v in self.needs(node)):
                scope = _Scope(self.main, self.sizes[origin])
                _run(self.whole_node(node, self.build, scope))
                self.written.update((r, scope.values[r]) for r in node.results)
            else:
                self.items.append((node, origin))

    def graph(self, old: Graph, new: Graph, scope: _Scope) -> Step:
        """A sub-graph; its late nodes are written as what they stand for, or it needs the host."""
        build = Builder(self.model, new)
        work: list[tuple[Node, _Scope]] = [(n, scope) for n in reversed(list(old.nodes))]
        while work:
            node, where = work.pop()
            if not is_special(node):
                yield from self.whole_node(node, build, where)
            elif node.op.name == "freeze":
                data = self.contents(self.value(node.operands[0], where))  # type: ignore[arg-type]  # it has one
                if data is None:
                    raise _NeedsHost
                scope.values[node.result] = self.model.inline_constant(data)
            elif node.op.name == "onnx":
                work.extend(reversed(self.late_nodes(node, where)))
            else:
                raise _NeedsHost
        new.set_outputs([self.value(self.resolve(v), scope) for v in old.outputs])

    def late_nodes(self, node: Node, scope: _Scope) -> list[tuple[Node, _Scope]]:
        """The nodes that a late node of a sub-graph stands for."""
        k = node.keywords
        try:
            model = self.materialized(node, scope)
        except (NeedsInts, NeedsRank) as error:
            raise _NeedsHost from error
        given = [*(v for v in node.operands if v is not None), *late.captures(k["graphs"])]
        self.models.append(model)
        self.aliases.update(zip(model.main.inputs, given, strict=True))
        self.aliases.update(zip(node.results, model.main.outputs, strict=True))
        inner = _Scope(scope.function, dict(scope.sizes) if any(node.all_graphs()) else {}, scope.values, scope.bound)
        return [(n, inner) for n in model.main.body.nodes]

    def materialized(self, node: Node, scope: _Scope) -> Model:
        """The model of a late node; contents of small operands are worked out only if types do not suffice."""
        k = node.keywords
        kind = (k["domain"], k["type"], k["version"], k["attributes"], k["graphs"])
        facts = [None if v is None else self.fact(v, scope) for v in node.operands]
        try:
            return late.materialize(*kind, facts, self.source)
        except (NeedsInts, NeedsRank):
            for i, value in enumerate(node.operands):
                if value is None or not self.readable(value, scope):
                    continue
                if (data := self.contents(self.value(value, scope))) is not None:
                    facts[i] = fact_of_data(data)
            return late.materialize(*kind, facts, self.source)
        except InferenceError as error:
            raise type(error)(f"{node.label}: {error}") from error

    def contents(self, value: Value) -> Data | None:
        """Contents of a written value that hangs on sizes and constants alone."""
        fact = value.fact
        if fact.data is not None:
            return fact.data
        return data_of_ints(fact.tensor, fact.ints) or settled(value, self.model)

    def special(self, node: Node, origin: int) -> list[tuple[Node, int]]:
        """Deal with a special node whose operands are there; nodes that come in its place."""
        match node.op.name:
            case "freeze" | "bind_dim":
                self.bind(node, origin)
            case "onnx":
                if all(self.has(v) for v in self.needs(node)):
                    return self.typed(node, origin)
                self.items.append((node, origin))
            case _:
                if any(node.all_graphs()) and node.op.name not in CONTROL:
                    raise UnsupportedError([_in_body(node)])
                self.host.append((node, self.sizes[origin]))
                self.host_results.update(dict.fromkeys(node.results))
        return []

    def bind(self, node: Node, origin: int) -> None:
        operand = self.resolve(node.operands[0])  # type: ignore[arg-type]  # it has one
        data = self.frozen_now.get(operand)
        if data is None and node.op.name == "bind_dim" and operand in self.left.rounded:
            self.sizes[origin][node.keywords["dim"]] = self.left.rounded[operand]
            return
        if data is None and operand not in self.host_results:
            data = self.contents(self.value(operand, _Scope(self.main, {})))
        if data is None:
            self.reads[operand] = None
            self.items.append((node, origin))
        elif node.op.name == "freeze":
            self.frozen_now[node.result] = data
        else:
            size = int(data.numpy().reshape(()))
            if size < 0:
                raise InferenceError(f"{node.label}: the size {node.keywords['dim']} must not be negative, got {size}")
            self.sizes[origin][node.keywords["dim"]] = size

    def typed(self, node: Node, origin: int) -> list[tuple[Node, int]]:
        """The nodes that a late node stands for."""
        scope = _Scope(self.main, {})
        k = node.keywords
        try:
            model = self.materialized(node, scope)
        except (NeedsInts, NeedsRank):
            small = [self.resolve(v) for v in node.operands if v is not None and self.readable(v, scope)]
            if not small:
                raise
            self.reads.update(dict.fromkeys(small))
            self.items.append((node, origin))
            return []
        number = max(self.sizes) + 1
        # Sub-graphs that come along mention the sizes of where the late node stood.
        bound = {n.keywords["dim"] for n in model.main.body.walk() if n.op.name == "bind_dim"}
        outer = self.sizes[origin] if any(node.all_graphs()) else {}
        outer = {**{s: sizes.symbol(s) for s in self.symbols}, **outer}
        self.sizes[number] = {name: size for name, size in outer.items() if name not in bound}
        self.models.append(model)
        given = [*(v for v in node.operands if v is not None), *late.captures(k["graphs"])]
        self.aliases.update(zip(model.main.inputs, given, strict=True))
        self.aliases.update(zip(node.results, model.main.outputs, strict=True))
        return [(n, number) for n in model.main.body.nodes]

    def readable(self, value: Value, scope: _Scope) -> bool:
        """Whether reading the value could tell more of it."""
        fact = self.fact(value, scope)
        if not isinstance(fact.type, TensorType) or fact.data is not None or fact.type.dtype.is_string:
            return False
        return isinstance(fact.type.size, int) and fact.type.size <= INLINE_LIMIT

    # The result

    def stage(self) -> Stage:
        wanted = [v for node, _ in (*self.items, *self.host) for v in self.needs(node)]
        wanted += [*self.reads, *self.left.outputs]
        here = self.inputs_used
        outputs = [
            v
            for v in dict.fromkeys(map(self.resolve, wanted))
            if v in self.written and v not in here and v not in self.frozen_now
        ]
        results = {v: self.written[v] for v in outputs}
        left = Left(
            tuple(self.items), self.left.outputs, self.sizes, self.aliases, self.frozen_now, tuple(self.models),
            self.left.rounded,
        )  # fmt: skip
        model = None
        if outputs:
            self.main.body.set_outputs(list(results.values()))
            self.main.output_names = [f"y{i}" for i in range(len(outputs))]
            self.main.dims = sorted(self.symbols)
            self.model.add_function(self.main)
            model = self.model
        elif not self.host and not self.reads and self.items:
            raise InferenceError(f"{self.items[0][0].label} waits for a value that nothing computes")
        return Stage(model, tuple(here), tuple(outputs), tuple(self.host), tuple(self.reads), left)


def _in_body(node: Node) -> Diagnostic:
    return Diagnostic("unsupported", f"the body of {node.label} needs the host")
