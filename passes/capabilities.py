"""What a pass may ask of a target: whether it lowers a node.  Targets implement it; passes never import one."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from ..ir.graph import Node


@runtime_checkable
class Capabilities(Protocol):
    """The claims of one target with its options; the lowering table answers."""

    @property
    def name(self) -> str: ...

    def claims(self, node: Node) -> str | None:
        """None if the target lowers this node as it stands, else the reason why not (`"needs a static size"`)."""
