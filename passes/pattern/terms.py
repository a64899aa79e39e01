"""What a traced pattern is made of: terms for values, scalars, operators, alternatives, products.  No matching here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...ir.operators import Operator

TOLERANCE = 1e-3
"""Relative; recognises constants that an exporter rounded to f16."""


class Term:
    """A description of a value.  One term that stands in several places of a pattern is one value."""

    def children(self) -> tuple[Term, ...]:
        return ()

    def walk(self) -> Iterator[Term]:
        """This term and everything below it, each once."""
        seen: set[int] = set()
        stack: list[Term] = [self]
        while stack:
            term = stack.pop()
            if id(term) not in seen:
                seen.add(id(term))
                yield term
                stack.extend(term.children())

    def names(self) -> set[str]:
        """Every name that a match may capture below this term."""
        return {name for term in self.walk() for name in term.captured()}

    def captured(self) -> tuple[str, ...]:
        name = getattr(self, "name", None)
        return (name,) if name else ()


@dataclass(eq=False)
class Wildcard(Term):
    """Any value; twice the same wildcard is twice the same value, up to conversions that lose nothing."""

    name: str | None = None


@dataclass(eq=False)
class Scalar(Term):
    """A constant whose elements are all one number: captured as a float under `name`, or about equal to `value`."""

    name: str | None = None
    value: float | None = None


@dataclass(eq=False)
class Weight(Term):
    """Any constant, captured as a value."""

    name: str | None = None


@dataclass(frozen=True)
class Captured:
    """In the place of an attribute: any value of it, captured under `name`."""

    name: str


@dataclass(eq=False)
class Apply(Term):
    """A result of a node of one of these operators."""

    operators: tuple[Operator, ...]
    operands: tuple[Term | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    name: str | None = None
    result: int = 0

    def children(self) -> tuple[Term, ...]:
        return tuple(t for t in self.operands if t is not None)

    def captured(self) -> tuple[str, ...]:
        marks = tuple(a.name for a in self.attributes.values() if isinstance(a, Captured))
        return (*super().captured(), *marks)

    def __getitem__(self, result: int) -> Apply:
        """Another result of the same node."""
        return Apply(self.operators, self.operands, self.attributes, self.name, result)


@dataclass(eq=False)
class OneOf(Term):
    """The first alternative that matches; the others are tried when the rest of the pattern or the check fails."""

    options: tuple[Term, ...]

    def children(self) -> tuple[Term, ...]:
        return self.options


@dataclass(eq=False)
class Default(Term):
    """`inner` as it is, where an optional node is absent: what the absent part would capture has these values."""

    inner: Term
    values: dict[str, Any]

    def children(self) -> tuple[Term, ...]:
        return (self.inner,)


@dataclass(eq=False)
class Bound(Term):
    """`inner`, with the value captured under `name`."""

    name: str
    inner: Term

    def children(self) -> tuple[Term, ...]:
        return (self.inner,)


@dataclass(eq=False)
class Past(Term):
    """`inner` below any number (at most `limit`) of nodes of these operators, taking the first operand of each."""

    operators: tuple[Operator, ...]
    inner: Term
    limit: int = 6

    def children(self) -> tuple[Term, ...]:
        return (self.inner,)


@dataclass(eq=False)
class Inverse(Term):
    """1 / inner: a divisor inside a `Product`; elsewhere a reciprocal."""

    inner: Term

    def children(self) -> tuple[Term, ...]:
        return (self.inner,)


@dataclass(eq=False)
class Product(Term):
    """A tree of multiplications and divisions, in whatever order and association, with these factors.

    Numbers are collected in one coefficient: captured under `scalar` if that is a name, else about equal to it.
    At most one further factor is captured under `rest`.  Conversions between float types inside are passed over.
    """

    factors: tuple[Term, ...]
    scalar: str | float = 1.0
    rest: str | None = None

    def children(self) -> tuple[Term, ...]:
        return self.factors

    def captured(self) -> tuple[str, ...]:
        return tuple(n for n in (self.scalar, self.rest) if isinstance(n, str))
