"""How known integers flow through operators: exact arithmetic on small tensors whose elements are numbers or sizes.

`infer` rules call this to fill `Fact.ints`; what cannot be said exactly becomes None (unknown), never a guess.  Bools
are carried as 0 and 1, so that compare and select take part.  It knows no operator; the rules of `ir/ops` choose the
functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import dims as sizes
from .data import INLINE_LIMIT
from .dims import DimError, Size
from .dtypes import DType
from .facts import Fact
from .types import TensorType

Element = Size | None
ObjectArray = np.ndarray[Any, np.dtype[Any]]

READ_LIMIT = 4096
"""Elements of a constant that are read on the way (an index table); results carry at most INLINE_LIMIT."""

_TRUSTED_WIDTH = 32
"""Integers of at least this width are taken to hold every size that a model computes."""


def array(fact: Fact) -> ObjectArray | None:
    """The elements as an object array of the tensor's shape, None where unknown; None if nothing can be carried."""
    type_ = fact.type
    if not isinstance(type_, TensorType) or not (type_.dtype.is_integer or type_.dtype.is_bool) or not type_.is_static:
        return None
    count = type_.size
    if not isinstance(count, int) or count > READ_LIMIT:
        return None
    if fact.ints is None and fact.data is not None:
        return fact.data.numpy().astype(np.int64 if type_.dtype.name != "u64" else np.uint64).astype(object)
    out = np.full(count, None, object)
    if fact.ints is not None:
        out[:] = fact.ints
    return out.reshape(type_.shape)


def numbers(fact: Fact) -> np.ndarray[Any, np.dtype[np.int64]] | None:
    """The elements as an i64 array if every one is a known number, else None."""
    values = array(fact)
    if values is None or not all(isinstance(v, int) for v in values.reshape(-1)):
        return None
    return values.astype(np.int64)


def known(fact: Fact) -> bool:
    """Whether any element is known."""
    return fact.ints is not None or fact.data is not None


def moved(fact: Fact, move: Callable[..., Any], *operands: Fact) -> Fact:
    """`fact` with the ints that `move`, which only moves elements, makes of the operands' object arrays."""
    if not _carries(fact) or not any(known(o) for o in operands):
        return fact
    arrays = [array(o) for o in operands]
    if any(a is None for a in arrays):
        return fact
    return fact.with_ints(tuple(np.asarray(move(*arrays), object).reshape(-1)))


def mapped(ctx: Any, fact: Fact, rule: Callable[..., Element], *operands: Fact) -> Fact:
    """`fact` with ints `rule(ctx, a, b, ..)` of the operands' broadcast elements, wrapped to its element type."""
    if not _carries(fact) or not any(known(o) for o in operands):
        return fact
    arrays = [array(o) for o in operands]
    if any(a is None for a in arrays):
        return fact
    spread = [np.broadcast_to(a, fact.dims).reshape(-1) for a in arrays]  # type: ignore[arg-type]  # none is None, dims are ints
    return fact.with_ints(tuple(_element(ctx, rule, fact.dtype, row) for row in zip(*spread, strict=True)))


def carrying(rule: Callable[..., Element]) -> Callable[..., Fact]:
    """The `infer` of an elementwise operator whose operands and result have one element type, with ints by `rule`.

    Bools are carried by the logical rules, maximum and minimum only.
    """

    def infer(ctx: Any, *operands: Any) -> Fact:
        flat = [o for g in operands for o in (g if isinstance(g, tuple) else (g,)) if o is not None]
        fact = Fact(TensorType(ctx.same_dtype(*flat), ctx.broadcast(*(o.dims for o in flat))))
        arithmetic = fact.dtype.is_bool and rule not in _LOGICAL
        return fact if arithmetic else mapped(ctx, fact, rule, *flat)

    return infer


def folded(rule: Callable[..., Element]) -> Callable[..., Element]:
    """The rule of a variadic operator that combines its operands from the left."""

    def fold(ctx: Any, first: Size, *rest: Size) -> Element:
        out: Element = first
        for value in rest:
            out = None if out is None else rule(ctx, out, value)
        return out

    return fold


def partial(rule: Callable[..., Element]) -> Callable[..., Element]:
    """Marks a rule that takes unknown elements too."""
    rule.takes_unknown = True  # type: ignore[attr-defined]  # read by _element
    return rule


def wrap(value: Element, dtype: DType) -> Element:
    """What an integer type stores for `value`: numbers wrap; a size stays if it fits or the type is wide enough."""
    if value is None:
        return None
    if dtype.is_bool:
        return value if isinstance(value, int) and value in (0, 1) else None
    signed = dtype.kind == "int"
    low = -(1 << (dtype.bits - 1)) if signed else 0
    if isinstance(value, int):
        return (value - low) % (1 << dtype.bits) + low
    least, most = sizes.bounds(value)
    trusted = dtype.bits >= _TRUSTED_WIDTH
    fits_below = (least is not None and least >= low) or (signed and trusted)
    fits_above = (most is not None and most <= low + (1 << dtype.bits) - 1) or trusted
    return value if fits_below and fits_above else None


def _carries(fact: Fact) -> bool:
    type_ = fact.type
    if not isinstance(type_, TensorType) or not type_.is_static:
        return False
    count = type_.size
    return (type_.dtype.is_integer or type_.dtype.is_bool) and isinstance(count, int) and count <= INLINE_LIMIT


