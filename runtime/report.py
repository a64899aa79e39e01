"""What compiling did: nodes before and after, constants, time by stage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """Figures of one executable.  `seconds` by stage, in the order in which stages first ran."""

    nodes_before: int = 0
    nodes_after: int = 0
    constants: int = 0
    constant_bytes: int = 0
    decomposed: dict[str, int] = field(default_factory=dict)
    """Composites that the target does not lower natively, with how often they were decomposed."""
    segments: int = 0
    """Programs compiled for an entry that runs in stages."""
    host_steps: int = 0
    """What the host does between them: reads of values that decide shapes, branches, sequences, strings."""
    host_operators: dict[str, int] = field(default_factory=dict)
    """Operators that the host ran there; reads and choices of a branch are none."""
    bucketed: list[str] = field(default_factory=list)
    """Dims that are rounded up."""
    exact: dict[str, str] = field(default_factory=dict)
    """Dims that stay exact although rounding up was asked for, and why."""
    limited: dict[str, str] = field(default_factory=dict)
    """Dims that are rounded up, but of which a call had a size that could not be, and the last reason."""
    seconds: dict[str, float] = field(default_factory=dict)

    def add_time(self, stage: str, seconds: float) -> None:
        self.seconds[stage] = self.seconds.get(stage, 0.0) + seconds

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Report:
        """What `as_dict` gave, as far as it is there and of the right type."""
        out = cls()
        for name, value in row.items():
            if type(value) is type(getattr(out, name, None)):
                setattr(out, name, value)
        return out

    def as_dict(self) -> dict[str, Any]:
        """For `--json`."""
        return {
            "nodes_before": self.nodes_before,
            "nodes_after": self.nodes_after,
            "constants": self.constants,
            "constant_bytes": self.constant_bytes,
            "decomposed": dict(self.decomposed),
            "segments": self.segments,
            "host_steps": self.host_steps,
            "host_operators": dict(self.host_operators),
            "bucketed": list(self.bucketed),
            "exact": dict(self.exact),
            "limited": dict(self.limited),
            "seconds": dict(self.seconds),
        }
