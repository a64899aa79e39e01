"""Graphs as data: Value, Constant, Node, Graph, Location.  Functions and models that hold them are in `ir.model`.

Changing a graph is the Rewriter's work.

Values and nodes have identity equality.  Nodes of a graph form a linked list with lazy order numbers, so insertion and
"does a come before b" take constant time.  Names are labels and need not be unique; the printer makes them so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .attributes import Attributes
from .data import Data
from .dims import Size
from .dtypes import DType
from .errors import IrcError
from .facts import Fact, Ints, fact_of_data, keep_ints
from .operators import Operator
from .types import TensorType, Type

if TYPE_CHECKING:
    from .model import Function, Model


@dataclass(frozen=True, slots=True)
class Location:
    """Where a node comes from: names of the source model's nodes, and the pass and rewrite that made it."""

    source: tuple[str, ...] = ()
    rewrite: str | None = None

    def __str__(self) -> str:
        text = ", ".join(repr(s) for s in self.source) or "no source node"
        return f"{text} by {self.rewrite}" if self.rewrite else text


class Value:
    """The result of a node or an input of a graph.  `uses` is ordered and includes graph outputs."""

    __slots__ = ("_uses", "index", "ints", "name", "owner", "type")

    def __init__(self, type_: Type, name: str | None, owner: Node | Graph | Model | None, index: int) -> None:
        self.type = type_
        self.name = name
        self.owner = owner
        self.index = index
        self.ints: Ints = None
        self._uses: dict[tuple[Node | Graph, int], None] = {}

    @property
    def node(self) -> Node | None:
        """The node whose result this is; None for graph inputs and constants."""
        return self.owner if isinstance(self.owner, Node) else None

    @property
    def graph(self) -> Graph | None:
        """The graph that defines the value; None for constants."""
        return (
            self.owner.graph if isinstance(self.owner, Node) else self.owner if isinstance(self.owner, Graph) else None
        )

    @property
    def data(self) -> Data | None:
        """Contents, for constants that are not derived."""
        return None

    @property
    def fact(self) -> Fact:
        return Fact(self.type, self.ints)

    @property
    def tensor(self) -> TensorType:
        return self.fact.tensor

    @property
    def dtype(self) -> DType:
        return self.fact.tensor.dtype

    @property
    def dims(self) -> tuple[Size, ...]:
        return self.fact.tensor.shape

    @property
    def rank(self) -> int:
        return self.fact.tensor.rank

    @property
    def uses(self) -> tuple[tuple[Node | Graph, int], ...]:
        """(user, index) pairs: a node and its operand number, or a graph and its output number."""
        return tuple(self._uses)

    @property
    def users(self) -> tuple[Node, ...]:
        """Nodes that use the value, each once, in order of first use."""
        return tuple(dict.fromkeys(u for u, _ in self._uses if isinstance(u, Node)))

    @property
    def has_uses(self) -> bool:
        return bool(self._uses)

    @property
    def is_output(self) -> bool:
        """Some graph returns or yields it."""
        return any(isinstance(u, Graph) for u, _ in self._uses)

    def set_fact(self, fact: Fact) -> None:
        self.type = fact.type
        self.ints = keep_ints(fact.type, fact.ints)

    def __repr__(self) -> str:
        return f"<%{self.name or '?'}: {self.type}>"


class Constant(Value):
    """A value owned by the model and usable in every graph.  `data` is None for one that `init` derives."""

    __slots__ = ("_data", "_fact", "metadata")

    def __init__(self, model: Model, name: str | None, type_: Type, data: Data | None) -> None:
        super().__init__(type_, name, model, 0)
        self._data = data
        self._fact: Fact | None = None
        self.metadata: dict[str, str] = {}
        if data is not None:
            self.ints = self.fact.ints

    @property
    def data(self) -> Data | None:
        return self._data

    def resolve(self, data: Data) -> None:
        """Give a derived constant its contents."""
        if self._data is not None or data.type != self.type:
            raise IrcError(f"constant #{self.name} of type {self.type} cannot take contents of type {data.type}")
        self._data = data
        self._fact = None
        self.ints = self.fact.ints

    @property
    def is_inline(self) -> bool:
        """Printed in place rather than by name."""
        return self._data is not None and self._data.is_inline and self.name is None

    @property
    def fact(self) -> Fact:
        if self._fact is None:
            self._fact = Fact(self.type) if self._data is None else fact_of_data(self._data)
        return self._fact

    def __repr__(self) -> str:
        return f"<#{self.name or 'inline'}: {self.type}>"


