"""Numbers behind constants, those that `init` derives included, and when two of them count as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Constant, Value
from ...ir.model import Model
from ...ir.reference import Evaluator
from ..canonicalize.table import splat
from .terms import TOLERANCE

_CONE = 32
"""Nodes of `init` that are evaluated to learn one number."""


def number(value: Value | None) -> float | None:
    """The real number that fills a constant, or None."""
    if not isinstance(value, Constant) or value.dtype.is_string or value.dtype.is_complex:
        return None
    found = splat(value) if value.data is not None else _derived(value)
    return None if found is None else float(found)


def about(a: float | None, b: float) -> bool:
    """Whether a constant is `b` as far as an exporter that rounded it to f16 can tell."""
    if a is None:
        return False
    return a == b or abs(a - b) <= TOLERANCE * abs(b)


def _derived(constant: Constant) -> Any | None:
    """The one element of a small derived constant, evaluated together with the few nodes that it depends on."""
    model = constant.owner
    size = constant.tensor.size
    if not isinstance(model, Model) or not isinstance(size, int) or size != 1:
        return None
    index = next((i for i, c in enumerate(model.derived) if c is constant), None)
    if index is None:
        return None
    order, seen = [], set()
    stack = [model.init.outputs[index]]
    while stack:
        node = stack.pop().node
        if node is None or node in seen:
            continue
        seen.add(node)
        order.append(node)
        operands = [v for v in node.operands if v is not None]
        small = all(isinstance(v.tensor.size, int) and v.tensor.size <= 64 for v in operands)
        if len(order) > _CONE or not small or any(node.all_graphs()):
            return None
        stack.extend(operands)
    order.sort(key=lambda n: n._order) if model.init._numbered else order.reverse()
    evaluator = Evaluator(model)
    known: dict[Value, Any] = {}
    for node in order:
        operands = []
        for v in node.operands:
            if isinstance(v, Constant) and v.data is None:
                return None
            operands.append(None if v is None else v.data.numpy() if isinstance(v, Constant) and v.data else known[v])
        from ...ir.reference import _Frame

        known.update(zip(node.results, evaluator.evaluate(node, operands, _Frame()), strict=True))
    return np.asarray(known[model.init.outputs[index]]).reshape(-1)[0]
