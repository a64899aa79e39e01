"""Makes a model that fails smaller while it keeps failing.  What is tried stands in `smaller`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ..ir.clone import clone_model
from ..ir.errors import IrcError
from ..ir.model import Model
from ..ir.verify import check
from .smaller import size, smaller

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

    Steps: keep one output, or an earlier value instead; cut runs of nodes, long runs first, in sub-graphs too (what
    they gave becomes an operand of theirs of the same type, else zeros); put a branch, or one round of a loop, in the
    place of its node; inline calls; stop carrying a value through a loop; fill a constant with one element; make a size
    1 or half.  All inputs stay, and so do nodes that decide how often a loop runs, as long as it is one: it must end.

    Every candidate is verified before it is asked about, and an exception of `fails` counts as no.
    `improved` sees every smaller model at once (to save it).  The same model and answers give the same result.
    """
    if tries < 1 or seconds <= 0:
        raise IrcError(f"tries and seconds must be positive, got {tries} and {seconds:g}")
    check(model)
    search = _Search(model, fails, tries, time.monotonic() + seconds, improved, tried=1)
    if not fails(clone_model(model)):  # what goes wrong here is the caller's to see
        raise IrcError("the model does not fail, so there is nothing to reduce; check the condition")
    best = clone_model(model)
    progress = True
    while progress and not search.spent():
        progress = False
        for candidate in smaller(best):
            if search.spent():
                break
            if candidate is not None and size(candidate) < size(best) and search.holds(candidate):
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
