"""The table of canonical rewrites by operator, and the questions that many of them ask.  No rewrite stands here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...ir import dims as sizes
from ...ir import infer as inference
from ...ir.dims import Size
from ...ir.errors import InferenceError
from ...ir.facts import Fact
from ...ir.graph import Constant, Node, Value
from ...ir.model import Model
from ...ir.operators import Operator, get
from ...ir.rewrite import Rewriter
from ...ir.types import TensorType

Rewrite: TypeAlias = Callable[[Rewriter, Node], Value | Sequence[Value] | None]
"""Gives the values that replace the node's results, or None; may instead change the node in place and give None."""

_BY_OPERATOR: dict[str, list[tuple[str, Rewrite]]] = {}
_EVERY: list[tuple[str, Rewrite]] = []
_ROWS: dict[str, tuple[tuple[str, Rewrite], ...]] = {}
"""What `rewrites_of` gave for an operator's name, until another rewrite is registered."""


def rewrite(*operators: str) -> Callable[[Rewrite], Rewrite]:
    """Register a rewrite for operators by name; without names it is tried on every node."""

    def add(function: Rewrite) -> Rewrite:
        row = (f"canonicalize/{function.__name__}", function)
        for name in operators:
            _BY_OPERATOR.setdefault(get(name).name, []).append(row)
        if not operators:
            _EVERY.append(row)
        _ROWS.clear()
        return function

    return add


def rewrites_of(op: Operator) -> Iterable[tuple[str, Rewrite]]:
    """(label, rewrite) pairs to try on a node of `op`, in order of registration."""
    rows = _ROWS.get(op.name)
    if rows is None:
        rows = _ROWS[op.name] = (*_BY_OPERATOR.get(op.name, ()), *_EVERY)
    return rows


def same(a: Size, b: Size) -> bool:
    """Whether the sizes are equal for all values of their symbols."""
    return a == b or sizes.equal(a, b) is True


def same_dims(a: Sequence[Size], b: Sequence[Size]) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def same_type(a: Value, b: Value) -> bool:
    """Tensors of one element type and provably equal dims."""
    if not (ranked(a) and ranked(b)):
        return False
    return a.dtype is b.dtype and same_dims(a.dims, b.dims)


def ranked(*values: Value | None) -> bool:
    """Whether all are tensors of known rank."""
    return all(v is not None and isinstance(v.type, TensorType) and v.type.dims is not None for v in values)


def inferred(model: Model, node: Node, operands: Sequence[Fact | None]) -> Sequence[Fact]:
    """Facts of the results for operands of these facts; empty if they cannot be, or only under new assumptions."""
    function = node.graph.function if node.graph is not None else None
    ctx = inference.InferContext(model, function, node.label)
    try:
        found = inference.infer(ctx, node.op, operands, node.attributes, node.graphs)
    except InferenceError:
        return ()
    known = function.assumptions if function is not None else {}
    if not all(a in known for a in ctx.assumptions):
        return ()
    return (found,) if isinstance(found, Fact) else found


def maker(value: Value | None, *operators: str) -> Node | None:
    """The node that computes `value`, if its operator is one of these."""
    node = value.node if value is not None else None
    return node if node is not None and node.op.name in operators else None


def splat(value: Value | None) -> Any | None:
    """The one element that fills a constant, as a NumPy scalar; None for everything else."""
    if not isinstance(value, Constant) or value.data is None:
        return None
    data = value.data
    if data.splat is not None or not data.is_inline or not data.size or data.dtype.is_string:
        return data.splat
    flat = data.numpy().reshape(-1)
    bits = flat.view(np.uint8).reshape(len(flat), -1)
    return flat[0] if (bits == bits[0]).all() else None
