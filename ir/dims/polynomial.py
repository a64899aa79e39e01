"""What a symbolic size is: atoms, `Dim` with + - and *, and the limits; division and the extrema are elsewhere."""

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import gcd, inf
from typing import NoReturn, TypeAlias

from .spelling import atom_text, spelled, spelled_atom

# Limits that keep hostile text from becoming hostile work.  Real sizes stay far below all of them.
MAX_TERMS = 256  # terms of one polynomial
MAX_DEGREE = 64  # atoms multiplied in one term
MAX_ARGUMENTS = 32  # of one max, min or bcast
MAX_NESTING = 48  # atoms within atoms; printing takes at most two parentheses for each, so it can be parsed again
MAX_DEPTH = 100  # nested parentheses in text
MAX_TEXT = 65536  # characters of text, and of one atom
MAX_BITS = 1024  # of a coefficient

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class DimError(ValueError):
    """A size expression that is malformed, too large, or has no value."""


class Atom:
    """A symbol (`kind` "symbol", no arguments) or one of the five functions; equal when spelled equally."""

    __slots__ = ("_hash", "_interval", "args", "kind", "nesting", "order", "text")

    def __init__(self, kind: str, args: "tuple[Size, ...]", text: str) -> None:
        self.kind = kind
        self.args = args
        self.text = text
        self.order = text if kind == "symbol" else "~" + text  # "~" sorts behind every letter: symbols come first
        self.nesting: int = 1 + max((a.nesting for s in args for m, _ in terms_of(s) for a in m), default=-1)
        self._hash = hash(text)
        self._interval: Interval | None = (0, inf) if kind == "symbol" else None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Atom) and self.order == other.order)

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: "Atom") -> bool:
        return self.order < other.order


Monomial: TypeAlias = tuple[Atom, ...]  # sorted, B*B is (B, B), the constant term is ()
Term: TypeAlias = tuple[Monomial, int]
Interval: TypeAlias = tuple[int | float, int | float]  # floats are only -inf and inf


class Dim:
    """An immutable symbolic size.  Made by `symbol`, `parse` and arithmetic, never by calling the class."""

    __slots__ = ("_hash", "_interval", "_symbols", "_terms", "_text")

    def __init__(self, terms: tuple[Term, ...]) -> None:
        self._terms = terms  # highest degree first (graded lexicographic), no zero coefficient
        self._hash: int | None = None
        self._text: str | None = None
        self._symbols: tuple[str, ...] | None = None
        self._interval: Interval | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self._terms == other._terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._terms)
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = spelled(self, atom_text)
        return self._text

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __reduce__(self) -> "tuple[Callable[[str], Size], tuple[str]]":
        from .parsing import parse  # which is made of this class

        return parse, (str(self),)  # a cached hash would be wrong in another process

    def __add__(self, other: "Size") -> "Size":
        if isinstance(other, int):
            if not other:
                return self
            terms = self._terms
            if terms[-1][0]:
                return Dim((*terms, ((), +other)))
            constant = terms[-1][1] + other
            return Dim((*terms[:-1], ((), constant))) if constant else Dim(terms[:-1])
        if not isinstance(other, Dim):
            return NotImplemented
        return sum_of((self, other))

    __radd__ = __add__

    def __neg__(self) -> "Dim":
        return Dim(tuple([(m, -k) for m, k in self._terms]))

    def __sub__(self, other: "Size") -> "Size":
        return self + -other if isinstance(other, int | Dim) else NotImplemented

    def __rsub__(self, other: int) -> "Size":
        return -self + other if isinstance(other, int) else NotImplemented

    def __mul__(self, other: "Size") -> "Size":
        if isinstance(other, int):
            if other == 1:
                return self
            return Dim(tuple([(m, checked(k * other)) for m, k in self._terms])) if other else 0
        if not isinstance(other, Dim):
            return NotImplemented
        total: dict[Monomial, int] = {}
        for m, k in self._terms:
            for n, j in other._terms:
                both = times(m, n)
                total[both] = total.get(both, 0) + checked(k * j)
            if len(total) > 2 * MAX_TERMS:
                break
        return build(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: "Size") -> "Size":
        return FUNCTIONS["floordiv"](self, other) if isinstance(other, int | Dim) else NotImplemented

    def __rfloordiv__(self, other: int) -> "Size":
        return FUNCTIONS["floordiv"](other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: "Size") -> "Size":
        return FUNCTIONS["mod"](self, other) if isinstance(other, int | Dim) else NotImplemented

    def __rmod__(self, other: int) -> "Size":
        return FUNCTIONS["mod"](other, self) if isinstance(other, int) else NotImplemented

    def _refusal(self, what: str) -> TypeError:
        hint = "evaluate() or substitute() its symbols, or ask equal(), less_equal() or less(), which may answer None"
        return TypeError(f"the symbolic size {self} {what}: {hint}")

    def __bool__(self) -> NoReturn:
        raise self._refusal("has no truth value")

    def __index__(self) -> NoReturn:
        raise self._refusal("is not a number")

    __int__ = __index__

    def __lt__(self, other: object) -> NoReturn:
        raise self._refusal("has no order")

    __le__ = __gt__ = __ge__ = __lt__


