"""Elementwise arithmetic, comparison, logic and activations.  Conversions between element types are in `conversion`."""

import functools
import math

import numpy as np

from ...ir import dtypes
from . import conversion, types
from .expression import LOWEST, Slot
from .lowering import lower


def _plain(make):
    """A rule that computes in the wide type of its operands: bytes for sub-byte integers, f32 for float8."""

    def rule(ctx, *xs, **attributes):
        dtype = xs[0].dtype
        return ctx.narrow(make(ctx, *[ctx.wide(x) for x in xs], **attributes), dtype)

    return rule


def _single(make):
    """`_plain`, with f16 and bf16 computed in f32 and rounded once."""

    def rule(ctx, *xs, **attributes):
        dtype = xs[0].dtype
        wide = [ctx.convert(ctx.wide(x), types.accumulator(dtype)) if dtype.is_float else ctx.wide(x) for x in xs]
        out = make(ctx, *wide, **attributes)
        return ctx.narrow(ctx.convert(out, types.wide(dtype)), dtype)

    return rule


def _in_mlx(name):
    return lambda ctx, *xs: ctx.weak_call(name, *xs)


def _in_double(name, recipe):
    """MLX's function, or a recipe where MLX computes doubles in single precision."""
    return lambda ctx, *xs: ctx.recipe(recipe, *xs) if xs[0].dtype is dtypes.f64 else ctx.weak_call(name, *xs)


for _name, _function in {
    "ceil": "mx.ceil", "floor": "mx.floor", "round_nearest_even": "mx.round", "sqrt": "mx.sqrt",
}.items():  # fmt: skip
    lower(_name)(_plain(_in_mlx(_function)))

for _name, _function in {
    "log": "mx.log", "log_plus_one": "mx.log1p", "tanh": "mx.tanh", "rsqrt": "mx.rsqrt", "tan": "mx.tan",
    "asin": "mx.arcsin", "acos": "mx.arccos", "atan": "mx.arctan", "sinh": "mx.sinh", "cosh": "mx.cosh",
    "asinh": "mx.arcsinh", "acosh": "mx.arccosh", "atanh": "mx.arctanh", "atan2": "mx.arctan2",
}.items():  # fmt: skip
    lower(_name)(_plain(_in_mlx(_function)))

for _name, _function, _recipe in (
    ("exponential", "mx.exp", "_exp"), ("sine", "mx.sin", "_sin"), ("cosine", "mx.cos", "_cos"),
):  # fmt: skip
    lower(_name)(_plain(_in_double(_function, _recipe)))

for _name, _recipe in {
    "cbrt": "_cbrt", "erf": "_erf", "erfc": "_erfc", "erf_inv": "_erfinv", "lgamma": "_lgamma", "digamma": "_digamma",
}.items():  # fmt: skip
    lower(_name)(_single(lambda ctx, x, recipe=_recipe: ctx.recipe(recipe, x)))


@lower("exponential_minus_one")
@_plain
def exponential_minus_one(ctx, x):
    if x.dtype.is_complex:
        return ctx.infix("-", ctx.call("mx.exp", x), 1)
    return _in_double("mx.expm1", "_expm1")(ctx, x)


@lower("logistic")
@_plain
def logistic(ctx, x):
    if x.dtype.is_complex:
        return ctx.infix("/", 1, ctx.infix("+", ctx.call("mx.exp", ctx.negative(x)), 1))
    return _in_double("mx.sigmoid", "_logistic")(ctx, x)


@lower("round_nearest_afz")
@_plain
def round_nearest_afz(ctx, x):
    return ctx.recipe("_round_away", x)


@lower("sign")
@_plain
def sign(ctx, x):
    return ctx.recipe("_sign", x) if x.dtype.is_float else ctx.call("mx.sign", x)


@lower("abs")
def abs_(ctx, x):
    if x.dtype.kind == "uint":
        return x
    if x.dtype.is_complex:
        return ctx.call("mx.abs", x, dtype=dtypes.f32)
    return _plain(lambda ctx, x: ctx.call("mx.abs", x))(ctx, x)


