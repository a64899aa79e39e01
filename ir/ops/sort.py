"""Ordering operators: sort, TopK."""

import numpy as np

from ..dims import Size
from ..operators import ORDERED, PURE, Operand, Region, Variadic, operator


@operator("sort", family="sort", traits=PURE)
class Sort:
    """xs sorted together along axis by the first of them.  All have equal dims; one result an operand.

    kind ascending or descending: total order with -0 equal to +0, NaN greatest (last when ascending, first when
    descending); stable in both directions.  kind custom: comparator(a0, b0, a1, b1, ...) -> bool says a comes first.
    """

    xs: Variadic
    axis: int
    kind: str = "ascending"
    comparator: Region | None = None


@operator("TopK", family="sort", traits=PURE)
class TopK:
    """The k greatest (or least) elements along axis and their i64 indices, in order (`ordered`).  Ties: lower index first.

    NaN counts as greatest.  (y, indices)
    """

    x: Operand[ORDERED]
    k: Size
    axis: int = -1
    largest: bool = True
    ordered: bool = True
