"""The tracer that a pattern function gets as `p`: one method an operator, and the words of the pattern language."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Sequence
from typing import Any

from ...ir.errors import IrcError, did_you_mean
from ...ir.operators import Namespace, Operator, find, get, is_namespace
from .terms import Apply, Bound, Captured, Default, Inverse, OneOf, Past, Product, Scalar, Term, Weight, Wildcard


class Tracer:
    """Builds terms.  `p.add(x, y)` is a node of the operator `add`; numbers stand for scalar constants.

    Attributes are keywords: a value that must be equal (axes may count from the end), or `p.attribute("name")`.
    Commutative operators match in both orders; attributes that are not named may have any value.
    """

    @property
    def optional(self) -> Optional:
        """`p.optional.add(x, y)`: the node, or just `x` where it is absent; `default=` is what y then captures."""
        return Optional(self)

    def any(self, name: str | None = None) -> Wildcard:
        """Any value."""
        return Wildcard(name)

    def scalar(self, what: str | float) -> Scalar:
        """A scalar constant: captured under a name, or about equal to a number (relative 1e-3)."""
        return Scalar(name=what) if isinstance(what, str) else Scalar(value=float(what))

    def constant(self, name: str | None = None) -> Weight:
        """Any constant."""
        return Weight(name)

    def attribute(self, name: str) -> Captured:
        """Any value of an attribute, captured."""
        return Captured(name)

    def any_of(self, *options: Term) -> OneOf:
        """The first of several alternatives that matches."""
        if not options:
            raise IrcError("any_of needs at least one alternative: nothing matches none")
        return OneOf(tuple(options))

    def one_of(self, operators: Sequence[str], *operands: Any, **attributes: Any) -> Apply:
        """A node of any of several operators, which all take these operands."""
        return self._apply([get(name) for name in operators], operands, attributes)

    def bind(self, name: str, inner: Term) -> Bound:
        """`inner`, its value captured."""
        return Bound(name, inner)

    def past(self, operators: Sequence[str], inner: Term, limit: int = 6) -> Past:
        """`inner` below any number of nodes of these operators."""
        return Past(tuple(get(name) for name in operators), inner, limit)

    def product(self, *factors: Term, scalar: str | float = 1.0, rest: str | None = None) -> Product:
        """A tree of multiplications and divisions with these factors; see `Product`."""
        if not factors:
            raise IrcError("product needs at least one factor")
        return Product(tuple(factors), scalar, rest)

    def inverse(self, inner: Term) -> Inverse:
        """1 / inner, however it is written."""
        return Inverse(inner)

    def inverse_sqrt(self, x: Term) -> OneOf:
        """1 / sqrt(x), however it is written."""
        root = self.any_of(self.sqrt(x), self.power(x, 0.5), self.Pow(x, 0.5))
        return self.any_of(self.rsqrt(x), self.inverse(root), self.power(x, -0.5), self.Pow(x, -0.5))

    def square(self, x: Term) -> OneOf:
        return self.any_of(self.multiply(x, x), self.power(x, 2.0), self.Pow(x, 2.0))

    def mean(self, x: Term, axes: str) -> OneOf:
        """The mean along axes that stay with size 1; of a sum times a number, `<axes>_factor` is that number."""
        total = self.any_of(
            self.ReduceSum(x, axes=self.attribute(axes), keepdims=True),
            self.reshape(self.reduce((x,), axes=self.attribute(axes), kind="sum")),
            self.reshape(self.ReduceSum(x, axes=self.attribute(axes), keepdims=False)),
        )
        whole = self.any_of(
            self.ReduceMean(x, axes=self.attribute(axes), keepdims=True),
            self.reshape(self.ReduceMean(x, axes=self.attribute(axes), keepdims=False)),
        )
        return self.any_of(Default(whole, {f"{axes}_factor": None}), self.product(total, scalar=f"{axes}_factor"))

    def clip(self, x: Term, low: float, high: float) -> OneOf:
        """x limited to [low, high], however it is written."""
        forms: list[Term] = [
            self.Clip(x, low, high), self.clamp(low, x, high), self.minimum(self.maximum(x, low), high),
            self.maximum(self.minimum(x, high), low),
        ]  # fmt: skip
        if low == 0:
            forms.append(self.minimum(self.Relu(x), high))
            forms.append(self.Clip(self.Relu(x), low, high))
        return self.any_of(*forms)

    def __getattr__(self, name: str) -> Callable[..., Apply]:
        if name.startswith("__"):
            raise AttributeError(name)
        name = name[:-1] if name.endswith("_") and keyword.iskeyword(name[:-1]) else name
        if find(name) is None and is_namespace(name):
            return Namespace(self, name)  # type: ignore[return-value]  # its attributes are what can be called
        op = get(name)
        return lambda *operands, **attributes: self._apply([op], operands, attributes)

    def _apply(self, operators: Sequence[Operator], operands: Sequence[Any], attributes: dict[str, Any]) -> Apply:
        rows = []
        for op in operators:
            for name in attributes:
                if name not in op.kinds:
                    raise IrcError(f"{op.name} has no attribute {name!r}{did_you_mean(name, op.kinds)}")
            flat = op.flatten(operands)
            fixed = [s for s in op.operands if not s.variadic and not s.optional]
            if len(flat) < len(fixed):
                raise IrcError(f"{op.name} needs at least {len(fixed)} operands, the pattern gives {len(flat)}")
            rows.append(tuple(None if v is None else _term(v) for v in flat))
        return Apply(tuple(operators), rows[0], dict(attributes))


class Optional:
    """Operators that may be absent; the first operand is what stands in their place then."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer

    def __getattr__(self, name: str) -> Callable[..., OneOf]:
        if name.startswith("__"):
            raise AttributeError(name)
        make = getattr(self._tracer, name)

        def optional(first: Term, *operands: Any, default: Any = None, **attributes: Any) -> OneOf:
            node: Apply = make(first, *operands, **attributes)
            kept = first.names()
            return OneOf((node, Default(first, dict.fromkeys(sorted(node.names() - kept), default))))

        return optional


