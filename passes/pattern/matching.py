"""The matcher: finds the ways in which a traced pattern fits at a node, with bounded backtracking and near misses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product as combinations
from typing import Any

from ...ir.graph import Constant, Graph, Node, Value
from ...ir.operators import Trait
from ...ir.types import TensorType
from .scalars import about, number
from .terms import Apply, Bound, Captured, Default, Inverse, OneOf, Past, Product, Scalar, Term, Weight, Wildcard

BUDGET = 4000
"""Steps that one root may take: patterns are small, so only a pathological graph reaches it."""
_TREE = 24
"""Nodes of a tree of multiplications that are looked at."""


class OutOfSteps(Exception):
    """The budget of one root is spent."""


class Matcher:
    """One attempt at one root.  `bound` and `captures` describe the match while `solutions` yields."""

    def __init__(self, root: Node, budget: int = BUDGET) -> None:
        self.root = root
        self.budget = budget
        self.bound: dict[Term, Value] = {}
        self.captures: dict[str, Any] = {}
        self.nodes: dict[Node, None] = {}
        self._trail: list[tuple[dict[Any, Any], Any, Any]] = []
        self.deepest: tuple[int, Node, str] = (0, root, "")

    def solutions(self, terms: Sequence[Term]) -> Iterator[tuple[Value, ...]]:
        """Every way to match; each gives the values of the pattern's results, the root's first."""
        (first, *others) = terms
        for result in self.root.results:
            for _ in self._match(first, result):
                yield from self._others(others, (result,))

    def _others(self, terms: Sequence[Term], found: tuple[Value, ...]) -> Iterator[tuple[Value, ...]]:
        """Further results of the pattern hang on values that are matched already: users of these are tried."""
        if not terms:
            yield found
            return
        term = terms[0]
        known = next((self.bound[c] for c in term.children() if c in self.bound), None)
        if known is None:
            self._miss(self.root, "a further result of the pattern shares nothing with the first")
            return
        for user in known.users:
            for result in user.results:
                for _ in self._match(term, result):
                    yield from self._others(terms[1:], (*found, result))

    # ------------------------------------------------------------------------------------------------------- the trail

    def _set(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        self._trail.append((table, key, table.get(key, _ABSENT)))
        table[key] = value

    def _undo(self, mark: int) -> None:
        while len(self._trail) > mark:
            table, key, old = self._trail.pop()
            if old is _ABSENT:
                table.pop(key, None)
            else:
                table[key] = old

    def _miss(self, node: Node | None, why: str, *shown: object) -> None:
        """Remember the miss if none was deeper; `shown` fill the braces of `why`, and only then."""
        if len(self.nodes) > self.deepest[0]:
            self.deepest = (len(self.nodes), node or self.root, why.format(*shown) if shown else why)

    # --------------------------------------------------------------------------------------------------------- terms

    def _match(self, term: Term, value: Value) -> Iterator[None]:
        self.budget -= 1
        if self.budget < 0:
            raise OutOfSteps
        if term in self.bound:
            known = self.bound[term]
            if known is value or (isinstance(term, Wildcard) and source(known) is source(value)):
                yield
            else:
                self._miss(value.node, "two operands that must be one value differ")
            return
        mark = len(self._trail)
        for _ in _RULES[type(term)](self, term, value):
            self._set(self.bound, term, value)
            name = getattr(term, "name", None)
            if name and not isinstance(term, Scalar):
                self._set(self.captures, name, value)
            yield
            self._undo(mark)
        self._undo(mark)

    def _anything(self, term: Wildcard, value: Value) -> Iterator[None]:
        yield

    def _weight(self, term: Weight, value: Value) -> Iterator[None]:
        if isinstance(value, Constant):
            yield
        else:
            self._miss(value.node, "expected a constant")

    def _inner(self, term: Bound, value: Value) -> Iterator[None]:
        return self._match(term.inner, value)

    def _default(self, term: Default, value: Value) -> Iterator[None]:
        for name, default in term.values.items():
            self._set(self.captures, name, default)
        yield from self._match(term.inner, value)

    def _one_of(self, term: OneOf, value: Value) -> Iterator[None]:
        for option in term.options:
            yield from self._match(option, value)

    def _scalar(self, term: Scalar, value: Value) -> Iterator[None]:
        found = number(value)
        if found is None:
            self._miss(value.node, "expected a scalar constant")
        elif term.value is not None and not about(found, term.value):
            self._miss(value.node, "expected the constant {:g}, got {:g}", term.value, found)
        else:
            if term.name:
                self._set(self.captures, term.name, found)
            yield

    def _enter(self, value: Value) -> Node | None:
        """The node of a value, if the match may take it in."""
        node = value.node
        if node is None:
            self._miss(None, "expected a computed value, got {!r}", value)
            return None
        if node.graph is not self.root.graph and not _only_branches_between(self.root.graph, node.graph):
            self._miss(node, "it stands outside a loop that the rest is inside of")
            return None
        return node

    def _past(self, term: Past, value: Value) -> Iterator[None]:
        current, taken = value, 0
        while True:
            yield from self._match(term.inner, current)
            node = current.node
            if node is None or node.op not in term.operators or taken == term.limit or self._enter(current) is None:
                return
            self._set(self.nodes, node, None)
            (current, taken) = (node.operands[0] or current, taken + 1)

    def _apply(self, term: Apply, value: Value) -> Iterator[None]:
        node = self._enter(value)
        if node is None:
            return
        if node.op not in term.operators:
            if len(self.nodes) > self.deepest[0]:
                wanted = " or ".join(op.name for op in term.operators)
                self._miss(node, f"expected {wanted}, got {node.op.name}")
            return
        if value.index != term.result or not self._attributes(term, node):
            return
        have = list(node.operands)
        wanted_operands = list(term.operands)
        while have and have[-1] is None:
            have.pop()
        if len(have) != len(wanted_operands):
            self._miss(node, f"expected {len(wanted_operands)} operands of {node.op.name}, got {len(have)}")
            return
        self._set(self.nodes, node, None)
        mark = len(self._trail)
        yield from self._operands(wanted_operands, have)
        self._undo(mark)
        if Trait.COMMUTATIVE in node.op.traits and have[0] is not have[1]:
            yield from self._operands(wanted_operands, [have[1], have[0], *have[2:]])

    def _operands(self, terms: Sequence[Term | None], values: Sequence[Value | None]) -> Iterator[None]:
        if not terms:
            yield
            return
        term, value = terms[0], values[0]
        if term is None or value is None:
            if term is None and value is None:
                yield from self._operands(terms[1:], values[1:])
            return
        for _ in self._match(term, value):
            yield from self._operands(terms[1:], values[1:])

    def _attributes(self, term: Apply, node: Node) -> bool:
        for name, wanted in term.attributes.items():
            have = getattr(node.attributes, name)
            if isinstance(wanted, Captured):
                have = normal_axes(node, name, have)
                if self.captures.get(wanted.name, have) != have:
                    self._miss(node, f"{name} of {node.op.name} is {have}, elsewhere {self.captures[wanted.name]}")
                    return False
                self._set(self.captures, wanted.name, have)
            elif normal_axes(node, name, have) != normal_axes(node, name, wanted):
                self._miss(node, f"{name} of {node.op.name} must be {wanted}, is {have}")
                return False
        return True

    def _inverse(self, term: Inverse, value: Value) -> Iterator[None]:
        node = self._enter(value)
        if node is None or node.op.name not in ("Reciprocal", "divide"):
            self._miss(node, "expected a reciprocal")
            return
        below = node.operands[-1]
        if below is None or (node.op.name == "divide" and not about(number(node.operands[0]), 1.0)):
            return
        self._set(self.nodes, node, None)
        yield from self._match(term.inner, below)

    # ------------------------------------------------------------------------------------------------------- products

    def _product(self, term: Product, value: Value) -> Iterator[None]:
        if not _parts(value):
            self._miss(value.node, "expected a product")
            return
        tree = _tree(value)
        anchors = [f for f in term.factors if not isinstance(f, Wildcard)]
        yield from self._anchors(term, value, tree, anchors, [])

    def _anchors(
        self, term: Product, value: Value, tree: list[tuple[Value, bool]], anchors: list[Term], taken: list[Value]
    ) -> Iterator[None]:
        """Structured factors first: they bind the plain ones, and so say where the product's leaves are."""
        if not anchors:
            yield from self._leaves(term, value, tree, taken)
            return
        for candidate, inverted in tree[1:]:
            if any(candidate is t for t in taken):
                continue
            for factor in _factor(anchors[0], inverted):
                for _ in self._match(factor, candidate):
                    yield from self._anchors(term, value, tree, anchors[1:], [*taken, candidate])

    def _leaves(
        self, term: Product, value: Value, tree: list[tuple[Value, bool]], taken: list[Value]
    ) -> Iterator[None]:
        plain = [f for f in term.factors if isinstance(f, Wildcard)]
        free = list(dict.fromkeys(f for f in plain if f not in self.bound))
        values = list(dict.fromkeys(v for v, inverted in tree[1:] if not inverted and number(v) is None))
        for chosen in combinations(values, repeat=len(free)):
            mark = len(self._trail)
            for wildcard, one in zip(free, chosen, strict=True):
                self._set(self.bound, wildcard, one)
                if wildcard.name:
                    self._set(self.captures, wildcard.name, one)
            if self._collect(term, value, [self.bound[f] for f in plain], taken):
                yield
            self._undo(mark)

    def _collect(self, term: Product, value: Value, plain: list[Value], taken: list[Value]) -> bool:
        """Whether the product's leaves are exactly the factors, a number, and at most one more."""
        stops = {*taken, *plain, *(source(v) for v in plain)}
        leaves, coefficient, inside = _leaves_of(value, stops)
        for factor in (*taken, *plain):
            hit = next((l for l in leaves if l[0] is factor or source(l[0]) is source(factor)), None)
            if hit is None:
                self._miss(value.node, "a factor of the product is missing")
                return False
            leaves.remove(hit)
        if leaves and (term.rest is None or len(leaves) > 1 or leaves[0][1]):
            self._miss(leaves[0][0].node, "the product has a further factor")
            return False
        if isinstance(term.scalar, str):
            self._set(self.captures, term.scalar, coefficient)
        elif not about(coefficient, term.scalar):
            self._miss(value.node, f"expected the factor {term.scalar:g}, got {coefficient:g}")
            return False
        if term.rest is not None:
            self._set(self.captures, term.rest, leaves[0][0] if leaves else None)
        for node in inside:
            self._set(self.nodes, node, None)
        return True


