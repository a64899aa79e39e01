"""Bounds of a symbolic size and what follows from them: `equal`, `less_equal` and `less` with three answers."""

from math import gcd, inf, lcm

from .polynomial import (
    Atom,
    Dim,
    DimError,
    Interval,
    Monomial,
    Size,
    atom_size,
    build,
    scaled_down,
    sum_of,
    terms_of,
    without,
)


def bounds(size: Size) -> tuple[int | None, int | None]:
    """(least, greatest) value that the size can have, each None when unbounded or not known.  Not always tight."""
    low, high = interval(size)
    return (None if low == -inf else int(low)), (None if high == inf else int(high))


def equal(a: Size, b: Size) -> bool | None:
    """Whether a == b: True and False hold for all values of the symbols, None is unknown."""
    difference = a - b
    if isinstance(difference, int):
        return difference == 0
    low, high = interval(difference)
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
    low, high = interval(b - a)
    return True if low >= 0 else False if high < 0 else None


def less(a: Size, b: Size) -> bool | None:
    """Whether a < b: True and False hold for all values of the symbols, None is unknown."""
    low, high = interval(b - a)
    return True if low > 0 else False if high <= 0 else None


def interval(size: Size) -> Interval:
    if isinstance(size, int):
        return size, size
    if size._interval is None:
        size._interval = _refined(size, 2)
    return size._interval


def _refined(size: Size, fuel: int) -> Interval:
    """Interval arithmetic over the terms, then two rewritings that see how terms depend on each other.

    `fuel` limits the rewritings in depth.  Inner results are not cached, so that an answer (and with it the normal
    form of a max) depends on the size alone and never on what was asked before.
    """
    if isinstance(size, int):
        return size, size
    low: int | float = 0
    high: int | float = 0
    for m, k in size._terms:
        term: Interval = (k, k)
        for atom in m:
            term = _interval_product(term, _atom_interval(atom))
        low, high = _plus(low, term[0]), _plus(high, term[1])
    if fuel and len(size._terms) > 1 and any(atom.kind != "symbol" for m, _ in size._terms for atom in m):
        for least, most in (_without_floordiv(size, fuel - 1), _by_cases(size, fuel - 1)):
            low, high = max(low, least), min(high, most)
    return low, high


def _without_floordiv(size: Dim, fuel: int) -> Interval:
    """With a//c = (a - a % c)/c: 2*(H//2) - H becomes -(H % 2)."""
    found = [next((a for a in m if a.kind == "floordiv" and isinstance(a.args[1], int)), None) for m, _ in size._terms]
    scale = lcm(*(a.args[1] for a in found if a and isinstance(a.args[1], int)))
    if not any(found) or scale.bit_length() > 64:
        return -inf, inf
    try:
        terms = zip(size._terms, found, strict=True)
        low, high = _refined(sum_of(_multiplied(m, k, a, scale) for (m, k), a in terms), fuel)
    except DimError:  # the rewritten size is too large
        return -inf, inf
    return -ratio(-low, scale), ratio(high, scale)