@lower("negate")
@_plain
def negate(ctx, x):
    return ctx.negative(x)


def _infix(operator, logical=None):
    """An infix operator, with another one for bool."""

    @_plain
    def numeric(ctx, x, y):
        return ctx.infix(operator, x, y)

    def rule(ctx, x, y):
        if logical and x.dtype.is_bool:
            return ctx.infix(logical, x, y)
        return numeric(ctx, x, y)

    return rule


lower("add")(_infix("+", "|"))
lower("subtract")(_infix("-"))
lower("multiply")(_infix("*", "&"))
lower("and")(_infix("&"))
lower("or")(_infix("|"))
lower("xor")(_infix("^"))


def _extreme(name, logical):
    numeric = _plain(lambda ctx, x, y: ctx.weak_call(name, x, y))

    def rule(ctx, x, y):
        return ctx.infix(logical, x, y) if x.dtype.is_bool else numeric(ctx, x, y)

    return rule


_MAXIMUM, _MINIMUM = _extreme("mx.maximum", "|"), _extreme("mx.minimum", "&")
lower("maximum")(_MAXIMUM)
lower("minimum")(_MINIMUM)


@lower("not")
@_plain
def not_(ctx, x):
    return ctx.call("mx.logical_not" if x.dtype.is_bool else "mx.bitwise_invert", x)


def _known(y, *bad):
    """The number that a constant divisor is, unless it is one of those that need care."""
    number = y.number
    return number is not None and number not in bad


@lower("divide")
@_plain
def divide(ctx, x, y):
    if not x.dtype.is_integer:
        return ctx.infix("/", x, y)
    if x.dtype.kind == "uint":
        return ctx.infix("//", x, y) if _known(y, 0) else ctx.recipe("_divide_unsigned", x, y, dims=_both(ctx, x, y))
    if _known(y, 0, -1) and x.number is None and y.rank <= x.rank:
        return ctx.recipe("_divide_by", x, Slot(y, LOWEST, True))
    return ctx.recipe("_divide", x, y, dims=_both(ctx, x, y))


def _both(ctx, *xs):
    return ctx.broadcast([x.dims for x in xs])


@lower("remainder")
@_single
def remainder(ctx, x, y):
    if not x.dtype.is_integer:
        return ctx.recipe("_fmod", x, y, dims=_both(ctx, x, y))
    if x.dtype.kind == "uint":
        return ctx.infix("%", x, y) if _known(y, 0) else ctx.recipe("_remainder_unsigned", x, y, dims=_both(ctx, x, y))
    if _known(y, 0, -1) and x.number is None and y.rank <= x.rank:
        return ctx.recipe("_remainder_by", x, Slot(y, LOWEST, True))
    return ctx.recipe("_remainder", x, y, dims=_both(ctx, x, y))


@lower("Mod")
@_single
def modulo(ctx, x, y):
    if not x.dtype.is_integer:
        return ctx.recipe("_float_modulo", x, y, dims=_both(ctx, x, y))
    if x.dtype.kind == "uint":
        return ctx.infix("%", x, y) if _known(y, 0) else ctx.recipe("_remainder_unsigned", x, y, dims=_both(ctx, x, y))
    return ctx.infix("%", x, y) if _known(y, 0, -1) else ctx.recipe("_modulo", x, y, dims=_both(ctx, x, y))


def _squared(ctx, x, y):
    """x ** y for a few exponents that are better written otherwise, or None."""
    match y.number:
        case 2:
            return ctx.call("mx.square", x)
        case 0.5 if x.dtype.is_float:
            return None
        case _:
            return None


@lower("power")
@_plain
def power(ctx, x, y):
    if y.rank <= x.rank and x.dtype.is_float and (short := _squared(ctx, x, y)) is not None:
        return short
    if x.dtype.kind == "int":
        if y.number is not None and y.number >= 0:
            return ctx.infix("**", x, y)
        return ctx.recipe("_integer_power", x, y, dims=_both(ctx, x, y))
    return ctx.infix("**", x, y)


