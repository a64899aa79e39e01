"""Core arithmetic, comparison and selection.  Operators on bits, and conversions, are in `bits`."""

from ....ir import dtypes
from ..expression import LOWEST, Slot
from ..linalg import biased
from ..lowering import lower
from .computing import both, in_double, in_mlx, known, plain, single

for _name, _function in {
    "ceil": "mx.ceil", "floor": "mx.floor", "round_nearest_even": "mx.round", "sqrt": "mx.sqrt",
}.items():  # fmt: skip
    lower(_name)(plain(in_mlx(_function)))

for _name, _function in {
    "log": "mx.log", "log_plus_one": "mx.log1p", "tanh": "mx.tanh", "rsqrt": "mx.rsqrt", "tan": "mx.tan",
    "asin": "mx.arcsin", "acos": "mx.arccos", "atan": "mx.arctan", "sinh": "mx.sinh", "cosh": "mx.cosh",
    "asinh": "mx.arcsinh", "acosh": "mx.arccosh", "atanh": "mx.arctanh", "atan2": "mx.arctan2",
}.items():  # fmt: skip
    lower(_name)(plain(in_mlx(_function)))

for _name, _function, _recipe in (
    ("exponential", "mx.exp", "_exp"), ("sine", "mx.sin", "_sin"), ("cosine", "mx.cos", "_cos"),
):  # fmt: skip
    lower(_name)(plain(in_double(_function, _recipe)))

for _name, _recipe in {
    "cbrt": "_cbrt", "erf": "_erf", "erfc": "_erfc", "erf_inv": "_erfinv", "lgamma": "_lgamma", "digamma": "_digamma",
}.items():  # fmt: skip
    lower(_name)(single(lambda ctx, x, recipe=_recipe: ctx.recipe(recipe, x)))


@lower("exponential_minus_one")
@plain
def exponential_minus_one(ctx, x):
    if x.dtype.is_complex:
        return ctx.infix("-", ctx.call("mx.exp", x), 1)
    return in_double("mx.expm1", "_expm1")(ctx, x)


@lower("logistic")
@plain
def logistic(ctx, x):
    if x.dtype.is_complex:
        return ctx.infix("/", 1, ctx.infix("+", ctx.call("mx.exp", ctx.negative(x)), 1))
    return in_double("mx.sigmoid", "_logistic")(ctx, x)


@lower("round_nearest_afz")
@plain
def round_nearest_afz(ctx, x):
    return ctx.recipe("_round_away", x)


@lower("sign")
@plain
def sign(ctx, x):
    return ctx.recipe("_sign", x) if x.dtype.is_float else ctx.call("mx.sign", x)


@lower("abs")
def abs_(ctx, x):
    if x.dtype.kind == "uint":
        return x
    if x.dtype.is_complex:
        return ctx.call("mx.abs", x, dtype=dtypes.f32)
    return plain(lambda ctx, x: ctx.call("mx.abs", x))(ctx, x)


@lower("negate")
@plain
def negate(ctx, x):
    return ctx.negative(x)


def _infix(operator, logical=None):
    """An infix operator, with another one for bool.  MLX's & and | take no number on their left."""

    def written(ctx, operator, x, y):
        turned = operator in ("&", "|") and x.number is not None
        return ctx.infix(operator, y, x) if turned else ctx.infix(operator, x, y)

    @plain
    def numeric(ctx, x, y):
        return written(ctx, operator, x, y)

    def rule(ctx, x, y):
        if logical and x.dtype.is_bool:
            return written(ctx, logical, x, y)
        return numeric(ctx, x, y)

    return rule


_sum = _infix("+", "|")


@lower("add")
def add(ctx, x, y):
    made = biased(ctx, x, y)
    return _sum(ctx, x, y) if made is None else made


lower("subtract")(_infix("-"))
lower("multiply")(_infix("*", "&"))
lower("and")(_infix("&"))
lower("or")(_infix("|"))


@lower("xor")
@plain
def xor(ctx, x, y):
    return ctx.call("mx.bitwise_xor", x, y)  # MLX's ^ takes no number on its left


def _extreme(name, logical):
    numeric = plain(lambda ctx, x, y: ctx.weak_call(name, x, y))

    def rule(ctx, x, y):
        return ctx.infix(logical, x, y) if x.dtype.is_bool else numeric(ctx, x, y)

    return rule


MAXIMUM, MINIMUM = _extreme("mx.maximum", "|"), _extreme("mx.minimum", "&")
lower("maximum")(MAXIMUM)
lower("minimum")(MINIMUM)


@lower("divide")
@plain
def divide(ctx, x, y):
    if not x.dtype.is_integer:
        return ctx.infix("/", x, y)
    if x.dtype.kind == "uint":
        return ctx.infix("//", x, y) if known(y, 0) else ctx.recipe("_divide_unsigned", x, y, dims=both(ctx, x, y))
    if known(y, 0, -1) and x.number is None and y.rank <= x.rank:
        return ctx.recipe("_divide_by", x, Slot(y, LOWEST, True))
    return ctx.recipe("_divide", x, y, dims=both(ctx, x, y))


@lower("remainder")
@single
def remainder(ctx, x, y):
    if not x.dtype.is_integer:
        return ctx.recipe("_fmod", x, y, dims=both(ctx, x, y))
    if x.dtype.kind == "uint":
        return ctx.infix("%", x, y) if known(y, 0) else ctx.recipe("_remainder_unsigned", x, y, dims=both(ctx, x, y))
    if known(y, 0, -1) and x.number is None and y.rank <= x.rank:
        return ctx.recipe("_remainder_by", x, Slot(y, LOWEST, True))
    return ctx.recipe("_remainder", x, y, dims=both(ctx, x, y))


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
@plain
def power(ctx, x, y):
    if y.rank <= x.rank and x.dtype.is_float and (short := _squared(ctx, x, y)) is not None:
        return short
    if x.dtype.kind == "int":
        if y.number is not None and y.number >= 0:
            return ctx.infix("**", x, y)
        return ctx.recipe("_integer_power", x, y, dims=both(ctx, x, y))
    return ctx.infix("**", x, y)


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
    return ctx.recipe("_complex", x, y, dtype=dtypes.c64)


_DIRECTIONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@lower("compare")
def compare(ctx, x, y, *, direction):
    return ctx.infix(_DIRECTIONS[direction], ctx.wide(x), ctx.wide(y), dtype=dtypes.bool_)


@lower("select")
def select(ctx, predicate, x, y):
    return ctx.select(predicate, x, y)


def limited(ctx, x, low, high):
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
@plain
def clamp(ctx, low, x, high):
    return limited(ctx, x, low, high)


@lower("optimization_barrier")
def optimization_barrier(ctx, xs):
    return tuple(xs)
