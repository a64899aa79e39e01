"""Normal forms of the largest, the smallest and the broadcast of several symbolic sizes."""

from collections.abc import Callable, Iterable
from itertools import combinations

from .comparison import equal, less_equal
from .polynomial import FUNCTIONS, MAX_ARGUMENTS, DimError, Size, atom_size, only_atom


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
    return kept[0] if len(kept) == 1 else atom_size(kind, *kept)


def _flattened(kind: str, sizes: Iterable[Size]) -> list[Size]:
    """Arguments with those of nested atoms of the same kind, distinct, in order: text first, numbers last."""
    distinct: dict[Size, None] = {}
    for size in sizes:
        atom = only_atom(size, kind)
        distinct.update(dict.fromkeys((size,) if atom is None else atom.args))
    if len(distinct) > MAX_ARGUMENTS:
        raise DimError(f"{kind} of more than {MAX_ARGUMENTS} sizes")
    if len(distinct) == 1:
        return list(distinct)
    return sorted(distinct, key=lambda size: (isinstance(size, int), str(size)))


def broadcast(*sizes: Size) -> Size:
    """The size of one axis after NumPy broadcasting; of no sizes, 1.

    1s drop out and equal sizes merge.  A size that cannot be 1, a number above all, decides: the others must be 1 or
    equal to it, which is assumed unless it is provably false; so does n beside min(n, 512).  Raises DimError for sizes
    that cannot broadcast.
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
    kept = decided or [size for size in kept if not any(_bounds(other, size) for other in kept)]
    return kept[0] if len(kept) == 1 else atom_size("bcast", *kept) if kept else 1


def _bounds(size: Size, cut: Size) -> bool:
    """Whether `cut` is min(size, c, ...) with every c above 1: it is 1 only where `size` is, so they must be equal."""
    atom = only_atom(cut, "min")
    return (
        atom is not None
        and size in atom.args
        and all(less_equal(2, other) is True for other in atom.args if other != size)
    )


FUNCTIONS.update(max=maximum, min=minimum, bcast=broadcast)
