"""What a lowering rule sees: `Expr`, a StableHLO value with dtype and dims, and `Context`, which makes more of them.

Broadcasting, conversion and constants are here; walking graphs and scopes of constants is the emitter's work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.model import Constant, Graph, Node
from ..base import refuse
from . import types
from .mlir import chlo, hlo, ir

if TYPE_CHECKING:
    from .emit import Emitter


class Expr:
    """A value of the program: the MLIR value, its element type and its sizes."""

    __slots__ = ("_value", "dims", "dtype")

    def __init__(self, value: Any, dtype: DType, dims: tuple[int, ...]) -> None:
        self._value = value
        self.dtype = dtype
        self.dims = dims

    @property
    def value(self) -> Any:
        return self._value

    @property
    def rank(self) -> int:
        return len(self.dims)

    @property
    def size(self) -> int:
        return math.prod(self.dims)


class Weight(Expr):
    """A constant that is an argument of the program from the moment someone asks for its MLIR value."""

    __slots__ = ("constant",)

    def __init__(self, ask: Callable[[], Any], dtype: DType, dims: tuple[int, ...], constant: Constant) -> None:
        super().__init__(ask, dtype, dims)
        self.constant = constant

    @property
    def value(self) -> Any:
        return self._value()


def broadcast_dims(*shapes: Sequence[int]) -> tuple[int, ...]:
    """The NumPy broadcast of shapes that are known to broadcast."""
    return tuple(np.broadcast_shapes(*map(tuple, shapes)))


class Context:
    """Makes expressions at the emitter's current place.  `node` is the node being lowered."""

    def __init__(self, emitter: Emitter, platform: str) -> None:
        self.emitter = emitter
        self.platform = platform
        self.node: Node | None = None

    def refuse(self, why: str) -> NoReturn:
        """Say that the node cannot be lowered."""
        refuse(why)

    @property
    def result_types(self) -> list[tuple[DType, tuple[int, ...]]]:
        """(dtype, dims) of each result of the node."""
        assert self.node is not None
        return [types.static(r.type, f"a result of {self.node.label}") for r in self.node.results]

    def wrap(self, value: Any, dtype: DType) -> Expr:
        """An expression of an MLIR value; the dims are read from its type."""
        return Expr(value, dtype, tuple(ir.RankedTensorType(value.type).shape))

    # Constants

    def constant(self, array: Any, dtype: DType | None = None) -> Expr:
        """A constant printed in the module, emitted once per scope."""
        array = np.asarray(array, None if dtype is None else dtype.numpy)
        return self.emitter.literal(array, dtype if dtype is not None else DType.from_numpy(array.dtype))

    def full(self, value: Any, dtype: DType, dims: Sequence[int] = ()) -> Expr:
        """One number everywhere."""
        scalar = np.asarray(value).astype(dtype.numpy)
        return self.emitter.literal(np.broadcast_to(scalar, tuple(dims)), dtype)

    def full_like(self, x: Expr, value: Any) -> Expr:
        return self.full(value, x.dtype, x.dims)

    # Elementwise

    def apply(self, name: str, *xs: Expr, dtype: DType | None = None) -> Expr:
        """A StableHLO operator on operands of equal dims, which the result has too."""
        value = getattr(hlo, name)(*[x.value for x in xs])
        return Expr(value, xs[0].dtype if dtype is None else dtype, xs[0].dims)

    def chlo(self, name: str, x: Expr) -> Expr:
        """A unary CHLO operator."""
        return Expr(getattr(chlo, name)(x.value), x.dtype, x.dims)

    def compare(self, x: Expr, y: Expr | float, direction: str) -> Expr:
        """x direction y (eq, ne, lt, le, gt, ge) -> bool.  Operands are broadcast."""
        x, y = self.together(x, y if isinstance(y, Expr) else self.full(y, x.dtype))
        attribute = hlo.ComparisonDirectionAttr.get(direction.upper())
        return Expr(hlo.compare(x.value, y.value, attribute), dtypes.bool_, x.dims)

    def select(self, predicate: Expr, x: Expr | float, y: Expr | float) -> Expr:
        """x where predicate, y elsewhere; operands are broadcast, at least one of x and y is an expression."""
        like = x if isinstance(x, Expr) else y
        assert isinstance(like, Expr)
        x = x if isinstance(x, Expr) else self.full(x, like.dtype)
        y = y if isinstance(y, Expr) else self.full(y, like.dtype)
        predicate, x, y = self.together(predicate, x, y)
        return Expr(hlo.select(predicate.value, x.value, y.value), x.dtype, x.dims)

    def is_nan(self, x: Expr) -> Expr:
        return self.compare(x, x, "ne")

    def convert(self, x: Expr, dtype: DType) -> Expr:
        """XLA's own conversion; the operator `convert` has the edges that XLA leaves open."""
        if x.dtype is dtype:
            return x
        return Expr(hlo.convert(types.tensor(dtype, x.dims), x.value), dtype, x.dims)

    def carried(self, x: Expr) -> Expr:
        """x in the type that arithmetic on its type runs in."""
        return self.convert(x, types.carrier(x.dtype))

    # Shapes

    def broadcast_in_dim(self, x: Expr, dims: Sequence[int], axes: Sequence[int]) -> Expr:
        """x with its axis i at result axis axes[i]."""
        if tuple(dims) == x.dims and tuple(axes) == tuple(range(x.rank)):
            return x
        value = hlo.broadcast_in_dim(types.tensor(x.dtype, dims), x.value, list(axes))
        return Expr(value, x.dtype, tuple(dims))

    def broadcast(self, x: Expr, dims: Sequence[int]) -> Expr:
        """x broadcast to `dims` as NumPy does it."""
        return self.broadcast_in_dim(x, dims, range(len(dims) - x.rank, len(dims)))

    def together(self, *xs: Expr) -> tuple[Expr, ...]:
        """The operands broadcast to their common dims."""
        dims = xs[0].dims
        if all(x.dims == dims for x in xs):
            return xs
        dims = broadcast_dims(*(x.dims for x in xs))
        return tuple(self.broadcast(x, dims) for x in xs)

    def reshape(self, x: Expr, dims: Sequence[int]) -> Expr:
        if tuple(dims) == x.dims:
            return x
        return Expr(hlo.reshape(types.tensor(x.dtype, dims), x.value), x.dtype, tuple(dims))

    def transpose(self, x: Expr, permutation: Sequence[int]) -> Expr:
        if list(permutation) == list(range(x.rank)):
            return x
        value = hlo.transpose(x.value, list(permutation))
        return Expr(value, x.dtype, tuple(x.dims[p] for p in permutation))

    def permuted(self, x: Expr, permutation: Sequence[int]) -> Expr:
        """`transpose` that costs nothing at run time if x is a constant argument: that is passed transposed."""
        if isinstance(x, Weight):
            return self.emitter.weight(x.constant, tuple(permutation))
        return self.transpose(x, permutation)

    def slice(
        self, x: Expr, starts: Sequence[int], limits: Sequence[int], strides: Sequence[int] | None = None
    ) -> Expr:
        strides = [1] * x.rank if strides is None else list(strides)
        return self.wrap(hlo.slice(x.value, list(starts), list(limits), strides), x.dtype)

    def concatenate(self, xs: Sequence[Expr], axis: int) -> Expr:
        if len(xs) == 1:
            return xs[0]
        return self.wrap(hlo.concatenate([x.value for x in xs], axis), xs[0].dtype)

    def pad(
        self, x: Expr, value: Expr, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None
    ) -> Expr:
        interior = [0] * x.rank if interior is None else list(interior)
        return self.wrap(hlo.pad(x.value, value.value, list(low), list(high), interior), x.dtype)

    def iota(self, dtype: DType, dims: Sequence[int], axis: int) -> Expr:
        """The index along axis as i32 or i64, converted to the type asked for."""
        if dtype in (dtypes.i32, dtypes.i64, dtypes.u32, dtypes.u64):
            made = dtype
        else:
            made = dtypes.i64 if dims[axis] >= 1 << 31 else dtypes.i32
        value = hlo.iota(types.tensor(made, dims), axis)
        return self.convert(Expr(value, made, tuple(dims)), dtype)

    # Products

    def precision(self, precision: str) -> Any:
        """The attribute for both operands of a product."""
        attribute = hlo.PrecisionAttr.get(precision.upper())
        return ir.ArrayAttr.get([attribute, attribute])

    def product(
        self,
        lhs: Expr,
        rhs: Expr,
        contracting: tuple[Sequence[int], Sequence[int]],
        batching: tuple[Sequence[int], Sequence[int]],
        dtype: DType,
        precision: str,
    ) -> Expr:
        """dot_general with sums and result in `dtype`; axes are given as (of lhs, of rhs)."""
        numbers = hlo.DotDimensionNumbers.get(
            lhs_batching_dimensions=list(batching[0]),
            rhs_batching_dimensions=list(batching[1]),
            lhs_contracting_dimensions=list(contracting[0]),
            rhs_contracting_dimensions=list(contracting[1]),
        )
        free = [
            n
            for x, b, c in zip((lhs, rhs), batching, contracting, strict=True)
            for a, n in enumerate(x.dims)
            if a not in b and a not in c
        ]
        dims = (*(lhs.dims[a] for a in batching[0]), *free)
        config = self.precision(precision)
        value = hlo.dot_general(types.tensor(dtype, dims), lhs.value, rhs.value, numbers, precision_config=config)
        return Expr(value, dtype, dims)

    # Operators with a body

    def body(self, operation: Any, scalars: Sequence[DType], write: Callable[..., Any], region: int = 0) -> None:
        """Fill a region of `operation`: `write(*scalars)` returns the expression, or several, that it yields."""
        block = operation.regions[region].blocks.append(*[types.tensor(d, ()) for d in scalars])
        with self.emitter.scope(block, isolated=True):
            out = write(*[Expr(a, d, ()) for a, d in zip(block.arguments, scalars, strict=True)])
            hlo.return_([o.value for o in (out if isinstance(out, tuple | list) else (out,))])

    def graph_body(self, operation: Any, graph: Graph, region: int = 0) -> None:
        """Fill a region of `operation` with a sub-graph on scalars that captures nothing but constants."""
        if graph.captures():
            self.refuse("a body that uses values from outside; XLA's computations see only their parameters")
        scalars = [types.static(v.type, "an input of a body")[0] for v in graph.inputs]
        self.body(operation, scalars, lambda *xs: self.emitter.inline(graph, xs))
