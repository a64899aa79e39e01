"""Public helpers for authors of operators, passes, fusions and targets, inside irc and in plug-ins.

| for | helpers |
|---|---|
| an operator | `run`, `check_composite`, `facts_of`, `assumptions_of` |
| a fusion | `model_of`, `try_fusions`, `random_inputs`: did it fire, why not, are results kept |
| a pass | `check_passes`, `check_equivalent`, `check_file` (IR files with RUN and CHECK lines), `bisect`, `shrink` |
| a target | `check_target`: every operator that it claims; `compare`; `check_golden` for emitted code |
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import compare
    from .bisection import bisect
    from .equivalence import check_equivalent, check_passes
    from .filecheck import check_file
    from .golden import check_golden
    from .operators import assumptions_of, check_composite, facts_of, run
    from .patterns import model_of, random_inputs, try_fusions
    from .reduce import shrink
    from .targets import check_target

_HOMES = {
    "assumptions_of": "operators",
    "bisect": "bisection",
    "check_composite": "operators",
    "check_equivalent": "equivalence",
    "check_file": "filecheck",
    "check_golden": "golden",
    "check_passes": "equivalence",
    "check_target": "targets",
    "compare": "agreement",
    "facts_of": "operators",
    "model_of": "patterns",
    "random_inputs": "patterns",
    "run": "operators",
    "shrink": "reduce",
    "try_fusions": "patterns",
}
__all__ = [
    "assumptions_of", "bisect", "check_composite", "check_equivalent", "check_file", "check_golden", "check_passes",
    "check_target", "compare", "facts_of", "model_of", "random_inputs", "run", "shrink", "try_fusions",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'irc.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