def _element(ctx: Any, rule: Callable[..., Element], dtype: DType, row: tuple[Element, ...]) -> Element:
    if any(v is None for v in row) and not hasattr(rule, "takes_unknown"):
        return None
    try:
        return wrap(rule(ctx, *row), dtype)
    except DimError:
        return None


# Rules: (ctx, elements..) -> element.  Elements are numbers or sizes; None means that the result cannot be said.


def add(ctx: Any, x: Size, y: Size) -> Element:
    return x + y


def subtract(ctx: Any, x: Size, y: Size) -> Element:
    return x - y


def multiply(ctx: Any, x: Size, y: Size) -> Element:
    return x * y


def negate(ctx: Any, x: Size) -> Element:
    return -x


def absolute(ctx: Any, x: Size) -> Element:
    return x if sizes.less_equal(0, x) else -x if sizes.less_equal(x, 0) else None


def sign(ctx: Any, x: Size) -> Element:
    return 1 if sizes.less(0, x) else -1 if sizes.less(x, 0) else 0 if sizes.equal(x, 0) else None


def divide(ctx: Any, x: Size, y: Size) -> Element:
    """Towards zero; x / 0 is -1.  Symbolic: only where rounding down is rounding towards zero."""
    if isinstance(x, int) and isinstance(y, int):
        if y == 0:
            return -1
        return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    if not _divisible(ctx, x, y):
        return None
    return sizes.floordiv(x, y)


def remainder(ctx: Any, x: Size, y: Size) -> Element:
    """The sign of x; x rem 0 is x."""
    if isinstance(x, int) and isinstance(y, int):
        if y == 0:
            return x
        return abs(x) % abs(y) * (1 if x >= 0 else -1)
    if not _divisible(ctx, x, y):
        return None
    return sizes.mod(x, y)


def modulo(ctx: Any, x: Size, y: Size) -> Element:
    """The sign of y; x mod 0 is x."""
    if isinstance(y, int):
        return x if y == 0 else sizes.mod(x, y)
    return remainder(ctx, x, y)


def _divisible(ctx: Any, x: Size, y: Size) -> bool:
    """x >= 0 and y > 0.  A divisor that may be zero is recorded as an assumption: such a size has no value anyway."""
    if not sizes.less_equal(0, x) or not sizes.less_equal(0, y) or sizes.equal(y, 0):
        return False
    if not sizes.less(0, y):
        ctx.assume("<=", 1, y)
    return True


def maximum(ctx: Any, x: Size, y: Size) -> Element:
    return sizes.maximum(x, y)


def minimum(ctx: Any, x: Size, y: Size) -> Element:
    return sizes.minimum(x, y)


def clamp(ctx: Any, low: Size, x: Size, high: Size) -> Element:
    return sizes.minimum(sizes.maximum(x, low), high)


def power(ctx: Any, x: Size, y: Size) -> Element:
    if not isinstance(y, int):
        return None
    if isinstance(x, int):
        return integer_power(x, y) if abs(y) <= 64 or x in (0, 1, -1) else None
    return sizes.product([x] * y) if 0 <= y <= 8 else None


def integer_power(x: int, y: int) -> int:
    """x ^ y; a negative exponent gives 0, but 1 for base 1 and 1 or -1 for base -1."""
    if x in (1, -1):
        return 1 if x == 1 or y % 2 == 0 else -1
    return int(x**y) if y >= 0 else 0


def both(ctx: Any, x: Size, y: Size) -> Element:
    return x & y if isinstance(x, int) and isinstance(y, int) else None


def either(ctx: Any, x: Size, y: Size) -> Element:
    return x | y if isinstance(x, int) and isinstance(y, int) else None


def exactly_one(ctx: Any, x: Size, y: Size) -> Element:
    return x ^ y if isinstance(x, int) and isinstance(y, int) else None


@partial
def select(ctx: Any, predicate: Element, x: Element, y: Element) -> Element:
    if predicate is None:
        return x if x is not None and x == y else None
    return x if predicate else y


_COMPARE: dict[str, Callable[[Size, Size], bool | None]] = {
    "eq": sizes.equal,
    "ne": lambda a, b: _opposite(sizes.equal(a, b)),
    "lt": sizes.less,
    "le": sizes.less_equal,
    "gt": lambda a, b: sizes.less(b, a),
    "ge": lambda a, b: sizes.less_equal(b, a),
}


def _opposite(verdict: bool | None) -> bool | None:
    return None if verdict is None else not verdict


def compare(direction: str) -> Callable[..., Element]:
    """The rule of `compare` for a direction; 1, 0, or None where the sizes cannot be compared."""

    def rule(ctx: Any, x: Size, y: Size) -> Element:
        verdict = _COMPARE[direction](x, y)
        return None if verdict is None else int(verdict)

    return rule


_LOGICAL = (both, either, exactly_one, maximum, minimum)


def inverted(dtype: DType) -> Callable[..., Element]:
    """The rule of `not` for an element type."""
    return (lambda ctx, x: 1 - x) if dtype.is_bool else (lambda ctx, x: -1 - x)


def truth(ctx: Any, x: Size) -> Element:
    """1 where x is certainly not zero, 0 where it certainly is (convert to bool)."""
    verdict = sizes.equal(x, 0)
    return None if verdict is None else int(not verdict)


def same(ctx: Any, x: Size) -> Element:
    return x
