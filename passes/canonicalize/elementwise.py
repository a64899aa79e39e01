"""Canonical rewrites of elementwise operators.  In floating point only those that keep the bits of every result."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.dtypes import DType
from ...ir.graph import Constant, Node, Value
from ...ir.operators import Trait
from ...ir.rewrite import Rewriter
from .table import maker, rewrite, same_type, splat


@rewrite()
def constant_on_the_right(rewriter: Rewriter, node: Node) -> None:
    """Commutative operators take their constant second (for `maximum` and `minimum` the sign of a zero may change)."""
    if Trait.COMMUTATIVE not in node.op.traits:
        return
    x, y = node.operands[:2]
    if isinstance(x, Constant) and not isinstance(y, Constant):
        rewriter.set_operand(node, 0, y)
        rewriter.set_operand(node, 1, x)


def _is(value: Any, wanted: float) -> bool:
    """Whether a NumPy scalar is that number, the sign of zero included."""
    if value is None or isinstance(value, str):
        return False
    plain = complex(value) if np.iscomplexobj(value) else float(value)
    if plain != wanted:
        return False
    return wanted != 0 or not np.issubdtype(type(value), np.inexact) or np.signbit(np.real(value)) == np.signbit(wanted)


def _neutral(op: str, dtype: DType, value: Any) -> bool:
    """Whether x `op` value is x, bit by bit.  x + 0.0 is not: -0.0 + 0.0 is 0.0; x + -0.0 and x - 0.0 are."""
    if value is None or dtype.is_complex or dtype.is_string:
        return False
    real = np.asarray(value).astype(np.float64) if dtype.is_float else value
    zero, negative = bool(real == 0), bool(np.signbit(real)) if dtype.is_float else False
    match op:
        case "add":
            return zero and (negative or not dtype.is_float)
        case "subtract":
            return zero and not negative
        case "multiply" | "divide" | "power" | "Pow":
            return bool(real == 1)
        case "or" | "xor" | "shift_left" | "shift_right_arithmetic" | "shift_right_logical":
            return zero
        case "and":
            return bool(value) if dtype.is_bool else int(value) == (-1 if dtype.is_signed else (1 << dtype.bits) - 1)
    return False


_BINARY = (
    "add", "subtract", "multiply", "divide", "power", "Pow", "or", "xor", "and", "shift_left", "shift_right_arithmetic",
    "shift_right_logical",
)  # fmt: skip


@rewrite(*_BINARY)
def neutral_operand(rewriter: Rewriter, node: Node) -> Value | None:
    """x + -0.0, x - 0.0, x * 1, x / 1, x ^ 1, x or false, ...: x."""
    x, y = node.operands
    value = splat(y)
    if x is None or y is None or value is None or not same_type(x, node.result) or _mixes_kinds(x, y):
        return None
    return x if _neutral(node.op.name, y.dtype, value) else None


@rewrite("power", "Pow")
def square(rewriter: Rewriter, node: Node) -> Value | None:
    """x ^ 2 is x * x: both are the correctly rounded square."""
    x, y = node.operands
    if x is None or y is None or x.dtype.is_complex or not _is(splat(y), 2.0) or not same_type(x, node.result):
        return None
    if _mixes_kinds(x, y):
        return None
    value: Value = rewriter.before(node).multiply(x, x)
    return value


def _mixes_kinds(x: Value, y: Value) -> bool:
    """An integer to a float's power is computed in floating point, where large ones are rounded."""
    return x.dtype.is_integer and not y.dtype.is_integer


@rewrite("Pow")
def power_of_one_type(rewriter: Rewriter, node: Node) -> Value | None:
    x, y = node.operands
    if x is None or y is None or x.dtype is not y.dtype:
        return None
    value: Value = rewriter.before(node).power(x, y)
    return value


@rewrite("negate", "not", "conj")
def involution(rewriter: Rewriter, node: Node) -> Value | None:
    """Applied twice: nothing."""
    inner = maker(node.operands[0], node.op.name)
    return inner.operands[0] if inner is not None else None