def _multiplied(m: Monomial, k: int, division: Atom | None, scale: int) -> Size:
    if division is None:
        return Dim(((m, k * scale),))
    a, c = division.args
    assert isinstance(c, int)
    return build({without(m, (division,)) or (): k * (scale // c)}) * (a - residue(a, c, bounded=False))


def _by_cases(size: Dim, fuel: int) -> Interval:
    """A max, min or bcast is one of its arguments: max(A, B) - B is A - B or 0, and not below either."""
    for m, k in size._terms:
        atom = m[0] if m else None
        if len(m) == 1 and atom and atom.kind in ("max", "min", "bcast") and len(atom.args) <= 4:
            rest = size - Dim(((m, k),))
            cases = [_refined(rest + argument * k, fuel) for argument in atom.args]
            lows, highs = [low for low, _ in cases], [high for _, high in cases]
            if atom.kind == "bcast":
                return min(lows), max(highs)
            return (max(lows), max(highs)) if (atom.kind == "max") == (k > 0) else (min(lows), min(highs))
    return -inf, inf


def _atom_interval(atom: Atom) -> Interval:
    if atom._interval is None:
        parts = [interval(argument) for argument in atom.args]
        lows, highs = [low for low, _ in parts], [high for _, high in parts]
        match atom.kind:
            case "floordiv":
                atom._interval = interval_floordiv(parts[0], parts[1])
            case "mod":
                atom._interval = _interval_mod(parts[0], parts[1])
            case "max":
                atom._interval = max(lows), max(highs)
            case "min":
                atom._interval = min(lows), min(highs)
            case _:
                atom._interval = min(lows), max(highs)
    return atom._interval


def residue(a: Size, c: int, bounded: bool = True) -> Size:
    """a % c; not `bounded` asks for no bounds, for use by the bounds themselves (which would take exponential time)."""
    inner = build({m: k % c for m, k in terms_of(a)})
    if isinstance(inner, int):
        return inner % c
    for m, k in inner._terms:
        if len(m) == 1 and m[0].kind == "mod" and isinstance(m[0].args[1], int) and k * m[0].args[1] % c == 0:
            return residue(inner - Dim(((m, k),)) + m[0].args[0] * k, c, bounded)
    constant = inner._terms[-1][1] if not inner._terms[-1][0] else 0
    g = gcd(c, *(k for m, k in inner._terms if m))
    if g > 1:
        reduced = scaled_down(inner - constant, g) + constant // g
        return residue(reduced, c // g, bounded) * g + constant % g
    if not bounded:
        remainder = atom_size("mod", inner, c)
        remainder._terms[0][0][0]._interval = (0, c - 1)
        return remainder
    low, high = interval(inner)
    q = ratio(low, c)
    return inner - int(q) * c if q == ratio(high, c) else atom_size("mod", inner, c)


# Interval arithmetic


def _plus(x: int | float, y: int | float) -> int | float:
    # An infinity is returned as it is: adding would convert the other, maybe huge, int to float.
    return x if isinstance(x, float) else y if isinstance(y, float) else x + y


def _multiply(x: int | float, y: int | float) -> int | float:
    if x == 0 or y == 0:
        return 0
    if isinstance(x, float) or isinstance(y, float):
        return inf if (x > 0) == (y > 0) else -inf
    return x * y


def ratio(x: int | float, y: int | float) -> int | float:
    """x // y for y > 0, in the limit where infinite."""
    if isinstance(x, float):
        return x
    return (0 if x >= 0 else -1) if isinstance(y, float) else x // y


def _interval_product(a: Interval, b: Interval) -> Interval:
    if a[0] >= 0 and b[0] >= 0:
        return _multiply(a[0], b[0]), _multiply(a[1], b[1])
    corners = [_multiply(x, y) for x in a for y in b]
    return min(corners), max(corners)


def _signed_halves(a: Interval, b: Interval) -> list[tuple[int, Interval, Interval]]:
    """(sign of the divisor, dividend, divisor): the part of b above 0, and that below with both negated."""
    halves: list[tuple[int, Interval, Interval]] = []
    if b[1] >= 1:
        halves.append((1, a, (max(b[0], 1), b[1])))
    if b[0] <= -1:
        halves.append((-1, (-a[1], -a[0]), (max(-b[1], 1), -b[0])))
    return halves


def interval_floordiv(a: Interval, b: Interval) -> Interval:
    halves = _signed_halves(a, b)
    lows = [ratio(x[0], y) for _, x, d in halves for y in d]
    highs = [ratio(x[1], y) for _, x, d in halves for y in d]
    return min(lows, default=-inf), max(highs, default=inf)


def _interval_mod(a: Interval, b: Interval) -> Interval:
    low: int | float = inf
    high: int | float = -inf
    for sign, x, d in _signed_halves(a, b):
        top = min(_plus(d[1], -1), x[1]) if x[0] >= 0 else _plus(d[1], -1)
        bottom = x[0] if x[0] >= 0 and x[1] < d[0] else 0
        low, high = min(low, sign * bottom, sign * top), max(high, sign * bottom, sign * top)
    return (low, high) if low <= high else (-inf, inf)