class Node:
    """One application of an operator."""

    __slots__ = (
        "_next",
        "_operands",
        "_order",
        "_prev",
        "attributes",
        "graph",
        "graphs",
        "location",
        "name",
        "op",
        "results",
    )

    def __init__(
        self,
        op: Operator,
        operands: Sequence[Value | None],
        attributes: Attributes,
        graphs: dict[str, tuple[Graph, ...]],
        location: Location,
        name: str | None = None,
    ) -> None:
        self.op = op
        self._operands: list[Value | None] = []
        self.attributes = attributes
        self.graphs = graphs
        self.location = location
        self.name = name
        self.results: tuple[Value, ...] = ()
        self.graph: Graph | None = None
        self._prev: Node | None = None
        self._next: Node | None = None
        self._order = 0
        for graph in self.all_graphs():
            graph.parent = self
        for i, operand in enumerate(operands):
            self._operands.append(operand)
            if operand is not None:
                operand._uses[(self, i)] = None

    @property
    def operands(self) -> tuple[Value | None, ...]:
        """Flat operands; None where an optional one is absent."""
        return tuple(self._operands)

    @property
    def grouped(self) -> list[Any]:
        """Operands as rules take them: variadic groups as tuples, absent ones None."""
        return self.op.group(self._operands)

    def operand(self, name: str) -> Any:
        """The operand (or tuple, for a variadic group) declared under `name`."""
        for spec, value in zip(self.op.operands, self.grouped, strict=True):
            if spec.name == name:
                return value
        raise IrcError(f"{self.op.name} has no operand {name!r}")

    @property
    def result(self) -> Value:
        """The only result."""
        (value,) = self.results
        return value

    @property
    def keywords(self) -> dict[str, Any]:
        """Attributes and graphs as rules take them by keyword: one Graph, None, or a tuple for a variadic region."""
        out = self.attributes.as_dict()
        for spec in self.op.regions:
            graphs = self.graphs.get(spec.name, ())
            out[spec.name] = graphs if spec.variadic else graphs[0] if graphs else None
        return out

    @property
    def label(self) -> str:
        """What to call the node in a message: its source name if it has one, else its first result's name."""
        name = self.location.source[0] if self.location.source else self.results[0].name if self.results else None
        return f"{self.op.name} {name!r}" if name else self.op.name

    @property
    def next(self) -> Node | None:
        return self._next

    @property
    def previous(self) -> Node | None:
        return self._prev

    def all_graphs(self) -> tuple[Graph, ...]:
        """Every sub-graph, in declaration order."""
        if not self.graphs:  # nearly every node, and every pass asks
            return ()
        return tuple(graph for graphs in self.graphs.values() for graph in graphs)

    def comes_before(self, other: Node) -> bool:
        """Whether this node stands before `other` in their common graph."""
        if self.graph is None or self.graph is not other.graph:
            raise IrcError(f"{self.label} and {other.label} are not in one graph")
        self.graph._renumber()
        return self._order < other._order

    def __repr__(self) -> str:
        results = ", ".join(f"%{r.name or '?'}" for r in self.results)
        return f"<{results} = {self.op.name}>"


