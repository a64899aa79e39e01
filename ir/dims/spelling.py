"""A size as text, as Python source and in any other arithmetic; reading text back is parsing.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .polynomial import Atom, Dim, Size

T = TypeVar("T")


def render(size: Size, atom: Callable[[str], str]) -> str:
    """Python source of the size.  `atom` spells a symbol as an expression that binds like a name (`x.shape[0]`)."""

    def spell(a: Atom) -> str:
        if a.kind == "symbol":
            return atom(a.text)
        if a.kind != "bcast":
            return spelled_atom(a.kind, a.args, spell)
        text = spelled(a.args[-1], spell)
        for argument in reversed(a.args[:-1]):
            first = spelled(argument, spell)
            text = f"({text} if {first} == 1 else {first})"
        return text

    return spelled(size, spell)


def fold(
    size: Size,
    symbol_: Callable[[str], T],
    number: Callable[[int], T],
    combine: Callable[[str, T, T], T],
    known: Callable[[Size], T | None] = lambda size: None,
) -> T:
    """Compute a size in another arithmetic: leaves by `symbol_` and `number`, inner nodes by `combine(kind, a, b)`.

    `known` may answer for a part of the size, which is then not taken apart.

    kind is one of "+", "*", "//", "%", "max", "min"; bcast counts as max, which is right where its arguments broadcast
    and none is 0.
    """

    def atom(size: Dim, a: Atom) -> T:
        if a.kind == "symbol":
            return symbol_(a.text)
        whole = known(type(size)((((a,), 1),)))
        if whole is not None:
            return whole
        kind = {"floordiv": "//", "mod": "%", "bcast": "max"}.get(a.kind, a.kind)
        out = fold(a.args[0], symbol_, number, combine, known)
        for argument in a.args[1:]:
            out = combine(kind, out, fold(argument, symbol_, number, combine, known))
        return out

    if isinstance(size, int):
        return number(size)
    total: T | None = None
    for monomial, coefficient in size._terms:
        factors = [atom(size, a) for a in monomial]
        if coefficient != 1 or not factors:
            factors.append(number(coefficient))
        term = factors[0]
        for factor in factors[1:]:
            term = combine("*", term, factor)
        total = term if total is None else combine("+", total, term)
    assert total is not None, "a Dim has at least one term"
    return total


def atom_text(atom: Atom) -> str:
    return atom.text


def spelled_atom(kind: str, args: tuple[Size, ...], spell: Callable[[Atom], str]) -> str:
    match kind:
        case "floordiv":
            return f"{_operand(args[0], spell)}//{_operand(args[1], spell)}"
        case "mod":
            return f"{_operand(args[0], spell)} % {_operand(args[1], spell)}"
        case _:
            return f"{kind}({', '.join(spelled(argument, spell) for argument in args)})"


def _operand(size: Size, spell: Callable[[Atom], str]) -> str:
    """Text of one side of // or %, in parentheses unless a number or an atom that binds tighter."""
    text = spelled(size, spell)
    if isinstance(size, int):
        return text if size >= 0 else f"({text})"
    m, k = size._terms[0]
    plain = len(size._terms) == 1 and k == 1 and len(m) == 1 and m[0].kind not in ("floordiv", "mod")
    return text if plain else f"({text})"


def spelled(size: Size, spell: Callable[[Atom], str]) -> str:
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
