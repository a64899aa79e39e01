"""Einsum equations: parsing "bij,bjk->bik" and typing its labels.  Defines no operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..dims import Size
from ..errors import InferenceError

Labels = tuple[str, ...]
"""One label an axis: a letter, or "...-2", "...-1" for the axes of an ellipsis, counted from its end."""


def parse(equation: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """The labels of each operand and of the result.  InferenceError says what is wrong with the equation."""
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise InferenceError(f"equation {equation!r} has {len(terms)} terms for {len(ranks)} operands")
    inputs = [_labels(equation, term, rank) for term, rank in zip(terms, ranks, strict=True)]
    seen = [label for labels in inputs for label in labels]
    ellipsis = max(([a for a in labels if a.startswith("...")] for labels in inputs), key=len)
    if not arrow:
        once = sorted(a for a in dict.fromkeys(seen) if seen.count(a) == 1 and not a.startswith("..."))
        return inputs, (*ellipsis, *once)
    before, dots, after = right.partition("...")
    output = (*before, *(ellipsis if dots else ()), *after)
    for label in output:
        if label not in seen:
            raise InferenceError(f"equation {equation!r}: result label {label!r} is in no operand")
    if len(set(output)) != len(output):
        raise InferenceError(f"equation {equation!r}: a label stands twice in the result")
    return inputs, output


def _labels(equation: str, term: str, rank: int) -> Labels:
    before, dots, after = term.partition("...")
    letters = before + after
    if not all(c.isascii() and c.isalpha() for c in letters):
        raise InferenceError(f"equation {equation!r}: {term!r} is not made of letters and at most one ...")
    hidden = rank - len(letters)
    if hidden < 0 or (hidden and not dots):
        raise InferenceError(f"equation {equation!r}: {term!r} does not fit an operand of rank {rank}")
    return (*before, *(f"...{i}" for i in range(-hidden, 0)), *after)


def label_dims(ctx: Any, inputs: Sequence[Labels], shapes: Sequence[tuple[Size, ...]]) -> dict[str, Size]:
    """The size of each label: equal wherever a letter stands; ellipsis axes broadcast."""
    dims: dict[str, Size] = {}
    for labels, shape in zip(inputs, shapes, strict=True):
        for label, size in zip(labels, shape, strict=True):
            if label not in dims:
                dims[label] = size
            elif label.startswith("..."):
                dims[label] = ctx.broadcast((dims[label],), (size,))[0]
            else:
                dims[label] = ctx.equal(dims[label], size, f"dims of label {label!r}")
    return dims