@lower("Pow")
def pow_(ctx, x, y):
    """A constant exponent takes x's type where it has the number; other mixtures are decomposed."""
    number = y.number
    if not x.dtype.is_float or number is None or float(np.float64(number).astype(x.dtype.numpy)) != float(number):
        ctx.refuse("an exponent of another element type that is not a constant")
    return power(ctx, x, ctx.array(np.full([1] * y.rank, number).astype(x.dtype.numpy), x.dtype))


def _unsigned(ctx, x, bits):
    """Bits of integers as an unsigned type: of bytes for sub-byte ones, the unused bits 0."""
    if bits < 8:
        x = ctx.wide(x)
        x = ctx.infix("&", x, (1 << bits) - 1)
        return x if x.dtype is dtypes.u8 else ctx.method(x, "view", dtypes.u8, dtype=dtypes.u8)
    made = dtypes.DType.of(f"u{bits}")
    return x if x.dtype is made else ctx.method(x, "view", made, dtype=made)


def _signed(ctx, x):
    """The same numbers read as signed ones of their width."""
    if x.dtype.kind == "int":
        return ctx.wide(x)
    if x.dtype.bits < 8:
        sign = 1 << (x.dtype.bits - 1)
        wide = ctx.method(ctx.wide(x), "view", dtypes.i8, dtype=dtypes.i8)
        return ctx.infix("-", ctx.infix("^", wide, sign), sign)
    made = dtypes.DType.of(f"i{x.dtype.bits}")
    return ctx.method(x, "view", made, dtype=made)


def _as(ctx, x, dtype):
    """Integers of equal width read as `dtype`, wrapped to its width."""
    held = types.carrier(dtype)
    x = x if x.dtype is held else ctx.method(x, "view", held, dtype=held)
    return ctx.narrow(x, dtype)


def _amount(y, width):
    """A constant shift inside [0, width), or None."""
    number = y.number
    return number if number is not None and 0 <= number < width else None


@lower("shift_left")
def shift_left(ctx, x, y):
    width = x.dtype.bits
    wide, by = ctx.wide(x), ctx.wide(y)
    if _amount(y, width) is not None and y.rank <= x.rank:
        return ctx.narrow(ctx.infix("<<", wide, by), x.dtype)
    return ctx.narrow(ctx.recipe("_shift_left", wide, by, width, dims=_both(ctx, x, y)), x.dtype)


@lower("shift_right_logical")
def shift_right_logical(ctx, x, y):
    width = x.dtype.bits
    wide, by = _unsigned(ctx, x, width), ctx.wide(y)
    if (amount := _amount(y, width)) is not None and y.rank <= x.rank:
        return _as(ctx, ctx.infix(">>", wide, amount), x.dtype)
    return _as(ctx, ctx.recipe("_shift_right_zero", wide, by, width, dims=_both(ctx, x, y)), x.dtype)


@lower("shift_right_arithmetic")
def shift_right_arithmetic(ctx, x, y):
    width = x.dtype.bits
    wide, by = _signed(ctx, x), ctx.wide(y)
    if (amount := _amount(y, width)) is not None and y.rank <= x.rank:
        return _as(ctx, ctx.infix(">>", wide, amount), x.dtype)
    if x.dtype.kind == "uint" and width < 64:
        by = ctx.convert(by, dtypes.i64)
    by = by if by.dtype.kind == "int" else ctx.convert(ctx.call("mx.minimum", by, 64), dtypes.i64)
    shifted = ctx.recipe("_shift_right", wide, by, width, dims=_both(ctx, x, y))
    return _as(ctx, ctx.method(shifted, "astype", wide.dtype), x.dtype)


@lower("popcnt")
def popcnt(ctx, x):
    bits = _unsigned(ctx, x, x.dtype.bits)
    return _as(ctx, ctx.recipe("_count_ones", bits, bits.dtype.bits), x.dtype)


