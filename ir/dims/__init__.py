"""Symbolic sizes: integer polynomials over symbols and floordiv, mod, max, min and bcast atoms, in normal form.

A concrete size is an `int`; a symbolic one is a `Dim`, which is never constant.  Symbols stand for integers >= 0.
`==` and `hash` compare normal forms; `equal`, `less_equal` and `less` ask whether something holds for *all* values of
the symbols and may answer None (unknown).  Nothing here knows about types or graphs.

Two assumptions are built into the normal form, because an expression that breaks them has no value anyway: a divisor is
not zero ((B*C)//B is C), and the arguments of a bcast do broadcast (bcast(B, 4) is 4).  Whoever relies on them records
an `Assumption`.
"""

from .comparison import bounds, equal, less, less_equal
from .division import ceildiv, floordiv, mod
from .extrema import broadcast, maximum, minimum
from .growth import broadcast_arguments, grows, keeps_one, names_no, seems_to_grow
from .parsing import parse
from .polynomial import (
    MAX_ARGUMENTS,
    MAX_BITS,
    MAX_DEGREE,
    MAX_DEPTH,
    MAX_NESTING,
    MAX_TERMS,
    MAX_TEXT,
    Dim,
    DimError,
    Size,
    product,
    symbol,
)
from .solving import Assumption, Solved, evaluate, relax, solve, solve_all, substitute, symbols
from .spelling import fold, render

__all__ = [
    "MAX_ARGUMENTS",
    "MAX_BITS",
    "MAX_DEGREE",
    "MAX_DEPTH",
    "MAX_NESTING",
    "MAX_TERMS",
    "MAX_TEXT",
    "Assumption",
    "Dim",
    "DimError",
    "Size",
    "Solved",
    "bounds",
    "broadcast",
    "broadcast_arguments",
    "ceildiv",
    "equal",
    "evaluate",
    "floordiv",
    "fold",
    "grows",
    "keeps_one",
    "less",
    "less_equal",
    "maximum",
    "minimum",
    "mod",
    "names_no",
    "parse",
    "product",
    "relax",
    "render",
    "seems_to_grow",
    "solve",
    "solve_all",
    "substitute",
    "symbol",
    "symbols",
]
