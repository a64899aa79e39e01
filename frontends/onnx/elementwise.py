"""ONNX elementwise operators: arithmetic, comparison, logic, conversion and activations."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir.dtypes import f8e8m0fnu, f32, i32, u8, u32
from .registry import onnx_op

UNARY = {
    "Abs": "abs", "Acos": "acos", "Acosh": "acosh", "Asin": "asin", "Asinh": "asinh", "Atan": "atan", "Atanh": "atanh",
    "BitwiseNot": "not", "Ceil": "ceil", "Cos": "cosine", "Cosh": "cosh", "Erf": "erf", "Exp": "exponential",
    "Floor": "floor", "HardSwish": "HardSwish", "IsNaN": "IsNaN", "Log": "log", "Mish": "Mish", "Neg": "negate",
    "Not": "not", "Reciprocal": "Reciprocal", "Relu": "Relu", "Round": "round_nearest_even", "Sigmoid": "logistic",
    "Sign": "sign", "Sin": "sine", "Sinh": "sinh", "Softplus": "Softplus", "Softsign": "Softsign", "Sqrt": "sqrt",
    "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
"""ONNX operators of one input without attributes, and the operator that means the same."""

BINARY = {
    "Add": "add", "Sub": "subtract", "Mul": "multiply", "Div": "divide", "And": "and", "Or": "or", "Xor": "xor",
    "BitwiseAnd": "and", "BitwiseOr": "or", "BitwiseXor": "xor",
}  # fmt: skip

COMPARISONS = {"Equal": "eq", "Less": "lt", "Greater": "gt", "LessOrEqual": "le", "GreaterOrEqual": "ge"}

WITH_NUMBERS = {
    "LeakyRelu": ("alpha",),
    "Elu": ("alpha",),
    "Celu": ("alpha",),
    "Selu": ("alpha", "gamma"),
    "HardSigmoid": ("alpha", "beta"),
    "ThresholdedRelu": ("alpha",),
    "Swish": ("alpha",),
    "Shrink": ("bias", "lambd"),
}
"""Activations of one input, and the attributes that they take over unchanged."""

CORE_OF_TWO = {"Max": "maximum", "Min": "minimum", "Sum": "add"}


def _unary(type_, name):
    @onnx_op(type_)
    def handler(ctx, x):
        return ctx.build.apply(name, x)


def _binary(type_, apply):
    """Newer operator sets broadcast as NumPy does; before 7 only the second input does, aligned at `axis`."""

    @onnx_op(type_, since=7)
    def handler(ctx, x, y):
        return apply(ctx, x, y)

    @onnx_op(type_, until=6)
    def handler_1(ctx, x, y, *, broadcast=0, axis=None):
        return apply(ctx, x, aligned(ctx, x, y, axis) if broadcast else y)


def aligned(ctx, x, y, axis):
    """y with axes of size 1 behind it, so that it begins at `axis` of x (default: it ends where x ends)."""
    if axis is None or not y.rank:
        return y
    behind = x.rank - ctx.axis(axis, x) - y.rank
    if behind < 0:
        ctx.fail(f"an input of rank {y.rank} does not fit into rank {x.rank} at axis {axis}")
    return ctx.build.reshape(y, dims=(*y.dims, *[1] * behind)) if behind else y


def _with_numbers(type_, names):
    def handler(ctx, x, *, alpha=None, beta=None, gamma=None, bias=None, lambd=None):
        given = {"alpha": alpha, "beta": beta, "gamma": gamma, "bias": bias, "lambd": lambd}
        return ctx.build.apply(type_, x, **{n: given[n] for n in names if given[n] is not None})

    onnx_op(type_)(handler)


for _type, _name in UNARY.items():
    _unary(_type, _name)
for _type, _name in BINARY.items():
    _binary(_type, lambda ctx, x, y, name=_name: ctx.build.apply(name, x, y))
for _type, _direction in COMPARISONS.items():
    _binary(_type, lambda ctx, x, y, direction=_direction: ctx.build.compare(x, y, direction=direction))
for _type, _names in WITH_NUMBERS.items():
    _with_numbers(_type, _names)


def _power(ctx, x, y):
    return ctx.build.power(x, y) if x.dtype is y.dtype else ctx.build.Pow(x, y)


_binary("Pow", _power)


@onnx_op("Max", "Min", "Sum", "Mean")
def variadic(ctx, *xs):
    type_ = ctx.node.op_type
    if len(xs) == 2 and type_ in CORE_OF_TWO:
        return ctx.build.apply(CORE_OF_TWO[type_], *xs)
    return ctx.build.apply(type_, xs)


@onnx_op("Mod")
def mod(ctx, x, y, *, fmod=0):
    return ctx.build.remainder(x, y) if fmod else ctx.build.Mod(x, y)


@onnx_op("BitShift")
def bit_shift(ctx, x, y, *, direction):
    if direction not in ("LEFT", "RIGHT"):
        ctx.fail(f"direction must be LEFT or RIGHT, got {direction!r}")
    if direction == "LEFT":
        return ctx.build.shift_left(x, y)
    return ctx.build.shift_right_logical(x, y) if not x.dtype.is_signed else ctx.build.shift_right_arithmetic(x, y)


@onnx_op("Where")
def where(ctx, condition, x, y):
    return ctx.build.select(condition, x, y)


@onnx_op("Gelu")
def gelu(ctx, x, *, approximate="none"):
    return ctx.build.Gelu(x, approximate=approximate)


@onnx_op("IsInf")
def is_inf(ctx, x, *, detect_negative=1, detect_positive=1):
    return ctx.build.IsInf(x, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))


@onnx_op("PRelu", since=7)
def prelu(ctx, x, slope):
    return ctx.build.PRelu(x, slope)


@onnx_op("PRelu", until=6)
def prelu_1(ctx, x, slope):
    one_a_channel = slope.rank == 1 and x.rank > 2 and sizes.equal(slope.dims[0], 1) is not True
    return ctx.build.PRelu(x, aligned(ctx, x, slope, 1) if one_a_channel else slope)


@onnx_op("Clip", since=11)
def clip(ctx, x, low=None, high=None):
    return ctx.build.Clip(x, *(None if v is None else ctx.scalar(v) for v in (low, high)))


@onnx_op("Clip", until=10)
def clip_1(ctx, x, *, min=None, max=None):
    return ctx.build.Clip(
        x, *(None if v is None else ctx.build.constant(v, x.dtype) for v in _limits(x.dtype, min, max))
    )


def _limits(dtype, low, high):
    """Limits that limit nothing (the old defaults: the least and the greatest f32) are absent."""
    largest = float(np.finfo(np.float32).max)
    limits_all = dtype.is_float and dtype.bits <= 32
    return (
        None if low is None or (limits_all and low < -largest) else low,
        None if high is None or (limits_all and high > largest) else high,
    )


@onnx_op("Cast", since=6)
def cast(ctx, x, *, to, saturate=1, round_mode="up"):
    return convert(ctx, x, ctx.dtype(to), saturate, round_mode)


@onnx_op("Cast", until=5)
def cast_1(ctx, x, *, to):
    import onnx

    if to not in onnx.TensorProto.DataType.keys():  # noqa: SIM118  (an enum wrapper, no dict)
        ctx.fail(f"to must name an element type, got {to!r}")
    return convert(ctx, x, ctx.dtype(onnx.TensorProto.DataType.Value(to)), 1)


@onnx_op("CastLike")
def cast_like(ctx, x, like, *, saturate=1, round_mode="up"):
    return convert(ctx, x, like.dtype, saturate, round_mode)


def convert(ctx, x, dtype, saturate, round_mode="up"):
    """A conversion; `saturate` has a meaning only for types of eight bits and less."""
    if dtype.is_string and x.dtype.is_string:
        return x
    if dtype is f8e8m0fnu and x.dtype.is_float and x.dtype.bits >= 16:
        x = _power_of_two(ctx, x, round_mode)
    elif dtype.is_integer and dtype.bits < 8 and x.dtype.is_float:
        x = ctx.build.convert(x, dtype=i32)  # out of range: ONNX keeps the low bits of the integer
    narrow = dtype.is_float and dtype.bits <= 8
    return ctx.build.convert(x, dtype=dtype, saturate=bool(saturate) and narrow)


def _power_of_two(ctx, x, round_mode):
    """x with its magnitude rounded to a power of two, as conversion to float8e8m0 asks: up, down or nearest."""
    if round_mode not in ("up", "down", "nearest"):
        ctx.fail(f"round_mode must be up, down or nearest, got {round_mode!r}")
    if round_mode == "nearest" or x.dtype.bits > 32:
        return x
    b = ctx.build
    wide = b.convert(x, dtype=f32)
    bits = b.bitcast_convert(wide, dtype=u32)
    if round_mode == "up":
        bits = b.add(bits, 0x007FFFFF)
    power = b.bitcast_convert(b.and_(bits, 0xFF800000), dtype=f32)
    return b.select(b.compare(wide, wide, direction="eq"), power, wide)


@onnx_op("BitCast")
def bit_cast(ctx, x, *, to):
    dtype = ctx.dtype(to)
    if x.dtype.is_bool and dtype.bits == 8:
        x = ctx.build.convert(x, dtype=u8)
    if dtype.is_bool:
        byte = x if x.dtype is u8 else ctx.build.bitcast_convert(x, dtype=u8)
        return ctx.build.compare(byte, 0, direction="ne")
    return x if x.dtype is dtype else ctx.build.bitcast_convert(x, dtype=dtype)


@onnx_op("Identity")
def identity(ctx, x):
    return x


@onnx_op("Dropout", since=7, until=11)
def dropout_7(ctx, x, *, ratio=0.5):
    mask = _kept(ctx, x) if ctx.wants(1) else None
    return x, mask if mask is None or ctx.version >= 10 else ctx.build.convert(mask, dtype=x.dtype)


@onnx_op("Dropout", until=6)
def dropout_1(ctx, x, *, ratio=0.5, is_test=0):
    if not is_test:
        ctx.refuse("is_test is 0: the model is in training mode")
    return x, None


def _kept(ctx, x):
    """The mask of a Dropout that drops nothing."""
    return ctx.build.full(True, ctx.dtype(9), x.dims)
