"""Reverse-mode differentiation of graphs, by the `vjp` rules of operators.

A cotangent of a value is the derivative of a scalar in that value's dims and type.  A composite without a rule is
differentiated through its decomposition.  Only real floating-point values have cotangents.  Time and nodes are linear
in the nodes between the wanted values and the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

from . import dims as sizes
from .build import Builder, decompose
from .clone import copy_graph
from .dims import Size
from .errors import InferenceError, IrcError
from .graph import Graph, Node, Value
from .operators import Trait
from .types import TensorType


def gradients(
    build: Builder,
    outputs: Sequence[Value],
    wanted: Sequence[Value],
    cotangents: Sequence[Value] | None = None,
    *,
    constants: Sequence[Value] = (),
) -> tuple[Value, ...]:
    """Nodes at `build` for the cotangents of `wanted`, given those of `outputs` (default: ones, the gradient of a sum).

    Each wanted value counts as a variable of its own: what it was computed from does not matter, nor what `constants`
    were.  One that the outputs do not depend on gets zeros.  IrcError names every operator in between that cannot be
    differentiated, and values without a derivative.
    """
    for value in (*outputs, *wanted):
        if not _has_cotangent(value):
            name = value.name or "a value"
            raise IrcError(f"{name} of type {value.type} has no derivative: it must be a float tensor")
    sweep = _Sweep(build, set(wanted), {})
    given = cotangents if cotangents is not None else [build.full(1.0, v.dtype, v.dims) for v in outputs]
    for value, cotangent in zip(outputs, given, strict=True):
        sweep.add(value, cotangent)
    sweep.through(between(outputs, {*wanted, *constants}))
    if sweep.refused:
        listed = "; ".join(f"{label}: {why}" for label, why in sweep.refused.items())
        raise IrcError(f"cannot be differentiated: {listed}")
    return tuple(_or_zeros(build, value, sweep.total(value)) for value in wanted)


def _has_cotangent(value: Value) -> bool:
    return isinstance(value.type, TensorType) and value.type.dtype.is_float and value.type.dims is not None


def _or_zeros(build: Builder, like: Value, cotangent: Value | None) -> Value:
    return build.full(0.0, like.dtype, like.dims) if cotangent is None else cotangent


def _needs(node: Node) -> list[Value]:
    """Operands, and what sub-graphs take from outside."""
    inner = [v for graph in node.all_graphs() for v in graph.captures()]
    return [*(v for v in node.operands if v is not None), *inner]


def between(outputs: Iterable[Value], variables: set[Value]) -> list[Node]:
    """Nodes that the outputs are computed by without going past a variable, in an order of execution."""
    done: dict[Node, None] = {}
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(v.node, False) for v in outputs if v.node is not None and v not in variables]
    while stack:
        node, ready = stack.pop()
        if ready:
            done[node] = None
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            sources = (v.node for v in _needs(node) if v not in variables)
            stack.extend((source, False) for source in sources if source is not None and source not in seen)
    return list(done)


class Refusal(Exception):
    """A `vjp` rule cannot; the message says why."""


class VjpContext:
    """What a `vjp` rule may ask.  It returns one cotangent an operand (a tuple for a variadic group, None for none).

    `cotangents` are those of `results`, None for a result that is no float tensor.  For an ELEMENTWISE operator a rule
    may return cotangents of the result's dims: sums over repeated axes are done after it.
    """

    def __init__(self, sweep: _Sweep, node: Node, cotangents: tuple[Any, ...]) -> None:
        self.build = sweep.build
        self.results = node.results
        self.cotangents = cotangents
        self._sweep = sweep
        self._captured: list[Value] = []

    @property
    def result(self) -> Value:
        (only,) = self.results
        return only

    @property
    def cotangent(self) -> Value:
        """That of the only result."""
        only: Value = self.cotangents[0]
        return only

    def refuse(self, why: str) -> NoReturn:
        raise Refusal(why)

    def zeros(self, like: Value) -> Value:
        return _or_zeros(self.build, like, None)

    def repeats(self, size: Size, result: Size) -> bool:
        """Whether an axis of that size repeats to the result's; for 1 and a symbolic size yes, as a sum is harmless."""
        verdict = sizes.equal(size, result)
        if verdict is None and size == 1:
            return True
        if verdict is None:
            self.refuse(f"whether an axis of size {size} repeats to {result} is known only at run time")
        return not verdict

    def pullbacks(self, graphs: Sequence[Graph]) -> tuple[Graph, ...]:
        """For each graph without inputs: a graph that computes it again and gives cotangents of what they capture."""
        sweep = self._sweep
        self._captured = [v for v in dict.fromkeys(c for g in graphs for c in g.captures()) if v in sweep.active]

        def pullback(graph: Graph) -> Callable[[Builder], Any]:
            def body(inner: Builder) -> Any:
                mapping: dict[Value, Value] = {}
                copy_graph(graph, inner.graph, mapping)
                again = _Sweep(inner, set(sweep.active), sweep.refused)
                for value, cotangent in zip(graph.outputs, self.cotangents, strict=True):
                    if _has_cotangent(value):
                        again.add(mapping.get(value, value), cotangent)
                again.through(list(inner.graph.nodes))
                return tuple(_or_zeros(inner, v, again.total(v)) for v in self._captured)

            return body

        return tuple(self.build.region((), pullback(graph)) for graph in graphs)

    def to_captures(self, cotangents: Value | Sequence[Value]) -> None:
        """Hand over what the graphs of `pullbacks` give."""
        given = (cotangents,) if isinstance(cotangents, Value) else cotangents
        for value, cotangent in zip(self._captured, given, strict=True):
            self._sweep.add(value, cotangent)


