"""Makes a model that fails smaller while it keeps failing: outputs and nodes go as long as the fault stays."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from ..ir.build import Builder
from ..ir.clone import clone_model
from ..ir.errors import IrcError
from ..ir.graph import Constant, Node, Value
from ..ir.model import Model
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from ..ir.verify import check
from ..passes import run_passes

Fails = Callable[[Model], bool]


@dataclass
class Reduction:
    """The smallest model found, and how the search went."""

    model: Model
    nodes_before: int
    nodes_after: int
    tried: int
    complete: bool
    """Nothing smaller was left to try; otherwise tries or time ran out."""


def shrink(
    model: Model,
    fails: Fails,
    *,
    tries: int = 2000,
    seconds: float = 300.0,
    improved: Callable[[Model], None] = lambda model: None,
) -> Reduction:
    """A smaller model for which `fails` still holds.  The model stays as it is.

    Steps: keep one output; cut runs of nodes, long runs first (what they gave becomes an operand of theirs of the same
    type, else zeros); drop dead nodes.  Inputs stay, so that the same feeds fit.  Every candidate is verified before it
    is asked about, and an exception of `fails` counts as no.
    `improved` sees every smaller model at once (to save it).  The same model and answers give the same result.
    """
    if tries < 1 or seconds <= 0:
        raise IrcError(f"tries and seconds must be positive, got {tries} and {seconds:g}")
    search = _Search(model, fails, tries, time.monotonic() + seconds, improved, tried=1)
    if not fails(clone_model(model)):  # what goes wrong here is the caller's to see
        raise IrcError("the model does not fail, so there is nothing to reduce; check the condition")
    best = clone_model(model)
    progress = True
    while progress and not search.spent():
        progress = False
        for candidate in _candidates(best):
            if search.spent():
                break
            if candidate is not None and _size(candidate) < _size(best) and search.holds(candidate):
                best, progress = candidate, True
                improved(best)
                break
    return Reduction(best, _count(model), _count(best), search.tried, not search.spent())


@dataclass
class _Search:
    model: Model
    fails: Fails
    tries: int
    until: float
    improved: Callable[[Model], None]
    tried: int = 0

    def spent(self) -> bool:
        return self.tried >= self.tries or time.monotonic() > self.until

    def holds(self, candidate: Model) -> bool:
        self.tried += 1
        try:
            check(candidate)
            return bool(self.fails(candidate))
        except Exception:  # a candidate that breaks in another way is not the fault that is looked for
            return False


def _count(model: Model) -> int:
    return sum(1 for _ in model.nodes())


def _size(model: Model) -> tuple[int, int, int]:
    """What every step makes smaller: outputs, nodes that do more than make zeros, nodes."""
    nodes = list(model.nodes())
    return len(model.main.outputs), sum(bool(n.operands) and not _is_fill(n) for n in nodes), len(nodes)


def _is_fill(node: Node) -> bool:
    return node.op.name == "broadcast_in_dim" and isinstance(node.operands[0], Constant)


def _candidates(model: Model) -> Iterator[Model | None]:
    """Smaller models, the boldest first."""
    outputs = len(model.main.outputs)
    if outputs > 1:
        for i in range(outputs):
            yield _with_output(model, i)
    count = len(list(model.main.body.nodes))
    size = max(1, count // 2)
    while count and size >= 1:
        for start in range(0, count, size):
            yield _cut(model, start, min(start + size, count))
        size //= 2


def _with_output(model: Model, index: int) -> Model | None:
    work = clone_model(model)
    function = work.main
    function.body.set_outputs([function.body.outputs[index]])
    function.output_names = [function.output_names[index]] if function.output_names else []
    return _cleaned(work)


def _cut(model: Model, start: int, stop: int) -> Model | None:
    """The nodes from `start` to `stop` go; what others use of them becomes what `_stand_in` finds."""
    work = clone_model(model)
    body = work.main.body
    nodes = list(body.nodes)[start:stop]
    gone = set(nodes)
    rewriter = Rewriter(work, "reduce")
    for node in reversed(nodes):
        for result in node.results:
            if not result.has_uses:
                continue
            stand_in = _stand_in(work, node, result, gone)
            if stand_in is None:
                return None
            rewriter.replace_uses(result, stand_in)
        rewriter.erase(node)
    return _cleaned(work)


def _stand_in(model: Model, node: Node, result: Value, gone: set[Node]) -> Value | None:
    """An operand of the same type from before the cut, else zeros, else None."""
    stack = [v for v in node.operands if v is not None]
    while stack:
        value = stack.pop(0)
        if value.type == result.type and value.node not in gone:
            return value
        if value.node in gone:
            stack += [v for v in value.node.operands if v is not None]
    type_ = result.type
    if not isinstance(type_, TensorType) or type_.dims is None or type_.dtype.is_string or node.graph is None:
        return None
    first = node.graph.first
    zeros: Value = Builder(model, node.graph, first).full(0, type_.dtype, type_.shape)
    return zeros


def _cleaned(work: Model) -> Model | None:
    """Without dead nodes."""
    try:
        work = run_passes(work, "dce")
    except IrcError:
        return None
    return work
