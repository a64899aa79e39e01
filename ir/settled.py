"""Contents of small values that depend on constants and known sizes alone, evaluated by the reference."""

from __future__ import annotations

import numpy as np

from . import dims as sizes
from .data import INLINE_LIMIT, Array, ArrayData, Data
from .dims import Dim
from .errors import IrcError
from .facts import data_of_ints
from .model import Model, Node, Value
from .reference import Evaluator, _Frame
from .types import TensorType

_MOST_NODES = 64
"""Nodes that are evaluated for one value."""


def settled(value: Value, model: Model) -> Data | None:
    """The contents of a small value that depends on constants only, or None."""
    order: dict[Node, None] = {}
    stack: list[tuple[Value, bool]] = [(value, False)]
    while stack:
        current, ready = stack.pop()
        if current.data is not None:
            continue
        node = current.node
        if node is None or not node.op.is_pure or any(node.all_graphs()) or len(order) > _MOST_NODES:
            return None
        if ready:
            order.setdefault(node)
            continue
        if node in order:
            continue
        for result in node.results:
            type_ = result.type
            if not isinstance(type_, TensorType) or not type_.is_static or sizes.product(type_.shape) > INLINE_LIMIT:
                return None
        if data_of_ints(node.results[0].tensor, node.results[0].ints) is None:
            if any(isinstance(a, Dim) for a in node.attributes.as_dict().values()):
                return None
            stack.append((current, True))
            stack.extend((o, False) for o in node.operands if o is not None)
        else:
            order.setdefault(node)
    evaluator = Evaluator(model)
    values: dict[Value, Array] = {}
    try:
        for node in order:
            known = data_of_ints(node.results[0].tensor, node.results[0].ints)
            if known is not None:
                values[node.results[0]] = known.numpy()
                continue
            operands = [
                None if o is None else o.data.numpy() if o.data is not None else values[o] for o in node.operands
            ]
            values.update(zip(node.results, evaluator.evaluate(node, operands, _Frame()), strict=True))
    except (IrcError, KeyError, ValueError, TypeError, ArithmeticError):
        return None
    array = values[value]
    return ArrayData(array, value.tensor.dtype) if isinstance(array, np.ndarray) else None
