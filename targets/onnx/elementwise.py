"""ONNX lowering of elementwise operators.  ONNX broadcasts as the IR does, so most are one node."""

from __future__ import annotations

from ...ir import dtypes
from .lowering import lower

UNARY = {
    "abs": "Abs",
    "negate": "Neg",
    "exponential": "Exp",
    "log": "Log",
    "logistic": "Sigmoid",
    "tanh": "Tanh",
    "sqrt": "Sqrt",
    "ceil": "Ceil",
    "floor": "Floor",
    "round_nearest_even": "Round",
    "sine": "Sin",
    "cosine": "Cos",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "erf": "Erf",
    "Relu": "Relu",
    "HardSwish": "HardSwish",
    "Mish": "Mish",
    "Softplus": "Softplus",
    "Softsign": "Softsign",
    "Reciprocal": "Reciprocal",
    "IsNaN": "IsNaN",
}
VARIADIC = {"Max": "Max", "Min": "Min", "Sum": "Sum", "Mean": "Mean"}
WITH_ATTRIBUTES = {
    "LeakyRelu": ("alpha",),
    "Elu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "Gelu": ("approximate",),
    "HardSigmoid": ("alpha", "beta"),
    "Celu": ("alpha",),
    "ThresholdedRelu": ("alpha",),
}
COMPARE = {
    "eq": ("Equal", False),
    "ne": ("Equal", True),
    "lt": ("Less", False),
    "le": ("LessOrEqual", False),
    "gt": ("Greater", False),
    "ge": ("GreaterOrEqual", False),
}


NARROW = {
    dtypes.i8: dtypes.i32,
    dtypes.i16: dtypes.i32,
    dtypes.u8: dtypes.i32,
    dtypes.u16: dtypes.i32,
    dtypes.u32: dtypes.i64,
    dtypes.bf16: dtypes.f32,
}
"""Types that ONNX Runtime has few arithmetic kernels for, and the type to compute in; casting back wraps or rounds."""


def arithmetic(ctx, kind, *xs, **attributes):
    """One arithmetic node, in a wider type where the operands' own has no kernel."""
    narrow = xs[0].dtype
    wide = NARROW.get(narrow)
    if wide is None:
        return ctx.op(kind, *xs, **attributes)
    out = ctx.op(kind, *(ctx.cast(x, wide) for x in xs), type=ctx.results[0].with_dtype(wide), **attributes)
    return ctx.cast(out, narrow)


def _real(ctx, x, **attributes):
    return "ONNX has no complex arithmetic" if x.dtype.is_complex else None


def _unary(kind):
    return lambda ctx, x: arithmetic(ctx, kind, x) if ctx.results[0].dtype is x.dtype else ctx.op(kind, x)


def _parametric(kind):
    return lambda ctx, *xs, **attributes: ctx.op(kind, *xs, **attributes)


for _name, _kind in UNARY.items():
    lower(_name, when=lambda ctx, x: _real(ctx, x))(_unary(_kind))
for _name, _kind in VARIADIC.items():
    lower(_name)((lambda kind: lambda ctx, xs: arithmetic(ctx, kind, *xs))(_kind))
for _name in WITH_ATTRIBUTES:
    lower(_name)(_parametric(_name))


@lower("add")
def add(ctx, x, y):
    return ctx.op("Or", x, y) if x.dtype.is_bool else arithmetic(ctx, "Add", x, y)


@lower("subtract")
def subtract(ctx, x, y):
    return arithmetic(ctx, "Sub", x, y)


def _float_power(ctx, x, y):
    odd = ctx.dialect.runtime and not x.dtype.is_float
    return "ONNX Runtime computes integer powers in floating point" if odd else None


@lower("power", "Pow", when=_float_power)
def power(ctx, x, y):
    if ctx.dialect.runtime and y.dtype is not x.dtype and y.dtype.is_integer:  # it has kernels for signed ones only
        y = ctx.cast(y, dtypes.i64 if y.dtype is not dtypes.u64 else x.dtype)
    return ctx.op("Pow", x, y)


@lower("PRelu")
def p_relu(ctx, x, slope):
    return arithmetic(ctx, "PRelu", x, slope)