_ABSENT: Any = object()
_IN_PRODUCTS = frozenset({"multiply", "divide", "convert", "negate"})
_RULES: dict[type[Term], Callable[[Matcher, Any, Value], Iterator[None]]] = {
    Wildcard: Matcher._anything,
    Weight: Matcher._weight,
    Scalar: Matcher._scalar,
    Bound: Matcher._inner,
    Default: Matcher._default,
    OneOf: Matcher._one_of,
    Past: Matcher._past,
    Apply: Matcher._apply,
    Product: Matcher._product,
    Inverse: Matcher._inverse,
}
"""How each kind of term is matched."""


def source(value: Value) -> Value:
    """The value below conversions to wider float types, which lose nothing."""
    while value.node is not None and value.node.op.name == "convert":
        below = value.node.operands[0]
        if below is None or not (below.dtype.is_float and value.dtype.is_float) or below.dtype.bits >= value.dtype.bits:
            return value
        value = below
    return value


def normal_axes(node: Node, name: str, value: Any) -> Any:
    """An axis attribute counted from the front, where the operand's rank is known."""
    x = next((v for v in node.operands if v is not None), None)
    if name not in ("axis", "axes") or x is None or not isinstance(x.type, TensorType) or x.type.dims is None:
        return value
    rank = max(x.rank, 1)
    return value % rank if isinstance(value, int) else tuple(sorted(a % rank for a in value))


