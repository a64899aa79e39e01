"""Elementwise operators: arithmetic, comparison, logic, conversion, and ONNX's activations.

Operands broadcast as NumPy's do.  Integer arithmetic wraps.  Floats follow IEEE 754; subnormals may be flushed to zero
by a target.  Where no `infer` is written the result has the operands' common element type and their broadcast dims.
"""

from typing import Literal

import numpy as np

from ..dtypes import DType
from ..operators import (
    ANY, BOOL, COMMUTATIVE, COMPLEX, ELEMENTWISE, FLOAT, INEXACT, INTEGER, LOGICAL, NUMERIC, ORDERED, PURE, REAL,
    SIGNED, TENSOR, Operand, Variadic, operator,
)  # fmt: skip

MAP = PURE | ELEMENTWISE


@operator("abs", family="elementwise", traits=MAP)
class Abs:
    """Absolute value; a complex operand gives its real modulus.  abs of the least integer is itself."""

    x: Operand[NUMERIC]


@operator("negate", family="elementwise", traits=MAP)
class Negate:
    """-x; wraps for integers."""

    x: Operand[NUMERIC]


@operator("sign", family="elementwise", traits=MAP)
class Sign:
    """-1, 0 or 1 of x's type.  sign(-0.0) is -0.0, sign(NaN) is NaN; complex: x / |x|, 0 for 0."""

    x: Operand[NUMERIC]


@operator("exponential", family="elementwise", traits=MAP)
class Exponential:
    """e^x."""

    x: Operand[INEXACT]


@operator("exponential_minus_one", family="elementwise", traits=MAP)
class ExponentialMinusOne:
    """e^x - 1, exact near 0."""

    x: Operand[INEXACT]


@operator("log", family="elementwise", traits=MAP)
class Log:
    """Natural logarithm; NaN below 0, -inf at 0."""

    x: Operand[INEXACT]


@operator("log_plus_one", family="elementwise", traits=MAP)
class LogPlusOne:
    """log(1 + x), exact near 0."""

    x: Operand[INEXACT]


@operator("logistic", family="elementwise", traits=MAP)
class Logistic:
    """1 / (1 + e^-x)."""

    x: Operand[INEXACT]


@operator("tanh", family="elementwise", traits=MAP)
class Tanh:
    """Hyperbolic tangent."""

    x: Operand[INEXACT]


@operator("sqrt", family="elementwise", traits=MAP)
class Sqrt:
    """Square root; NaN below 0."""

    x: Operand[INEXACT]


@operator("rsqrt", family="elementwise", traits=MAP)
class Rsqrt:
    """1 / sqrt(x); +inf at +0, -inf at -0, NaN below 0."""

    x: Operand[INEXACT]


@operator("cbrt", family="elementwise", traits=MAP)
class Cbrt:
    """Real cube root, also of negative numbers."""

    x: Operand[FLOAT]


@operator("ceil", family="elementwise", traits=MAP)
class Ceil:
    """Least integer not below x."""

    x: Operand[FLOAT]


@operator("floor", family="elementwise", traits=MAP)
class Floor:
    """Greatest integer not above x."""

    x: Operand[FLOAT]


@operator("round_nearest_even", family="elementwise", traits=MAP)
class RoundNearestEven:
    """Nearest integer, halves to the even one."""

    x: Operand[FLOAT]


@operator("round_nearest_afz", family="elementwise", traits=MAP)
class RoundNearestAfz:
    """Nearest integer, halves away from zero."""

    x: Operand[FLOAT]


@operator("sine", family="elementwise", traits=MAP)
class Sine:
    """sin(x), radians."""

    x: Operand[INEXACT]


@operator("cosine", family="elementwise", traits=MAP)
class Cosine:
    """cos(x), radians."""

    x: Operand[INEXACT]


@operator("tan", family="elementwise", traits=MAP)
class Tan:
    """tan(x), radians."""

    x: Operand[INEXACT]


@operator("asin", family="elementwise", traits=MAP)
class Asin:
    """Arc sine; NaN outside [-1, 1]."""

    x: Operand[INEXACT]


@operator("acos", family="elementwise", traits=MAP)
class Acos:
    """Arc cosine; NaN outside [-1, 1]."""

    x: Operand[INEXACT]


@operator("atan", family="elementwise", traits=MAP)
class Atan:
    """Arc tangent."""

    x: Operand[INEXACT]


