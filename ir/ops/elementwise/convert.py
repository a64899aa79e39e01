"""Operators between element types: convert, bitcast_convert, reduce_precision; and optimization_barrier."""

from ... import ints
from ...conversion import converted, fewer_bits, recast
from ...dtypes import DType
from ...facts import Fact
from ...ints import mapped
from ...operators import ANY, EXACT, FLOAT, PURE, Operand, Variadic, operator
from ...types import TensorType
from .. import bucketing
from .arithmetic import MAP, recast_dims


@operator("convert", family="elementwise", traits=MAP | EXACT)
class Convert:
    """x in another element type.

    Float to integer truncates towards zero, saturates, NaN gives 0.  Integer to integer wraps.  To bool: not equal 0
    (NaN is True).  To a narrower float: nearest even; overflow gives inf, or in float8/float4 types without inf NaN
    (the greatest finite value with `saturate`).  Types with neither inf nor NaN (f4, f6) always take the greatest
    finite value.  Complex to real drops the imaginary part.  Numbers are spelled as NumPy does (shortest text that
    reads back as the same number, `True`, `inf`, `nan`); a string is read as Python's float reads it (to integers
    truncated and saturated), any other is an error.
    """

    x: Operand[ANY]
    dtype: DType
    saturate: bool = False

    def infer(ctx, x, *, dtype, saturate):
        fact = x.with_dtype(dtype)
        return mapped(ctx, fact, ints.truth if dtype.is_bool else ints.same, x)

    def reference(ctx, x, *, dtype, saturate):
        if dtype.is_string:  # spelled as the number it is, not as the f64 that holds it
            x = x.astype(ctx.node.operands[0].dtype.numpy)
        return converted(x, dtype, saturate=saturate)

    def vjp(ctx, x, *, dtype, saturate):
        return ctx.build.convert(ctx.cotangent, dtype=x.dtype)


@operator("bitcast_convert", family="elementwise", traits=PURE)
class BitcastConvert:
    """The same bits read as another element type of the same width; of another width the last axis appears or goes.

    A wider x gives a last axis of (width of x / width of dtype) elements, low bits first; a narrower one has it and
    loses it. Integer and floating-point types only.
    """

    x: Operand
    dtype: DType

    bucket = bucketing.bitcast_convert

    def infer(ctx, x, *, dtype):
        dims = recast_dims(ctx, x, dtype)
        return Fact(TensorType(dtype, dims))

    def reference(ctx, x, *, dtype):
        return recast(x, dtype)


@operator("reduce_precision", family="elementwise", traits=MAP | EXACT)
class ReducePrecision:
    """x rounded to a float format of that many exponent and mantissa bits, kept in its type."""

    x: Operand[FLOAT]
    exponent_bits: int
    mantissa_bits: int

    def infer(ctx, x, *, exponent_bits, mantissa_bits):
        ctx.need(exponent_bits >= 1, f"exponent_bits must be at least 1, got {exponent_bits}")
        ctx.need(mantissa_bits >= 0, f"mantissa_bits must not be negative, got {mantissa_bits}")
        return x.with_dims(x.dims)

    def reference(ctx, x, *, exponent_bits, mantissa_bits):
        dtype = ctx.result_types[0].dtype
        return fewer_bits(x.astype(dtype.numpy), dtype, exponent_bits, mantissa_bits)

    def vjp(ctx, x, *, exponent_bits, mantissa_bits):
        return ctx.cotangent


@operator("optimization_barrier", family="elementwise", traits=PURE)
class OptimizationBarrier:
    """Its operands; nothing is moved or merged across."""

    xs: Variadic[ANY]

    bucket = bucketing.keep

    def infer(ctx, xs):
        return xs[0] if len(xs) == 1 else xs

    def reference(ctx, xs):
        return xs

    def vjp(ctx, xs):
        return ctx.cotangents
