"""Elementwise arithmetic, comparison and logic.  Conversions between element types are in `convert`."""

from ...ir import dtypes
from . import types
from .lowering import lower


def _plain(name):
    """A StableHLO operator applied in the carrier type, for functions that are exact or correctly rounded in it."""

    def rule(ctx, *xs):
        dtype = xs[0].dtype
        xs = ctx.together(*[ctx.carried(x) for x in xs])
        return ctx.convert(ctx.apply(name, *xs), dtype)

    return rule


def _wide(make):
    """A function computed in f32 for narrower floats and rounded once."""

    def rule(ctx, *xs):
        dtype = xs[0].dtype
        xs = ctx.together(*[ctx.convert(x, types.accumulator(x.dtype)) for x in xs])
        return ctx.convert(make(ctx, *xs), dtype)

    return rule


def _stablehlo(name):
    return _wide(lambda ctx, *xs: ctx.apply(name, *xs))


def _chlo(name):
    return _wide(lambda ctx, x: ctx.chlo(name, x))


for _name, _spelling in {
    "ceil": "ceil", "floor": "floor", "round_nearest_even": "round_nearest_even", "round_nearest_afz": "round_nearest_afz",
    "negate": "negate", "subtract": "subtract",
}.items():  # fmt: skip
    lower(_name)(_plain(_spelling))

for _name, _spelling in {
    "exponential": "exponential", "exponential_minus_one": "exponential_minus_one", "log": "log", "log_plus_one": "log_plus_one",
    "logistic": "logistic", "tanh": "tanh", "sqrt": "sqrt", "rsqrt": "rsqrt", "cbrt": "cbrt", "sine": "sine",
    "cosine": "cosine", "tan": "tan", "atan2": "atan2",
}.items():  # fmt: skip
    lower(_name)(_stablehlo(_spelling))

for _name in (
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "atanh", "erf", "erfc", "erf_inv", "lgamma", "digamma",
):  # fmt: skip
    lower(_name)(_chlo(_name))


def _logical(name, bool_name):
    """Arithmetic with a meaning of its own for bool."""
    numeric = _plain(name)

    def rule(ctx, x, y):
        if x.dtype.is_bool:
            return ctx.apply(bool_name, *ctx.together(x, y))
        return numeric(ctx, x, y)

    return rule


lower("add")(_logical("add", "or_"))
lower("multiply")(_logical("multiply", "and_"))
lower("maximum")(_logical("maximum", "or_"))
lower("minimum")(_logical("minimum", "and_"))


@lower("abs")
def abs_(ctx, x):
    if x.dtype.kind == "uint":
        return x
    if x.dtype.is_complex:
        return ctx.apply("abs", x, dtype=types.part(x.dtype))
    return ctx.convert(ctx.apply("abs", ctx.carried(x)), x.dtype)


@lower("sign")
def sign(ctx, x):
    if x.dtype.kind == "uint":
        return ctx.select(ctx.compare(x, 0, "eq"), x, 1)
    return ctx.convert(ctx.apply("sign", ctx.carried(x)), x.dtype)


@lower("not")
def not_(ctx, x):
    if x.dtype.is_bool:
        return ctx.apply("not_", x)
    return ctx.convert(ctx.apply("not_", ctx.carried(x)), x.dtype)


def _bits(ctx, x):
    """The bits of an integer as an unsigned integer of at least 8 bits, and how many zero bits that put in front."""
    unsigned = dtypes.DType.of(f"u{x.dtype.bits}")
    if x.dtype is not unsigned:
        x = ctx.convert(x, unsigned)
    carried = ctx.carried(x)
    return carried, carried.dtype.bits - unsigned.bits


@lower("popcnt")
def popcnt(ctx, x):
    bits, _ = _bits(ctx, x)
    return ctx.convert(ctx.apply("popcnt", bits), x.dtype)


@lower("count_leading_zeros")
def count_leading_zeros(ctx, x):
    bits, extra = _bits(ctx, x)
    count = ctx.apply("count_leading_zeros", bits)
    if extra:
        count = ctx.apply("subtract", count, ctx.full_like(count, extra))
    return ctx.convert(count, x.dtype)