@operator("sinh", family="elementwise", traits=MAP)
class Sinh:
    """Hyperbolic sine."""

    x: Operand[INEXACT]


@operator("cosh", family="elementwise", traits=MAP)
class Cosh:
    """Hyperbolic cosine."""

    x: Operand[INEXACT]


@operator("asinh", family="elementwise", traits=MAP)
class Asinh:
    """Inverse hyperbolic sine."""

    x: Operand[INEXACT]


@operator("acosh", family="elementwise", traits=MAP)
class Acosh:
    """Inverse hyperbolic cosine; NaN below 1."""

    x: Operand[INEXACT]


@operator("atanh", family="elementwise", traits=MAP)
class Atanh:
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""

    x: Operand[INEXACT]


@operator("erf", family="elementwise", traits=MAP)
class Erf:
    """Error function."""

    x: Operand[FLOAT]


@operator("erfc", family="elementwise", traits=MAP)
class Erfc:
    """1 - erf(x) without cancellation."""

    x: Operand[FLOAT]


@operator("erf_inv", family="elementwise", traits=MAP)
class ErfInv:
    """Inverse error function; NaN outside [-1, 1]."""

    x: Operand[FLOAT]


@operator("lgamma", family="elementwise", traits=MAP)
class Lgamma:
    """log |gamma(x)|."""

    x: Operand[FLOAT]


@operator("digamma", family="elementwise", traits=MAP)
class Digamma:
    """Derivative of lgamma."""

    x: Operand[FLOAT]


@operator("not", family="elementwise", traits=MAP)
class LogicalNot:
    """Logical not of bool, bitwise not of integers."""

    x: Operand[LOGICAL]


@operator("popcnt", family="elementwise", traits=MAP)
class Popcnt:
    """Number of set bits."""

    x: Operand[INTEGER]


@operator("count_leading_zeros", family="elementwise", traits=MAP)
class CountLeadingZeros:
    """Number of leading zero bits; the width for 0."""

    x: Operand[INTEGER]


@operator("is_finite", family="elementwise", traits=MAP)
class IsFinite:
    """Neither infinite nor NaN.  -> bool."""

    x: Operand[FLOAT]


@operator("real", family="elementwise", traits=MAP)
class Real:
    """Real part; a real operand is its own."""

    x: Operand[INEXACT]


@operator("imag", family="elementwise", traits=MAP)
class Imag:
    """Imaginary part; 0 for a real operand."""

    x: Operand[INEXACT]


@operator("conj", family="elementwise", traits=MAP)
class Conj:
    """Complex conjugate."""

    x: Operand[COMPLEX]


@operator("add", family="elementwise", traits=MAP | COMMUTATIVE)
class Add:
    """x + y; or for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]


@operator("subtract", family="elementwise", traits=MAP)
class Subtract:
    """x - y."""

    x: Operand[NUMERIC]
    y: Operand[NUMERIC]


@operator("multiply", family="elementwise", traits=MAP | COMMUTATIVE)
class Multiply:
    """x * y; and for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]


@operator("divide", family="elementwise", traits=MAP)
class Divide:
    """x / y.  Integers truncate towards zero; x / 0 is -1 (all ones for unsigned); INT_MIN / -1 is INT_MIN."""

    x: Operand[NUMERIC]
    y: Operand[NUMERIC]


@operator("remainder", family="elementwise", traits=MAP)
class Remainder:
    """x - y * trunc(x / y), with the sign of x.  Integers: x rem 0 is x, INT_MIN rem -1 is 0.  Floats: C fmod."""

    x: Operand[REAL]
    y: Operand[REAL]


@operator("power", family="elementwise", traits=MAP)
class Power:
    """x ^ y.  Integers wrap; a negative integer exponent gives 0, but 1 for base 1 and 1 or -1 for base -1."""

    x: Operand[NUMERIC]
    y: Operand[NUMERIC]


@operator("maximum", family="elementwise", traits=MAP | COMMUTATIVE)
class Maximum:
    """The greater; NaN if either is NaN; +0 above -0 is not promised.  or for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]


@operator("minimum", family="elementwise", traits=MAP | COMMUTATIVE)
class Minimum:
    """The lesser; NaN if either is NaN.  and for bool."""

    x: Operand[TENSOR]
    y: Operand[TENSOR]


@operator("atan2", family="elementwise", traits=MAP)
class Atan2:
    """Angle of the point (y as x-axis, x as y-axis): atan2(x, y) in NumPy's argument order."""

    x: Operand[FLOAT]
    y: Operand[FLOAT]