def _term(value: Any) -> Term:
    if isinstance(value, Term):
        return value
    if isinstance(value, int | float) and not isinstance(value, bool):
        return Scalar(value=float(value))
    raise IrcError(f"an operand of a pattern is a term or a number, got {value!r}")


def trace(function: Callable[..., Any], owner: Any) -> tuple[tuple[Term, ...], tuple[str, ...]]:
    """(terms of the results, names of the parameters) of a pattern function `pattern(self, p, x, ...)`."""
    names = list(inspect.signature(function).parameters)[2:]
    wildcards = {name: Wildcard(name) for name in names}
    returned = function(owner, Tracer(), **wildcards)
    terms = returned if isinstance(returned, tuple) else (returned,)
    for term in terms:
        if not isinstance(term, Term):
            raise IrcError(f"a pattern returns terms, got {term!r}")
    found = {id(t) for term in terms for t in term.walk()}
    for name, wildcard in wildcards.items():
        if id(wildcard) not in found:
            raise IrcError(f"the operand {name!r} of the pattern stands nowhere in it, so it could never be matched")
    return terms, tuple(names)


def roots(term: Term) -> set[str]:
    """Names of the operators that a node matched by `term` may have; empty if it could be any."""
    match term:
        case Apply():
            return {op.name for op in term.operators}
        case OneOf():
            found = [roots(option) for option in term.options]
            return set() if not all(found) else set().union(*found)
        case Bound() | Default():
            return roots(term.inner)
        case Product():
            return {"multiply", "divide"}
        case Past():
            inner = roots(term.inner)
            return inner | {op.name for op in term.operators} if inner else set()
        case Inverse():
            return {"Reciprocal", "divide"}
    return set()