@lower("round_nearest_afz")
def round_nearest_afz(ctx, x):
    """The fraction of |x| is exact, so 0.49999997 stays below one half."""
    size = ctx.op("Abs", x)
    whole = ctx.op("Floor", size)
    up = ctx.op("GreaterOrEqual", ctx.op("Sub", size, whole), ctx.like(0.5, x), type=x.tensor.with_dtype(dtypes.bool_))
    return ctx.op("Mul", ctx.op("Sign", x), ctx.op("Add", whole, ctx.cast(up, x.dtype)))


@lower("multiply")
def multiply(ctx, x, y):
    return ctx.op("And", x, y) if x.dtype.is_bool else arithmetic(ctx, "Mul", x, y)


def _is_safe(x, y):
    """Whether x can be divided by y without a look at y: floats, and constants but 0 and -1."""
    known = y.ints is not None and all(isinstance(i, int) and i not in (0, -1) for i in y.ints)
    return known or not x.dtype.is_integer


def _divisor(ctx, x, y):
    """y with 0 and -1 replaced by 1, as kernels trap on them, and where it was each; None for safe constants."""
    boolean = ctx.results[0].with_dtype(dtypes.bool_)
    if _is_safe(x, y):
        return y, None, None
    zero = ctx.op("Equal", y, ctx.like(0, y), type=y.tensor.with_dtype(dtypes.bool_))
    minus_one = None
    if x.dtype.is_signed:
        minus_one = ctx.op("Equal", y, ctx.like(-1, y), type=y.tensor.with_dtype(dtypes.bool_))
        either = ctx.op("Or", zero, minus_one, type=boolean)
    else:
        either = zero
    return ctx.where(either, ctx.like(1, y), y, y.type), zero, minus_one


@lower("divide")
def divide(ctx, x, y):
    safe, zero, minus_one = _divisor(ctx, x, y)
    out = arithmetic(ctx, "Div", x, safe)
    if minus_one is not None:
        out = ctx.where(minus_one, ctx.op("Sub", ctx.like(0, x), x, type=x.type), out)
    if zero is not None:
        out = ctx.where(zero, ctx.constant(-1 if x.dtype.is_signed else int(x.dtype.max_value()), x.dtype), out)
    return out


@lower("remainder")
def remainder(ctx, x, y):
    safe, zero, _ = _divisor(ctx, x, y)
    out = ctx.op("Mod", x, safe, fmod=1)
    return out if zero is None else ctx.where(zero, x, out)


def _integers(ctx, x, y):
    return "ONNX's Mod of floats takes the sign of x" if x.dtype.is_float else None


@lower("Mod", when=_integers)
def mod(ctx, x, y):
    safe, zero, _ = _divisor(ctx, x, y)
    out = ctx.op("Mod", x, safe, fmod=0)
    return out if zero is None else ctx.where(zero, x, out)


@lower("maximum")
def maximum(ctx, x, y):
    return ctx.op("Or", x, y) if x.dtype.is_bool else arithmetic(ctx, "Max", x, y)


@lower("minimum")
def minimum(ctx, x, y):
    return ctx.op("And", x, y) if x.dtype.is_bool else arithmetic(ctx, "Min", x, y)


@lower("sign", when=lambda ctx, x: _real(ctx, x))
def sign(ctx, x):
    """ONNX Sign of NaN and -0 is engine-defined, so floats select x itself where it is 0 or NaN."""
    plain = arithmetic(ctx, "Sign", x)
    if not x.dtype.is_float:
        return plain
    boolean = x.tensor.with_dtype(dtypes.bool_)
    special = ctx.op(
        "Or", ctx.op("IsNaN", x, type=boolean), ctx.op("Equal", x, ctx.like(0, x), type=boolean), type=boolean
    )
    return ctx.op("Where", special, x, plain)


@lower("rsqrt", when=lambda ctx, x: _real(ctx, x))
def rsqrt(ctx, x):
    return ctx.op("Reciprocal", ctx.op("Sqrt", x))


@lower("exponential_minus_one", when=lambda ctx, x: _real(ctx, x))
def exponential_minus_one(ctx, x):
    """2t / (1 - t) with t = tanh(x / 2) keeps small x exact; from 1 on the difference loses nothing that matters."""
    half = ctx.op("Tanh", ctx.op("Mul", x, ctx.like(0.5, x)))
    return ctx.op(
        "Where",
        ctx.op("Less", x, ctx.like(1, x), type=x.tensor.with_dtype(dtypes.bool_)),
        ctx.op("Div", ctx.op("Add", half, half), ctx.op("Sub", ctx.like(1, x), half)),
        ctx.op("Sub", ctx.op("Exp", x), ctx.like(1, x)),
    )


