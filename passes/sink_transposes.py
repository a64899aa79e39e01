"""Transposes move towards the outputs, past operators that do not care about the order of axes, where pairs cancel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from ..ir.build import Builder
from ..ir.graph import Constant, Graph, Node, Value
from ..ir.model import Model
from ..ir.operators import Trait
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from .canonicalize.shape import unit_axes
from .manager import Level, Pass, register

Permutation: TypeAlias = tuple[int, ...]


@register
@dataclass(frozen=True)
class SinkTransposes(Pass):
    """Compute islands between transposes in the other order of axes, where that leaves fewer transposes.

    %a = transpose(%x); %b = Relu(add(%a, %c)); %y = transpose(%b)   ->   %y = Relu(add(%x, transpose(%c)))

    Through elementwise operators, concatenate, pad, slice, reverse, reductions and axes of size 1 that come or go.
    Nothing changes where the number of transposes would not fall: an island is what hangs together through such
    operators, and is changed as a whole.  Constants are laid out anew by `fold`.
    """

    name: ClassVar[str] = "sink-transposes"
    level: ClassVar[Level] = Level.CANONICAL

    def run(self, model: Model, rewriter: Rewriter) -> None:
        for function in model.functions.values():
            graphs = {n.graph: None for n in function.body.walk() if n.op.name == "transpose"}
            for graph in graphs:
                if graph is not None:
                    _graph(graph, rewriter)


def _graph(graph: Graph, rewriter: Rewriter) -> None:
    """Try the plans; each leaves what it does not gain from to the next.

    Where a transposed and a plain value meet, either the one is transposed as before, or the other one back.
    Transposes that something else needs too may not be worth moving: the last plan leaves them where they are.
    """
    fixed: set[Node] = set()
    for adapt, leave in ((False, False), (True, False), (True, True)):
        plan = _Plan(graph, adapt, fixed if leave else set())
        plan.apply(rewriter)
        fixed = {v.node for v in plan.wanted if v.node is not None and v.node.op.name == "transpose"}
        if not plan.steps:
            return


@dataclass
class _Island:
    """Transposes that go and come if the values of one island are computed in another order of axes."""

    before: int = 0
    after: int = 0


@dataclass
class _Plan:
    """Which values are computed with permuted axes: value = transpose(what is computed instead, moved[value])."""

    graph: Graph
    adapt: bool
    fixed: set[Node]
    moved: dict[Value, Permutation] = field(default_factory=dict)
    wanted: dict[Value, None] = field(default_factory=dict)
    """Moved values that something needs as they were."""
    steps: dict[Node, tuple[tuple[Value | None, ...], Permutation]] = field(default_factory=dict)
    """Nodes to write anew: their operands, and the permutation of these."""
    parents: dict[Value, Value] = field(default_factory=dict)
    islands: dict[Value, _Island] = field(default_factory=dict)

    def __post_init__(self) -> None:
        adapted: dict[tuple[Value, Permutation, Value], None] = {}
        for node in self.graph.nodes:
            if node.op.name == "transpose" and node not in self.fixed and len(node.operands) == 1:
                self.transpose(node)
            else:
                self.other(node, adapted)
        for value in list(self.moved):
            if any(u.graph is not self.graph if isinstance(u, Node) else True for u, _ in value.uses):
                self.wanted[value] = None
        for value in self.wanted:
            if not _identity(self.moved[value]):
                self.island(value).after += 1
        for _, _, value in adapted:
            self.island(value).after += 1

    def transpose(self, node: Node) -> None:
        (x,) = node.operands
        if x is None or isinstance(x, Constant):
            return
        inner = self.moved.get(x, _in_order(x.rank))
        self.add(node.result, tuple(inner[i] for i in node.keywords["permutation"]), [x] if x in self.moved else [])
        self.steps[node] = (node.operands, ())
        self.island(node.result).before += 1

    def other(self, node: Node, adapted: dict[tuple[Value, Permutation, Value], None]) -> None:
        operands = [v for v in node.operands if v is not None]
        moved = {v: p for v in operands if not _identity(p := self.moved.get(v, ()))}
        if not moved:
            return
        rule = _rule(node)
        permutations = set(moved.values())
        if rule is not None and len(permutations) == 1:
            (permutation,) = permutations
            aligned = rule.aligned(node)
            plain = [v for v in aligned if v not in moved and not _is_free(v)]
            fits = all(v in aligned and v.rank == len(permutation) for v in moved) and (self.adapt or not plain)
            if fits and all(r.is_ranked for r in (v.fact for v in node.results)):
                where = rule.result(node, permutation)
                for result in node.results:
                    self.add(result, where, list(moved))
                self.steps[node] = (node.operands, permutation)
                adapted.update(dict.fromkeys((v, permutation, node.results[0]) for v in plain))
                return
        self.wanted.update(dict.fromkeys(moved))

    def add(self, value: Value, permutation: Permutation, others: list[Value]) -> None:
        self.moved[value] = permutation
        self.parents[value] = value
        self.islands[value] = _Island()
        for other in others:
            a, b = self.root(value), self.root(other)
            if a is not b:
                self.parents[a] = b
                gone, kept = self.islands.pop(a), self.islands[b]
                self.islands[b] = _Island(kept.before + gone.before, kept.after + gone.after)

    def root(self, value: Value) -> Value:
        while self.parents[value] is not value:
            self.parents[value] = self.parents[self.parents[value]]
            value = self.parents[value]
        return value

    def island(self, value: Value) -> _Island:
        return self.islands[self.root(value)]

    def gains(self, value: Value) -> bool:
        island = self.island(value)
        return island.after < island.before

    def apply(self, rewriter: Rewriter) -> None:
        """Write the islands that gain, in order; the old nodes go."""
        rewriter.label = "sink-transposes"
        new: dict[Value, Value] = {}
        old: list[Node] = []
        for node, (operands, permutation) in self.steps.items():
            if not self.gains(node.results[0]):
                continue
            old.append(node)
            if node.op.name == "transpose" and not permutation:
                (x,) = operands
                assert x is not None
                new[node.result] = new.get(x, x)
            else:
                build = rewriter.before(node)
                rule = _rule(node)
                assert rule is not None
                aligned = set(rule.aligned(node, operands))
                given = [
                    v if v not in aligned or v is None else new[v] if v in new else _adapted(build, v, permutation)
                    for v in operands
                ]
                copy = build.create(node.op, given, rule.attributes(node, permutation))
                new.update(zip(node.results, copy.results, strict=True))
            for result in node.results:
                where = self.moved[result]
                if _identity(where):
                    rewriter.replace_uses(result, new[result])
                elif result in self.wanted:
                    back = rewriter.before(node).transpose(new[result], permutation=where)
                    rewriter.replace_uses(result, back)
        for node in reversed(old):
            rewriter.erase(node)


def _in_order(rank: int) -> Permutation:
    return tuple(range(rank))


def _identity(permutation: Permutation) -> bool:
    return permutation == _in_order(len(permutation))


def _is_free(value: Value) -> bool:
    """Costs nothing to lay out anew: constants are, once, and one element has no order."""
    return isinstance(value, Constant) or value.rank == 0


def _adapted(build: Builder, value: Value, permutation: Permutation) -> Value:
    """What, transposed by `permutation`, is `value` with axes of size 1 put in front."""
    if value.rank == 0:
        return value
    dims = (1,) * (len(permutation) - value.rank) + value.dims
    place = [permutation.index(i) for i in range(len(permutation))]
    kept = [i for i in place if dims[i] != 1]
    if kept == sorted(kept):
        changed: Value = build.reshape(value, dims=tuple(dims[i] for i in place))
        return changed
    full = value if len(dims) == value.rank else build.reshape(value, dims=dims)
    turned: Value = build.transpose(full, permutation=tuple(place))
    return turned


# ------------------------------------------------------------------------------------- operators that do not mind order


@dataclass(frozen=True)
class _Rule:
    """How an operator is written for permuted operands; axis i of the old value is axis permutation[i] of the new."""

    attributes: Callable[[Node, Permutation], dict[str, Any]]
    operands: Callable[[Sequence[Value | None]], Sequence[Value | None]] = lambda operands: operands[:1]
    """Those whose axes are the result's."""
    result: Callable[[Node, Permutation], Permutation] = lambda node, permutation: permutation

    def aligned(self, node: Node, operands: Sequence[Value | None] | None = None) -> list[Value]:
        return [v for v in self.operands(node.operands if operands is None else operands) if v is not None]


