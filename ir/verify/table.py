"""What a rule of the verifier is, the table of all rules, what a rule may ask.  The rules live in the files beside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, get_args

from .. import infer as inference
from ..errors import Diagnostic, InferenceError, IrcError
from ..facts import Fact
from ..model import Constant, Function, Graph, Model, Node, Value

Scope: TypeAlias = Literal["model", "function", "graph", "node"]
Level: TypeAlias = Literal["imported", "canonical", "legal", "core"]
LEVELS: Final[tuple[str, ...]] = get_args(Level)
"""`legal`: nothing is left to run-time typing and host work is staged.  `core`: moreover no composite is left."""

Check: TypeAlias = Callable[["Context", Any], Iterator[str]]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: `check(ctx, thing)` yields a message for every breach.  A breach in phase 0 ends the run."""

    id: str
    scope: Scope
    phase: int
    text: str
    check: Check


RULES: Final[dict[str, Rule]] = {}
"""Every rule by its id.  An id is never used again for something else."""


def rule(identity: str, scope: Scope, *, phase: int = 1) -> Callable[[Check], Check]:
    """Enter a function into the table; its docstring is the rule's text in the documentation."""

    def enter(check: Check) -> Check:
        if identity in RULES:
            raise IrcError(f"verifier rule {identity} is defined twice")
        RULES[identity] = Rule(identity, scope, phase, " ".join((check.__doc__ or "").split()), check)
        return check

    return enter


class Context:
    """One verification: the model's graphs and nodes, found without trusting its lists; inference of nodes."""

    def __init__(self, model: Model, level: str | None) -> None:
        self.model = model
        self.level = level
        self.graphs: dict[Graph, Function | None] = {}
        """Every graph, outer ones first, with its function (None in `init`)."""
        self.nodes: dict[Node, Graph] = {}
        """Every node with the graph that lists it."""
        self.inline: set[Value] = set(model._inline.values())
        self.binders: dict[Function | None, dict[str, Node]] = {}
        """The first `bind_dim` of each name, by function."""
        self.faults: set[Node] = set()
        """Nodes with a breach of phase 1; phase 2 (inference) leaves them alone."""
        self._inferred: tuple[Node, Any] | None = None
        self._find(model.init, None)
        for function in model.functions.values():
            self._find(function.body, function)

    def _find(self, root: Graph, function: Function | None) -> None:
        bound = self.binders.setdefault(function, {})
        stack = [root]
        while stack:
            graph = stack.pop()
            if graph in self.graphs:
                continue
            self.graphs[graph] = function
            inner: list[Graph] = []
            for node in listed_nodes(graph):
                if node in self.nodes:
                    continue
                self.nodes[node] = graph
                if node.op.name == "bind_dim" and isinstance(name := getattr(node.attributes, "dim", None), str):
                    bound.setdefault(name, node)
                inner.extend(node.all_graphs())
            stack.extend(reversed(inner))

    def values(self) -> Iterator[Value]:
        """Every value: constants, graph inputs, results."""
        yield from self.model.constants.values()
        yield from self.inline
        for graph in self.graphs:
            yield from graph.inputs
        for node in self.nodes:
            yield from node.results

    def owns(self, value: Value) -> bool:
        """Whether the value is a constant of this model or defined by one of its graphs."""
        if isinstance(value, Constant):
            return value in self.inline or (value.name is not None and self.model.constants.get(value.name) is value)
        owner = value.owner
        if value.graph not in self.graphs or not isinstance(owner, Node | Graph):
            return False
        defined = owner.results if isinstance(owner, Node) else owner.inputs
        return value.index < len(defined) and defined[value.index] is value

    def infer(self, node: Node) -> tuple[tuple[Fact, ...], inference.InferContext] | InferenceError:
        """What the operator's definition gives for the node's operands, or why it gives nothing."""
        if self._inferred is None or self._inferred[0] is not node:
            self._inferred = (node, self._infer(node))
        return self._inferred[1]

    def _infer(self, node: Node) -> tuple[tuple[Fact, ...], inference.InferContext] | InferenceError:
        ctx = inference.InferContext(self.model, self.graphs[self.nodes[node]], node.label)
        operands = [None if v is None else v.fact for v in node.operands]
        try:
            facts = inference.infer(ctx, node.op, operands, node.attributes, node.graphs)
        except InferenceError as error:
            return error
        except IrcError as error:
            return InferenceError(str(error))
        except Exception as error:  # a rule that fails in another way is a defect, but the other findings matter too
            return InferenceError(
                f"the infer rule of {node.op.name} failed ({type(error).__name__}: {error}); a defect of irc"
            )
        return ((facts,) if isinstance(facts, Fact) else facts), ctx

    def place(self, thing: Model | Function | Graph | Node) -> str:
        """Where a finding stands: `@main: add 'n1'`."""
        if isinstance(thing, Model):
            return f"model {thing.name!r}"
        if isinstance(thing, Function):
            return f"@{thing.name}"
        graph = thing if isinstance(thing, Graph) else self.nodes[thing]
        function = self.graphs[graph]
        inside = "init" if function is None else f"@{function.name}"
        if isinstance(thing, Node):
            return f"{inside}: {thing.label}"
        if isinstance(thing.parent, Node):
            names = [n for n, group in thing.parent.graphs.items() if any(g is thing for g in group)]
            return f"{inside}: graph {names[0] if names else '?'} of {thing.parent.label}"
        return inside

    def run(self, phase: int) -> Iterator[Diagnostic]:
        """All findings of one phase, rule by rule in the order of the model's parts."""
        things: dict[Scope, list[Any]] = {
            "model": [self.model],
            "function": list(self.model.functions.values()),
            "graph": list(self.graphs),
            "node": [n for n in self.nodes if n not in self.faults],
        }
        for scope, members in things.items():
            rules = [r for r in RULES.values() if r.phase == phase and r.scope == scope]
            for thing in members:
                for each in rules:
                    for message in each.check(self, thing):
                        notes: tuple[str, ...] = ()
                        if isinstance(thing, Node):
                            self.faults.add(thing)
                            if thing.location.rewrite:
                                notes = (f"made by {thing.location.rewrite}",)
                        yield Diagnostic(each.id, message, self.place(thing), notes)


def listed_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes that the list of a graph reaches from its head, each once, even if the list runs in a circle."""
    seen: set[Node] = set()
    node = graph.first
    while node is not None and node not in seen:
        seen.add(node)
        yield node
        node = node.next


def describe(value: Value) -> str:
    """How a message calls a value: `%x` or `#weight`."""
    if isinstance(value, Constant):
        return f"#{value.name}" if value.name else "an inline constant"
    return f"%{value.name}" if value.name else f"a value of type {value.type}"