def _only_branches_between(inner: Graph | None, outer: Graph | None) -> bool:
    """Whether only branches of `if` and `case` lie between two graphs: work may move into these, not into loops."""
    graph = inner
    while graph is not None and graph is not outer:
        if not isinstance(graph.parent, Node) or graph.parent.op.name not in ("if", "case"):
            return False
        graph = graph.parent.graph
    return graph is outer and graph is not None


def _factor(term: Term, inverted: bool) -> list[Term]:
    """What a value must be so that it, or its inverse, is the factor `term`."""
    if not inverted:
        return [term]
    if isinstance(term, OneOf):
        return [t for option in term.options for t in _factor(option, True)]
    return [term.inner] if isinstance(term, Inverse) else []


def _parts(value: Value) -> list[tuple[Value, bool]]:
    """(operand, whether it divides) of a product, a float conversion or a negation; empty for everything else."""
    node = value.node
    if node is None:
        return []
    if node.op.name not in _IN_PRODUCTS:
        return []
    x, y = (*node.operands, None)[:2]
    if node.op.name in ("multiply", "divide") and x is not None and y is not None and value.dtype.is_float:
        return [(x, False), (y, node.op.name == "divide")]
    if node.op.name == "convert" and x is not None and x.dtype.is_float and value.dtype.is_float:
        return [(x, False)]
    if node.op.name == "negate" and x is not None and x.dtype.is_float:
        return [(x, False)]
    return []


def _tree(value: Value) -> list[tuple[Value, bool]]:
    """Every value of a tree of multiplications with whether it divides, the root first."""
    out = [(value, False)]
    for current, inverted in out:
        if len(out) < _TREE:
            out.extend((v, inverted != below) for v, below in _parts(current))
    return out


def _leaves_of(value: Value, stops: set[Value]) -> tuple[list[tuple[Value, bool]], float, list[Node]]:
    """(leaves that are no numbers, the product of the numbers, nodes inside); `stops` are leaves."""
    leaves: list[tuple[Value, bool]] = []
    inside: dict[Node, None] = {}
    coefficient = 1.0
    stack = [(value, False)]
    while stack:
        current, inverted = stack.pop()
        parts = _parts(current) if (current not in stops or current is value) and len(inside) < _TREE else []
        constant = number(current)
        if constant is not None and current not in stops:
            coefficient = coefficient / constant if inverted and constant else coefficient * constant
        elif parts and current.node is not None:
            inside[current.node] = None
            coefficient = -coefficient if current.node.op.name == "negate" else coefficient
            stack.extend((v, inverted != below) for v, below in parts)
        else:
            leaves.append((current, inverted))
    return leaves, coefficient, list(inside)