Size: TypeAlias = int | Dim

# Kind of atom -> the function that builds its normal form.  division.py and extrema.py enter theirs: they need bounds,
# and those need the arithmetic here.
FUNCTIONS: dict[str, Callable[..., Size]] = {}


# Polynomials


def terms_of(size: Size) -> tuple[Term, ...]:
    return size._terms if isinstance(size, Dim) else (((), size),) if size else ()


def term_order(term: Term) -> tuple[int, Monomial]:
    return -len(term[0]), term[0]


def build(terms: dict[Monomial, int]) -> Size:
    kept = [term for term in terms.items() if term[1]]
    if len(kept) > MAX_TERMS:
        raise DimError(f"size expression has more than {MAX_TERMS} terms")
    if not kept:
        return 0
    if len(kept) == 1:
        return Dim((kept[0],)) if kept[0][0] else kept[0][1]
    kept.sort(key=term_order)
    return Dim(tuple(kept))


def sum_of(sizes: Iterable[Size]) -> Size:
    total: dict[Monomial, int] = {}
    for size in sizes:
        for m, k in terms_of(size):
            total[m] = total.get(m, 0) + k
    return build(total)


def checked(value: int) -> int:
    if value.bit_length() > MAX_BITS:
        raise DimError(f"coefficient of a size expression exceeds {MAX_BITS} bits")
    return value


def times(m: Monomial, n: Monomial) -> Monomial:
    if not m or not n:
        return m or n
    if len(m) + len(n) > MAX_DEGREE:
        raise DimError(f"size expression multiplies more than {MAX_DEGREE} factors")
    return tuple(sorted(m + n))


def without(m: Monomial, divisor: Monomial) -> Monomial | None:
    """m / divisor, None when it does not divide."""
    rest = list(m)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def exact_quotient(a: Size, b: Dim) -> Size | None:
    """The polynomial q with q*b = a, None if there is none with integer coefficients."""
    lead, factor = b._terms[0]
    rest, quotient = dict(terms_of(a)), dict[Monomial, int]()
    while rest:
        top = min(rest.items(), key=term_order)
        m = without(top[0], lead)
        if m is None or top[1] % factor or len(quotient) >= MAX_TERMS:
            return None
        quotient[m] = q = top[1] // factor
        for n, j in b._terms:
            both = times(m, n)
            rest[both] = rest.get(both, 0) - q * j
            if not rest[both]:
                del rest[both]
    return build(quotient)


def common_factor(a: Size, b: Dim) -> Dim | None:
    """The greatest k*monomial that divides every term of both, None when it is 1."""
    terms = terms_of(a) + b._terms
    common = list(terms[0][0])
    for m, _ in terms[1:]:
        rest = list(m)
        common = [atom for atom in common if atom in rest and not rest.remove(atom)]  # type: ignore[func-returns-value]
    k = gcd(*(k for _, k in terms))
    # A pure number is wrapped as a constant polynomial: it is only ever divided by and multiplied with.
    return Dim(((tuple(common), k),)) if common or k > 1 else None


def scaled_down(size: Size, g: int) -> Size:
    return Dim(tuple([(m, k // g) for m, k in size._terms])) if isinstance(size, Dim) else size // g


def product(sizes: Iterable[Size]) -> Size:
    """The product, 1 for no sizes."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


# Atoms


def atom_size(kind: str, *args: Size) -> Dim:
    atom = Atom(kind, args, spelled_atom(kind, args, atom_text))
    if atom.nesting > MAX_NESTING:
        raise DimError(f"size expression nests more than {MAX_NESTING} of //, %, max, min and bcast")
    if len(atom.text) > MAX_TEXT:
        raise DimError(f"size expression is longer than {MAX_TEXT} characters")
    return Dim((((atom,), 1),))


def only_atom(size: Size, kind: str) -> Atom | None:
    """The atom when `size` is nothing but one atom of that kind."""
    if isinstance(size, Dim) and len(size._terms) == 1:
        m, k = size._terms[0]
        if k == 1 and len(m) == 1 and m[0].kind == kind:
            return m[0]
    return None


@lru_cache(maxsize=4096)
def symbol(name: str) -> Dim:
    """The symbol of that name, an unknown integer >= 0."""
    if not _NAME.fullmatch(name):
        raise DimError(f"invalid symbol name {name!r}: expected a letter or _, then letters, digits or _")
    return Dim((((Atom("symbol", (), name),), 1),))