@rewrite("abs")
def abs_of_sign_change(rewriter: Rewriter, node: Node) -> Value | None:
    """|-x| and ||x|| are |x|; the negative of an unsigned integer wraps."""
    inner = maker(node.operands[0], "negate", "abs")
    if inner is None or not same_type(inner.result, node.result):
        return None
    if inner.op.name == "negate" and node.result.dtype.is_integer and not node.result.dtype.is_signed:
        return None
    value: Value = rewriter.before(node, sources=(inner,)).abs(inner.operands[0])
    return value


@rewrite("and", "or", "maximum", "minimum")
def equal_operands(rewriter: Rewriter, node: Node) -> Value | None:
    """x and x, the greater of x and x: x."""
    x, y = node.operands
    return x if x is y and x is not None and same_type(x, node.result) else None


@rewrite("and", "or", "multiply")
def absorbing_operand(rewriter: Rewriter, node: Node) -> Value | None:
    """x and 0, x or all ones, x * 0 of integers and bools: that constant.  Not of floats: NaN * 0 is NaN."""
    x, y = node.operands
    constant, dtype = splat(y), node.result.dtype
    if x is None or constant is None or not (dtype.is_integer or dtype.is_bool) or not same_type(x, node.result):
        return None
    wanted = _neutral("and", dtype, constant) if node.op.name == "or" else int(constant) == 0
    if not wanted:
        return None
    value: Value = rewriter.before(node).full(constant, dtype, node.result.dims)
    return value


@rewrite("add", "subtract")
def add_of_negation(rewriter: Rewriter, node: Node) -> Value | None:
    """x + -y is x - y, -x + y is y - x, x - -y is x + y: negation is exact, and so is the rounding the same."""
    x, y = node.operands
    build = rewriter.before(node)
    value: Value
    if (inner := maker(y, "negate")) is not None:
        value = build.apply("subtract" if node.op.name == "add" else "add", x, inner.operands[0])
        return value
    if node.op.name == "add" and (inner := maker(x, "negate")) is not None:
        value = build.subtract(y, inner.operands[0])
        return value
    return None


@rewrite("multiply")
def multiply_by_minus_one(rewriter: Rewriter, node: Node) -> Value | None:
    """x * -1 is -x."""
    x, y = node.operands
    if x is None or y is None or not (x.dtype.is_float or x.dtype.is_signed) or x.dtype.is_complex:
        return None
    if not _is(splat(y), -1.0) or not same_type(x, node.result):
        return None
    value: Value = rewriter.before(node).negate(x)
    return value


_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


@rewrite("not")
def not_of_compare(rewriter: Rewriter, node: Node) -> Value | None:
    """The opposite comparison; of floats only for eq and ne, since NaN is neither less nor greater."""
    inner = maker(node.operands[0], "compare")
    if inner is None or inner.operands[0] is None:
        return None
    direction = inner.keywords["direction"]
    if direction not in ("eq", "ne") and not inner.operands[0].dtype.is_integer:
        return None
    attributes = {**inner.attributes.as_dict(), "direction": _OPPOSITE[direction]}
    value: Value = rewriter.before(node, sources=(inner,)).compare(*inner.operands, **attributes)
    return value


@rewrite("select")
def select_by_negation(rewriter: Rewriter, node: Node) -> Value | None:
    """select(not p, x, y) is select(p, y, x)."""
    predicate, x, y = node.operands
    inner = maker(predicate, "not")
    if inner is None:
        return None
    value: Value = rewriter.before(node, sources=(inner,)).select(inner.operands[0], y, x)
    return value


@rewrite("select")
def select_of_bools(rewriter: Rewriter, node: Node) -> Value | None:
    """select(p, true, false) is p; with the constants exchanged, not p."""
    predicate, x, y = node.operands
    if predicate is None or not node.result.dtype.is_bool or not same_type(predicate, node.result):
        return None
    match splat(x), splat(y):
        case (yes, no) if yes is None or no is None or bool(yes) == bool(no):
            return None
        case (yes, _) if yes:
            return predicate
    value: Value = rewriter.before(node).not_(predicate)
    return value


