"""The Rewriter: the only way to change a graph.  Keeps uses, locations, a work list and a log of changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from .build import Builder
from .errors import IrcError
from .facts import Fact
from .model import Constant, Graph, Location, Model, Node, Value


@dataclass(frozen=True, slots=True)
class Change:
    """One entry of the log: what happened to a node, by which rewrite.

    `subject` is the node itself where one was meant; it may have left its graph since.
    """

    kind: Literal["create", "erase", "replace", "update", "move"]
    node: str
    rewrite: str
    detail: str = ""
    subject: Node | None = field(default=None, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.rewrite}: {self.kind} {self.node}{f' ({self.detail})' if self.detail else ''}"


class RewritesStopped(BaseException):
    """The rewriter has made as many changes as it may; no handler of a pass may take this for an error of its own."""


class Rewriter:
    """Changes a model.  `label` names the pass or rewrite at work; new nodes carry it in their location.

    `worklist()` yields nodes to look at: give it a start, and every node whose surroundings a change touched comes
    again.  Order is first in, first out, without duplicates.

    `limit`: changes that it may make, new nodes not counted; the next one raises RewritesStopped before it begins.
    """

    def __init__(self, model: Model, label: str = "rewrite", *, limit: int | None = None) -> None:
        self.model = model
        self.label = label
        self.limit = limit
        self.made = 0
        """Changes so far, new nodes not counted."""
        self.changes: list[Change] = []
        self._queue: deque[Node] = deque()
        self._queued: set[Node] = set()  # only asked for membership, never iterated

    @property
    def changed(self) -> bool:
        return bool(self.changes)

    def _log(self, change: Change) -> None:
        self.changes.append(change)
        self.made += change.kind != "create"

    def _may_change(self) -> None:
        if self.limit is not None and self.made >= self.limit:
            raise RewritesStopped

    def worklist(self, start: Iterable[Node]) -> Iterator[Node]:
        """Nodes of `start`, then whatever changes touched, until nothing is left."""
        self._queue = deque(dict.fromkeys(start))
        self._queued = set(self._queue)
        while self._queue:
            node = self._queue.popleft()
            self._queued.discard(node)
            if node.graph is not None:
                yield node

    def touch(self, *nodes: Node | None) -> None:
        """Put nodes on the work list."""
        for node in nodes:
            if node is not None and node.graph is not None and node not in self._queued:
                self._queued.add(node)
                self._queue.append(node)

    def before(self, node: Node, *, sources: Iterable[Node] = ()) -> Builder:
        """A builder that inserts before `node`; new nodes carry its source names (and those of `sources`)."""
        if node.graph is None:
            raise IrcError(f"{node.label} is not in a graph any more")
        return Builder(self.model, node.graph, node, location=self._location(node, *sources), on_create=self._created)

    def after(self, node: Node) -> Builder:
        """A builder that inserts right after `node`."""
        if node.graph is None:
            raise IrcError(f"{node.label} is not in a graph any more")
        return Builder(self.model, node.graph, node.next, location=self._location(node), on_create=self._created)

    def end(self, graph: Graph) -> Builder:
        """A builder at the end of a graph."""
        return Builder(self.model, graph, location=Location((), self.label), on_create=self._created)

    def _location(self, *nodes: Node) -> Location:
        names = dict.fromkeys(s for n in nodes for s in n.location.source)
        return Location(tuple(names), self.label)

    def _created(self, node: Node) -> None:
        self._log(Change("create", node.label, self.label, subject=node))
        self.touch(node)

    def replace(self, node: Node, values: Value | Sequence[Value | None]) -> None:
        """Every use of the node's results becomes a use of `values` (None: that result has no use); the node goes.

        A name that the old result has and the new one lacks moves over.  Types may only become more precise.
        """
        self._may_change()
        new = (values,) if isinstance(values, Value) else tuple(values)
        if len(new) != len(node.results):
            raise IrcError(f"{node.label} has {len(node.results)} results, got {len(new)} to replace them")
        detail = ", ".join(v.node.op.name if v is not None and v.node is not None else "value" for v in new)
        for old, value in zip(node.results, new, strict=True):
            if value is None:
                if old.has_uses:
                    raise IrcError(f"result {old.index} of {node.label} is still used")
                continue
            self.replace_uses(old, value)
        self._log(Change("replace", node.label, self.label, detail, node))
        self._erase(node)

    def replace_uses(self, old: Value, new: Value) -> None:
        """Every user of `old` uses `new` instead."""
        if old is new:
            return
        if old.name is not None and new.name is None and not isinstance(new, Constant):
            new.name = old.name
        for user, index in old.uses:
            self._set_use(user, index, old, new)

    def _set_use(self, user: Node | Graph, index: int, old: Value | None, new: Value | None) -> None:
        if old is not None:
            old._uses.pop((user, index), None)
            self.touch(old.node)
        slots: Any = user._operands if isinstance(user, Node) else user._outputs
        slots[index] = new
        if new is not None:
            new._uses[(user, index)] = None
        if isinstance(user, Node):
            self.touch(user)
        elif isinstance(user.parent, Node):
            self.touch(user.parent)

    def set_operand(self, node: Node, index: int, value: Value | None) -> None:
        """Operand `index` (flat) of the node becomes `value`."""
        self._may_change()
        self._set_use(node, index, node._operands[index], value)
        self._log(Change("update", node.label, self.label, f"operand {index}", node))

    def set_output(self, graph: Graph, index: int, value: Value) -> None:
        """Output `index` of the graph becomes `value`."""
        self._may_change()
        self._set_use(graph, index, graph.outputs[index], value)
        self._log(Change("update", "graph output", self.label, f"output {index}"))

    def set_outputs(self, graph: Graph, values: Sequence[Value]) -> None:
        """The graph returns `values` and nothing else."""
        self._may_change()
        graph.set_outputs(values)
        self._log(Change("update", "graph", self.label, "outputs"))

    def set_attributes(self, node: Node, **values: Any) -> None:
        """Change attributes; the others stay.  Call `set_fact` too if a result's type changes with them."""
        self._may_change()
        node.attributes = node.op.make_attributes({**node.attributes.as_dict(), **values})
        self._log(Change("update", node.label, self.label, ", ".join(values), node))
        self.touch(node, *(u for r in node.results for u in r.users))

    def set_fact(self, value: Value, fact: Fact) -> None:
        """Record a more precise type or known integers; users come again."""
        if value.type == fact.type and value.ints == fact.ints:
            return
        self._may_change()
        value.set_fact(fact)
        self._log(Change("update", value.name or "value", self.label, f"type {fact.type}", value.node))
        self.touch(*value.users)

    def erase(self, node: Node) -> None:
        """Remove a node whose results have no uses."""
        self._may_change()
        for result in node.results:
            if result.has_uses:
                raise IrcError(f"cannot erase {node.label}: its result {result.name or result.index} is still used")
        self._log(Change("erase", node.label, self.label, subject=node))
        self._erase(node)

    def _erase(self, node: Node) -> None:
        graph = node.graph
        if graph is None:
            raise IrcError(f"{node.label} is not in a graph any more")
        graph._unlink(node)
        self._release(node)

    def _release(self, dropped: Node | Graph) -> None:
        """Take back the uses that a dropped node or graph makes of values, everything inside included."""
        stack: list[Node | Graph] = [dropped]
        while stack:
            item = stack.pop()
            if isinstance(item, Node):
                for i, operand in enumerate(item._operands):
                    if operand is not None:
                        operand._uses.pop((item, i), None)
                        self.touch(operand.node)
                stack.extend(
                    g for g in item.all_graphs() if g.parent is item
                )  # a decomposition may have taken them over
            else:
                item.set_outputs(())
                for inner in item.nodes:
                    item._unlink(inner)  # out of its graph, so that a work list passes it over
                    stack.append(inner)

    def erase_function(self, name: str) -> None:
        """Remove a function that nothing calls."""
        self._may_change()
        self._release(self.model.functions.pop(name).body)
        self._log(Change("erase", f"@{name}", self.label))

    def erase_constants(self, constants: Sequence[Constant]) -> None:
        """Remove named constants without uses; those that `init` derives leave `init`'s outputs, its nodes stay."""
        self._may_change()
        model, gone = self.model, set(constants)
        for constant in constants:
            name = constant.name or ""
            if constant.has_uses or model.constants.get(name) is not constant:
                raise IrcError(f"cannot erase the constant #{name}: it is still used, or is not of this model")
            del model.constants[name]
            self._log(Change("erase", f"#{name}", self.label))
        rows = [(c, v) for c, v in zip(model.derived, model.init.outputs, strict=True) if c not in gone]
        if len(rows) != len(model.derived):
            model.derived = [c for c, _ in rows]
            model.init.set_outputs([v for _, v in rows])

    def move_before(self, node: Node, anchor: Node) -> None:
        """Move a node before `anchor`, into its graph.  The caller answers for dominance; the verifier checks."""
        self._may_change()
        if node.graph is None or anchor.graph is None:
            raise IrcError("both nodes must be in a graph")
        node.graph._unlink(node)
        anchor.graph._insert(node, anchor)
        self._log(Change("move", node.label, self.label, subject=node))
        self.touch(node)

    def move_to_start(self, node: Node, graph: Graph) -> None:
        """Move a node to the start of a graph, which may be empty; dominance is the caller's affair here too."""
        self._may_change()
        if node.graph is None:
            raise IrcError(f"{node.label} is not in a graph any more")
        node.graph._unlink(node)
        graph._insert(node, graph.first)
        self._log(Change("move", node.label, self.label, subject=node))
        self.touch(node)

    def inline_graph(self, graph: Graph, arguments: Sequence[Value], before: Node) -> tuple[Value, ...]:
        """Move the nodes of a sub-graph before `before` with its inputs replaced; its outputs come back.

        The graph is empty afterwards.  Used for constant branches, calls (on a copy) and unrolling.
        """
        self._may_change()
        for formal, actual in zip(list(graph.inputs), arguments, strict=True):
            self.replace_uses(formal, actual)
        outputs = graph.outputs
        graph.set_outputs(())
        target = before.graph
        if target is None:
            raise IrcError(f"{before.label} is not in a graph any more")
        for node in list(graph.nodes):
            graph._unlink(node)
            target._insert(node, before)
            self.touch(node)
        self._log(Change("move", before.label, self.label, "inlined graph", before))
        return outputs
