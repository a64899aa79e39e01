"""Which pass, and which single rewrite of it, makes a model compute something else (or crash, or become invalid)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.clone import clone_model
from ..ir.errors import IrcError
from ..ir.model import Model
from ..ir.rewrite import Change, Rewriter, RewritesStopped
from ..ir.verify import check
from ..passes import DEFAULT, Pass, Pipeline, parse_pipeline, run_pipeline
from ..passes.manager import PassError, level_of, set_level
from .agreement import compare

Run = Callable[[Model], Sequence[Any]]
"""Outputs of a model, on whatever target is looked at."""


@dataclass
class Verdict:
    """What `bisect` found.  `blame` is "nothing", "target" (wrong before any pass) or "pass"."""

    blame: str
    reason: str = ""
    pass_name: str = ""
    pass_number: int = 0
    """Counted from 1 among the runs of passes, repetitions of a group included."""
    rewrite_number: int = 0
    """Counted from 1 among the changes of that run, new nodes not counted; 0: the pass without any of them."""
    rewrite: str = ""
    node: str = ""
    source: tuple[str, ...] = ()
    detail: str = ""
    tried: int = 0
    before: Model | None = field(default=None, repr=False)
    after: Model | None = field(default=None, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        names = ("blame", "reason", "pass_name", "pass_number", "rewrite_number", "rewrite", "node", "detail", "tried")
        return {**{n: getattr(self, n) for n in names}, "source": list(self.source)}

    def __str__(self) -> str:
        if self.blame == "nothing":
            return "nothing is wrong: outputs agree after all passes"
        if self.blame == "target":
            return f"no pass is to blame: the target is wrong before any pass ({self.reason})"
        lines = [f"pass     {self.pass_name} (run {self.pass_number})"]
        if self.rewrite_number:
            lines.append(f"rewrite  {self.rewrite}, change {self.rewrite_number}: {self.detail}")
            lines.append(f"node     {self.node}{f' from {list(self.source)}' if self.source else ''}")
        return "\n".join([*lines, f"fault    {self.reason}"])


@dataclass
class _State:
    model: Model
    changes: list[Change]
    fault: str | None
    """Why it is wrong; None if it is right."""


class _Search:
    def __init__(self, model: Model, run: Run, want: Sequence[Any], rtol: float, atol: float) -> None:
        self.model, self.run, self.want, self.rtol, self.atol = model, run, want, rtol, atol
        self.steps: list[Pass] = []
        self.tried = 0

    def state(self, passes: int, limit: int | None = None) -> _State:
        """The model after so many passes; of the last one only `limit` changes, if given."""
        self.tried += 1
        work = clone_model(self.model)
        changes: list[Change] = []
        try:
            for i, step in enumerate(self.steps[:passes]):
                rewriter = Rewriter(work, step.name, limit=limit if i == passes - 1 else None)
                changes = rewriter.changes
                try:
                    step.run(work, rewriter)
                    set_level(work, step.reaches)
                except RewritesStopped:
                    _forget_new_nodes(rewriter)
            check(work, level=str(level_of(work)))
            return _State(work, changes, self.difference(work))
        except Exception as error:  # whatever breaks off is what is looked for
            said = str(error) if isinstance(error, IrcError) else f"{type(error).__name__}: {error}"
            return _State(work, changes, said)

    def difference(self, model: Model) -> str | None:
        """How the outputs of a model depart from those that are wanted."""
        got = self.run(model)
        for i, (have, want) in enumerate(zip(got, self.want, strict=True)):
            name = model.main.output_names[i] if model.main.output_names else f"output {i}"
            agreement = compare(name, np.asarray(have), want, rtol=self.rtol, atol=self.atol)
            if not agreement.agrees:
                return str(agreement)
        return None


def bisect(
    model: Model,
    run: Run,
    want: Sequence[Any],
    *,
    passes: str | Pipeline | Sequence[Pass] = DEFAULT,
    rtol: float = 1e-4,
    atol: float = 1e-6,
) -> Verdict:
    """Find the first pass, then its first change, after which `run(model)` departs from `want`.

    The model stays as it is.  Passes are taken in the order in which the pipeline runs them on this model, repetitions
    included; a change is any step of the Rewriter but the making of nodes.  Both searches halve: what was wrong once is
    taken to stay wrong, but for the middle of a rewrite of several changes, which is passed over.
    """
    search = _Search(model, run, want, rtol, atol)
    first = search.state(0)
    if first.fault is not None:
        return Verdict("target", first.fault, tried=search.tried)
    search.steps = _steps(model, passes)
    last = search.state(len(search.steps))
    if last.fault is None:
        return Verdict("nothing", tried=search.tried)
    at = _first_wrong(len(search.steps), lambda k: search.state(k).fault is not None)
    wrong = search.state(at)
    step = search.steps[at - 1]
    made = sum(c.kind != "create" for c in wrong.changes)
    found = _first_lasting(made, lambda n: search.state(at, n).fault is not None) if made else 0
    verdict = Verdict("pass", wrong.fault or "", str(step), at, tried=search.tried)
    after = search.state(at, found) if found else wrong
    if found and after.fault is not None:
        change = [c for c in after.changes if c.kind != "create"][found - 1]
        verdict.rewrite_number, verdict.rewrite, verdict.node = found, change.rewrite, change.node
        verdict.detail = f"{change.kind}{f' by {change.detail}' if change.detail else ''}"
        verdict.source = change.subject.location.source if change.subject is not None else ()
        verdict.reason = after.fault
    verdict.before = search.state(at, found - 1).model if found else search.state(at - 1).model
    verdict.after, verdict.tried = after.model, search.tried
    return verdict


LOOK_AHEAD = 16
"""Changes that one rewrite may take: in between, a model may be invalid or wrong though the rewrite is right."""


def _first_lasting(count: int, wrong: Callable[[int], bool]) -> int:
    """The least n with wrong(n) that is not right again within LOOK_AHEAD changes."""
    low = 0
    while True:
        found = _first_wrong(count, wrong, low)
        later = range(found + 1, min(found + LOOK_AHEAD, count - 1) + 1)
        right = next((n for n in later if not wrong(n)), None)
        if right is None:
            return found
        low = right


def _forget_new_nodes(rewriter: Rewriter) -> None:
    """Erase the nodes made for the change that was not allowed to begin."""
    rewriter.limit = None
    for change in reversed(list(rewriter.changes)):
        node = change.subject
        if change.kind != "create":
            break
        if node is not None and node.graph is not None and not any(r.has_uses for r in node.results):
            rewriter.erase(node)
            rewriter.changes.pop()


def _first_wrong(count: int, wrong: Callable[[int], bool], low: int = 0) -> int:
    """The least n in low+1..count with wrong(n), where wrong(count) holds and wrong(low) does not."""
    high = count
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if wrong(middle) else (middle, high)
    return high


def _steps(model: Model, passes: str | Pipeline | Sequence[Pass]) -> list[Pass]:
    """The runs of passes on this model, up to and with one that breaks off."""
    steps: list[Pass] = []
    if isinstance(passes, str):
        pipeline = parse_pipeline(passes)
    else:
        pipeline = passes if isinstance(passes, Pipeline) else Pipeline(tuple(passes))
    try:
        run_pipeline(clone_model(model), pipeline, observe=lambda step, rewriter: steps.append(step))
    except PassError as error:
        steps += [error.step] if error.step is not None else []
    return steps


def save_both(verdict: Verdict, folder: Path) -> Mapping[str, Path]:
    """Write the model before and after the change as before.ir and after.ir; one that cannot be saved is left out."""
    from ..ir.container import save

    folder.mkdir(parents=True, exist_ok=True)
    out = {}
    for name, model in (("before", verdict.before), ("after", verdict.after)):
        if model is not None:
            path = folder / f"{name}.ir"
            try:
                save(model, path)
                out[name] = path
            except Exception:  # an invalid model may not even print
                continue
    return out
