"""Which pass, and which single rewrite of it, makes a model compute something else (or crash, or become invalid).

Or which node of the model it is that the target's lowering, or the import, gets wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.clone import clone_model
from ..ir.model import Model
from ..ir.rewrite import Change, Rewriter, RewritesStopped
from ..ir.verify import check
from ..passes import DEFAULT, Pass, Pipeline, parse_pipeline, run_pipeline
from ..passes.manager import PassError, level_of, set_level
from ..targets import get
from ..targets.base import Target
from .agreement import (
    Departure,
    Judge,
    compare,
    first_crash,
    first_departure,
    reference_run,
    said_by,
    with_intermediates,
)

Run = Callable[[Model], Sequence[Any]]
"""Outputs of a model, on whatever target is looked at."""

Finding = tuple[str, Departure | None]
"""Who is to blame if not a pass, "target" or "model", and the first node that shows it."""

Examine = Callable[[Model, bool], Finding | None]
"""Looks closer at a model on which `run` is wrong (the flag: after passes).  None: they are to blame."""


@dataclass
class Verdict:
    """What `bisect` found.

    `blame` is "nothing", "pass", "target" (its lowering of `node` is wrong; `pass_name` is the pass after which that
    shows, if it did not from the start) or "model" (wrong as it was read: its import, or the reference).
    """

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
        where = f"{self.node}{f' from {list(self.source)}' if self.source else ''}"
        if self.blame != "pass":
            what = {
                "target": "no pass is to blame: the target's lowering is wrong",
                "model": "no pass is to blame: the model is wrong as it was read, on the reference too",
            }[self.blame]
            shown = f", which shows after the pass {self.pass_name} (run {self.pass_number})" if self.pass_name else ""
            node = f"node     {where}" if self.node else "node     none departs by itself: the error accumulates"
            return "\n".join([f"{what}{shown}", node, f"fault    {self.reason}"])
        lines = [f"pass     {self.pass_name} (run {self.pass_number})"]
        if self.rewrite_number:
            lines.append(f"rewrite  {self.rewrite}, change {self.rewrite_number}: {self.detail}")
            lines.append(f"node     {where}")
        return "\n".join([*lines, f"fault    {self.reason}"])


@dataclass
class _State:
    model: Model
    changes: list[Change]
    fault: str | None
    """Why it is wrong; None if it is right."""
    is_sound: bool = False
    """Whether passes went through and the verifier has nothing to say, so that it could be run."""


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
        except Exception as error:  # whatever breaks off is what is looked for
            return _State(work, changes, said_by(error))
        try:
            return _State(work, changes, self.difference(work), True)
        except Exception as error:  # as above
            return _State(work, changes, said_by(error), True)

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
    examine: Examine = lambda model, changed: None,
) -> Verdict:
    """Find the first pass, then its first change, after which `run(model)` departs from `want`.

    `examine` may find that the model on which that shows is right, and what runs it is not: see `Trial`.

    The model stays as it is.  Passes are taken in the order in which the pipeline runs them on this model, repetitions
    included; a change is any step of the Rewriter but the making of nodes.  Both searches halve: what was wrong once is
    taken to stay wrong, but for the middle of a rewrite of several changes, which is passed over.
    """
    search = _Search(model, run, want, rtol, atol)
    first = search.state(0)
    if first.fault is not None:
        blame, departure = examine(first.model, False) or ("target", None)
        return _found_at(Verdict(blame, first.fault, tried=search.tried, after=first.model), departure)
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
    other = examine(after.model, True) if after.is_sound else None
    if other is not None:
        verdict.blame = other[0]
        verdict.node, verdict.source = "", ()
        _found_at(verdict, other[1])
    return verdict


def _found_at(verdict: Verdict, departure: Departure | None) -> Verdict:
    """With the node that departs, if there is one."""
    if departure is not None:
        verdict.node, verdict.source = departure.node, departure.source
        verdict.reason = departure.error or str(departure.agreement)
    return verdict


@dataclass(frozen=True)
class Trial:
    """A target on one set of inputs: how `bisect` runs a model on it, and tells its faults from those of passes.

    `want` are the outputs that are right, `judge` says what is right inside the model as it was read.
    """

    target: Target
    feeds: Sequence[Any]
    want: Sequence[Any]
    judge: Judge
    rtol: float = 1e-4
    atol: float = 1e-6

    def run(self, model: Model) -> Sequence[Any]:
        """Outputs of a model as it is, no passes run; random operators draw as with seed 0."""
        from .. import compile as compile_model

        return list(compile_model(model, target=self.target, passes="", seed=0)(*self.feeds))

    def examine(self, model: Model, changed: bool) -> Finding | None:
        """The target, if the reference gives the right outputs of this model; before any pass the model, if not."""
        rtol, atol = self.rtol, self.atol
        try:
            every = reference_run(with_intermediates(model), self.feeds)
            got = reference_run(model, self.feeds).values()
        except Exception:  # not even the reference can run it: the pass that made it is to blame
            return None
        if not all(compare("", a, b, rtol=rtol, atol=atol).agrees for a, b in zip(got, self.want, strict=True)):
            if changed:
                return None
            own = self.judge.intermediates(list(model.main.input_names), self.feeds)
            return "model", first_departure(model, get("reference"), self.feeds, own, rtol=rtol, atol=atol)
        try:
            return "target", first_departure(model, self.target, self.feeds, every, rtol=rtol, atol=atol)
        except Exception:
            return "target", first_crash(model, self.target, self.feeds)


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
