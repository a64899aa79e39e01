"""Ordering operators: sort, TopK."""

import functools

import numpy as np

from .. import dtypes
from ..dims import Size
from ..facts import Fact
from ..operators import ORDERED, PURE, Operand, Region, Variadic, operator
from ..types import TensorType
from . import bucketing
from .shape.positions import sliced


def stable_order(x, axis, *, descending):
    """Indices that sort along axis: -0 equal to +0, NaN greatest, equal elements in their order both ways."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    backwards = np.flip(np.argsort(np.flip(x, axis), axis, kind="stable"), axis)
    return x.shape[axis] - 1 - backwards


def _custom_order(ctx, xs, axis, comparator):
    """Indices by the comparator, lane by lane; equal elements stay in their order."""
    lanes = [np.moveaxis(x, axis, -1) for x in xs]
    order = np.empty(lanes[0].shape, np.int64)

    def compare(lane, i, j):
        def comes_first(i, j):
            pairs = (np.asarray(x[lane][k]) for x in lanes for k in (i, j))
            return bool(ctx.run(comparator, *pairs)[0])

        return -1 if comes_first(i, j) else 1 if comes_first(j, i) else 0

    for lane in np.ndindex(order.shape[:-1]):
        order[lane] = sorted(range(order.shape[-1]), key=functools.cmp_to_key(functools.partial(compare, lane)))
    return np.moveaxis(order, -1, axis)


def _check_comparator(ctx, xs, comparator):
    wanted = [TensorType(x.dtype, ()) for x in xs for _ in (0, 1)]
    got = [v.type for v in comparator.inputs]
    if got != wanted:
        ctx.fail(f"the comparator must take two scalars an operand, {_list(wanted)}; it takes {_list(got)}")
    returned = [v.type for v in comparator.outputs]
    if returned != [TensorType(dtypes.bool_, ())]:
        ctx.fail(f"the comparator must return bool[], it returns {_list(returned)}")


def _list(types):
    return ", ".join(map(str, types)) or "nothing"


@operator("sort", family="sort", traits=PURE)
class Sort:
    """xs sorted together along axis by the first of them.  All have equal dims; one result an operand.

    kind ascending or descending: total order with -0 equal to +0, NaN greatest (last when ascending, first when
    descending); stable in both directions.  kind custom: comparator(a0, b0, a1, b1, ...) -> bool says a comes first.
    """

    xs: Variadic
    axis: int
    kind: str = "ascending"
    comparator: Region | None = None

    bucket = bucketing.sort

    def infer(ctx, xs, *, axis, kind, comparator):
        ctx.need(len(xs) > 0, "sort needs at least one operand")
        ctx.need(
            kind in ("ascending", "descending", "custom"), f"kind must be ascending, descending or custom, got {kind!r}"
        )
        ctx.need((kind == "custom") == (comparator is not None), "kind custom, and no other, takes a comparator")
        ctx.axis(axis, xs[0].rank)
        dims = xs[0].dims
        for x in xs[1:]:
            dims = ctx.equal_dims(dims, x.dims, "dims of the operands of sort")
        if comparator is not None:
            _check_comparator(ctx, xs, comparator)
        facts = tuple(x.with_dims(dims) for x in xs)
        return facts[0] if len(facts) == 1 else facts

    def reference(ctx, xs, *, axis, kind, comparator):
        if kind == "custom":
            order = _custom_order(ctx, xs, axis, comparator)
        else:
            order = stable_order(ctx.wide(xs[0]), axis, descending=kind == "descending")
        return tuple(np.take_along_axis(x, order, axis) for x in xs)

    def vjp(ctx, xs, *, axis, kind, comparator):
        """Cotangents go back to where the elements came from; a comparator of one's own is refused."""
        b, axis = ctx.build, axis % xs[0].rank
        if kind == "custom":
            ctx.refuse("kind 'custom' has no derivative here; ascending and descending have")
        order = b.sort((xs[0], b.iota(dtype=dtypes.i64, dims=xs[0].dims, axis=axis)), axis=axis, kind=kind)[1]
        return tuple(
            b.put_along_axis(ctx.zeros(x), order, g, axis=axis, kind="sum") if x.dtype.is_float else None
            for x, g in zip(xs, ctx.cotangents, strict=True)
        )


@operator("TopK", family="sort", traits=PURE)
class TopK:
    """The k greatest (or least) elements along axis and their i64 indices, in order (`ordered`).

    Ties: lower index first.

    NaN counts as greatest.  (y, indices)
    """

    x: Operand[ORDERED]
    k: Size
    axis: int = -1
    largest: bool = True
    ordered: bool = True

    bucket = bucketing.top_k

    def infer(ctx, x, *, k, axis, largest, ordered):
        axis = ctx.axis(axis, x.rank)
        ctx.at_most(0, k, "k must not be negative")
        ctx.at_most(k, x.dims[axis], f"k, the number of elements wanted of axis {axis} of {x.type}")
        dims = x.dims[:axis] + (k,) + x.dims[axis + 1 :]
        return x.with_dims(dims), Fact(TensorType(dtypes.i64, dims))

    def reference(ctx, x, *, k, axis, largest, ordered):
        order = stable_order(ctx.wide(x), axis, descending=largest)
        order = np.take(order, np.arange(k), axis)
        return np.take_along_axis(x, order, axis), order

    def decompose(ctx, x, *, k, axis, largest, ordered):
        b = ctx.build
        axis %= x.rank
        places = b.iota(dtype=dtypes.i64, dims=x.dims, axis=axis)
        both = b.sort((x, places), axis=axis, kind="descending" if largest else "ascending")
        return tuple(sliced(b, y, axis, 0, k) for y in both)