@lower("count_leading_zeros")
def count_leading_zeros(ctx, x):
    bits = _unsigned(ctx, x, x.dtype.bits)
    count = ctx.recipe("_leading_zeros", bits, bits.dtype.bits)
    if x.dtype.bits < 8:
        count = ctx.infix("-", count, bits.dtype.bits - x.dtype.bits)
    return _as(ctx, count, x.dtype)


@lower("is_finite")
def is_finite(ctx, x):
    return ctx.call("mx.isfinite", ctx.wide(x), dtype=dtypes.bool_)


@lower("real")
def real(ctx, x):
    return ctx.attribute(x, "real") if x.dtype.is_complex else x


@lower("imag")
def imag(ctx, x):
    return ctx.attribute(x, "imag") if x.dtype.is_complex else ctx.full(0, x.dtype, x.dims)


@lower("conj")
def conj(ctx, x):
    return ctx.call("mx.conjugate", x)


@lower("complex")
def complex_(ctx, x, y):
    if x.dtype is not dtypes.f32:
        ctx.refuse("MLX has no c128")
    return ctx.infix("+", x, ctx.infix("*", y, ctx.array(np.complex64(1j))), dtype=dtypes.c64)


_DIRECTIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@lower("compare")
def compare(ctx, x, y, *, direction):
    return ctx.infix(_DIRECTIONS[direction], ctx.wide(x), ctx.wide(y), dtype=dtypes.bool_)


@lower("select")
def select(ctx, predicate, x, y):
    return ctx.select(predicate, x, y)


def _limited(ctx, x, low, high):
    if x.dtype.is_bool:
        x = x if low is None else ctx.infix("|", x, low)
        return x if high is None else ctx.infix("&", x, high)
    scalars = all(v is None or (v.number is not None and v.rank <= x.rank) for v in (low, high))
    if low is not None and high is not None and scalars and x.number is None:
        rows = [Slot(v, LOWEST, True) for v in (low, high)]
        return ctx.call("mx.clip", x, *rows) if x.dtype.is_float else _two_sided(ctx, x, low, high)
    return _two_sided(ctx, x, low, high)


def _two_sided(ctx, x, low, high):
    x = x if low is None else ctx.weak_call("mx.maximum", x, low)
    return x if high is None else ctx.weak_call("mx.minimum", x, high)


@lower("clamp")
@_plain
def clamp(ctx, low, x, high):
    return _limited(ctx, x, low, high)


@lower("Clip")
def clip(ctx, x, low, high):
    wide = [None if v is None else ctx.wide(v) for v in (x, low, high)]
    return ctx.narrow(_limited(ctx, *wide), x.dtype)


@lower("optimization_barrier")
def optimization_barrier(ctx, xs):
    return tuple(xs)


_LAYOUT = {
    dtypes.f64: ("uint64", 11, 52), dtypes.f32: ("uint32", 8, 23), dtypes.f16: ("uint16", 5, 10),
    dtypes.bf16: ("uint16", 8, 7),
}  # fmt: skip


@lower("reduce_precision")
def reduce_precision(ctx, x, *, exponent_bits, mantissa_bits):
    if x.dtype not in _LAYOUT:
        ctx.refuse(f"reduce_precision of {x.dtype}")
    bits, exponent, mantissa = _LAYOUT[x.dtype]
    return ctx.recipe("_reduce_precision", x, f"mx.{bits}", exponent_bits, mantissa_bits, exponent, mantissa)


@lower("convert")
def convert(ctx, x, *, dtype, saturate):
    return conversion.convert(ctx, x, dtype, saturate)


@lower("bitcast_convert")
def bitcast_convert(ctx, x, *, dtype):
    return conversion.recast(ctx, x, dtype)


# Composites


@lower("Relu")
def relu(ctx, x):
    return _MAXIMUM(ctx, x, ctx.scalar(0, x.dtype))


@lower("LeakyRelu")
@_plain
def leaky_relu(ctx, x, *, alpha):
    return ctx.select(ctx.infix(">=", x, 0), x, ctx.infix("*", x, ctx.scalar(alpha, x.dtype)))


