"""Sequences and optionals: handled by the host, in host functions; the reference runs them as Python lists."""

from ..operators import HOST, INTEGER, PURE, AnyValue, AnyValues, Operand, operator
from ..types import TensorType


@operator("SequenceConstruct", family="sequence", traits=PURE | HOST)
class SequenceConstruct:
    """A sequence of the operands, which have one element type."""

    xs: AnyValues


@operator("SequenceEmpty", family="sequence", traits=PURE | HOST)
class SequenceEmpty:
    """An empty sequence of tensors of the type `element`."""

    element: TensorType


@operator("SequenceAt", family="sequence", traits=PURE | HOST)
class SequenceAt:
    """The element at position (a scalar, negative from the end); an error if there is none."""

    xs: AnyValue
    position: Operand[INTEGER]


@operator("SequenceInsert", family="sequence", traits=PURE | HOST)
class SequenceInsert:
    """The sequence with x put before position (default: at the end)."""

    xs: AnyValue
    x: AnyValue
    position: Operand[INTEGER] | None = None


@operator("SequenceErase", family="sequence", traits=PURE | HOST)
class SequenceErase:
    """The sequence without the element at position (default: the last one)."""

    xs: AnyValue
    position: Operand[INTEGER] | None = None


@operator("SequenceLength", family="sequence", traits=PURE | HOST)
class SequenceLength:
    """Number of elements, an i64 scalar."""

    xs: AnyValue
