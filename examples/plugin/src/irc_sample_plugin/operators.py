"""The operator `sample.SquaredRelu`: signature, meaning, formula, decomposition."""

import numpy as np

from irc.ir.operators import ELEMENTWISE, FLOAT, PURE, Operand, operator


@operator("sample.SquaredRelu", family="elementwise", traits=PURE | ELEMENTWISE)
class SquaredRelu:
    """scale * max(x, 0)^2 (So et al. 2021, "Primer").  NaN stays; overflow gives an infinity."""

    x: Operand[FLOAT]
    scale: float = 1.0

    def reference(ctx, x, *, scale):
        return scale * np.square(np.maximum(x, 0))

    def decompose(ctx, x, *, scale):
        b = ctx.build
        positive = b.maximum(x, 0.0)
        squared = b.multiply(positive, positive)
        return squared if scale == 1 else b.multiply(squared, scale)