class Graph:
    """Inputs, an ordered list of nodes, outputs.  A function's body, a sub-graph of a node, or the model's `init`."""

    __slots__ = ("_count", "_head", "_numbered", "_outputs", "_tail", "inputs", "parent")

    def __init__(self, parent: Node | Function | Model | None = None) -> None:
        self.parent = parent
        self.inputs: list[Value] = []
        self._outputs: list[Value | None] = []
        self._head: Node | None = None
        self._tail: Node | None = None
        self._count = 0
        self._numbered = True

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(self._outputs)  # type: ignore[arg-type]  # None only while an operator of optional outputs is built

    @property
    def nodes(self) -> Iterator[Node]:
        """Nodes in order.  The current node may be erased while iterating."""
        node = self._head
        while node is not None:
            following = node._next
            yield node
            node = following

    @property
    def first(self) -> Node | None:
        return self._head

    @property
    def last(self) -> Node | None:
        return self._tail

    def __len__(self) -> int:
        """Number of nodes, sub-graphs not counted."""
        return self._count

    def __bool__(self) -> bool:
        return True

    @property
    def function(self) -> Function | None:
        """The function whose body this graph is or is nested in; None inside `init`."""
        from .model import Function

        holder: object = self.parent
        while isinstance(holder, Node):
            holder = holder.graph.parent if holder.graph is not None else None
        return holder if isinstance(holder, Function) else None

    def add_input(self, type_: Type, name: str | None = None, ints: Ints = None) -> Value:
        value = Value(type_, name, self, len(self.inputs))
        value.ints = keep_ints(type_, ints)
        self.inputs.append(value)
        return value

    def set_outputs(self, values: Iterable[Value]) -> None:
        for i, old in enumerate(self._outputs):
            if old is not None:
                old._uses.pop((self, i), None)
        self._outputs = list(values)
        for i, value in enumerate(self._outputs):
            if value is not None:
                value._uses[(self, i)] = None

    def add_output(self, value: Value) -> None:
        """One more output, in constant time."""
        value._uses[(self, len(self._outputs))] = None
        self._outputs.append(value)

    def walk(self) -> Iterator[Node]:
        """Every node, those of sub-graphs right after the node that holds them.  Iterative, any depth."""
        stack: list[Iterator[Node]] = [self.nodes]
        while stack:
            node = next(stack[-1], None)
            if node is None:
                stack.pop()
                continue
            yield node
            if node.graphs:
                stack.extend(graph.nodes for graph in reversed(node.all_graphs()))

    def encloses(self, other: Graph | None) -> bool:
        """Whether `other` is this graph or nested in it."""
        while other is not None:
            if other is self:
                return True
            other = other.parent.graph if isinstance(other.parent, Node) else None
        return False

    def captures(self) -> tuple[Value, ...]:
        """Outer values used inside, constants apart, in order of first use."""
        found: dict[Value, None] = {}
        for node in self.walk():
            for operand in node._operands:
                if operand is not None and operand.graph is not None:
                    found.setdefault(operand)
            for graph in node.all_graphs():
                for output in graph.outputs:
                    if output is not None and output.graph is not None:
                        found.setdefault(output)
        for output in self.outputs:
            if output is not None and output.graph is not None:
                found.setdefault(output)
        return tuple(v for v in found if not self.encloses(v.graph))

    # Linked-list primitives: for the builder, the rewriter and the parser only.

    def _insert(self, node: Node, before: Node | None) -> None:
        following = before
        preceding = self._tail if before is None else before._prev
        node.graph, node._prev, node._next = self, preceding, following
        if preceding is None:
            self._head = node
        else:
            preceding._next = node
        if following is None:
            self._tail = node
            if self._numbered:
                node._order = 0 if preceding is None else preceding._order + (1 << 20)
        else:
            following._prev = node
            low = following._order - (1 << 21) if preceding is None else preceding._order
            node._order = (low + following._order) // 2
            if node._order in (low, following._order):
                self._numbered = False
        self._count += 1

    def _unlink(self, node: Node) -> None:
        if node._prev is None:
            self._head = node._next
        else:
            node._prev._next = node._next
        if node._next is None:
            self._tail = node._prev
        else:
            node._next._prev = node._prev
        node.graph = node._prev = node._next = None
        self._count -= 1

    def _renumber(self) -> None:
        if not self._numbered:
            for i, node in enumerate(self.nodes):
                node._order = i << 20
            self._numbered = True


def graphs_inside(root: Graph) -> list[Graph]:
    """`root` and every graph nested in it, inner ones first."""
    order: list[Graph] = []
    stack = [root]
    while stack:
        graph = stack.pop()
        order.append(graph)
        for node in graph.nodes:
            if node.graphs:
                stack.extend(node.all_graphs())
    order.reverse()
    return order
