"""Recognition of composites in graphs of primitives: the pass `fuse`.  The language stands in `passes/pattern`."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import dataclass

from ...ir.model import Model
from ...ir.rewrite import Rewriter
from ..manager import Level, Pass, register
from ..pattern import Fusion, FusionReport, all_fusions, apply_fusions, get_fusion, load_plugins
from ..pipeline import BEFORE_FUSIONS, run_passes
from .apart import left_apart
from .counting import composites_in

for _family in ("activation", "normalization", "quantization", "linear", "rotary", "attention", "grouped"):
    importlib.import_module(f".{_family}", __name__)


@register
@dataclass(frozen=True)
class Fuse(Pass):
    """Raise patterns of primitives to the composite that they spell.

    %e = erf(multiply(%x, 0.7071)); %y = multiply(multiply(%x, add(%e, 1.0)), 0.5)         ->   %y = Gelu(%x)
    %p = Softmax(add(multiply(MatMul(%q, %kt), 0.125), %mask)); %y = MatMul(%p, %v)         ->   %y = Attention(..)

    Every fusion proves what it needs or does not fire; `irc explain` says which fired and which nearly did.
    `disable` and `only` name fusions: fuse{disable=attention;rotary}.
    """

    name = "fuse"
    level = Level.CANONICAL

    disable: tuple[str, ...] = ()
    only: tuple[str, ...] = ()

    def run(self, model: Model, rewriter: Rewriter) -> None:
        fuse(model, rewriter, disable=self.disable, only=self.only)


def fuse(
    model: Model, rewriter: Rewriter | None = None, *, disable: Iterable[str] = (), only: Iterable[str] = ()
) -> FusionReport:
    """Run the fusions, also of plug-ins, on `model` itself, which should be canonical; what fired and nearly did."""
    apart, wanted = tuple(disable), tuple(only)
    load_plugins()
    chosen = [f for f in all_fusions() if _named(f, apart, wanted)]
    return apply_fusions(model, rewriter or Rewriter(model, "fuse"), chosen)


def explain(model: Model, *, disable: Iterable[str] = ()) -> FusionReport:
    """What the default pipeline's fusions do to a model, and what they nearly do; the model stays as it is."""
    work = run_passes(model, BEFORE_FUSIONS)
    report = FusionReport()
    for _ in range(3):
        found = fuse(work, disable=disable)
        report = FusionReport(report.fired + found.fired, found.misses)
        if not found.fired:
            break
        work = run_passes(work, BEFORE_FUSIONS)
    report.composites = composites_in(work)
    report.apart = left_apart(work)
    return report


def _named(fusion: Fusion, disable: tuple[str, ...], only: tuple[str, ...]) -> bool:
    for name in (*disable, *only):
        get_fusion(name)  # a misspelt name must not pass in silence
    return fusion.name not in disable and (not only or fusion.name in only)


__all__ = ["Fuse", "composites_in", "explain", "fuse", "left_apart"]