def _rule(node: Node) -> _Rule | None:
    if any(node.all_graphs()) or not all(isinstance(r.type, TensorType) for r in node.results):
        return None
    if Trait.ELEMENTWISE in node.op.traits:
        return _ELEMENTWISE if not _AXES & set(node.attributes.as_dict()) else None
    if node.op.name == "reshape" and _kept(node) is None:
        return None
    if node.op.name == "reduce" and (node.keywords["kind"] == "custom" or len(node.results) != 1):
        return None
    return _RULES.get(node.op.name)


def _lists(*names: str) -> _Rule:
    """Attributes with one entry an axis."""

    def attributes(node: Node, permutation: Permutation) -> dict[str, Any]:
        found = node.attributes.as_dict()
        for name in names:
            found[name] = tuple(found[name][permutation.index(i)] for i in range(len(permutation)))
        return found

    return _Rule(attributes)


def _axes(node: Node, permutation: Permutation) -> dict[str, Any]:
    found = node.attributes.as_dict()
    rank = len(permutation)
    return {**found, "axes": tuple(sorted(permutation[a % rank] for a in found["axes"]))}


def _reduced(node: Node, permutation: Permutation) -> Permutation:
    """The order of the axes that are left."""
    if node.attributes.as_dict().get("keepdims", False):
        return permutation
    rank = len(permutation)
    gone = {a % rank for a in node.keywords["axes"]}
    left = [permutation[i] for i in range(rank) if i not in gone]
    return tuple(sorted(left).index(p) for p in left)


