"""Rewriting of products between dequantization and quantization to products of integers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ..ir.model import Model
from ..ir.rewrite import Rewriter
from .fusions.qdq import NoIntegerForm, integer_form, is_product
from .manager import Level, Pass, register


@register
@dataclass(frozen=True)
class IntegerProducts(Pass):
    """Multiply integers where a product stands between dequantization and quantization.

    %y = QuantizeLinear(MatMul(DequantizeLinear(%a), DequantizeLinear(#w)))   ->   %y = QLinearMatMul(%a, #w)
    %y = QuantizeLinear(Conv(DequantizeLinear(%x), DequantizeLinear(#w)))     ->   %y = QLinearConv(%x, #w)

    Integers are summed exactly, f32 rounds, so results may differ next to a tie.  `quanta` is how many quanta they may
    differ by, proved from scales, weights and the number of terms: 0 takes only what is equal bit for bit (scales that
    are powers of two, sums up to 2^24), 1 also what may differ by one step.  The rest stays; `irc explain` says why.
    """

    name: ClassVar[str] = "integer-products"
    level: ClassVar[Level] = Level.CANONICAL

    quanta: int = 0

    def run(self, model: Model, rewriter: Rewriter) -> None:
        for node in rewriter.worklist(model.nodes()):
            if is_product(node) is None:
                continue
            try:
                form = integer_form(node)
            except NoIntegerForm:
                continue
            if form.error == 0 or form.error < self.quanta:
                value = form.build(rewriter.before(form.last, sources=[form.layer, form.last]))
                rewriter.replace(form.last, value)
