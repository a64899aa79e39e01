"""Applies fusions to a model: candidates by root operator, matching, checks, rewriting, a report with near misses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.build import Builder
from ...ir.dims import Assumption
from ...ir.errors import InferenceError
from ...ir.graph import Graph, Node, Value
from ...ir.model import Model
from ...ir.rewrite import Rewriter
from ...ir.types import TensorType
from .match import Match, NotNear, Refused, equal
from .matching import Matcher, OutOfSteps
from .registry import Fusion


@dataclass(frozen=True)
class Fired:
    """A fusion that fired: at which node, from which source nodes, how many nodes it matched."""

    fusion: str
    node: str
    sources: tuple[str, ...]
    matched: int


@dataclass(frozen=True)
class NearMiss:
    """A fusion that nearly fired: the candidate, how many nodes matched, the node that did not fit and why."""

    fusion: str
    node: str
    matched: int
    reached: str
    why: str


@dataclass(frozen=True)
class Apart:
    """Nodes that people know as one operator: its name, the label of the last node, why they stay apart."""

    name: str
    node: str
    why: str


@dataclass
class FusionReport:
    """What fusions did to a model."""

    fired: list[Fired] = field(default_factory=list)
    misses: list[NearMiss] = field(default_factory=list)
    composites: dict[str, int] = field(default_factory=dict)
    """Composites that the model holds afterwards, by the name that people call them."""
    apart: list[Apart] = field(default_factory=list)
    """What is recognised and left as several nodes."""

    @property
    def counts(self) -> Counter[str]:
        """How often each fusion fired."""
        return Counter(f.fusion for f in self.fired)


def apply_fusions(model: Model, rewriter: Rewriter, fusions: Iterable[Fusion]) -> FusionReport:
    """Fire every fusion wherever it fits, in order, users before what they use; time linear in the nodes."""
    return _Engine(model, rewriter).run(fusions)


class _Engine:
    def __init__(self, model: Model, rewriter: Rewriter) -> None:
        self.model = model
        self.rewriter = rewriter
        self.index: dict[str, list[Node]] = {}
        self.report = FusionReport()
        self.missed: list[tuple[Node, Node, NearMiss]] = []
        self.positions: dict[Graph, int] = {}
        for node in model.nodes():
            self.index.setdefault(node.op.name, []).append(node)

    def run(self, fusions: Iterable[Fusion]) -> FusionReport:
        for fusion in fusions:
            self.rewriter.label = f"fuse/{fusion.name}"
            for node in self._candidates(fusion):
                if node.graph is not None:
                    self._attempt(fusion, node)
        # What another fusion took in, or this one at a later candidate, was no miss.
        self.report.misses = [m for root, at, m in self.missed if root.graph is not None and at.graph is not None]
        return self.report

    def _candidates(self, fusion: Fusion) -> list[Node]:
        """Nodes with a root operator; the last come first, so that the largest match wins."""
        lists = [self.index.get(name, []) for name in sorted(fusion.roots)]
        if len(lists) == 1:
            return lists[0][::-1]
        nodes = [n for rows in lists for n in rows if n.graph is not None]
        graphs = {n.graph: None for n in nodes if n.graph is not None}
        if any(graph not in self.positions for graph in graphs):  # at first, and when a rewrite made graphs
            self.positions = {graph: i for i, graph in enumerate(self.model.graphs())}
        for graph in graphs:
            graph._renumber()
        position = self.positions
        nodes.sort(key=lambda n: (position[n.graph], n._order), reverse=True)  # type: ignore[index]  # not None
        return nodes

    def _attempt(self, fusion: Fusion, root: Node) -> None:
        matcher = Matcher(root)
        try:
            for results in matcher.solutions(fusion.terms):
                found = self._fits(fusion, root, results, matcher)
                if isinstance(found, NotNear):
                    continue
                if isinstance(found, Refused):
                    matcher.deepest = max(
                        matcher.deepest, (len(matcher.nodes) + 1, found.node or root, str(found)), key=lambda d: d[0]
                    )
                    continue
                self.report.fired.append(found)
                return
        except OutOfSteps:
            matcher.deepest = (matcher.deepest[0], root, f"the match takes too long: {matcher.deepest[2]}")
        matched, at, why = matcher.deepest
        if matched >= fusion.near and why:
            self.missed.append((root, at, NearMiss(fusion.name, root.label, matched, at.label, why)))

    def _fits(self, fusion: Fusion, root: Node, results: tuple[Value, ...], matcher: Matcher) -> Fired | Refused:
        """Check and rewrite one match; a refusal leaves the graph as it was."""
        nodes = dict(matcher.nodes)
        first = _first(root, results)
        if first is None:
            return Refused("its results stand in different graphs", root)
        build = self.rewriter.before(first)
        match = Match(self.model, root, results, nodes, dict(matcher.captures), fusion.names, build)
        try:
            check = getattr(fusion.instance, "check", None)
            if check is not None:
                check(match)
            return self._rewrite(fusion, match, first)
        except Refused as refusal:
            return refusal

    def _rewrite(self, fusion: Fusion, match: Match, first: Node) -> Fired:
        """Build, compare types, replace, drop what nothing uses any more."""
        created: list[Node] = []
        graph = first.graph
        assert graph is not None
        assumed: dict[Assumption, None] = {}
        location = self.rewriter.before(first, sources=[match.root, *match.nodes]).location
        build = Builder(self.model, graph, first, location=location, on_create=created.append)
        build._assumptions = assumed
        match.build = build
        try:
            made = fusion.instance.rewrite(match)
            values = tuple(made) if isinstance(made, tuple | list) else (made,)
            self._check(match, values, assumed, graph)
            if not all(_dominates(v, first, created) for n in created for v in n.operands if v is not None):
                raise Refused("an operand is computed only after the first result", match.root)
        except (Refused, InferenceError) as error:
            for node in reversed(created):
                self.rewriter._erase(node)
            raise error if isinstance(error, Refused) else Refused(str(error), match.root) from None
        sources = build.location.source
        for node in created:
            self.rewriter._created(node)
            self.index.setdefault(node.op.name, []).append(node)
        label = match.root.label
        for old, new in zip(match.results, values, strict=True):
            self._replace(old, new)
        self._sweep(match.nodes)
        return Fired(fusion.name, label, sources, len(match.nodes))

    def _check(self, match: Match, values: tuple[Value, ...], assumed: dict[Assumption, None], graph: Graph) -> None:
        if len(values) != len(match.results):
            raise Refused(f"the pattern has {len(match.results)} results, the rewrite gives {len(values)}", match.root)
        for old, new in zip(match.results, values, strict=True):
            if not _same_type(old, new):
                raise Refused(f"the result would be {new.type} instead of {old.type}", match.root)
        function = graph.function
        known = function.assumptions if function is not None else {}
        for assumption in assumed:
            if not any((a.relation, a.lhs, a.rhs) == (assumption.relation, assumption.lhs, assumption.rhs)
                       for a in known):  # fmt: skip
                raise Refused(f"{assumption} cannot be proved", match.root)

    def _replace(self, old: Value, new: Value) -> None:
        node = old.node
        assert node is not None
        if len(node.results) == 1:
            self.rewriter.replace(node, new)
        else:
            self.rewriter.replace_uses(old, new)

    def _sweep(self, nodes: dict[Node, None]) -> None:
        """Erase matched nodes without uses; those with other users stay for them."""
        pending = [n for n in nodes if n.graph is not None]
        while True:
            dead = [n for n in pending if n.op.is_pure and not any(r.has_uses for r in n.results)]
            if not dead:
                return
            for node in dead:
                self.rewriter.erase(node)
            pending = [n for n in pending if n.graph is not None]


def _first(root: Node, results: Sequence[Value]) -> Node | None:
    """The earliest node of the results, before which the new nodes go; None if they share no graph."""
    first = root
    for value in results[1:]:
        node = value.node
        if node is None or node.graph is not root.graph:
            return None
        first = node if node.comes_before(first) else first
    return first


def _dominates(value: Value, first: Node, created: list[Node]) -> bool:
    """Whether an operand of a new node is there when the node is, which stands before `first`."""
    node = value.node
    if node is None or node in created or node.graph is not first.graph:
        return True  # in an outer graph it is there for all of this one
    return node.comes_before(first)


def _same_type(old: Value, new: Any) -> bool:
    a, b = old.type, getattr(new, "type", None)
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dims is None or b.dims is None:
        return False
    return a.dtype is b.dtype and len(a.dims) == len(b.dims) and all(map(equal, a.dims, b.dims))