for _name, _words in {"and": ("And", "BitwiseAnd"), "or": ("Or", "BitwiseOr"), "xor": ("Xor", "BitwiseXor")}.items():
    lower(_name)((lambda words: lambda ctx, x, y: ctx.op(words[0] if x.dtype.is_bool else words[1], x, y))(_words))


@lower("not")
def not_(ctx, x):
    return ctx.op("Not" if x.dtype.is_bool else "BitwiseNot", x)


@lower("compare")
def compare(ctx, x, y, *, direction):
    kind, negated = COMPARE[direction]
    out = ctx.op(kind, x, y)
    return ctx.op("Not", out) if negated else out


@lower("select")
def select(ctx, predicate, x, y):
    if x.dtype.is_bool:  # ONNX Runtime's Where has no such kernel
        otherwise = ctx.op("Not", predicate, type=predicate.type)
        return ctx.op("Or", ctx.op("And", predicate, x), ctx.op("And", otherwise, y))
    return ctx.where(predicate, x, y)


@lower("clamp")
def clamp(ctx, low, x, high):
    return ctx.op("Min", ctx.op("Max", x, low), high)


def _bounds_are_scalars(ctx, x, low, high):
    wide = [b for b in (low, high) if b is not None and b.rank]
    return "ONNX's Clip takes scalar bounds" if wide else None


@lower("Clip", when=_bounds_are_scalars)
def clip(ctx, x, low, high):
    return ctx.op("Clip", x, low, high)


def _shrinks(ctx, x, **_):
    inexact = ctx.dialect.runtime and x.dtype.is_integer
    return f"ONNX Runtime compares {x.dtype} with lambd in floating point" if inexact else None


@lower("Shrink", when=_shrinks)
def shrink(ctx, x, *, bias, lambd):
    return ctx.op("Shrink", x, bias=bias, lambd=lambd)


@lower("IsInf")
def is_inf(ctx, x, *, detect_negative, detect_positive):
    return ctx.op("IsInf", x, detect_negative=int(detect_negative), detect_positive=int(detect_positive))


@lower("is_finite")
def is_finite(ctx, x):
    boolean = ctx.results[0]
    return ctx.op("Not", ctx.op("Or", ctx.op("IsNaN", x, type=boolean), ctx.op("IsInf", x, type=boolean)))


@lower("Swish")
def swish(ctx, x, *, alpha):
    if ctx.dialect.opset >= 24 and not ctx.dialect.runtime:
        return ctx.op("Swish", x, alpha=alpha)
    scaled = x if alpha == 1.0 else ctx.op("Mul", x, ctx.like(alpha, x))
    return ctx.op("Mul", x, ctx.op("Sigmoid", scaled))


def _casts(ctx, x, *, dtype, saturate):
    if x.dtype.is_complex or dtype.is_complex:
        return "ONNX cannot cast complex numbers"
    return None


@lower("convert", when=_casts)
def convert(ctx, x, *, dtype, saturate):
    """ONNX leaves out-of-range casts from float to integer undefined, so those clip first and send NaN to 0."""
    extra = {"saturate": int(saturate)} if dtype.is_float and dtype.bits == 8 else {}
    if x.dtype.is_float and x.dtype.bits == 8 and dtype.is_bool:
        x = ctx.cast(x, dtypes.f32)  # ONNX Runtime takes -0 of eight bits for true
    if not (x.dtype.is_float and dtype.is_integer):
        return ctx.op("Cast", x, to=dtype.onnx, **extra)
    wide = ctx.cast(x, dtypes.f64)
    boolean = wide.tensor.with_dtype(dtypes.bool_)
    zeroed = ctx.op("Where", ctx.op("IsNaN", wide, type=boolean), ctx.like(0, wide), wide, type=wide.type)
    low, high = int(dtype.min_value()), int(dtype.max_value())
    if dtype.bits < 64:
        inside = ctx.op("Clip", zeroed, ctx.like(low, wide), ctx.like(high, wide), type=wide.type)
        if dtype.bits < 8:  # ONNX Runtime rounds on the way to four bits
            inside = ctx.cast(inside, dtypes.i8)
        return ctx.op("Cast", inside, to=dtype.onnx)
    # 2^63 - 1 is no f64: what is at least 2^63 (2^64 unsigned) is chosen after the cast.
    below = ctx.op(
        "Clip", zeroed, ctx.like(low, wide), ctx.constant(float(high + 1) * (1 - 2.0**-53), dtypes.f64), type=wide.type
    )
    over = ctx.op("GreaterOrEqual", zeroed, ctx.constant(float(high + 1), dtypes.f64), type=boolean)
    return ctx.where(over, ctx.constant(high, dtype), ctx.op("Cast", below, to=dtype.onnx))


