"""Elementwise arithmetic, comparison and logic.  Conversions between element types are in `convert`."""

from ...ir import dtypes
from . import types
from .lowering import lower
from .mlir import hlo


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


for _name in ("ceil", "floor", "round_nearest_even", "round_nearest_afz", "negate", "subtract", "divide"):
    lower(_name)(_plain(_name))

# fmod of floats narrower than 32 bits is exact in f32, so it too is rounded once.
for _name in (
    "exponential", "exponential_minus_one", "log_plus_one", "logistic", "tanh", "sqrt", "rsqrt", "cbrt", "sine",
    "cosine", "tan", "atan2", "remainder",
):  # fmt: skip
    lower(_name)(_stablehlo(_name))

for _name in (
    "asin", "acos", "atan", "sinh", "cosh", "asinh", "acosh", "erf", "erfc", "erf_inv", "lgamma",
):  # fmt: skip
    lower(_name)(_chlo(_name))


_TAKEN_APART = ("stablehlo.exponential", "stablehlo.power", "stablehlo.rsqrt")
"""XLA writes x for log(exp(x)), y log|x| for log(x^y) and -log(x)/2 for log(rsqrt(x)): other numbers, and no NaN."""


@lower("log")
@_wide
def log(ctx, x):
    if getattr(x.value.owner, "name", "") in _TAKEN_APART:
        x = ctx.wrap(hlo.OptimizationBarrierOp([x.value]).results[0], x.dtype)
    return ctx.apply("log", x)


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


@lower(
    "complex", when=lambda ctx, x, y: None if x.dtype in (dtypes.f32, dtypes.f64) else f"complex numbers of {x.dtype}"
)
def complex_(ctx, x, y):
    dtype = dtypes.c64 if x.dtype is dtypes.f32 else dtypes.c128
    return ctx.apply("complex", *ctx.together(x, y), dtype=dtype)


def _atanh(ctx, x):
    """sign(x) log1p(2|x| / (1 - |x|)) / 2: CHLO's own form is 50 units off in f64."""
    if x.dtype.is_complex:
        return ctx.chlo("atanh", x)
    size = ctx.apply("abs", x)
    ratio = ctx.apply("divide", ctx.apply("add", size, size), ctx.apply("subtract", ctx.full_like(x, 1), size))
    half = ctx.apply("multiply", ctx.apply("log_plus_one", ratio), ctx.full_like(x, 0.5))
    return ctx.apply("multiply", ctx.apply("sign", x), half)


lower("atanh")(_wide(_atanh))


def _digamma(ctx, x):
    """-1/x at the two zeros, where CHLO's expansion gives NaN."""
    pole = ctx.apply("divide", ctx.full_like(x, -1), x)
    return ctx.select(ctx.compare(x, 0, "eq"), pole, ctx.chlo("digamma", x))


lower("digamma")(_wide(_digamma))


@lower("power")
def power(ctx, x, y):
    return _integer_power(ctx, x, y) if x.dtype.is_integer else _stablehlo("power")(ctx, x, y)


def _integer_power(ctx, x, y):
    """By squaring, over all bits of the exponent: XLA's CPU compiler looks at the lowest few only."""
    dtype, bits = x.dtype, x.dtype.bits
    x, y = ctx.together(ctx.carried(x), ctx.carried(y))
    one, zero = ctx.full_like(x, 1), ctx.full_like(x, 0)
    result, square = one, x
    for bit in range(bits - (dtype.kind == "int")):
        mask = ctx.full_like(y, 1 << bit)
        taken = ctx.compare(ctx.apply("and_", y, mask), zero, "ne")
        result = ctx.select(taken, ctx.apply("multiply", result, square), result)
        square = ctx.apply("multiply", square, square)
    if dtype.kind == "int":
        odd = ctx.compare(ctx.apply("and_", y, one), zero, "ne")
        minus = ctx.select(odd, x, one)
        inverse = ctx.select(ctx.compare(x, -1, "eq"), minus, ctx.select(ctx.compare(x, 1, "eq"), one, zero))
        result = ctx.select(ctx.compare(y, zero, "lt"), inverse, result)
    return ctx.convert(result, dtype)


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

    values = hlo.OptimizationBarrierOp([x.value for x in xs]).results
    return tuple(ctx.wrap(v, x.dtype) for v, x in zip(values, xs, strict=True))


@lower("reduce_precision")
def reduce_precision(ctx, x, *, exponent_bits, mantissa_bits):

    carried = ctx.carried(x)
    value = hlo.reduce_precision(carried.value, exponent_bits, mantissa_bits)
    return ctx.convert(ctx.wrap(value, carried.dtype), x.dtype)
