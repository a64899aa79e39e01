"""How XLA computes sample.SquaredRelu; without this file it would be decomposed."""

from irc.targets.xla import types
from irc.targets.xla.lowering import lower


@lower("sample.SquaredRelu")
def squared_relu(ctx, x, *, scale):
    dtype = x.dtype
    x = ctx.convert(x, types.accumulator(dtype))  # f32 for narrower floats, rounded once
    positive = ctx.apply("maximum", x, ctx.full_like(x, 0))
    squared = ctx.apply("multiply", positive, positive)
    return ctx.convert(ctx.apply("multiply", squared, ctx.full_like(squared, scale)), dtype)
