"""Canonicalization: the pass and its driver.  Rewrites stand in one file an operator family, the table in `table`."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from ...ir.model import Model
from ...ir.rewrite import Rewriter
from ..manager import Level, Pass, register
from .table import rewrites_of

for _family in ("shape", "pieces", "elementwise", "reduction", "indexing", "control", "integers"):
    importlib.import_module(f".{_family}", __name__)


@register
@dataclass(frozen=True)
class Canonicalize(Pass):
    """Bring nodes to one spelling by local, exact rewrites, until none applies.

    %a = transpose(%x) {permutation = [1, 0]}; %b = transpose(%a) {permutation = [1, 0]}   ->   %x
    %s = broadcast_in_dim(2.0) {dims = [B, 64]}; %y = multiply(%x, %s)   ->   %y = multiply(%x, 2.0)
    %n = dimensions() {dims = [B, 64]}; %b = take(%n, 0)                 ->   %b = dimensions() {dims = [B], ..}
    """

    name = "canonicalize"
    level = Level.CANONICAL
    reaches = Level.CANONICAL

    def run(self, model: Model, rewriter: Rewriter) -> None:
        """A rewrite replaces the node or changes it in place; whatever a change touches is looked at again."""
        for node in rewriter.worklist(model.nodes()):
            for label, rewrite in rewrites_of(node.op):
                rewriter.label = label
                values = rewrite(rewriter, node)
                if values is not None:
                    rewriter.replace(node, values)
                    break