class _Sweep:
    """Cotangents on their way back.  `parts` has those of each value that are not summed yet."""

    def __init__(self, build: Builder, variables: set[Value], refused: dict[str, str]) -> None:
        self.build = build
        self.variables = variables
        self.active = set(variables)
        self.refused = refused
        self.parts: dict[Value, list[Value]] = {}

    def add(self, value: Value, cotangent: Value) -> None:
        self.parts.setdefault(value, []).append(cotangent)

    def total(self, value: Value) -> Value | None:
        """The sum of what came; None if nothing did."""
        parts = self.parts.pop(value, [])
        if not parts:
            return None
        out = parts[0]
        for part in parts[1:]:
            out = self.build.add(out, part)
        return out

    def through(self, nodes: Sequence[Node]) -> None:
        """From the results of these nodes, in an order of execution, back to their operands."""
        for node in nodes:
            if any(v in self.active for v in _needs(node)):
                self.active.update(v for v in node.results if _has_cotangent(v))
        for node in reversed(nodes):
            if any(v in self.active and v in self.parts and v not in self.variables for v in node.results):
                try:
                    self.back(node)
                except (Refusal, InferenceError) as reason:
                    self.refused.setdefault(f"{node.op.name} {node.label!r}", str(reason))

    def back(self, node: Node) -> None:
        """Through one node."""
        totals = [None if v in self.variables else self.total(v) for v in node.results]
        if node.op.vjp is not None:
            cotangents = tuple(
                _or_zeros(self.build, v, t) if _has_cotangent(v) else None
                for v, t in zip(node.results, totals, strict=True)
            )
            self.by_rule(node, VjpContext(self, node, cotangents))
        elif node.op.decompose is not None:
            self.by_decomposition(node, totals)
        else:
            raise Refusal("the operator has no vjp rule")

    def by_rule(self, node: Node, ctx: VjpContext) -> None:
        assert node.op.vjp is not None
        out = node.op.vjp(ctx, *node.grouped, **node.keywords)
        rows = (out,) if len(node.op.operands) == 1 else (None,) * len(node.op.operands) if out is None else out
        for operand, cotangent in zip(node.grouped, rows, strict=True):
            if cotangent is None or operand is None:
                continue
            values, parts = (operand, cotangent) if isinstance(operand, tuple) else ((operand,), (cotangent,))
            for value, part in zip(values, parts, strict=True):
                if part is not None and value in self.active:
                    if Trait.ELEMENTWISE in node.op.traits:
                        part = _summed(ctx, part, value.dims)
                    self.add(value, part)

    def by_decomposition(self, node: Node, totals: Sequence[Value | None]) -> None:
        created: list[Node] = []
        build = self.build
        recording = Builder(build.model, build.graph, build.before, location=node.location, on_create=created.append)
        recording._assumptions = build._assumptions
        results = decompose(recording, node.op, node.operands, node.keywords)
        for result, total in zip(results, totals, strict=True):
            if total is not None:
                self.add(result, total)
        self.through(list(created))


def _summed(ctx: VjpContext, cotangent: Value, dims: tuple[Size, ...]) -> Value:
    """The cotangent of an operand of these dims that broadcasting repeated."""
    extra = cotangent.rank - len(dims)
    repeated = [extra + i for i, d in enumerate(dims) if ctx.repeats(d, cotangent.dims[extra + i])]
    axes = (*range(extra), *repeated)
    if not axes:
        return cotangent
    out: Value = ctx.build.reshape(ctx.build.reduce(cotangent, axes=axes, kind="sum"), dims=dims)
    return out