@lower("ThresholdedRelu")
@_plain
def thresholded_relu(ctx, x, *, alpha):
    return ctx.select(ctx.infix(">", x, ctx.scalar(alpha, x.dtype)), x, ctx.scalar(0, x.dtype))


@lower("PRelu")
@_plain
def p_relu(ctx, x, slope):
    return ctx.select(ctx.infix(">=", x, 0), x, ctx.infix("*", slope, x))


def _number(ctx, value, x):
    return ctx.scalar(value, x.dtype)


@lower("Gelu")
@_single
def gelu(ctx, x, *, approximate):
    half = ctx.infix("*", x, 0.5)
    if approximate == "none":
        if x.dtype is dtypes.f64:
            return ctx.infix("*", half, ctx.recipe("_erfc", ctx.infix("*", x, -math.sqrt(0.5))))
        return ctx.infix(
            "*", half, ctx.infix("+", ctx.call("mx.erf", ctx.infix("*", x, _number(ctx, math.sqrt(0.5), x))), 1)
        )
    cube = ctx.infix("*", ctx.infix("*", ctx.infix("*", x, _number(ctx, 0.044715, x)), x), x)
    inner = ctx.infix("*", ctx.infix("+", x, cube), _number(ctx, math.sqrt(2 / math.pi), x))
    return ctx.infix("*", half, ctx.infix("+", ctx.call("mx.tanh", inner), 1))


@lower("HardSigmoid")
@_single
def hard_sigmoid(ctx, x, *, alpha, beta):
    line = ctx.infix("+", ctx.infix("*", x, _number(ctx, alpha, x)), _number(ctx, beta, x))
    return ctx.call("mx.clip", line, 0, 1)


@lower("HardSwish")
@_single
def hard_swish(ctx, x):
    return ctx.infix("*", x, ctx.call("mx.clip", ctx.infix("+", ctx.infix("/", x, 6), 0.5), 0, 1))


@lower("Swish")
@_single
def swish(ctx, x, *, alpha):
    if x.dtype is dtypes.f64:
        ctx.refuse("mx.sigmoid is accurate to single precision only")
    inner = x if alpha == 1 else ctx.infix("*", x, _number(ctx, alpha, x))
    return ctx.infix("*", x, ctx.call("mx.sigmoid", inner))


@lower("Softplus")
@_single
def softplus(ctx, x):
    if x.dtype is dtypes.f64:
        ctx.refuse("mx.logaddexp of doubles")
    return ctx.call("mx.logaddexp", x, 0)


@lower("Softsign")
@_single
def softsign(ctx, x):
    return ctx.infix("/", x, ctx.infix("+", ctx.call("mx.abs", x), 1))


@lower("Reciprocal")
@_plain
def reciprocal(ctx, x):
    return ctx.infix("/", 1, x)


@lower("IsNaN")
def is_nan(ctx, x):
    return ctx.call("mx.isnan", ctx.wide(x), dtype=dtypes.bool_)


@lower("IsInf")
def is_inf(ctx, x, *, detect_negative, detect_positive):
    if not (detect_negative or detect_positive):
        return ctx.full(False, dtypes.bool_, x.dims)
    name = "mx.isinf" if detect_negative and detect_positive else "mx.isposinf" if detect_positive else "mx.isneginf"
    return ctx.call(name, ctx.wide(x), dtype=dtypes.bool_)


@lower("Max")
def max_(ctx, xs):
    return functools.reduce(lambda x, y: _MAXIMUM(ctx, x, y), xs)


@lower("Min")
def min_(ctx, xs):
    return functools.reduce(lambda x, y: _MINIMUM(ctx, x, y), xs)


@lower("Sum")
def sum_(ctx, xs):
    if types.wide(xs[0].dtype) is not xs[0].dtype:
        ctx.refuse("sums of narrow types")
    return functools.reduce(lambda x, y: ctx.infix("+", x, y), xs)