@lower("is_finite")
def is_finite(ctx, x):
    return ctx.apply("is_finite", ctx.carried(x), dtype=dtypes.bool_)


@lower("real")
def real(ctx, x):
    return ctx.apply("real", x, dtype=types.part(x.dtype)) if x.dtype.is_complex else x


@lower("imag")
def imag(ctx, x):
    return ctx.apply("imag", x, dtype=types.part(x.dtype)) if x.dtype.is_complex else ctx.full_like(x, 0)


@lower("conj")
def conj(ctx, x):
    re, im = real(ctx, x), imag(ctx, x)
    return ctx.apply("complex", re, ctx.apply("negate", im), dtype=x.dtype)


@lower("complex", when=lambda ctx, x, y: None if x.dtype in (dtypes.f32, dtypes.f64) else f"complex numbers of {x.dtype}")
def complex_(ctx, x, y):
    dtype = dtypes.c64 if x.dtype is dtypes.f32 else dtypes.c128
    return ctx.apply("complex", *ctx.together(x, y), dtype=dtype)


@lower("divide")
def divide(ctx, x, y):
    return _plain("divide")(ctx, x, y)


@lower("remainder")
def remainder(ctx, x, y):
    """fmod of floats narrower than 32 bits is exact in f32, so it too is rounded once."""
    return _stablehlo("remainder")(ctx, x, y)


@lower("power")
def power(ctx, x, y):
    return _stablehlo("power")(ctx, x, y)


@lower("and", "or", "xor")
def bitwise(ctx, x, y):
    name = {"and": "and_", "or": "or_", "xor": "xor"}[ctx.node.op.name]
    dtype = x.dtype
    return ctx.convert(ctx.apply(name, *ctx.together(ctx.carried(x), ctx.carried(y))), dtype)


@lower("shift_left", "shift_right_logical", "shift_right_arithmetic")
def shift(ctx, x, y):
    """XLA's shifts by the width or more are those wanted; types below 8 bits are shifted in a wider one."""
    name, dtype = ctx.node.op.name, x.dtype
    if name == "shift_right_arithmetic":
        x = ctx.convert(x, dtypes.DType.of(f"i{dtype.bits}"))
        y = ctx.convert(y, dtypes.DType.of(f"i{dtype.bits}"))
    elif dtype.bits < 8:
        x, y = _bits(ctx, x)[0], _bits(ctx, y)[0]
    x, y = ctx.together(ctx.carried(x), ctx.carried(y))
    shifted = ctx.apply(name, x, y)
    if dtype.bits < 8 and name == "shift_left":
        shifted = ctx.select(ctx.compare(y, dtype.bits, "ge"), ctx.full_like(x, 0), shifted)
    return ctx.convert(shifted, dtype)


@lower("compare", when=lambda ctx, x, y, *, direction: "XLA has no strings" if x.dtype.is_string else None)
def compare(ctx, x, y, *, direction):
    return ctx.compare(ctx.carried(x), ctx.carried(y), direction)


@lower("select")
def select(ctx, predicate, x, y):
    return ctx.select(predicate, x, y)


@lower("clamp")
def clamp(ctx, low, x, high):
    """Written out: XLA's own clamp does not promise what NaN bounds give."""
    dtype = x.dtype
    low, x, high = ctx.together(*[ctx.carried(v) for v in (low, x, high)])
    return ctx.convert(ctx.apply("minimum", ctx.apply("maximum", x, low), high), dtype)


@lower("optimization_barrier")
def optimization_barrier(ctx, xs):
    from jax.extend.mlir.dialects import stablehlo as hlo

    values = hlo.OptimizationBarrierOp([x.value for x in xs]).results
    return tuple(ctx.wrap(v, x.dtype) for v, x in zip(values, xs, strict=True))


@lower("reduce_precision")
def reduce_precision(ctx, x, *, exponent_bits, mantissa_bits):
    from jax.extend.mlir.dialects import stablehlo as hlo

    carried = ctx.carried(x)
    value = hlo.reduce_precision(carried.value, exponent_bits, mantissa_bits)
    return ctx.convert(ctx.wrap(value, carried.dtype), x.dtype)
