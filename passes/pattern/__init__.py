"""The pattern language: traced pattern functions, the matcher, fusions by name.  Fusions are in `passes/fusions`."""

from __future__ import annotations

from .engine import Apart, Fired, FusionReport, NearMiss, apply_fusions
from .match import Match, Refused, equal
from .matching import source
from .registry import Fusion, all_fusions, define, fusion, get_fusion, load_plugins
from .scalars import about, number
from .tracing import Tracer

__all__ = [
    "Apart", "Fired", "Fusion", "FusionReport", "Match", "NearMiss", "Refused", "Tracer", "about", "all_fusions",
    "apply_fusions", "define", "equal", "fusion", "get_fusion", "load_plugins", "number", "source",
]  # fmt: skip
