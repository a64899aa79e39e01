"""The pass `sample-scale`: a factor behind sample.SquaredRelu becomes part of its scale."""

import math
from dataclasses import dataclass

from irc.ir.model import Model
from irc.ir.rewrite import Rewriter
from irc.passes import Level, Pass


@dataclass(frozen=True)
class AbsorbScale(Pass):
    """Take a multiplication by a number into the scale.

    %y = multiply(sample.SquaredRelu(%x) {scale = 2.0}, 0.25)   ->   %y = sample.SquaredRelu(%x) {scale = 0.5}

    Only factors that are powers of two, so that no bit changes short of overflow; `any-factor` takes all.
    """

    name = "sample-scale"
    level = Level.CANONICAL
    after = ("fuse",)

    any_factor: bool = False

    def run(self, model: Model, rewriter: Rewriter) -> None:
        for node in rewriter.worklist(model.nodes()):
            if node.op.name != "multiply":
                continue
            for value, other in (node.operands, node.operands[::-1]):
                inner, factor = value.node, other.data.splat if other.data is not None else None
                if inner is None or inner.op.name != "sample.SquaredRelu" or factor is None or other.dims:
                    continue
                if not (self.any_factor or abs(math.frexp(float(factor))[0]) == 0.5):
                    continue
                scale = inner.attributes.scale * float(factor)
                rewriter.replace(node, rewriter.before(node, sources=[inner]).sample.SquaredRelu(
                    inner.operands[0], scale=scale))  # fmt: skip
                break
