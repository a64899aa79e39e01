"""Einsum equations: parsing "bij,bjk->bik", typing its labels, writing it in dot_general.  Defines no operators."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import dtypes
from ..dims import Size, broadcast, equal
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


def contract(b: Any, terms: list[tuple[Any, Labels]], output: Labels) -> Any:
    """The value of an equation: operands with their labels, contracted from the left by dot_general."""
    terms = [_diagonal(b, x, labels) for x, labels in terms]
    x, labels = terms[0]
    for i, (y, others) in enumerate(terms[1:], 1):
        later = {*output, *(a for _, rest in terms[i + 1 :] for a in rest)}
        x, labels = _summed(b, x, labels, later | set(others))
        y, others = _summed(b, y, others, later | set(labels))
        x, labels = _pair(b, x, labels, y, others, later)
    x, labels = _summed(b, x, labels, set(output))
    order = tuple(labels.index(a) for a in output)
    return x if order == tuple(range(len(order))) else b.transpose(x, permutation=order)


def _diagonal(b: Any, x: Any, labels: Labels) -> tuple[Any, Labels]:
    """A label that stands twice, once: the other elements become 0 and the axis is summed."""
    for label in dict.fromkeys(labels):
        while labels.count(label) > 1:
            first = labels.index(label)
            second = labels.index(label, first + 1)
            i, j = (
                b.iota(dtype=dtypes.i32, dims=tuple(d if k == axis else 1 for k, d in enumerate(x.dims)), axis=axis)
                for axis in (first, second)
            )
            on = b.compare(i, j, direction="eq")
            x = b.reduce(b.select(on, x, b.constant(0, x.dtype)), axes=(second,), kind="sum")
            labels = labels[:second] + labels[second + 1 :]
    return x, labels


def _summed(b: Any, x: Any, labels: Labels, needed: set[str]) -> tuple[Any, Labels]:
    """x summed over the labels that nothing needs any more."""
    axes = tuple(i for i, a in enumerate(labels) if a not in needed)
    if not axes:
        return x, labels
    return b.reduce(x, axes=axes, kind="sum"), tuple(a for a in labels if a in needed)


def _pair(b: Any, x: Any, left: Labels, y: Any, right: Labels, later: set[str]) -> tuple[Any, Labels]:
    """The product of two operands, summed over the labels that both have and nothing needs later."""
    for label in [a for a in left if a in right]:
        i, j = left.index(label), right.index(label)
        m, n = x.dims[i], y.dims[j]
        if equal(m, n) is True or not label.startswith("..."):
            continue
        if equal(m, 1) is True:
            x, left = b.reshape(x, dims=x.dims[:i] + x.dims[i + 1 :]), left[:i] + left[i + 1 :]
        elif equal(n, 1) is True:
            y, right = b.reshape(y, dims=y.dims[:j] + y.dims[j + 1 :]), right[:j] + right[j + 1 :]
        else:
            common = broadcast(m, n)
            x = b.broadcast_in_dim(x, dims=_at(x.dims, i, common), broadcast_dimensions=tuple(range(x.rank)))
            y = b.broadcast_in_dim(y, dims=_at(y.dims, j, common), broadcast_dimensions=tuple(range(y.rank)))
    batch = tuple(a for a in left if a in right and a in later)
    inner = tuple(a for a in left if a in right and a not in later)
    product = b.dot_general(
        x, y,
        lhs_batching=tuple(map(left.index, batch)), rhs_batching=tuple(map(right.index, batch)),
        lhs_contracting=tuple(map(left.index, inner)), rhs_contracting=tuple(map(right.index, inner)),
    )  # fmt: skip
    rest = [a for labels in (left, right) for a in labels if a not in batch and a not in inner]
    return product, (*batch, *rest)


def _at(dims: tuple[Size, ...], axis: int, size: Size) -> tuple[Size, ...]:
    return (*dims[:axis], size, *dims[axis + 1 :])
