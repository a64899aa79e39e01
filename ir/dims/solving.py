"""Symbols of a size and their values: substitution, evaluation, solving for one symbol, assumptions checked later."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Literal, NamedTuple

from .comparison import equal, interval, less_equal
from .division import floordiv
from .polynomial import FUNCTIONS, Atom, Dim, DimError, Size, sum_of, symbol, terms_of


def symbols(size: Size) -> tuple[str, ...]:
    """The names of all symbols in the size, sorted."""
    if isinstance(size, int):
        return ()
    if size._symbols is None:
        atoms = {atom for m, _ in size._terms for atom in m}
        nested = {name for atom in atoms for argument in atom.args for name in symbols(argument)}
        size._symbols = tuple(sorted(nested | {atom.text for atom in atoms if atom.kind == "symbol"}))
    return size._symbols


def substitute(size: Size, mapping: Mapping[str, Size]) -> Size:
    """The size with symbols replaced, all at once; names that the mapping lacks stay.

    Raises DimError where the result has no value: a divisor becomes 0, or sizes do not broadcast.
    """
    if isinstance(size, int) or not any(name in mapping for name in symbols(size)):
        return size
    replaced: dict[Atom, Size] = {}
    total: list[Size] = []
    for m, k in size._terms:
        term: Size = k
        for atom in m:
            if atom not in replaced:
                replaced[atom] = _substitute_atom(atom, mapping)
            term = term * replaced[atom]
        total.append(term)
    return sum_of(total)


def _substitute_atom(atom: Atom, mapping: Mapping[str, Size]) -> Size:
    if atom.kind != "symbol":
        return FUNCTIONS[atom.kind](*(substitute(argument, mapping) for argument in atom.args))
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


def _evaluate_atom(atom: Atom, mapping: Mapping[str, int]) -> int:
    if atom.kind == "symbol":
        bound = mapping.get(atom.text)
        if bound is None:
            raise DimError(f"no value for the symbol {atom.text}; given: {', '.join(sorted(mapping)) or 'none'}")
        if bound < 0:
            raise DimError(f"the symbol {atom.text} has the value {bound}; a size cannot be negative")
        return bound
    values = [evaluate(argument, mapping) for argument in atom.args]
    try:
        value = FUNCTIONS[atom.kind](*values)
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
            if interval(wanted * factor)[1] < 0:
                return False
            if all(k % factor == 0 for _, k in terms_of(wanted)):
                bindings[unbound[0]] = floordiv(wanted, factor)
                return True
            return False if isinstance(wanted, int) else _remainder_contradicts(wanted, factor)
    (low, high), (least, most) = interval(pattern), interval(value)
    return False if most < low or high < least else None


class Solved(NamedTuple):
    """What `solve_all` found: the pair that cannot hold, if any, and else those of which that cannot be told."""

    contradiction: int | None
    undecided: tuple[int, ...]


def solve_all(pairs: Sequence[tuple[Size, Size]], bindings: dict[str, Size]) -> Solved:
    """`solve` for (pattern, value) pairs that hold together, until no more symbols can be bound.

    Numbers of pairs in the result count from 0.  The order of the pairs decides at most which of them is blamed: bare
    symbols go first, and what has several unbound symbols waits for the others.
    """
    pending = sorted(range(len(pairs)), key=lambda i: not _is_plain(pairs[i][0]))
    while pending:
        rest = []
        for i in pending:
            verdict = solve(*pairs[i], bindings)
            if verdict is False:
                return Solved(i, ())
            if verdict is None:
                rest.append(i)
        if len(rest) == len(pending):
            break
        pending = rest
    return Solved(None, tuple(sorted(pending)))


def _is_plain(size: Size) -> bool:
    """A number or a bare symbol."""
    return isinstance(size, int) or symbols(size) == (str(size),)


def _remainder_contradicts(size: Dim, factor: int) -> Literal[False] | None:
    """False when the size can never be a multiple of factor."""
    m, constant = size._terms[-1]
    g = gcd(factor, *(k for m, k in size._terms if m))
    return False if not m and constant % g else None


@dataclass(frozen=True)
class Assumption:
    """Something about sizes that could not be decided and that a node needs: checked again for each shape.

    `node` names the node for the message.  "bcast" means that the two sizes broadcast: equal, or one of them 1.
    `sometimes`: the node is in a branch or a loop that need not run, so that sizes may break it.
    """

    relation: Literal["==", "<=", "bcast"]
    lhs: Size
    rhs: Size
    node: str
    sometimes: bool = field(default=False, compare=False)

    def holds(self) -> bool | None:
        """True and False are certain, None is unknown."""
        if self.relation == "<=":
            return less_equal(self.lhs, self.rhs)
        same = equal(self.lhs, self.rhs)
        if self.relation == "==" or same:
            return same
        ones = equal(self.lhs, 1), equal(self.rhs, 1)
        return True if True in ones else False if same is False and ones == (False, False) else None

    def same_relation(self, other: "Assumption") -> bool:
        """Whether the other one says the same, of whichever node."""
        return (self.relation, self.lhs, self.rhs) == (other.relation, other.lhs, other.rhs)

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


def relax(assumptions: dict[Assumption, None], first: int) -> None:
    """The assumptions from number `first` on were made by what need not run."""
    made = list(assumptions)[first:]
    for assumption in made:
        del assumptions[assumption]
    assumptions.update(dict.fromkeys(replace(a, sometimes=True) for a in made))
