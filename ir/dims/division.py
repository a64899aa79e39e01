"""Normal forms of `//` and `%` of symbolic sizes."""

from math import gcd

from .comparison import interval, interval_floordiv, ratio, residue
from .polynomial import (
    FUNCTIONS,
    Dim,
    DimError,
    Monomial,
    Size,
    atom_size,
    build,
    common_factor,
    exact_quotient,
    only_atom,
    scaled_down,
    sum_of,
    terms_of,
    without,
)


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
    quotient = exact_quotient(a, b)
    if quotient is not None:
        return quotient
    multiples, rest = _split_multiples(a, b)
    if multiples:
        return floordiv(rest, b) + build(multiples)
    reduced = _cancelled(a, b)
    if reduced is not None:
        return floordiv(reduced[1], reduced[2])
    inner = only_atom(a, "floordiv")
    if inner is not None and interval(b)[0] >= 0:
        return floordiv(inner.args[0], inner.args[1] * b)
    if _is_remainder(a, b):
        return 0
    low, high = interval_floordiv(interval(a), interval(b))
    return int(low) if low == high else atom_size("floordiv", a, b)


def _floordiv_constant(a: Dim, c: int) -> Size:
    whole: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for m, k in a._terms:
        # The constant keeps a remainder in [0, c); other coefficients round towards zero, which keeps their sign.
        q = k // c if k > 0 or not m else -(-k // c)
        whole[m], rest[m] = q, k - q * c
    outer, inner = build(whole), build(rest)
    if isinstance(inner, int):
        return outer
    constant = rest.get((), 0)
    coefficients = [k for m, k in inner._terms if m]
    if max(coefficients) < 0:
        return outer - floordiv(-inner + (c - 1), c)
    g = gcd(c, *coefficients)
    if g > 1:
        return floordiv(scaled_down(inner - constant, g) + constant // g, c // g) + outer
    nested = only_atom(inner - constant, "floordiv")
    if nested is not None and (constant == 0 or isinstance(nested.args[1], int)):
        x, b = nested.args
        return floordiv(x + b * constant, b * c) + outer
    low, high = interval(inner)
    low, high = ratio(low, c), ratio(high, c)
    return outer + (int(low) if low == high else atom_size("floordiv", inner, c))


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
        return residue(a, b) if b > 0 else -residue(-a, -b)
    if isinstance(a, int) and a == 0:
        return 0
    if b._terms[0][1] < 0:
        return -mod(-a, -b)
    if exact_quotient(a, b) is not None:
        return 0
    multiples, rest = _split_multiples(a, b)
    if multiples:
        return mod(rest, b)
    reduced = _cancelled(a, b)
    if reduced is not None:
        return reduced[0] * mod(reduced[1], reduced[2])
    unwrapped = sum_of(m[0].args[0] * k if _is_mod_by(m, b) else Dim(((m, k),)) for m, k in terms_of(a))
    if unwrapped != a:
        return mod(unwrapped, b)
    return a if _is_remainder(a, b) else atom_size("mod", a, b)


def _is_mod_by(m: Monomial, b: Dim) -> bool:
    return len(m) == 1 and m[0].kind == "mod" and m[0].args[1] == b


def _split_multiples(a: Size, b: Dim) -> tuple[dict[Monomial, int], Size]:
    """The terms of a that b, if a single term, divides, already divided; and the rest of a."""
    multiples: dict[Monomial, int] = {}
    if len(b._terms) > 1:
        return multiples, a
    (divisor, factor), rest = b._terms[0], dict(terms_of(a))
    for m, k in terms_of(a):
        quotient = without(m, divisor)
        if quotient is not None and k % factor == 0:
            multiples[quotient] = rest.pop(m) // factor
    return multiples, build(rest)


def _cancelled(a: Size, b: Dim) -> tuple[Size, Size, Size] | None:
    """(f, a/f, b/f) for the common factor f, None when that is 1."""
    factor = common_factor(a, b)
    if factor is None:
        return None
    top, bottom = exact_quotient(a, factor), exact_quotient(b, factor)
    assert top is not None
    assert bottom is not None
    return build(dict(factor._terms)), top, bottom


def _is_remainder(a: Size, b: Size) -> bool:
    """0 <= a < b is certain."""
    return interval(a)[0] >= 0 and interval(b - a)[0] >= 1


def ceildiv(a: Size, b: Size) -> Size:
    """a / b rounded up."""
    return -floordiv(-a, b)


FUNCTIONS.update(floordiv=floordiv, mod=mod)
