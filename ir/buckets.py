"""What a `bucket` rule may ask, and what holds where nobody asks.  The pass that applies rules is `bucket-dims`.

A size that is rounded up is a capacity: of an axis whose dim mentions such a symbol only a beginning counts, as long as
the dim is for the true size.  What stands behind is anything: NaN, indices out of range, zero divisors.  A rule gets
values of that kind and returns such results, whose beginnings are what the operator gives for the true sizes; or None,
if the operator itself does.  Elementwise operators need no rule.  A composite whose rule refuses is decomposed, as one
without a rule is, so its rule only says where it may stay whole.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

from . import dims as sizes
from . import dtypes
from .build import Builder
from .dims import Dim, Size
from .graph import Node, Value
from .operators import Trait
from .types import TensorType


class Refusal(Exception):
    """A `bucket` rule cannot; the message says why.  The symbols of `sizes` (none: of the node) then stay exact."""

    def __init__(self, why: str, sizes: Sequence[Size] = ()) -> None:
        super().__init__(why)
        self.sizes = tuple(sizes)


class BucketContext:
    """`true` has the true sizes of the symbols that are rounded up, as i64 scalars.  `build` adds nodes.

    `ones` collects sizes of which it matters whether they are 1: capacities must agree with true sizes in that.
    """

    def __init__(self, build: Builder, true: Mapping[str, Value], node: Node, ones: dict[Size, None]) -> None:
        self.build = build
        self.true = true
        self.node = node
        self.ones = ones

    def refuse(self, why: str, *at_fault: Size) -> NoReturn:
        raise Refusal(why, at_fault)

    def is_open(self, size: Size) -> bool:
        """Whether an axis of that size is longer than what counts."""
        return not sizes.names_no(size, self.true)

    def is_one(self, size: Size) -> bool:
        """Whether the size is 1, as true size and as capacity, or the function cannot run."""
        if size == 1 or self.node.graph is None or self.node.graph.function is None:
            return size == 1
        known = (a for a in self.node.graph.function.assumptions if a.relation == "==" and not a.sometimes)
        return any({a.lhs, a.rhs} == {size, 1} for a in known)

    def open_axes(self, x: Value, among: Collection[int] | None = None) -> tuple[int, ...]:
        """The axes of x of which only a beginning counts."""
        axes = range(x.rank) if among is None else [a % x.rank for a in among]
        return tuple(a for a in axes if self.is_open(x.dims[a]))

    def closed(self, x: Value | None, axes: Collection[int], what: str) -> None:
        """Refuses if one of these axes of x is open."""
        if x is not None and (open_ := self.open_axes(x, axes)):
            self.refuse(f"{what} of {x.type} counts only in part", *(x.dims[a] for a in open_))

    def size(self, size: Size) -> Value:
        """The true value of a size, an i64 scalar."""
        b = self.build
        if not self.is_open(size):
            value: Value = b.constant(size, dtypes.i64) if isinstance(size, int) else b.dimensions(
                dims=(size,), scalar=True
            )  # fmt: skip
            return value
        return sizes.fold(size, self._symbol, lambda n: b.constant(n, dtypes.i64), self._combined, self._broadcast)

    def capacity(self, size: Size) -> Value:
        """What a size is rounded up to, an i64 scalar."""
        value: Value = self.build.dimensions(dims=(size,), scalar=True)
        return value

    def _symbol(self, name: str) -> Value:
        return self.true[name] if name in self.true else self.size(sizes.symbol(name))

    def _broadcast(self, size: Size) -> Value | None:
        """Of sizes that broadcast, the one that is not 1."""
        b, out = self.build, None
        for argument in sizes.broadcast_arguments(size) or ():
            n = self.size(argument)
            out = n if out is None else b.select(b.compare(out, 1, direction="eq"), n, out)
        return out

    def _combined(self, kind: str, x: Value, y: Value) -> Value:
        b = self.build
        if kind == "//":  # rounds down, `divide` towards zero
            value: Value = b.divide(b.subtract(x, b.Mod(x, y)), y)
            return value
        names = {"+": "add", "*": "multiply", "%": "Mod", "max": "maximum", "min": "minimum"}
        made: Value = b.apply(names[kind], x, y)
        return made

    def repeats(self, *columns: Sequence[Size]) -> None:
        """Sizes of each column broadcast together: which of them are 1 must be so for capacities too."""
        for column in columns:
            check_repeats(self, column)

    def broadcasts(self, *operands: Value | None) -> None:
        """As `repeats`, of all axes of operands that broadcast together."""
        _check_broadcast(self, [v for v in operands if v is not None])

    def inside(self, dims: Sequence[Size], axes: Collection[int]) -> Value | None:
        """bool, broadcasting to `dims`: which elements count along these axes; None if all do."""
        b, out = self.build, None
        for axis in axes:
            if self.is_open(dims[axis]):
                shape = tuple(d if i == axis else 1 for i, d in enumerate(dims))
                places = b.iota(dtype=dtypes.i64, dims=shape, axis=axis)
                valid = b.compare(places, self.size(dims[axis]), direction="lt")
                out = valid if out is None else b.and_(out, valid)
        return out

    def filled(self, x: Value, fill: Any, axes: Collection[int] | None = None) -> Value:
        """x with `fill` (a number, or a scalar value) in all that does not count along these axes (default: all)."""
        axes = range(x.rank) if axes is None else [a % x.rank for a in axes]
        valid = self.inside(x.dims, axes)
        if valid is None:
            return x
        other = fill if isinstance(fill, Value) else self.build.constant(fill, x.dtype)
        value: Value = self.build.select(valid, x, other)
        return value

    def again(self, *operands: Any, **changes: Any) -> Any:
        """The node's operator once more, on other operands and with its own attributes where no others are given."""
        return self.build.apply(self.node.op, *operands, **{**self.node.keywords, **changes})