@operator("and", family="elementwise", traits=MAP | COMMUTATIVE)
class LogicalAnd:
    """Logical and of bool, bitwise and of integers."""

    x: Operand[LOGICAL]
    y: Operand[LOGICAL]


@operator("or", family="elementwise", traits=MAP | COMMUTATIVE)
class LogicalOr:
    """Logical or of bool, bitwise or of integers."""

    x: Operand[LOGICAL]
    y: Operand[LOGICAL]


@operator("xor", family="elementwise", traits=MAP | COMMUTATIVE)
class LogicalXor:
    """Logical or bitwise exclusive or."""

    x: Operand[LOGICAL]
    y: Operand[LOGICAL]


@operator("shift_left", family="elementwise", traits=MAP)
class ShiftLeft:
    """x << y; 0 where y is not in [0, width)."""

    x: Operand[INTEGER]
    y: Operand[INTEGER]


@operator("shift_right_arithmetic", family="elementwise", traits=MAP)
class ShiftRightArithmetic:
    """x >> y filled with the sign bit (of the value read as signed); sign fill where y is not in [0, width)."""

    x: Operand[INTEGER]
    y: Operand[INTEGER]


@operator("shift_right_logical", family="elementwise", traits=MAP)
class ShiftRightLogical:
    """x >> y filled with zeros; 0 where y is not in [0, width)."""

    x: Operand[INTEGER]
    y: Operand[INTEGER]


@operator("complex", family="elementwise", traits=MAP)
class Complex:
    """Complex numbers from real and imaginary parts.  f32 -> c64, f64 -> c128."""

    x: Operand[FLOAT]
    y: Operand[FLOAT]


@operator("compare", family="elementwise", traits=MAP)
class Compare:
    """x direction y -> bool.  Anything ordered with NaN is False; NaN ne anything is True.  Strings and complex: eq, ne only."""

    x: Operand[ANY]
    y: Operand[ANY]
    direction: Literal["eq", "ne", "lt", "le", "gt", "ge"]


@operator("select", family="elementwise", traits=MAP)
class Select:
    """x where predicate, y elsewhere (all three broadcast)."""

    predicate: Operand[BOOL]
    x: Operand[ANY]
    y: Operand[ANY]


@operator("clamp", family="elementwise", traits=MAP)
class Clamp:
    """minimum(maximum(x, low), high); NaN in any operand gives NaN.  low above high gives high."""

    low: Operand[REAL]
    x: Operand[REAL]
    high: Operand[REAL]


@operator("convert", family="elementwise", traits=MAP)
class Convert:
    """x in another element type.

    Float to integer truncates towards zero, saturates, NaN gives 0.  Integer to integer wraps.  To bool: not equal 0 (NaN
    is True).  To a narrower float: nearest even; overflow gives inf, or in float8/float4 types without inf NaN (the greatest
    finite value with `saturate`).  Complex to real drops the imaginary part.
    """

    x: Operand[ANY]
    dtype: DType
    saturate: bool = False


@operator("bitcast_convert", family="elementwise", traits=PURE)
class BitcastConvert:
    """The same bits read as another element type of the same width; of another width the last axis appears or goes."""

    x: Operand
    dtype: DType


@operator("reduce_precision", family="elementwise", traits=MAP)
class ReducePrecision:
    """x rounded to a float format of that many exponent and mantissa bits, kept in its type."""

    x: Operand[FLOAT]
    exponent_bits: int
    mantissa_bits: int


@operator("optimization_barrier", family="elementwise", traits=PURE)
class OptimizationBarrier:
    """Its operands; nothing is moved or merged across."""

    xs: Variadic[ANY]


@operator("Relu", family="elementwise", traits=MAP)
class Relu:
    """maximum(x, 0); NaN stays."""

    x: Operand[REAL]


@operator("LeakyRelu", family="elementwise", traits=MAP)
class LeakyRelu:
    """x where x >= 0, alpha * x elsewhere."""

    x: Operand[FLOAT]
    alpha: float = 0.01


@operator("Elu", family="elementwise", traits=MAP)
class Elu:
    """x where x > 0, alpha * (e^x - 1) elsewhere."""

    x: Operand[FLOAT]
    alpha: float = 1.0


