"""Symbolic sizes: integer polynomials over symbols and floordiv, mod, max, min and bcast atoms, in normal form.

A concrete size is an `int`; a symbolic one is a `Dim`, which is never constant.  Symbols stand for integers >= 0.
`==` and `hash` compare normal forms; `equal`, `less_equal` and `less` ask whether something holds for *all* values of
the symbols and may answer None (unknown).  Nothing here knows about types or graphs.

Two assumptions are built into the normal form, because an expression that breaks them has no value anyway: a divisor is
not zero ((B*C)//B is C), and the arguments of a bcast do broadcast (bcast(B, 4) is 4).  Whoever relies on them records
an `Assumption`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from math import gcd, inf, lcm
from typing import Literal, NoReturn, TypeAlias, TypeVar

# Limits that keep hostile text from becoming hostile work.  Real sizes stay far below all of them.
MAX_TERMS = 256  # terms of one polynomial
MAX_DEGREE = 64  # atoms multiplied in one term
MAX_ARGUMENTS = 32  # of one max, min or bcast
MAX_NESTING = 48  # atoms within atoms; printing takes at most two parentheses for each, so it can be parsed again
MAX_DEPTH = 100  # nested parentheses in text
MAX_TEXT = 65536  # characters of text, and of one atom
MAX_BITS = 1024  # of a coefficient

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TOKEN = re.compile(r"[ \t]*(?:([0-9]+)|([A-Za-z_][A-Za-z0-9_]*)|(//|[-+*%(),]))")


class DimError(ValueError):
    """A size expression that is malformed, too large, or has no value."""


class _Atom:
    """A symbol (`kind` "symbol", no arguments) or one of the five functions; equal when spelled equally."""

    __slots__ = ("_hash", "_interval", "args", "kind", "nesting", "order", "text")

    def __init__(self, kind: str, args: "tuple[Size, ...]", text: str) -> None:
        self.kind = kind
        self.args = args
        self.text = text
        self.order = text if kind == "symbol" else "~" + text  # "~" sorts behind every letter: symbols come first
        self.nesting: int = 1 + max((a.nesting for s in args for m, _ in _terms(s) for a in m), default=-1)
        self._hash = hash(text)
        self._interval: _Interval | None = (0, inf) if kind == "symbol" else None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Atom) and self.order == other.order)

    def __hash__(self) -> int:
        return self._hash

    def __lt__(self, other: "_Atom") -> bool:
        return self.order < other.order


_Monomial: TypeAlias = tuple[_Atom, ...]  # sorted, B*B is (B, B), the constant term is ()
_Term: TypeAlias = tuple[_Monomial, int]
_Interval: TypeAlias = tuple[int | float, int | float]  # floats are only -inf and inf


class Dim:
    """An immutable symbolic size.  Made by `symbol`, `parse` and arithmetic, never by calling the class."""

    __slots__ = ("_hash", "_interval", "_symbols", "_terms", "_text")

    def __init__(self, terms: tuple[_Term, ...]) -> None:
        self._terms = terms  # highest degree first (graded lexicographic), no zero coefficient
        self._hash: int | None = None
        self._text: str | None = None
        self._symbols: tuple[str, ...] | None = None
        self._interval: _Interval | None = None

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Dim) and self._terms == other._terms)

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self._terms)
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = _spell(self, _atom_text)
        return self._text

    def __repr__(self) -> str:
        return f"Dim({str(self)!r})"

    def __reduce__(self) -> "tuple[Callable[[str], Size], tuple[str]]":
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
        return _sum((self, other))

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
            return Dim(tuple([(m, _coefficient(k * other)) for m, k in self._terms])) if other else 0
        if not isinstance(other, Dim):
            return NotImplemented
        total: dict[_Monomial, int] = {}
        for m, k in self._terms:
            for n, j in other._terms:
                both = _times(m, n)
                total[both] = total.get(both, 0) + _coefficient(k * j)
            if len(total) > 2 * MAX_TERMS:
                break
        return _build(total)

    __rmul__ = __mul__

    def __floordiv__(self, other: "Size") -> "Size":
        return floordiv(self, other) if isinstance(other, int | Dim) else NotImplemented

    def __rfloordiv__(self, other: int) -> "Size":
        return floordiv(other, self) if isinstance(other, int) else NotImplemented

    def __mod__(self, other: "Size") -> "Size":
        return mod(self, other) if isinstance(other, int | Dim) else NotImplemented

    def __rmod__(self, other: int) -> "Size":
        return mod(other, self) if isinstance(other, int) else NotImplemented

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


# Polynomials


def _terms(size: Size) -> tuple[_Term, ...]:
    return size._terms if isinstance(size, Dim) else (((), size),) if size else ()


def _term_order(term: _Term) -> tuple[int, _Monomial]:
    return -len(term[0]), term[0]


def _build(terms: dict[_Monomial, int]) -> Size:
    kept = [term for term in terms.items() if term[1]]
    if len(kept) > MAX_TERMS:
        raise DimError(f"size expression has more than {MAX_TERMS} terms")
    if not kept:
        return 0
    if len(kept) == 1:
        return Dim((kept[0],)) if kept[0][0] else kept[0][1]
    kept.sort(key=_term_order)
    return Dim(tuple(kept))


def _sum(sizes: Iterable[Size]) -> Size:
    total: dict[_Monomial, int] = {}
    for size in sizes:
        for m, k in _terms(size):
            total[m] = total.get(m, 0) + k
    return _build(total)


def _coefficient(value: int) -> int:
    if value.bit_length() > MAX_BITS:
        raise DimError(f"coefficient of a size expression exceeds {MAX_BITS} bits")
    return value


def _times(m: _Monomial, n: _Monomial) -> _Monomial:
    if not m or not n:
        return m or n
    if len(m) + len(n) > MAX_DEGREE:
        raise DimError(f"size expression multiplies more than {MAX_DEGREE} factors")
    return tuple(sorted(m + n))


def _without(m: _Monomial, divisor: _Monomial) -> _Monomial | None:
    """m / divisor, None when it does not divide."""
    rest = list(m)
    for atom in divisor:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)


def _exact_quotient(a: Size, b: Dim) -> Size | None:
    """The polynomial q with q*b = a, None if there is none with integer coefficients."""
    lead, factor = b._terms[0]
    rest, quotient = dict(_terms(a)), dict[_Monomial, int]()
    while rest:
        top = min(rest.items(), key=_term_order)
        m = _without(top[0], lead)
        if m is None or top[1] % factor or len(quotient) >= MAX_TERMS:
            return None
        quotient[m] = q = top[1] // factor
        for n, j in b._terms:
            both = _times(m, n)
            rest[both] = rest.get(both, 0) - q * j
            if not rest[both]:
                del rest[both]
    return _build(quotient)


def _common_factor(a: Size, b: Dim) -> Dim | None:
    """The greatest k*monomial that divides every term of both, None when it is 1."""
    terms = _terms(a) + b._terms
    common = list(terms[0][0])
    for m, _ in terms[1:]:
        rest = list(m)
        common = [atom for atom in common if atom in rest and not rest.remove(atom)]  # type: ignore[func-returns-value]
    k = gcd(*(k for _, k in terms))
    # A pure number is wrapped as a constant polynomial: it is only ever divided by and multiplied with.
    return Dim(((tuple(common), k),)) if common or k > 1 else None


# Atoms


def _make(kind: str, *args: Size) -> Dim:
    atom = _Atom(kind, args, _atom_spelling(kind, args, _atom_text))
    if atom.nesting > MAX_NESTING:
        raise DimError(f"size expression nests more than {MAX_NESTING} of //, %, max, min and bcast")
    if len(atom.text) > MAX_TEXT:
        raise DimError(f"size expression is longer than {MAX_TEXT} characters")
    return Dim((((atom,), 1),))


def _only_atom(size: Size, kind: str) -> _Atom | None:
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
    return Dim((((_Atom("symbol", (), name),), 1),))


def floordiv(a: Size, b: Size) -> Size:
    """a // b, rounding down as Python does.  A symbolic divisor is taken to be nonzero.

    Normal form: multiples of the divisor leave the numerator ((4*B + r)//2 = 2*B + r//2), common factors cancel,
    (a//b)//c = a//(b*c), a numerator with only negative coefficients turns into the rounding-up form
    ((-H)//2 = -((H + 1)//2)), and what the bounds pin to one value is that value.
    """
    if isinstance(b, int):
        if b == 0:
            raise DimError(f"division of the size {a} by zero")
        if isinstance(a, int):
            return a // b
        return a if b == 1 else _floordiv_constant(a, b) if b > 0 else floordiv(-a, -b)
    if isinstance(a, int) and a == 0:
        return 0
    if b._terms[0][1] < 0:
        return floordiv(-a, -b)
    quotient = _exact_quotient(a, b)
    if quotient is not None:
        return quotient
    multiples, rest = _split_multiples(a, b)
    if multiples:
        return floordiv(rest, b) + _build(multiples)
    reduced = _cancelled(a, b)
    if reduced is not None:
        return floordiv(reduced[1], reduced[2])
    inner = _only_atom(a, "floordiv")
    if inner is not None and _interval(b)[0] >= 0:
        return floordiv(inner.args[0], inner.args[1] * b)
    if _is_remainder(a, b):
        return 0
    low, high = _interval_floordiv(_interval(a), _interval(b))
    return int(low) if low == high else _make("floordiv", a, b)


def _floordiv_constant(a: Dim, c: int) -> Size:
    whole: dict[_Monomial, int] = {}
    rest: dict[_Monomial, int] = {}
    for m, k in a._terms:
        # The constant keeps a remainder in [0, c); other coefficients round towards zero, which keeps their sign.
        q = k // c if k > 0 or not m else -(-k // c)
        whole[m], rest[m] = q, k - q * c
    outer, inner = _build(whole), _build(rest)
    if isinstance(inner, int):
        return outer
    constant = rest.get((), 0)
    coefficients = [k for m, k in inner._terms if m]
    if max(coefficients) < 0:
        return outer - floordiv(-inner + (c - 1), c)
    g = gcd(c, *coefficients)
    if g > 1:
        return floordiv(_scaled_down(inner - constant, g) + constant // g, c // g) + outer
    nested = _only_atom(inner - constant, "floordiv")
    if nested is not None and (constant == 0 or isinstance(nested.args[1], int)):
        x, b = nested.args
        return floordiv(x + b * constant, b * c) + outer
    low, high = _interval(inner)
    low, high = _ratio(low, c), _ratio(high, c)
    return outer + (int(low) if low == high else _make("floordiv", inner, c))


def mod(a: Size, b: Size) -> Size:
    """a % b with the sign of b, as in Python.  A symbolic divisor is taken to be nonzero.

    Normal form: coefficients are reduced modulo a constant divisor, multiples of a symbolic one drop out, common
    factors come out in front, (x % 6) % 3 = x % 3, and what the bounds show to be a remainder already stays itself.
    """
    if isinstance(b, int):
        if b == 0:
            raise DimError(f"remainder of the size {a} by zero")
        if isinstance(a, int):
            return a % b
        return _mod_constant(a, b) if b > 0 else -_mod_constant(-a, -b)
    if isinstance(a, int) and a == 0:
        return 0
    if b._terms[0][1] < 0:
        return -mod(-a, -b)
    if _exact_quotient(a, b) is not None:
        return 0
    multiples, rest = _split_multiples(a, b)
    if multiples:
        return mod(rest, b)
    reduced = _cancelled(a, b)
    if reduced is not None:
        return reduced[0] * mod(reduced[1], reduced[2])
    unwrapped = _sum(m[0].args[0] * k if _is_mod_by(m, b) else Dim(((m, k),)) for m, k in _terms(a))
    if unwrapped != a:
        return mod(unwrapped, b)
    return a if _is_remainder(a, b) else _make("mod", a, b)


def _mod_constant(a: Size, c: int, bounded: bool = True) -> Size:
    """a % c; not `bounded` asks for no bounds, for use by the bounds themselves (which would take exponential time)."""
    inner = _build({m: k % c for m, k in _terms(a)})
    if isinstance(inner, int):
        return inner % c
    for m, k in inner._terms:
        if len(m) == 1 and m[0].kind == "mod" and isinstance(m[0].args[1], int) and k * m[0].args[1] % c == 0:
            return _mod_constant(inner - Dim(((m, k),)) + m[0].args[0] * k, c, bounded)
    constant = inner._terms[-1][1] if not inner._terms[-1][0] else 0
    g = gcd(c, *(k for m, k in inner._terms if m))
    if g > 1:
        reduced = _scaled_down(inner - constant, g) + constant // g
        return _mod_constant(reduced, c // g, bounded) * g + constant % g
    if not bounded:
        remainder = _make("mod", inner, c)
        remainder._terms[0][0][0]._interval = (0, c - 1)
        return remainder
    low, high = _interval(inner)
    q = _ratio(low, c)
    return inner - int(q) * c if q == _ratio(high, c) else _make("mod", inner, c)


def _is_mod_by(m: _Monomial, b: Dim) -> bool:
    return len(m) == 1 and m[0].kind == "mod" and m[0].args[1] == b


def _scaled_down(size: Size, g: int) -> Size:
    return Dim(tuple([(m, k // g) for m, k in size._terms])) if isinstance(size, Dim) else size // g


def _split_multiples(a: Size, b: Dim) -> tuple[dict[_Monomial, int], Size]:
    """The terms of a that b, if a single term, divides, already divided; and the rest of a."""
    multiples: dict[_Monomial, int] = {}
    if len(b._terms) > 1:
        return multiples, a
    (divisor, factor), rest = b._terms[0], dict(_terms(a))
    for m, k in _terms(a):
        quotient = _without(m, divisor)
        if quotient is not None and k % factor == 0:
            multiples[quotient] = rest.pop(m) // factor
    return multiples, _build(rest)


def _cancelled(a: Size, b: Dim) -> tuple[Size, Size, Size] | None:
    """(f, a/f, b/f) for the common factor f, None when that is 1."""
    factor = _common_factor(a, b)
    if factor is None:
        return None
    top, bottom = _exact_quotient(a, factor), _exact_quotient(b, factor)
    assert top is not None
    assert bottom is not None
    return _build(dict(factor._terms)), top, bottom


def _is_remainder(a: Size, b: Size) -> bool:
    """0 <= a < b is certain."""
    return _interval(a)[0] >= 0 and _interval(b - a)[0] >= 1


def ceildiv(a: Size, b: Size) -> Size:
    """a / b rounded up."""
    return -floordiv(-a, b)


def maximum(*sizes: Size) -> Size:
    """The largest.  Nested maxima flatten; an argument provably not above another drops out."""
    return _extremum("max", sizes, less_equal)


def minimum(*sizes: Size) -> Size:
    """The smallest.  Nested minima flatten; an argument provably not below another drops out."""
    return _extremum("min", sizes, lambda a, b: less_equal(b, a))


def _extremum(kind: str, sizes: tuple[Size, ...], yields: Callable[[Size, Size], bool | None]) -> Size:
    if not sizes:
        raise DimError(f"{kind} of no sizes")
    kept: list[Size] = []
    for size in _flattened(kind, sizes):
        if not any(yields(size, other) for other in kept):
            kept = [other for other in kept if not yields(other, size)]
            kept.append(size)
    return kept[0] if len(kept) == 1 else _make(kind, *kept)


def _flattened(kind: str, sizes: Iterable[Size]) -> list[Size]:
    """Arguments with those of nested atoms of the same kind, distinct, in order: text first, numbers last."""
    distinct: dict[Size, None] = {}
    for size in sizes:
        atom = _only_atom(size, kind)
        distinct.update(dict.fromkeys((size,) if atom is None else atom.args))
    if len(distinct) > MAX_ARGUMENTS:
        raise DimError(f"{kind} of more than {MAX_ARGUMENTS} sizes")
    if len(distinct) == 1:
        return list(distinct)
    return sorted(distinct, key=lambda size: (isinstance(size, int), str(size)))


def broadcast(*sizes: Size) -> Size:
    """The size of one axis after NumPy broadcasting; of no sizes, 1.

    1s drop out and equal sizes merge.  A size that cannot be 1, a number above all, decides: the others must be 1 or
    equal to it, which is assumed unless it is provably false.  Raises DimError for sizes that cannot broadcast.
    """
    distinct = [size for size in _flattened("bcast", sizes) if size != 1]
    if len(distinct) == 1:
        return distinct[0]
    kept: list[Size] = []
    for size in distinct:
        if not any(equal(size, other) for other in kept):
            kept.append(size)
    decided = [size for size in kept if equal(size, 1) is False]
    for a, b in combinations(decided, 2):
        if equal(a, b) is False:
            raise DimError(f"sizes {a} and {b} do not broadcast: expected equal sizes, or one of them 1")
    if decided and isinstance(decided[-1], int):
        return decided[-1]
    kept = decided or kept
    return kept[0] if len(kept) == 1 else _make("bcast", *kept) if kept else 1


def product(sizes: Iterable[Size]) -> Size:
    """The product, 1 for no sizes."""
    result: Size = 1
    for size in sizes:
        result = result * size
    return result


# Bounds and comparison


def bounds(size: Size) -> tuple[int | None, int | None]:
    """(least, greatest) value that the size can have, each None when unbounded or not known.  Not always tight."""
    low, high = _interval(size)
    return (None if low == -inf else int(low)), (None if high == inf else int(high))


def equal(a: Size, b: Size) -> bool | None:
    """Whether a == b: True and False hold for all values of the symbols, None is unknown."""
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    low, high = _interval(difference)
    if low > 0 or high < 0:
        return False
    if low == high:
        return True
    m, constant = difference._terms[-1]
    if not m and constant % gcd(*(k for m, k in difference._terms if m)):
        return False  # 2*A == 2*B + 1
    return None


def less_equal(a: Size, b: Size) -> bool | None:
    """Whether a <= b: True and False hold for all values of the symbols, None is unknown."""
    low, high = _interval(b - a)
    return True if low >= 0 else False if high < 0 else None


def less(a: Size, b: Size) -> bool | None:
    """Whether a < b: True and False hold for all values of the symbols, None is unknown."""
    low, high = _interval(b - a)
    return True if low > 0 else False if high <= 0 else None


def _interval(size: Size) -> _Interval:
    if isinstance(size, int):
        return size, size
    if size._interval is None:
        size._interval = _refined_interval(size, 2)
    return size._interval


def _refined_interval(size: Size, fuel: int) -> _Interval:
    """Interval arithmetic over the terms, then two rewritings that see how terms depend on each other.

    `fuel` limits the rewritings in depth.  Inner results are not cached, so that an answer (and with it the normal
    form of a max) depends on the size alone and never on what was asked before.
    """
    if isinstance(size, int):
        return size, size
    low: int | float = 0
    high: int | float = 0
    for m, k in size._terms:
        term: _Interval = (k, k)
        for atom in m:
            term = _interval_product(term, _atom_interval(atom))
        low, high = _plus(low, term[0]), _plus(high, term[1])
    if fuel and len(size._terms) > 1 and any(atom.kind != "symbol" for m, _ in size._terms for atom in m):
        for least, most in (_without_floordiv(size, fuel - 1), _by_cases(size, fuel - 1)):
            low, high = max(low, least), min(high, most)
    return low, high


def _without_floordiv(size: Dim, fuel: int) -> _Interval:
    """With a//c = (a - a % c)/c: 2*(H//2) - H becomes -(H % 2)."""
    found = [next((a for a in m if a.kind == "floordiv" and isinstance(a.args[1], int)), None) for m, _ in size._terms]
    scale = lcm(*(a.args[1] for a in found if a and isinstance(a.args[1], int)))
    if not any(found) or scale.bit_length() > 64:
        return -inf, inf
    try:
        terms = zip(size._terms, found, strict=True)
        low, high = _refined_interval(_sum(_multiplied(m, k, a, scale) for (m, k), a in terms), fuel)
    except DimError:  # the rewritten size is too large
        return -inf, inf
    return -_ratio(-low, scale), _ratio(high, scale)


def _multiplied(m: _Monomial, k: int, division: _Atom | None, scale: int) -> Size:
    if division is None:
        return Dim(((m, k * scale),))
    a, c = division.args
    assert isinstance(c, int)
    return _build({_without(m, (division,)) or (): k * (scale // c)}) * (a - _mod_constant(a, c, bounded=False))


def _by_cases(size: Dim, fuel: int) -> _Interval:
    """A max, min or bcast is one of its arguments: max(A, B) - B is A - B or 0, and not below either."""
    for m, k in size._terms:
        atom = m[0] if m else None
        if len(m) == 1 and atom and atom.kind in ("max", "min", "bcast") and len(atom.args) <= 4:
            rest = size - Dim(((m, k),))
            cases = [_refined_interval(rest + argument * k, fuel) for argument in atom.args]
            lows, highs = [low for low, _ in cases], [high for _, high in cases]
            if atom.kind == "bcast":
                return min(lows), max(highs)
            return (max(lows), max(highs)) if (atom.kind == "max") == (k > 0) else (min(lows), min(highs))
    return -inf, inf


def _atom_interval(atom: _Atom) -> _Interval:
    if atom._interval is None:
        parts = [_interval(argument) for argument in atom.args]
        lows, highs = [low for low, _ in parts], [high for _, high in parts]
        match atom.kind:
            case "floordiv":
                atom._interval = _interval_floordiv(parts[0], parts[1])
            case "mod":
                atom._interval = _interval_mod(parts[0], parts[1])
            case "max":
                atom._interval = max(lows), max(highs)
            case "min":
                atom._interval = min(lows), min(highs)
            case _:
                atom._interval = min(lows), max(highs)
    return atom._interval


def _plus(x: int | float, y: int | float) -> int | float:
    # An infinity is returned as it is: adding would convert the other, maybe huge, int to float.
    return x if isinstance(x, float) else y if isinstance(y, float) else x + y


def _multiply(x: int | float, y: int | float) -> int | float:
    if x == 0 or y == 0:
        return 0
    if isinstance(x, float) or isinstance(y, float):
        return inf if (x > 0) == (y > 0) else -inf
    return x * y


def _ratio(x: int | float, y: int | float) -> int | float:
    """x // y for y > 0, in the limit where infinite."""
    if isinstance(x, float):
        return x
    return (0 if x >= 0 else -1) if isinstance(y, float) else x // y


def _interval_product(a: _Interval, b: _Interval) -> _Interval:
    if a[0] >= 0 and b[0] >= 0:
        return _multiply(a[0], b[0]), _multiply(a[1], b[1])
    corners = [_multiply(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _signed_halves(a: _Interval, b: _Interval) -> list[tuple[int, _Interval, _Interval]]:
    """(sign of the divisor, dividend, divisor): the part of b above 0, and that below with both negated."""
    halves: list[tuple[int, _Interval, _Interval]] = []
    if b[1] >= 1:
        halves.append((1, a, (max(b[0], 1), b[1])))
    if b[0] <= -1:
        halves.append((-1, (-a[1], -a[0]), (max(-b[1], 1), -b[0])))
    return halves


def _interval_floordiv(a: _Interval, b: _Interval) -> _Interval:
    halves = _signed_halves(a, b)
    lows = [_ratio(x[0], y) for _, x, d in halves for y in d]
    highs = [_ratio(x[1], y) for _, x, d in halves for y in d]
    return min(lows, default=-inf), max(highs, default=inf)


def _interval_mod(a: _Interval, b: _Interval) -> _Interval:
    low: int | float = inf
    high: int | float = -inf
    for sign, x, d in _signed_halves(a, b):
        top = min(_plus(d[1], -1), x[1]) if x[0] >= 0 else _plus(d[1], -1)
        bottom = x[0] if x[0] >= 0 and x[1] < d[0] else 0
        low, high = min(low, sign * bottom, sign * top), max(high, sign * bottom, sign * top)
    return (low, high) if low <= high else (-inf, inf)


# Symbols and their values


def symbols(size: Size) -> tuple[str, ...]:
    """The names of all symbols in the size, sorted."""
    if isinstance(size, int):
        return ()
    if size._symbols is None:
        atoms = {atom for m, _ in size._terms for atom in m}
        nested = {name for atom in atoms for argument in atom.args for name in symbols(argument)}
        size._symbols = tuple(sorted(nested | {atom.text for atom in atoms if atom.kind == "symbol"}))
    return size._symbols


_FUNCTIONS: dict[str, Callable[..., Size]] = {
    "floordiv": floordiv, "mod": mod, "max": maximum, "min": minimum, "bcast": broadcast,
}  # fmt: skip


def substitute(size: Size, mapping: Mapping[str, Size]) -> Size:
    """The size with symbols replaced, all at once; names that the mapping lacks stay.

    Raises DimError where the result has no value: a divisor becomes 0, or sizes do not broadcast.
    """
    if isinstance(size, int) or not any(name in mapping for name in symbols(size)):
        return size
    replaced: dict[_Atom, Size] = {}
    total: list[Size] = []
    for m, k in size._terms:
        term: Size = k
        for atom in m:
            if atom not in replaced:
                replaced[atom] = _substitute_atom(atom, mapping)
            term = term * replaced[atom]
        total.append(term)
    return _sum(total)


def _substitute_atom(atom: _Atom, mapping: Mapping[str, Size]) -> Size:
    if atom.kind != "symbol":
        return _FUNCTIONS[atom.kind](*(substitute(argument, mapping) for argument in atom.args))
    value = mapping.get(atom.text)
    return Dim((((atom,), 1),)) if value is None else value


def evaluate(size: Size, mapping: Mapping[str, int]) -> int:
    """The value of the size for these values of its symbols.

    Raises DimError for a symbol that is missing or negative, a divisor of 0, and sizes that do not broadcast.
    """
    if isinstance(size, int):
        return size
    result = 0
    for m, k in size._terms:
        for atom in m:
            k *= _evaluate_atom(atom, mapping)
        result += k
    return result


def _evaluate_atom(atom: _Atom, mapping: Mapping[str, int]) -> int:
    if atom.kind == "symbol":
        bound = mapping.get(atom.text)
        if bound is None:
            raise DimError(f"no value for the symbol {atom.text}; given: {', '.join(sorted(mapping)) or 'none'}")
        if bound < 0:
            raise DimError(f"the symbol {atom.text} has the value {bound}; a size cannot be negative")
        return bound
    values = [evaluate(argument, mapping) for argument in atom.args]
    try:
        value = _FUNCTIONS[atom.kind](*values)
    except DimError as error:
        raise DimError(f"{error} (in {atom.text})") from None
    assert isinstance(value, int)
    return value


def solve(pattern: Size, value: Size, bindings: dict[str, Size]) -> bool | None:
    """Make pattern == value by binding at most one more symbol of the pattern.

    True: it holds, or a symbol was bound so that it does.  False: contradiction.  None: cannot tell, nothing bound.
    Bindings and value may mention symbols of another function that happen to have the same names as those of the
    pattern; the two are kept apart.  The pattern must be an integer multiple of one unbound symbol, plus anything over
    bound ones (B, 2*B, 2*N + H//2); a symbolic value bound to B by `B + 1` (N - 1) is taken not to be negative.
    """
    unbound = [name for name in symbols(pattern) if name not in bindings]
    if not unbound:
        return equal(substitute(pattern, bindings), value)
    if len(unbound) == 1 and isinstance(pattern, Dim):
        target = symbol(unbound[0])._terms[0][0]
        factor = dict(pattern._terms).get(target, 0)
        rest = pattern - Dim(((target, factor),)) if factor else pattern
        if factor and unbound[0] not in symbols(rest):
            wanted = value - substitute(rest, bindings)
            if _interval(wanted * factor)[1] < 0:
                return False
            if all(k % factor == 0 for _, k in _terms(wanted)):
                bindings[unbound[0]] = floordiv(wanted, factor)
                return True
            return False if isinstance(wanted, int) else _remainder_contradicts(wanted, factor)
    (low, high), (least, most) = _interval(pattern), _interval(value)
    return False if most < low or high < least else None


def _remainder_contradicts(size: Dim, factor: int) -> Literal[False] | None:
    """False when the size can never be a multiple of factor."""
    m, constant = size._terms[-1]
    g = gcd(factor, *(k for m, k in size._terms if m))
    return False if not m and constant % g else None


@dataclass(frozen=True)
class Assumption:
    """Something about sizes that could not be decided and that a node needs: checked again for each shape.

    `node` names the node for the message.  "bcast" means that the two sizes broadcast: equal, or one of them 1.
    """

    relation: Literal["==", "<=", "bcast"]
    lhs: Size
    rhs: Size
    node: str

    def holds(self) -> bool | None:
        """True and False are certain, None is unknown."""
        if self.relation == "<=":
            return less_equal(self.lhs, self.rhs)
        same = equal(self.lhs, self.rhs)
        if self.relation == "==" or same:
            return same
        ones = equal(self.lhs, 1), equal(self.rhs, 1)
        return True if True in ones else False if same is False and ones == (False, False) else None

    def substitute(self, mapping: Mapping[str, Size]) -> "Assumption":
        """The same assumption with symbols replaced."""
        return replace(self, lhs=substitute(self.lhs, mapping), rhs=substitute(self.rhs, mapping))

    def symbols(self) -> tuple[str, ...]:
        """The names of all symbols on both sides, sorted."""
        return tuple(sorted({*symbols(self.lhs), *symbols(self.rhs)}))

    def __str__(self) -> str:
        if self.relation == "bcast":
            return f"bcast({self.lhs}, {self.rhs})"
        return f"{self.lhs} {self.relation} {self.rhs}"


# Text


def render(size: Size, atom: Callable[[str], str]) -> str:
    """Python source of the size.  `atom` spells a symbol as an expression that binds like a name (`x.shape[0]`)."""

    def spell(a: _Atom) -> str:
        if a.kind == "symbol":
            return atom(a.text)
        if a.kind != "bcast":
            return _atom_spelling(a.kind, a.args, spell)
        text = _spell(a.args[-1], spell)
        for argument in reversed(a.args[:-1]):
            first = _spell(argument, spell)
            text = f"({text} if {first} == 1 else {first})"
        return text

    return _spell(size, spell)


T = TypeVar("T")


def fold(
    size: Size, symbol_: Callable[[str], T], number: Callable[[int], T], combine: Callable[[str, T, T], T]
) -> T:
    """Compute a size in another arithmetic: leaves by `symbol_` and `number`, inner nodes by `combine(kind, a, b)`.

    kind is one of "+", "*", "//", "%", "max", "min"; bcast counts as max, which is right where its arguments broadcast
    and none is 0.
    """

    def atom(a: _Atom) -> T:
        if a.kind == "symbol":
            return symbol_(a.text)
        kind = {"floordiv": "//", "mod": "%", "bcast": "max"}.get(a.kind, a.kind)
        out = fold(a.args[0], symbol_, number, combine)
        for argument in a.args[1:]:
            out = combine(kind, out, fold(argument, symbol_, number, combine))
        return out

    if isinstance(size, int):
        return number(size)
    total: T | None = None
    for monomial, coefficient in size._terms:
        factors = [atom(a) for a in monomial]
        if coefficient != 1 or not factors:
            factors.append(number(coefficient))
        term = factors[0]
        for factor in factors[1:]:
            term = combine("*", term, factor)
        total = term if total is None else combine("+", total, term)
    assert total is not None, "a Dim has at least one term"
    return total


def _atom_text(atom: _Atom) -> str:
    return atom.text


def _atom_spelling(kind: str, args: tuple[Size, ...], spell: Callable[[_Atom], str]) -> str:
    match kind:
        case "floordiv":
            return f"{_operand(args[0], spell)}//{_operand(args[1], spell)}"
        case "mod":
            return f"{_operand(args[0], spell)} % {_operand(args[1], spell)}"
        case _:
            return f"{kind}({', '.join(_spell(argument, spell) for argument in args)})"


def _operand(size: Size, spell: Callable[[_Atom], str]) -> str:
    """Text of one side of // or %, in parentheses unless a number or an atom that binds tighter."""
    text = _spell(size, spell)
    if isinstance(size, int):
        return text if size >= 0 else f"({text})"
    m, k = size._terms[0]
    plain = len(size._terms) == 1 and k == 1 and len(m) == 1 and m[0].kind not in ("floordiv", "mod")
    return text if plain else f"({text})"


def _spell(size: Size, spell: Callable[[_Atom], str]) -> str:
    if isinstance(size, int):
        return str(size)
    text = ""
    for m, k in size._terms:
        if text:
            text += " + " if k > 0 else " - "
        elif k < 0:
            text = "-"
        # // and % bind like *, from the left: H//2*2 needs no parentheses where 2*(H//2) and -(H//2) do.  H % 2*2
        # would be right too, but (H % 2)*2 or 2*(H % 2) is what people can read.
        alone = len(m) == 1 and abs(k) == 1
        bare = bool(m) and (m[0].kind == "floordiv" or (m[0].kind == "mod" and alone)) and text != "-"
        factors = [f"({spell(a)})" if a.kind in ("floordiv", "mod") else spell(a) for a in m]
        if bare:
            factors[0] = spell(m[0])
        if abs(k) != 1 or not m:
            factors.insert(len(factors) if bare else 0, str(abs(k)))
        text += "*".join(factors)
    return text


def parse(text: str) -> Size:
    """The size that a text such as `2*B*S + H//2 - 1` or `bcast(A, B)` spells, with Python's precedence.

    The inverse of `str`.  Raises DimError with the column, counted from 1.
    """
    if len(text) > MAX_TEXT:
        raise DimError(f"column {MAX_TEXT + 1}: size expression is longer than {MAX_TEXT} characters")
    parser = _Parser(text)
    size = parser.sum(0)
    if parser.token:
        parser.fail("an operator or the end")
    return size


class _Parser:
    """Recursive descent: sum = product {+- product}; product = factor {* // % factor}; factor = {-} primary."""

    __slots__ = ("column", "end", "source", "token")

    def __init__(self, source: str) -> None:
        self.source = source
        self.end = 0
        self.token = ""
        self.advance()

    def advance(self) -> str:
        """Step to the next token ("" at the end) and return the one left behind."""
        last = self.token
        found = _TOKEN.match(self.source, self.end)
        if found:
            self.token = found[found.lastindex or 0]
            self.end = found.end()
            self.column = self.end - len(self.token) + 1
            return last
        rest = self.source[self.end :].lstrip(" \t")
        self.column, self.token = len(self.source) - len(rest) + 1, ""
        self.end = len(self.source)
        if rest:
            raise DimError(f"column {self.column}: unexpected {rest[0]!r} in a size expression")
        return last

    def fail(self, expected: str) -> NoReturn:
        raise DimError(f"column {self.column}: expected {expected}, found {self.token[:40] or 'the end of the size'}")

    def expect(self, token: str) -> None:
        if self.token != token:
            self.fail(token)
        self.advance()

    def sum(self, depth: int) -> Size:
        terms = [self.product(depth)]
        while self.token in ("+", "-"):
            negative = self.advance() == "-"
            term = self.product(depth)
            terms.append(-term if negative else term)
        return _sum(terms) if len(terms) > 1 else terms[0]

    def product(self, depth: int) -> Size:
        size = self.factor(depth)
        while self.token in ("*", "//", "%"):
            column = self.column
            operator = self.advance()
            other = self.factor(depth)
            try:
                size = size * other if operator == "*" else size // other if operator == "//" else size % other
                if isinstance(size, int):
                    _coefficient(size)
            except ZeroDivisionError:
                raise DimError(f"column {column}: division by zero") from None
            except DimError as error:
                raise DimError(f"column {column}: {error}") from None
        return size

    def factor(self, depth: int) -> Size:
        negative = False
        while self.token == "-":
            self.advance()
            negative = not negative
        size = self.primary(depth)
        return -size if negative else size

    def primary(self, depth: int) -> Size:
        column, token = self.column, self.token
        if depth > MAX_DEPTH:
            raise DimError(f"column {column}: size expression nests deeper than {MAX_DEPTH}")
        if token == "(":
            self.advance()
            size = self.sum(depth + 1)
            self.expect(")")
            return size
        if token.isdigit():
            if len(token) > MAX_BITS // 3:
                raise DimError(f"column {column}: number of {len(token)} digits in a size expression")
            self.advance()
            return int(token)
        if not token or not (token[0].isalpha() or token[0] == "_"):
            self.fail("a number, a symbol, - or (")
        self.advance()
        if self.token != "(":
            return symbol(token)
        if token not in ("max", "min", "bcast"):
            raise DimError(f"column {column}: unknown function {token}; expected max, min or bcast")
        arguments: list[Size] = []
        while not arguments or self.token == ",":
            self.advance()
            arguments.append(self.sum(depth + 1))
        self.expect(")")
        try:
            return _FUNCTIONS[token](*arguments)
        except DimError as error:
            raise DimError(f"column {column}: {error}") from None
