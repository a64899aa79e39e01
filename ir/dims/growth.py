"""How a size changes when some of its symbols grow: what rounding sizes up relies on."""

from __future__ import annotations

from collections.abc import Collection

from .polynomial import Atom, DimError, Size
from .solving import evaluate, symbols


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


_TRIED = (1, 2, 3, 4, 5, 7, 12, 16, 33, 100, 384)


def seems_to_grow(size: Size, names: Collection[str]) -> bool:
    """Whether the size did not shrink in trials in which one of these symbols grew to the next power of two.

    For sizes such as N - N // 3, of which `grows` has no proof.  Other symbols have a few values.
    """
    all_names = symbols(size)
    for name in all_names:
        if name not in names:
            continue
        for other in (1, 4, 30):
            rest = dict.fromkeys(all_names, other)
            for n in _TRIED:
                try:
                    before = evaluate(size, {**rest, name: n})
                    after = evaluate(size, {**rest, name: 1 << (n - 1).bit_length()})
                except DimError:
                    continue
                if before >= 0 and after < before:
                    return False
    return True


def keeps_one(size: Size, names: Collection[str]) -> bool:
    """Whether the size is 1 exactly where it was, if these symbols grow but those that are 0 or 1 stay."""
    if isinstance(size, int) or names_no(size, names):
        return True
    (m, k), *rest = size._terms
    if rest or k != 1 or len(m) != 1:
        return False
    return m[0].kind == "symbol" or (m[0].kind == "bcast" and all(keeps_one(a, names) for a in m[0].args))


def broadcast_arguments(size: Size) -> tuple[Size, ...] | None:
    """What a size is the bcast of, if it is nothing but a bcast."""
    if isinstance(size, int):
        return None
    (m, k), *rest = size._terms
    return m[0].args if not rest and k == 1 and len(m) == 1 and m[0].kind == "bcast" else None


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
