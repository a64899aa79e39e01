"""How MLX computes sample.SquaredRelu; without this file it would be decomposed."""

from irc.targets.mlx import types
from irc.targets.mlx.lowering import lower


@lower("sample.SquaredRelu")
def squared_relu(ctx, x, *, scale):
    dtype = x.dtype
    if dtype.bits < 16:
        ctx.refuse(f"MLX has no arithmetic on {dtype}")
    wide = ctx.convert(x, types.accumulator(dtype))
    squared = ctx.call("mx.square", ctx.call("mx.maximum", wide, 0))
    return ctx.convert(ctx.infix("*", squared, scale), dtype)