@operator("Celu", family="elementwise", traits=MAP)
class Celu:
    """maximum(x, 0) + minimum(alpha * (e^(x / alpha) - 1), 0)."""

    x: Operand[FLOAT]
    alpha: float = 1.0


@operator("Selu", family="elementwise", traits=MAP)
class Selu:
    """gamma * (x where x > 0, alpha * (e^x - 1) elsewhere)."""

    x: Operand[FLOAT]
    alpha: float = 1.67326319217681884765625
    gamma: float = 1.05070102214813232421875


@operator("Gelu", family="elementwise", traits=MAP)
class Gelu:
    """x * Phi(x): exact by erf, or with approximate="tanh" 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""

    x: Operand[FLOAT]
    approximate: Literal["none", "tanh"] = "none"


@operator("HardSigmoid", family="elementwise", traits=MAP)
class HardSigmoid:
    """clamp(alpha * x + beta, 0, 1)."""

    x: Operand[FLOAT]
    alpha: float = 0.2
    beta: float = 0.5


@operator("HardSwish", family="elementwise", traits=MAP)
class HardSwish:
    """x * clamp(x / 6 + 0.5, 0, 1)."""

    x: Operand[FLOAT]


@operator("Mish", family="elementwise", traits=MAP)
class Mish:
    """x * tanh(softplus(x))."""

    x: Operand[FLOAT]


@operator("Softplus", family="elementwise", traits=MAP)
class Softplus:
    """log(1 + e^x), without overflow."""

    x: Operand[FLOAT]


@operator("Softsign", family="elementwise", traits=MAP)
class Softsign:
    """x / (1 + |x|)."""

    x: Operand[FLOAT]


@operator("Swish", family="elementwise", traits=MAP)
class Swish:
    """x * logistic(alpha * x)."""

    x: Operand[FLOAT]
    alpha: float = 1.0


@operator("ThresholdedRelu", family="elementwise", traits=MAP)
class ThresholdedRelu:
    """x where x > alpha, 0 elsewhere."""

    x: Operand[FLOAT]
    alpha: float = 1.0


@operator("Shrink", family="elementwise", traits=MAP)
class Shrink:
    """x + bias where x < -lambd, x - bias where x > lambd, 0 elsewhere."""

    x: Operand[REAL]
    bias: float = 0.0
    lambd: float = 0.5


@operator("Reciprocal", family="elementwise", traits=MAP)
class Reciprocal:
    """1 / x."""

    x: Operand[FLOAT]


@operator("IsNaN", family="elementwise", traits=MAP)
class IsNaN:
    """Whether x is NaN.  -> bool."""

    x: Operand[FLOAT]


@operator("IsInf", family="elementwise", traits=MAP)
class IsInf:
    """Whether x is an infinity of a wanted sign.  -> bool."""

    x: Operand[FLOAT]
    detect_negative: bool = True
    detect_positive: bool = True


@operator("PRelu", family="elementwise", traits=MAP)
class PRelu:
    """x where x >= 0, slope * x elsewhere; slope broadcasts to x."""

    x: Operand[REAL]
    slope: Operand[REAL]


@operator("Clip", family="elementwise", traits=MAP)
class Clip:
    """x limited to [low, high], either of which may be absent; low above high gives high.  NaN stays."""

    x: Operand[REAL]
    low: Operand[REAL] | None = None
    high: Operand[REAL] | None = None


@operator("Pow", family="elementwise", traits=MAP)
class Pow:
    """x ^ y in x's element type, with an exponent of another type (ONNX Pow); equal types are the core `power`."""

    x: Operand[REAL]
    y: Operand[REAL]


@operator("Mod", family="elementwise", traits=MAP)
class Mod:
    """Remainder with the sign of y (Python's %).  Integers: x mod 0 is x."""

    x: Operand[REAL]
    y: Operand[REAL]


@operator("Max", family="elementwise", traits=MAP)
class Max:
    """The greatest of one or more operands; NaN if any is NaN."""

    xs: Variadic[REAL]


@operator("Min", family="elementwise", traits=MAP)
class Min:
    """The least of one or more operands; NaN if any is NaN."""

    xs: Variadic[REAL]


@operator("Sum", family="elementwise", traits=MAP)
class Sum:
    """The sum of one or more operands, from the left."""

    xs: Variadic[NUMERIC]


@operator("Mean", family="elementwise", traits=MAP)
class Mean:
    """The sum of one or more operands divided by their number."""

    xs: Variadic[FLOAT]
