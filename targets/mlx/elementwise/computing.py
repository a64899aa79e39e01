"""How elementwise rules compute: in the wide type of narrow operands, in single precision, in double precision."""

from ....ir import dtypes
from .. import types


def plain(make):
    """A rule that computes in the wide type of its operands: bytes for sub-byte integers, f32 for float8."""

    def rule(ctx, *xs, **attributes):
        dtype = xs[0].dtype
        return ctx.narrow(make(ctx, *[ctx.wide(x) for x in xs], **attributes), dtype)

    return rule


def single(make):
    """`plain`, with f16 and bf16 computed in f32 and rounded once."""

    def rule(ctx, *xs, **attributes):
        dtype = xs[0].dtype
        wide = [ctx.convert(ctx.wide(x), types.accumulator(dtype)) if dtype.is_float else ctx.wide(x) for x in xs]
        out = make(ctx, *wide, **attributes)
        return ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)

    return rule


def in_mlx(name):
    return lambda ctx, *xs: ctx.weak_call(name, *xs)


def in_double(name, recipe):
    """MLX's function, or a recipe where MLX computes doubles in single precision."""
    return lambda ctx, *xs: ctx.recipe(recipe, *xs) if xs[0].dtype is dtypes.f64 else ctx.weak_call(name, *xs)


def both(ctx, *xs):
    return ctx.broadcast([x.dims for x in xs])


def known(y, *bad):
    """The number that a constant divisor is, unless it is one of those that need care."""
    number = y.number
    return number is not None and number not in bad