def _kept(node: Node) -> list[int | None] | None:
    """Where a reshape's axes go, if it only puts in and takes away axes of size 1."""
    (x,) = node.operands
    if x is None or not isinstance(x.type, TensorType) or x.type.dims is None:
        return None
    return unit_axes(x.type.dims, node.result.dims)


def _reshaped(node: Node, permutation: Permutation) -> Permutation:
    """Axes that stay keep the order that they have now; those put in come last."""
    kept = _kept(node)
    assert kept is not None
    source = {place: axis for axis, place in enumerate(kept) if place is not None}
    left = sorted(permutation[axis] for axis in source.values())
    added = iter(range(len(left), node.result.rank))
    return tuple(
        left.index(permutation[source[place]]) if place in source else next(added) for place in range(node.result.rank)
    )


def _reshaped_dims(node: Node, permutation: Permutation) -> dict[str, Any]:
    where = _reshaped(node, permutation)
    return {"dims": tuple(node.result.dims[where.index(i)] for i in range(len(where)))}


_AXES = {"axis", "axes", "dims", "permutation", "block_size"}
_ELEMENTWISE = _Rule(lambda node, permutation: node.attributes.as_dict(), lambda operands: operands)
_REDUCTION = _Rule(_axes, result=_reduced)
_RULES = {
    "concatenate": _Rule(
        lambda node, permutation: {"axis": permutation[node.keywords["axis"]]}, lambda operands: operands
    ),
    "pad": _lists("low", "high", "interior"),
    "PadMode": _lists("low", "high"),
    "slice": _lists("starts", "limits", "strides"),
    "StridedSlice": _lists("starts", "limits", "strides"),
    "reverse": _Rule(_axes),
    "reshape": _Rule(_reshaped_dims, result=_reshaped),
    "reduce": _REDUCTION,
    **dict.fromkeys(("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"), _REDUCTION),
}