def bucketed(ctx: BucketContext) -> tuple[Value, ...] | None:
    """Results in the place of the node's own; None if the node is right as it stands.  Refusal says why neither."""
    node = ctx.node
    if node.op.bucket is not None:
        made = node.op.bucket(ctx, *node.grouped, **node.keywords)
    elif Trait.ELEMENTWISE in node.op.traits:
        ctx.broadcasts(*node.operands)
        return None
    else:
        ctx.refuse(NO_RULE)
    if made is None:
        return None
    out = tuple(made) if isinstance(made, tuple | list) else (made,)
    for new, old in zip(out, node.results, strict=True):
        if new.type != old.type and not _same(new.type, old.type):
            ctx.refuse(f"would have type {new.type} instead of {old.type}")
    return out


NO_RULE = "has no rule for sizes that are rounded up"


def has_rule(node: Node) -> bool:
    """Whether the node's operator can have open axes."""
    return node.op.bucket is not None or Trait.ELEMENTWISE in node.op.traits


def _check_broadcast(ctx: BucketContext, operands: Sequence[Value]) -> None:
    """A size that repeats because it is 1 must be 1 as a capacity too."""
    rank = max((v.rank for v in operands), default=0)
    for axis in range(-rank, 0):
        column = dict.fromkeys(v.dims[axis] for v in operands if v.rank >= -axis)
        check_repeats(ctx, list(column))


def check_repeats(ctx: BucketContext, column: Sequence[Size]) -> None:
    """Capacities must broadcast together as the true sizes do."""
    distinct = [d for d in column if d != 1]
    if not all(sizes.equal(d, distinct[0]) for d in distinct):
        ctx.ones.update((d, None) for d in distinct if isinstance(d, Dim) and not sizes.keeps_one(d, ctx.true))


def _same(a: Any, b: Any) -> bool:
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype is not b.dtype:
        return False
    if a.dims is None or b.dims is None:
        return a.dims is b.dims
    return len(a.dims) == len(b.dims) and all(sizes.equal(x, y) for x, y in zip(a.dims, b.dims, strict=True))
