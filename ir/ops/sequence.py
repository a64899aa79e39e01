"""Sequences and optionals: handled by the host, in host functions; the reference runs them as Python lists."""

import functools

import numpy as np

from .. import dims as sizes
from .. import dtypes
from ..facts import Fact
from ..operators import HOST, INTEGER, PURE, AnyValue, AnyValues, Operand, operator
from ..types import OptionalType, SequenceType, TensorType


def common(ctx, a, b):
    """The type of an element that may be an `a` or a `b`: equal types stay, tensors of other dims lose theirs."""
    if a == b:
        return a
    if not isinstance(a, TensorType) or not isinstance(b, TensorType) or a.dtype is not b.dtype:
        ctx.fail(f"the elements of a sequence must have one element type, got {a} and {b}")
    ranked = a.dims is not None and b.dims is not None and len(a.dims) == len(b.dims)
    same = ranked and all(sizes.equal(x, y) for x, y in zip(a.dims, b.dims, strict=True))
    return a if same else TensorType(a.dtype, None)


def element_of(ctx, xs):
    if not isinstance(xs.type, SequenceType):
        ctx.fail(f"expected a sequence, got {xs.type}")
    return xs.type.element


def at_scalar(ctx, position):
    if position is not None:
        ctx.need(position.size == 1, f"the position must be a scalar, got {position.type}")


def checked(ctx, position, length, end):
    """The position counted from the front; an error unless it is in [-length, end)."""
    place = int(np.asarray(position).reshape(()))
    if not -length <= place < end:
        ctx.fail(f"position {place} is out of range for a sequence of {length} elements")
    return place + length if place < 0 else place


@operator("SequenceConstruct", family="sequence", traits=PURE | HOST)
class SequenceConstruct:
    """A sequence of the operands, which have one element type."""

    xs: AnyValues

    def infer(ctx, xs):
        ctx.need(len(xs) > 0, "SequenceConstruct needs at least one element; SequenceEmpty makes an empty sequence")
        return Fact(SequenceType(functools.reduce(functools.partial(common, ctx), (x.type for x in xs))))

    def reference(ctx, xs):
        return (list(xs),)


@operator("SequenceEmpty", family="sequence", traits=PURE | HOST)
class SequenceEmpty:
    """An empty sequence of tensors of the type `element`."""

    element: TensorType

    def infer(ctx, *, element):
        return Fact(SequenceType(element))

    def reference(ctx, *, element):
        return ([],)


@operator("SequenceAt", family="sequence", traits=PURE | HOST)
class SequenceAt:
    """The element at position (a scalar, negative from the end); an error if there is none."""

    xs: AnyValue
    position: Operand[INTEGER]

    def infer(ctx, xs, position):
        at_scalar(ctx, position)
        return Fact(element_of(ctx, xs))

    def reference(ctx, xs, position):
        return (xs[checked(ctx, position, len(xs), len(xs))],)


@operator("SequenceInsert", family="sequence", traits=PURE | HOST)
class SequenceInsert:
    """The sequence with x put before position (default: at the end)."""

    xs: AnyValue
    x: AnyValue
    position: Operand[INTEGER] | None = None

    def infer(ctx, xs, x, position):
        at_scalar(ctx, position)
        return Fact(SequenceType(common(ctx, element_of(ctx, xs), x.type)))

    def reference(ctx, xs, x, position):
        place = len(xs) if position is None else checked(ctx, position, len(xs), len(xs) + 1)
        return ([*xs[:place], x, *xs[place:]],)


@operator("SequenceErase", family="sequence", traits=PURE | HOST)
class SequenceErase:
    """The sequence without the element at position (default: the last one)."""

    xs: AnyValue
    position: Operand[INTEGER] | None = None

    def infer(ctx, xs, position):
        at_scalar(ctx, position)
        element_of(ctx, xs)
        return Fact(xs.type)

    def reference(ctx, xs, position):
        place = checked(ctx, -1 if position is None else position, len(xs), len(xs))
        return ([*xs[:place], *xs[place + 1 :]],)


@operator("SequenceLength", family="sequence", traits=PURE | HOST)
class SequenceLength:
    """Number of elements, an i64 scalar."""

    xs: AnyValue

    def infer(ctx, xs):
        element_of(ctx, xs)
        return Fact(TensorType(dtypes.i64, ()))

    def reference(ctx, xs):
        return np.array(len(xs), np.int64)


@operator("ConcatFromSequence", family="sequence", traits=PURE | HOST)
class ConcatFromSequence:
    """The tensors of a sequence joined along axis, or stacked along a new one there.  An empty one gives no rows.

    The rank of the elements must be known where the sequence is empty; negative axes count from the result's end.
    """

    xs: AnyValue
    axis: int
    new_axis: bool = False

    def infer(ctx, xs, *, axis, new_axis):
        return Fact(TensorType(element_of(ctx, xs).dtype, None))

    def reference(ctx, xs, *, axis, new_axis):
        if xs:
            return np.stack(xs, axis) if new_axis else np.concatenate(xs, axis)
        element = ctx.node.operands[0].type.element
        if element.dims is None or not all(isinstance(d, int) for d in element.dims):
            ctx.fail(f"an empty sequence of {element} does not tell the dims of what it is joined to")
        dims = list(element.dims)
        dims[axis : axis + 1] = [0, *dims[axis : axis + 1]] if new_axis else [0]
        return np.zeros(dims, element.dtype.numpy)


@operator("Optional", family="sequence", traits=PURE | HOST)
class Optional:
    """x as an optional; without x an empty optional of the type `element`."""

    x: AnyValue | None = None
    element: TensorType | None = None

    def infer(ctx, x, *, element):
        ctx.need(x is not None or element is not None, "an empty optional needs its element type")
        return Fact(OptionalType(element if x is None else x.type))

    def reference(ctx, x, *, element):
        return (x,)


@operator("OptionalHasElement", family="sequence", traits=PURE | HOST)
class OptionalHasElement:
    """Whether the optional x holds a value, a bool scalar."""

    x: AnyValue

    def infer(ctx, x):
        return Fact(TensorType(dtypes.bool_, ()))

    def reference(ctx, x):
        return np.array(x is not None)


@operator("OptionalGetElement", family="sequence", traits=PURE | HOST)
class OptionalGetElement:
    """The value that the optional x holds; an error if it is empty."""

    x: AnyValue

    def infer(ctx, x):
        ctx.need(isinstance(x.type, OptionalType), f"expected an optional, got {x.type}")
        return Fact(x.type.element)

    def reference(ctx, x):
        if x is None:
            ctx.fail("the optional is empty")
        return (x,)
