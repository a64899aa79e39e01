"""What a lowering rule sees: `Context`, which makes expressions of calls, operators, sizes, constants and recipes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...ir import dims as sizes
from ...ir import dtypes
from ...ir.dims import Dim, Size
from ...ir.dtypes import DType
from ...ir.model import Constant, Graph, Node
from ...ir.types import TensorType
from ..base import refuse
from . import types
from .expression import (
    ATOM,
    COMPARE,
    LOWEST,
    OPERATORS,
    POSTFIX,
    POWER,
    PRODUCT,
    SUM,
    UNARY,
    Expr,
    Slot,
    literal,
)

if TYPE_CHECKING:
    from .emit import Emitter

Pieces = tuple[str | Slot, ...]


class Context:
    """Makes expressions.  `node` is the node being lowered.

    Arguments of calls may be expressions, sizes, Python numbers, element types, tuples and lists of them, and strings,
    which are source text as it is.
    """

    def __init__(self, emitter: Emitter) -> None:
        self.emitter = emitter
        self.node: Node | None = None

    def refuse(self, why: str) -> NoReturn:
        """Say that the node cannot be lowered."""
        refuse(why)

    @property
    def result_types(self) -> list[TensorType]:
        """Types of the results of the node."""
        assert self.node is not None
        return [r.tensor for r in self.node.results]

    # Calls and operators

    def call(
        self,
        function: str,
        *arguments: Any,
        dtype: DType | None = None,
        dims: Sequence[Size] | None = None,
        **keywords: Any,
    ) -> Expr:
        """`function(arguments, keyword=value)`; element type and dims: those of the first expression unless given."""
        return self._call((function,), arguments, keywords, self._first(arguments), dtype, dims)

    def weak_call(
        self, function: str, *arguments: Any, dtype: DType | None = None, dims: Sequence[Size] | None = None
    ) -> Expr:
        """`call` of an elementwise function that takes Python numbers beside arrays."""
        slots = self.weakly(*arguments)
        if dims is None:
            dims = self.broadcast([a.dims for a in arguments if isinstance(a, Expr)])
        return self._call((function,), slots, {}, self._first(arguments), dtype, dims)

    def method(
        self,
        x: Expr,
        name: str,
        *arguments: Any,
        dtype: DType | None = None,
        dims: Sequence[Size] | None = None,
        **keywords: Any,
    ) -> Expr:
        """`x.name(arguments)`."""
        return self._call((Slot(x, POSTFIX), f".{name}"), arguments, keywords, x, dtype, dims)

    def recipe(
        self,
        name: str,
        *arguments: Any,
        dtype: DType | None = None,
        dims: Sequence[Size] | None = None,
        **keywords: Any,
    ) -> Expr:
        """A call of the private function `name` of `recipes`, which is written at the top of the module."""
        self.emitter.need(name)
        return self.call(name, *arguments, dtype=dtype, dims=dims, **keywords)

    def infix(
        self, operator: str, x: Any, y: Any, dtype: DType | None = None, dims: Sequence[Size] | None = None
    ) -> Expr:
        """`x operator y`; constants as Python numbers beside arrays.  `dims`: of the result, if not the broadcast."""
        level = OPERATORS[operator]
        left, right = self.weakly(x, y)
        like = x if isinstance(x, Expr) else y
        right_level = level + (operator not in ("+", "*", "&", "|", "^")) if operator != "**" else UNARY
        left_level = level + (operator == "**" or level == COMPARE)
        if operator in ("+", "*") and self._is_float(like):
            right_level = level + 1
        parts = (*self.pieces(left, left_level), f" {operator} ", *self.pieces(right, right_level))
        if dims is None:
            dims = self.broadcast([a.dims for a in (x, y) if isinstance(a, Expr)])
        if dtype is None:
            dtype = dtypes.bool_ if level == COMPARE else like.dtype
        return Expr(parts, level, dtype, tuple(dims))

    def negative(self, x: Expr) -> Expr:
        """`-x`."""
        return Expr(("-", Slot(x, UNARY)), UNARY, x.dtype, x.dims)

    def index(self, x: Expr, *entries: str, dims: Sequence[Size] | None = None) -> Expr:
        """`x[entries]`."""
        return Expr(
            (Slot(x, POSTFIX), f"[{', '.join(entries)}]"), POSTFIX, x.dtype, x.dims if dims is None else tuple(dims)
        )

    def attribute(self, x: Expr, name: str) -> Expr:
        """`x.name`."""
        return Expr((Slot(x, POSTFIX), f".{name}"), POSTFIX, x.dtype, x.dims)

    def python(self, text: str, dtype: DType, dims: Sequence[Size] = (), precedence: int = LOWEST) -> Expr:
        """Source text as an expression."""
        return Expr((text,), precedence, dtype, tuple(dims))

    def typed(self, x: Expr, dtype: DType, dims: Sequence[Size] | None = None) -> Expr:
        """The same text as an expression of another type: for what is known to be it already."""
        return Expr((Slot(x, LOWEST),), x.precedence, dtype, x.dims if dims is None else tuple(dims), data=None)

    def weakly(self, *arguments: Any) -> list[Any]:
        """Arguments with constants as Python numbers, as long as one array of the type remains."""
        arrays = [a for a in arguments if isinstance(a, Expr) and a.number is None]
        rank = max((a.rank for a in arrays), default=-1)
        out: list[Any] = []
        for argument in arguments:
            weak = isinstance(argument, Expr) and argument.number is not None and argument.rank <= rank
            weak = weak and not argument.dtype.is_bool and any(a.dtype is argument.dtype for a in arrays)
            out.append(Slot(argument, LOWEST, True) if weak else argument)
        return out

    def select(self, condition: Expr, x: Any, y: Any) -> Expr:
        """`mx.where(condition, x, y)`; x or y may be a Python number."""
        like = x if isinstance(x, Expr) else y
        left, right = self.weakly(x, y)
        dims = self.broadcast([a.dims for a in (condition, x, y) if isinstance(a, Expr)])
        return self._call(("mx.where",), (condition, left, right), {}, like, like.dtype, dims)

    def convert(self, x: Expr, dtype: DType) -> Expr:
        """`x.astype(...)`, MLX's own conversion between element types that it has."""
        if x.dtype is dtype:
            return x
        return self.method(x, "astype", dtype, dtype=dtype)

    # Narrow types

    def wide(self, x: Expr) -> Expr:
        """x in the type that arithmetic on its type runs in: narrow floats decoded, sub-byte integers as bytes."""
        if x.dtype is dtypes.f8e8m0fnu:
            return self.recipe("_decode_powers", x, dtype=dtypes.f32)
        if types.is_code(x.dtype):
            exponent, mantissa, bias, _top, nan, _ = types.FORMATS[x.dtype]
            infinite = x.dtype is dtypes.f8e5m2
            return self.recipe("_decode_float", x, exponent, mantissa, bias, nan, infinite, dtype=dtypes.f32)
        return self.typed(x, types.wide(x.dtype)) if types.wide(x.dtype) is not x.dtype else x

    def narrow(self, x: Expr, dtype: DType, saturate: bool = False) -> Expr:
        """x, in the wide type of `dtype`, as `dtype`: rounded or wrapped."""
        if dtype is dtypes.f8e8m0fnu:
            return self.recipe("_encode_powers", x, saturate, dtype=dtype)
        if types.is_code(dtype):
            exponent, mantissa, bias, top, nan, zero = types.FORMATS[dtype]
            infinite = dtype is dtypes.f8e5m2
            return self.recipe(
                "_encode_float", x, exponent, mantissa, bias, top, nan, infinite, zero, saturate, dtype=dtype
            )
        if dtype.is_integer and dtype.bits < 8:
            mask, sign = (1 << dtype.bits) - 1, 1 << (dtype.bits - 1)
            low = self.infix("&", x, mask)
            return self.typed(low if dtype.kind == "uint" else self.infix("-", self.infix("^", low, sign), sign), dtype)
        return x

    # Sizes

    def size(self, size: Size) -> str:
        """Source text of a size."""
        return sizes.render(size, self.emitter.symbol)

    def dim(self, size: Size) -> Expr:
        """A size as an expression (a Python int)."""
        text = self.size(size)
        plain = isinstance(size, int) or text.isidentifier()
        return Expr((text,), ATOM if plain else LOWEST, dtypes.i64, (), trivial=plain)

    def static(self, size: Size, why: str) -> int:
        """The size as a number; refuses if it is symbolic."""
        return size if isinstance(size, int) else self.refuse(f"{why} must be a number, got the symbolic size {size}")

    def clamped(self, indices: Expr, size: Size) -> Expr:
        """Indices in [-size, size) with negative ones counted from the end, others clamped: safe to index with."""
        ints = indices.data
        if ints is not None and isinstance(size, int) and ints.size and size:
            wide = np.clip(ints, None, np.uint64(2**63 - 1)) if ints.dtype == np.uint64 else ints  # it would wrap
            wide = wide.astype(np.int64)
            wide = np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1)
            if np.array_equal(wide, ints):
                return self.wide(indices)
            return self.array(wide.astype(np.int32) if size <= 1 << 31 else wide)
        if indices.dtype.kind == "uint":
            low = sizes.bounds(size)[0]
            if low is None or low < 1:
                indices = self.recipe("_some", indices, size)
            return self.call("mx.minimum", indices, self._bound(indices, size))
        return self.recipe("_clamped", self._index(indices), size)

    def _index(self, indices: Expr) -> Expr:
        indices = self.wide(indices)
        return indices if indices.dtype in (dtypes.i32, dtypes.i64) else self.convert(indices, dtypes.i32)

    def _bound(self, indices: Expr, size: Size) -> Any:
        last = sizes.maximum(size - 1, 0)
        if isinstance(last, int):
            return min(last, (1 << indices.dtype.bits) - 1)
        return self.dim(last) if indices.dtype.bits >= 32 else self.call("min", last, (1 << indices.dtype.bits) - 1)

    def broadcast(self, shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
        """Dims of operands that are known to broadcast."""
        shapes = [s for s in shapes if len(s)]
        rank = max((len(s) for s in shapes), default=0)
        out: list[Size] = []
        for axis in range(rank):
            column = [s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0]
            distinct = [d for d in dict.fromkeys(column) if d != 1]
            out.append(distinct[0] if len(distinct) == 1 else sizes.broadcast(*distinct) if distinct else 1)
        return tuple(out)

    # Making arrays

    def scalar(self, value: Any, dtype: DType) -> Expr:
        """A constant of rank 0, written as a Python number where an array stands beside it."""
        return self.array(np.asarray(value).astype(dtype.numpy), dtype)

    def array(self, array: Any, dtype: DType | None = None) -> Expr:
        """A small constant, written out."""
        array = np.asarray(array)
        dtype = dtype if dtype is not None else DType.from_numpy(array.dtype)
        return Expr((spelled(array, dtype),), POSTFIX, dtype, tuple(array.shape), trivial=array.size == 1, data=array)

    def full(self, value: Any, dtype: DType, dims: Sequence[Size]) -> Expr:
        """One number everywhere."""
        if not dims:
            return self.scalar(value, dtype)
        number = self.scalar(value, dtype)
        if number.number is None:
            return self.call("mx.broadcast_to", number, tuple(dims), dims=dims)
        if not dtype.is_bool and number.number in (0, 1) and not str(number.number).startswith("-"):
            function = "mx.ones" if number.number else "mx.zeros"
            return self.call(function, tuple(dims), types.spelling(dtype), dtype=dtype, dims=dims)
        return self.call("mx.full", tuple(dims), Slot(number, LOWEST, True), dtype, dtype=dtype, dims=dims)

    def arange(self, count: Size, dtype: DType) -> Expr:
        """`mx.arange(count, dtype=...)`."""
        return self.call("mx.arange", count, f"dtype={types.spelling(dtype)}", dtype=dtype, dims=(count,))

    def reshape(self, x: Expr, dims: Sequence[Size]) -> Expr:
        """x with other dims; x itself where they are its own, cheaper spellings where axes of size 1 come or go."""
        dims = tuple(dims)
        if dims == x.dims:
            return x
        if (inner := self.emitter.transposed.get(x.core)) is not None and _moves_ones(*inner):
            x = inner[0]
        if (spread := self._expanded(x, dims)) is not None:
            return spread
        return self.method(x, "reshape", *(dims or ((),)), dims=dims)

    def _expanded(self, x: Expr, dims: tuple[Size, ...]) -> Expr | None:
        """`x[:, None]` where `dims` only adds axes of size 1 to dims that have none."""
        if len(dims) <= x.rank or 1 in x.dims or x.rank == 0:
            return None
        if tuple(d for d in dims if d != 1) != x.dims:
            return None
        entries = ["None" if d == 1 else ":" for d in dims]
        while entries and entries[-1] == ":":
            entries.pop()
        return self.index(x, *entries, dims=dims)

    def transpose(self, x: Expr, permutation: Sequence[int]) -> Expr:
        """x with axes permuted; two transposes in a row become one or none."""
        permutation = tuple(permutation)
        if permutation == tuple(range(x.rank)):
            return x
        if (inner := self.emitter.transposed.get(x.core)) is not None:
            source, first = inner
            return self.transpose(source, [first[p] for p in permutation])
        out = self.method(x, "transpose", *permutation, dims=[x.dims[p] for p in permutation])
        self.emitter.transposed[out] = (x, permutation)
        return out

    def channels_first(self, x: Expr) -> Expr:
        """x[N, spatial.., C] as [N, C, spatial..].  Operators that follow work on x itself where they can."""
        out = self.transpose(x, (0, x.rank - 1, *range(1, x.rank - 1)))
        self.emitter.layouts.add(out)
        return out

    def laid_out(self, x: Expr) -> tuple[Expr, tuple[int, ...]]:
        """What a convolution made before its axes were permuted, and the permutation; x itself for everything else."""
        if x.core in self.emitter.layouts:
            return self.emitter.transposed[x.core]
        return x, tuple(range(x.rank))

    def bind(self, x: Expr, hint: str | None = None) -> Expr:
        """x assigned to a name, unless it is one."""
        self.emitter.bind(x, hint)
        return x

    def unpack(
        self, x: Expr, parts: Sequence[tuple[DType, Sequence[Size]]], hints: Sequence[str] = ()
    ) -> tuple[Expr, ...]:
        """The elements of a tuple that x is, each assigned to a name."""
        return self.emitter.unpack(x, parts, hints)

    def prepared(
        self, constant: Constant, suffix: str, make: str, dims: Sequence[Size], *, beside: bool = False
    ) -> Expr:
        """A weight in another form, made once at load; `beside`: the weight itself is used as well.

        `make` is source with `{}` for the weight.
        """
        return self.emitter.prepared(constant, suffix, make, tuple(dims), beside)

    def constant_of(self, index: int) -> Constant | None:
        """The weight that operand `index` of the node is, if it is one that is loaded rather than written out."""
        assert self.node is not None
        value = self.node.operands[index] if index < len(self.node.operands) else None
        return value if isinstance(value, Constant) and self.emitter.is_weight(value) else None

    def function(self, graph: Graph, name: str, dims: Sequence[Sequence[Size]]) -> str:
        """Writes a sub-graph on scalars as a nested function that works elementwise on arrays; its name."""
        return self.emitter.elementwise_function(graph, name, dims)

    # Source text

    def pieces(self, value: Any, needs: int = LOWEST) -> Pieces:
        """Source of an argument."""
        if isinstance(value, Slot):
            return (Slot(value.expr, needs, value.weak),)
        if isinstance(value, Expr):
            return (Slot(value, needs),)
        if isinstance(value, Dim):
            return (Slot(self.dim(value), needs),)
        if isinstance(value, str):
            return (value,)
        if isinstance(value, DType):
            return (types.spelling(value),)
        if isinstance(value, float):
            return (literal(value, dtypes.f64),)
        if isinstance(value, tuple | list):
            inner: list[str | Slot] = []
            for i, item in enumerate(value):
                inner += [", "] if i else []
                inner += self.pieces(item)
            left, right = ("[", "]") if isinstance(value, list) else ("(", ",)" if len(value) == 1 else ")")
            return (left, *inner, right)
        return (repr(value),)

    def _call(
        self, head: Pieces, arguments: Sequence[Any], keywords: dict[str, Any], like: Expr | None, dtype: DType | None,
        dims: Sequence[Size] | None,
    ) -> Expr:  # fmt: skip
        parts: list[str | Slot] = [*head, "("]
        rows = [self.pieces(a) for a in arguments] + [(f"{k}=", *self.pieces(v)) for k, v in keywords.items()]
        for i, row in enumerate(rows):
            parts += [", ", *row] if i else row
        parts.append(")")
        if dtype is None:
            dtype = like.dtype if like is not None else dtypes.f32
        if dims is None:
            dims = like.dims if like is not None else ()
        return Expr(tuple(parts), POSTFIX, dtype, tuple(dims))

    @staticmethod
    def _first(arguments: Sequence[Any]) -> Expr | None:
        for argument in arguments:
            inner = argument[0] if isinstance(argument, list | tuple) and argument else argument
            inner = inner.expr if isinstance(inner, Slot) else inner
            if isinstance(inner, Expr):
                return inner
        return None

    @staticmethod
    def _is_float(x: Expr) -> bool:
        return not (x.dtype.is_integer or x.dtype.is_bool)


def _moves_ones(x: Expr, permutation: tuple[int, ...]) -> bool:
    """Whether the permutation only moves axes of size 1."""
    kept = [p for p in permutation if x.dims[p] != 1]
    return kept == sorted(kept)


def spelled(array: Any, dtype: DType) -> str:
    """`mx.array([...], mx.int32)` for the contents of a small constant, in the form that the device holds."""
    held = held_as(array, dtype)
    if held.size == 0:
        return f"mx.zeros({tuple(held.shape)}, {types.spelling(dtype)})".replace(",)", ",)")
    if dtype is dtypes.u64 and held.max() >= 1 << 63:
        signed = _nested(held.view(np.int64) if held.ndim else np.array(held).view(np.int64), dtypes.i64)
        return f"mx.array({signed}, mx.int64).view(mx.uint64)"
    return f"mx.array({_nested(held, types.carrier(dtype))}, {types.spelling(dtype)})"


def held_as(array: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """An array in the form that the device holds: codes for narrow floats, bytes for sub-byte integers."""
    array = np.asarray(array)
    codes = types.is_code(dtype)
    held: np.ndarray[Any, Any] = array.view(np.uint8) if codes else array.astype(types.carrier(dtype).numpy)
    return held


def _nested(array: np.ndarray[Any, Any], dtype: DType) -> str:
    if array.ndim:
        return f"[{', '.join(_nested(a, dtype) for a in array)}]"
    value = array.item() if array.dtype.kind != "V" else float(array)
    return repr(value) if isinstance(value, complex) else literal(value, dtype)


__all__ = ["ATOM", "COMPARE", "LOWEST", "POSTFIX", "POWER", "PRODUCT", "SUM", "UNARY", "Context", "held_as", "spelled"]
