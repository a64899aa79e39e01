"""How a size changes when some of its symbols grow: what rounding sizes up relies on."""

from __future__ import annotations

from collections.abc import Collection

from .polynomial import Atom, Size
from .solving import symbols


def grows(size: Size, names: Collection[str]) -> bool:
    """Whether the size provably never shrinks when these symbols grow and all others stay.

    A bcast counts as growing where its arguments do: they must keep what is 1, see `keeps_one`.
    """
    if isinstance(size, int) or names_no(size, names):
        return True
    terms = size._terms
    return all(k > 0 or all(_fixed(a, names) for a in m) for m, k in terms) and all(
        _atom_grows(a, names) for m, _ in terms for a in m
    )


def keeps_one(size: Size, names: Collection[str]) -> bool:
    """Whether the size is 1 exactly where it was, if these symbols grow but those that are 0 or 1 stay."""
    if isinstance(size, int) or names_no(size, names):
        return True
    (m, k), *rest = size._terms
    if rest or k != 1 or len(m) != 1:
        return False
    return m[0].kind == "symbol" or (m[0].kind == "bcast" and all(keeps_one(a, names) for a in m[0].args))


def has_broadcast(size: Size) -> bool:
    """Whether a bcast is part of the size."""
    if isinstance(size, int):
        return False
    return any(a.kind == "bcast" or any(map(has_broadcast, a.args)) for m, _ in size._terms for a in m)


def names_no(size: Size, names: Collection[str]) -> bool:
    """Whether the size mentions none of these symbols."""
    return not any(s in names for s in symbols(size))


def _fixed(atom: Atom, names: Collection[str]) -> bool:
    return atom.text not in names if atom.kind == "symbol" else all(names_no(a, names) for a in atom.args)


def _atom_grows(atom: Atom, names: Collection[str]) -> bool:
    if _fixed(atom, names):
        return True
    match atom.kind:
        case "symbol":
            return True
        case "floordiv":
            return grows(atom.args[0], names) and names_no(atom.args[1], names)
        case "mod":
            return False
        case _:
            return all(grows(a, names) for a in atom.args)