@rewrite("real")
def real_of_real(rewriter: Rewriter, node: Node) -> Value | None:
    x = node.operands[0]
    return x if x is not None and not x.dtype.is_complex else None


@rewrite("select")
def constant_predicate(rewriter: Rewriter, node: Node) -> Value | None:
    """A constant predicate, or equal branches: the branch, where it has the result's dims already."""
    predicate, x, y = node.operands
    chosen = splat(predicate)
    branch = x if x is y or (chosen is not None and bool(chosen)) else y if chosen is not None else None
    return branch if branch is not None and same_type(branch, node.result) else None


@rewrite("Max", "Min", "Sum", "Mean")
def variadic_of_few(rewriter: Rewriter, node: Node) -> Value | None:
    """Of one operand: itself.  Of two: the core operator."""
    xs = node.operands
    if len(xs) == 1:
        return xs[0]
    core = {"Max": "maximum", "Min": "minimum", "Sum": "add"}.get(node.op.name)
    if len(xs) != 2 or core is None:
        return None
    value: Value = rewriter.before(node).apply(core, *xs)
    return value


@rewrite("Clip")
def clip_without_bounds(rewriter: Rewriter, node: Node) -> Value | None:
    x, low, high = node.grouped
    return x if low is None and high is None else None


@rewrite("maximum")
def maximum_with_zero(rewriter: Rewriter, node: Node) -> Value | None:
    """maximum(x, 0) is Relu(x)."""
    x, y = node.operands
    if x is None or x.dtype.is_bool or x.dtype.is_complex or not _is(splat(y), 0.0) or not same_type(x, node.result):
        return None
    value: Value = rewriter.before(node).Relu(x)
    return value


@rewrite("multiply")
def raise_swish(rewriter: Rewriter, node: Node) -> Value | None:
    """x * logistic(x) is Swish(x), whose decomposition spells the same two operators."""
    for x, y in (node.operands, node.operands[::-1]):
        gate = maker(y, "logistic")
        if gate is not None and gate.operands[0] is x and x is not None and x.dtype.is_float:
            value: Value = rewriter.before(node, sources=(gate,)).Swish(x)
            return value
    return None


# -------------------------------------------------------------------------------------------------------- conversions

_SIGNIFICAND = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
_WIDER_FLOATS = {"f16": ("f32", "f64"), "bf16": ("f32", "f64"), "f32": ("f64",)}


def _magnitude_bits(dtype: DType) -> int:
    return dtype.bits if dtype.kind == "uint" else dtype.bits - 1


def loses_nothing(source: DType, target: DType) -> bool:
    """Whether every value of `source` is a value of `target` (infinities and NaN included)."""
    if source is target:
        return True
    if source.is_bool:
        return target.is_integer or target.name in _SIGNIFICAND
    if source.is_integer and target.is_integer:
        return _magnitude_bits(source) <= _magnitude_bits(target) and (source.kind == "uint" or target.kind == "int")
    if source.is_integer:
        return _magnitude_bits(source) <= _SIGNIFICAND.get(target.name, 0)
    if source.is_float:
        small = source.bits <= 8 and target.name in ("f32", "f64")
        return small or target.name in _WIDER_FLOATS.get(source.name, ())
    return False


def _merges(source: DType, middle: DType, target: DType) -> bool:
    """Whether source -> middle -> target is source -> target.

    A float saturates on its way to an integer where an integer wraps, so that pair must lose nothing either.
    """
    if not loses_nothing(source, middle):
        return False
    if source.is_integer and middle.is_float and target.is_integer:
        return loses_nothing(source, target)
    return True


@rewrite("convert")
def merge_conversions(rewriter: Rewriter, node: Node) -> Value | None:
    x = node.operands[0]
    if x is None:
        return None
    if x.dtype is node.keywords["dtype"]:
        return x
    inner = maker(x, "convert")
    if inner is None or inner.operands[0] is None:
        return None
    source = inner.operands[0]
    if not _merges(source.dtype, x.dtype, node.keywords["dtype"]):
        return None
    value: Value = rewriter.before(node, sources=(inner,)).convert(source, **node.attributes.as_dict())
    return value
