"""Legalization: composites that a target refuses are decomposed, to a fixpoint; what is left is reported at once.

A target that refuses `call` gets every call inlined first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir import dims as sizes
from ..ir.build import Builder, decompose
from ..ir.errors import Diagnostic, InferenceError, IrcError, UnsupportedError
from ..ir.graph import Node, Value
from ..ir.model import Model
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from .capabilities import Capabilities
from .inline import inline_calls
from .manager import Level, set_level

_MAX_DEPTH = 64
"""Decompositions within decompositions; real ones stay below five."""


@dataclass
class LegalizeReport:
    """What legalization did."""

    target: str
    decomposed: Counter[str] = field(default_factory=Counter)
    """How often each composite was decomposed."""

    def __str__(self) -> str:
        listed = ", ".join(f"{name} x{count}" for name, count in sorted(self.decomposed.items()))
        return f"decomposed for {self.target}: {listed or 'nothing'}"


@dataclass(frozen=True)
class Refused:
    """An operator that a target refuses for one reason: on how many nodes, and the label of the first."""

    operator: str
    reason: str
    count: int
    first: str


def legalize(model: Model, capabilities: Capabilities) -> LegalizeReport:
    """Change `model` until the target claims every node of every function.

    UnsupportedError has one diagnostic for each (operator, reason) that remains: how many nodes, and the first.
    """
    report, refused = try_legalize(model, capabilities)
    report_refused(capabilities.name, refused)
    set_level(model, Level.LEGAL)
    return report


def report_refused(target: str, refused: Sequence[Refused]) -> None:
    """UnsupportedError with a diagnostic for each row, if there is one."""
    if refused:
        raise UnsupportedError(_diagnostic(target, row) for row in refused)


def try_legalize(model: Model, capabilities: Capabilities) -> tuple[LegalizeReport, list[Refused]]:
    """Decompose what the target does not claim, as far as that goes; what was done, and what remains refused."""
    report = LegalizeReport(capabilities.name)
    rewriter = Rewriter(model, "legalize")
    if any(n.op.name == "call" and capabilities.claims(n) is not None for n in model.nodes()):
        inline_calls(model, rewriter)
    refused: dict[Node, str] = {}
    depth: dict[Node, int] = {}
    for node in rewriter.worklist(model.nodes()):
        reason = capabilities.claims(node)
        if reason is None:
            refused.pop(node, None)
        elif (kept := _decompose(rewriter, node, depth)) is None:
            report.decomposed[node.op.name] += 1
            refused.pop(node, None)
        else:
            refused[node] = f"{reason}; it {kept}" if kept else reason
    rows: dict[tuple[str, str], list[Node]] = {}
    for node, reason in refused.items():
        if node.graph is not None:
            rows.setdefault((node.op.name, reason), []).append(node)
    return report, [Refused(op, reason, len(nodes), nodes[0].label) for (op, reason), nodes in rows.items()]


def _decompose(rewriter: Rewriter, node: Node, depth: dict[Node, int]) -> str | None:
    """Put the decomposition in the node's place.  None if done, else why not (empty for core operators)."""
    if node.op.decompose is None:
        return "has no decomposition" if node.op.is_composite else ""
    level = depth.get(node, 0) + 1
    if level > _MAX_DEPTH:
        raise IrcError(f"the decomposition of {node.label} comes back to itself")
    created: list[Node] = []
    outer = rewriter.before(node)

    def record(new: Node) -> None:
        created.append(new)
        depth[new] = level
        if outer.on_create is not None:
            outer.on_create(new)

    build = Builder(rewriter.model, outer.graph, node, location=outer.location, on_create=record)
    try:
        values = decompose(build, node.op, node.operands, node.keywords)
        _check_types(node, values)
    except InferenceError as error:
        for graph in node.all_graphs():
            graph.parent = node  # a node of the abandoned decomposition may have taken it
        for new in reversed([n for n in created if n.graph is outer.graph]):
            rewriter.erase(new)
        return str(error).removeprefix(f"{node.label}: ")
    rewriter.replace(node, values)
    return None


def _check_types(node: Node, values: tuple[Value, ...]) -> None:
    """A decomposition must give what the composite promised: number of results, element types, ranks, sizes."""
    if len(values) != len(node.results):
        raise IrcError(f"{node.label} has {len(node.results)} results, its decomposition {len(values)}")
    for old, new in zip(node.results, values, strict=True):
        a, b = old.type, new.type
        if isinstance(a, TensorType) and isinstance(b, TensorType) and a.dims is not None and b.dims is not None:
            fits = len(a.dims) == len(b.dims) and all(
                sizes.equal(x, y) is not False for x, y in zip(a.dims, b.dims, strict=True)
            )
            if not fits or a.dtype is not b.dtype:
                raise IrcError(f"{node.label} has type {a}, its decomposition {b}")


def _diagnostic(target: str, row: Refused) -> Diagnostic:
    count = "1 node" if row.count == 1 else f"{row.count} nodes"
    return Diagnostic("unsupported", f"{target} cannot run {row.operator}: {row.reason} ({count}, first {row.first})")
