"""What of an ONNX model cannot be imported, gathered for the whole model and reported at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from ...ir.errors import Diagnostic


@dataclass(frozen=True, slots=True)
class Unsupported:
    """One operator that cannot be imported for one reason: how often it stands in the model, and where first."""

    domain: str
    operator: str
    version: int
    count: int
    first_node: str
    reason: str

    def __str__(self) -> str:
        name = f"{self.domain}.{self.operator}" if self.domain else self.operator
        times = f"{self.count} nodes, first" if self.count > 1 else "1 node,"
        return f"{name} (version {self.version}; {times} {self.first_node!r}): {self.reason}"


@dataclass(slots=True)
class Report:
    """Everything of a model that cannot be imported.  False in a condition when there is nothing.

    `late` counts the operators that are imported but typed only at run time, by operator name.
    """

    source: str
    unsupported: tuple[Unsupported, ...] = ()
    nodes: int = 0
    late: dict[str, int] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.unsupported)

    def __iter__(self) -> Iterator[Unsupported]:
        return iter(self.unsupported)

    def __len__(self) -> int:
        return len(self.unsupported)

    def __str__(self) -> str:
        if not self.unsupported:
            return f"{self.source}: all {self.nodes} nodes can be imported"
        return "\n".join([f"{self.source}: {len(self)} operators cannot be imported", *(f"  {u}" for u in self)])

    def diagnostics(self) -> list[Diagnostic]:
        """One diagnostic an operator and reason."""
        return [Diagnostic("ONNX", str(u), self.source) for u in self.unsupported]


class Findings:
    """Collects what cannot be imported while the model is walked; equal operators with equal reasons count up."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, int, str], tuple[int, str]] = {}

    def add(self, domain: str, operator: str, version: int, node: str, reason: str) -> None:
        key = (domain, operator, version, reason)
        count, first = self._rows.get(key, (0, node))
        self._rows[key] = (count + 1, first)

    def rows(self) -> tuple[Unsupported, ...]:
        """In order of first appearance."""
        return tuple(Unsupported(d, o, v, n, first, why) for (d, o, v, why), (n, first) in self._rows.items())
