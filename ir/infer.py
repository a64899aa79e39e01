"""Type inference of one node: checks operands against the definition, runs its `infer`, records assumptions on dims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NoReturn

from . import dims as sizes
from .attributes import Attributes
from .dims import Assumption, DimError, Size
from .dtypes import DType
from .errors import InferenceError
from .facts import Fact
from .operators import Operator, Trait
from .types import TensorType

if TYPE_CHECKING:
    from .model import Function, Graph, Model


class InferContext:
    """What an `infer` rule may ask.  `assumptions` collects relations between dims that could not be proved."""

    def __init__(self, model: Model | None = None, function: Function | None = None, label: str = "") -> None:
        self.model = model
        self.function = function
        self.label = label
        self.assumptions: dict[Assumption, None] = {}

    def fail(self, message: str) -> NoReturn:
        """Reject the node."""
        raise InferenceError(message)

    def need(self, condition: bool | None, message: str) -> None:
        """Reject the node if the condition is False; None (cannot tell) passes: use `equal` to record it."""
        if condition is False:
            raise InferenceError(message)

    def equal(self, a: Size, b: Size, what: str) -> Size:
        """The common size of two dims that must be equal: fails if they differ, records an assumption if unproved."""
        verdict = sizes.equal(a, b)
        if verdict is False:
            raise InferenceError(f"{what} must be equal, got {a} and {b}")
        if verdict is None:
            self.assume("==", a, b)
        return a if isinstance(a, int) or not isinstance(b, int) else b

    def equal_dims(self, a: Sequence[Size], b: Sequence[Size], what: str) -> tuple[Size, ...]:
        """`equal` for whole shapes; the ranks must agree."""
        if len(a) != len(b):
            raise InferenceError(f"{what} must have equal rank, got [{_list(a)}] and [{_list(b)}]")
        return tuple(self.equal(x, y, f"{what} (axis {i})") for i, (x, y) in enumerate(zip(a, b, strict=True)))

    def at_most(self, a: Size, b: Size, what: str) -> None:
        """Needs a <= b."""
        verdict = sizes.less_equal(a, b)
        if verdict is False:
            raise InferenceError(f"{what}: {a} is more than {b}")
        if verdict is None:
            self.assume("<=", a, b)

    def assume(self, relation: Any, a: Size, b: Size) -> None:
        """Record a relation to be checked per shape."""
        self.assumptions[Assumption(relation, a, b, self.label)] = None

    def broadcast(self, *shapes: Sequence[Size]) -> tuple[Size, ...]:
        """The NumPy broadcast of shapes; unproved pairs become `bcast(a, b)` with an assumption."""
        rank = max((len(s) for s in shapes), default=0)
        if all(s == shapes[0] for s in shapes):
            return tuple(shapes[0])
        out: list[Size] = []
        for axis in range(rank):
            column = [s[axis - rank + len(s)] for s in shapes if axis - rank + len(s) >= 0]
            out.append(self._broadcast_axis(column, shapes))
        return tuple(out)

    def _broadcast_axis(self, column: list[Size], shapes: Sequence[Sequence[Size]]) -> Size:
        distinct = [d for d in dict.fromkeys(column) if d != 1]
        if len(distinct) <= 1:
            return distinct[0] if distinct else 1
        try:
            result = sizes.broadcast(*distinct)
        except DimError:
            listed = " and ".join(f"[{_list(s)}]" for s in shapes)
            raise InferenceError(f"shapes {listed} do not broadcast: {_list(distinct, ' and ')}") from None
        for a, b in pairwise(distinct):
            verdict = sizes.equal(a, b)
            if verdict is not True:
                self.assume("bcast", a, b)
        return result

    def same_dtype(self, *facts: Fact | None) -> DType:
        """The common element type of the facts given; fails if they differ."""
        present = [f.dtype for f in facts if f is not None]
        if any(d is not present[0] for d in present):
            raise InferenceError(f"operands must have one element type, got {', '.join(map(str, present))}")
        return present[0]

    def axis(self, axis: int, rank: int, what: str = "axis") -> int:
        """`axis` in [0, rank), negative ones counted from the end."""
        if not -rank <= axis < rank:
            raise InferenceError(f"{what} {axis} is out of range for rank {rank}")
        return axis % rank

    def axes(self, axes: Iterable[int], rank: int, what: str = "axes") -> tuple[int, ...]:
        """Distinct normalized axes in the given order."""
        out = tuple(self.axis(a, rank, what) for a in axes)
        if len(set(out)) != len(out):
            raise InferenceError(f"{what} {list(out)} name one axis twice")
        return out


def _list(dims: Iterable[Size], separator: str = ",") -> str:
    return separator.join(str(d) for d in dims)


def check_operands(op: Operator, grouped: Sequence[Any]) -> None:
    """Presence and element types of operands, as declared."""
    for spec, operand in zip(op.operands, grouped, strict=True):
        if operand is None:
            if not spec.optional:
                raise InferenceError(f"operand {spec.name} of {op.name} is missing")
            continue
        for fact in operand if spec.variadic else (operand,):
            if fact is None:
                raise InferenceError(f"operand {spec.name} of {op.name} has an absent element")
            if spec.any_type and not isinstance(fact.type, TensorType):
                continue
            if not isinstance(fact.type, TensorType):
                raise InferenceError(f"operand {spec.name} of {op.name} must be a tensor, got {fact.type}")
            if not spec.constraint.accepts(fact.type.dtype):
                raise InferenceError(
                    f"operand {spec.name} of {op.name} has type {fact.type}; expected {spec.constraint.name}"
                )


def infer(
    ctx: InferContext,
    op: Operator,
    operands: Sequence[Fact | None],
    attributes: Attributes,
    graphs: dict[str, tuple[Graph, ...]],
) -> tuple[Fact, ...] | Fact:
    """Facts of the results; InferenceError says what is wrong.  A single Fact means the operator has one result."""
    grouped = op.group(operands)
    check_operands(op, grouped)
    keywords = attributes.as_dict()
    for spec in op.regions:
        given = graphs.get(spec.name, ())
        if not given and not spec.optional and not spec.variadic:
            raise InferenceError(f"{op.name} needs the graph {spec.name}")
        keywords[spec.name] = given if spec.variadic else given[0] if given else None
    try:
        if op.infer is not None:
            result = op.infer(ctx, *grouped, **keywords)
        elif Trait.ELEMENTWISE in op.traits:
            flat = [g for group in grouped for g in (group if isinstance(group, tuple) else (group,)) if g is not None]
            result = Fact(TensorType(ctx.same_dtype(*flat), ctx.broadcast(*(f.dims for f in flat))))
        elif op.decompose is not None:
            result = _infer_by_decomposition(ctx, op, operands, keywords)
        else:
            raise InferenceError(f"{op.name} cannot be typed: it defines no infer rule")
    except DimError as error:
        raise InferenceError(str(error)) from error
    if isinstance(result, tuple | list):
        return tuple(_as_fact(r) for r in result)
    return _as_fact(result)


def _as_fact(result: Any) -> Fact:
    fact = result if isinstance(result, Fact) else Fact(result)
    if isinstance(fact.type, TensorType):
        known = [d for d in fact.type.dims or () if isinstance(d, int)]
        if any(d < 0 for d in known):
            raise InferenceError(f"the result {fact.type} would have a negative size")
        if any(d >= 2**63 for d in known):
            raise InferenceError(f"the result {fact.type} would have a size beyond 64 bits")
    return fact


def _infer_by_decomposition(
    ctx: InferContext, op: Operator, operands: Sequence[Fact | None], keywords: dict[str, Any]
) -> Any:
    from .build import decomposed

    scratch = decomposed(op, operands, keywords, assumptions=ctx.assumptions).main
    facts = tuple(v.fact for v in scratch.outputs)
    return facts[0] if len(facts) == 1 else facts