def _bit_cast(ctx, x, *, dtype):
    """Why not: ONNX has it since opset 26, between types of one width."""
    if ctx.dialect.opset < 26:
        return f"opset {ctx.dialect.opset} has no BitCast; opset 26 has"
    return None if x.dtype.bits == dtype.bits else "ONNX's BitCast keeps the width of elements"


@lower("bitcast_convert", when=_bit_cast)
def bitcast_convert(ctx, x, *, dtype):
    return ctx.op("BitCast", x, to=dtype.onnx)


@lower("optimization_barrier")
def optimization_barrier(ctx, xs):
    return tuple(ctx.op("Identity", x, type=x.type) for x in xs)


_SHIFTED_AS = {4: dtypes.u8, 8: dtypes.u8, 16: dtypes.u32, 32: dtypes.u32, 64: dtypes.u64}
"""By width, the type of BitShift that shifts it: ONNX defines none for signed integers, its runtime none for u16."""


_UNSIGNED = {4: dtypes.u4, 8: dtypes.u8, 16: dtypes.u16, 32: dtypes.u32, 64: dtypes.u64}
_SIGNED = {4: dtypes.i4, 8: dtypes.i8, 16: dtypes.i16, 32: dtypes.i32, 64: dtypes.i64}


def _shifts(ctx, x, y):
    return None if x.dtype.bits in _SHIFTED_AS else f"BitShift takes no {x.dtype}"


def _bits(ctx, x):
    """x as the unsigned integer that BitShift takes, filled with zeros."""
    return ctx.cast(ctx.cast(x, _UNSIGNED[x.dtype.bits]), _SHIFTED_AS[x.dtype.bits])


def _amount(ctx, x, y):
    """(whether y is in [0, width), None for constants that are; y limited to it), since ONNX leaves the rest open."""
    if y.ints is not None and all(isinstance(i, int) and 0 <= i < x.dtype.bits for i in y.ints):
        return None, ctx.cast(y, _SHIFTED_AS[x.dtype.bits])
    wide = ctx.cast(y, dtypes.i64)
    boolean = y.tensor.with_dtype(dtypes.bool_)
    above = ctx.op("GreaterOrEqual", wide, ctx.like(0, wide), type=boolean)
    below = ctx.op("Less", wide, ctx.like(x.dtype.bits, wide), type=boolean)
    last = ctx.like(x.dtype.bits - 1, wide)
    inside = ctx.op("And", above, below, type=boolean)
    amount = ctx.op("Where", inside, wide, last, type=wide.type)
    return inside, ctx.cast(amount, _SHIFTED_AS[x.dtype.bits])


def _shift(way):
    def rule(ctx, x, y):
        inside, amount = _amount(ctx, x, y)
        bits = _bits(ctx, x)
        type_ = ctx.results[0].with_dtype(bits.dtype)
        out = ctx.cast(ctx.op("BitShift", bits, amount, direction=way, type=type_), x.dtype)
        return out if inside is None else ctx.where(inside, out, ctx.like(0, x))

    return rule


lower("shift_left", when=_shifts)(_shift("LEFT"))
lower("shift_right_logical", when=_shifts)(_shift("RIGHT"))


@lower("shift_right_arithmetic", when=_shifts)
def shift_right_arithmetic(ctx, x, y):
    """Negative numbers are complemented, shifted and complemented again; out of range shifts as far as it goes."""
    _, amount = _amount(ctx, x, y)
    given, x = x.dtype, ctx.cast(x, _SIGNED[x.dtype.bits])
    negative = ctx.op("Less", x, ctx.like(0, x), type=x.tensor.with_dtype(dtypes.bool_))
    bits = _bits(ctx, ctx.where(negative, ctx.op("BitwiseNot", x, type=x.type), x, x.type))
    type_ = ctx.results[0].with_dtype(bits.dtype)
    out = ctx.cast(ctx.op("BitShift", bits, amount, direction="RIGHT", type=type_), x.dtype)
    return ctx.cast(ctx.where(negative, ctx.op("BitwiseNot", out, type=out.type), out), given)
