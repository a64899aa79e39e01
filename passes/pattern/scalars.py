"""Numbers behind constants, those that `init` derives included, and when two of them count as one."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ir.graph import Constant, Value
from ...ir.model import Model
from ...ir.reference import Evaluator
from ...ir.types import TensorType
from ..canonicalize.table import splat
from .terms import TOLERANCE

_CONE = 32
_ELEMENTS = 64
"""Values and elements of `init` that are looked at to learn one number."""


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
    if not isinstance(model, Model) or constant.tensor.size != 1:
        return None
    value = model.derivation(constant)
    if value is None:
        return None
    known: dict[Value, Any] = {}
    found = _evaluated(Evaluator(model), value, known)
    return None if found is None else np.asarray(found).reshape(-1)[0]


def _evaluated(evaluator: Evaluator, value: Value, known: dict[Value, Any]) -> Any | None:
    """Contents of a value of `init`; None when they are large or take many nodes to compute."""
    if value in known:
        return known[value]
    size = value.tensor.size if isinstance(value.type, TensorType) and value.type.is_static else None
    if not isinstance(size, int) or size > _ELEMENTS or len(known) > _CONE:
        return None
    if isinstance(value, Constant):
        return None if value.data is None else value.data.numpy()
    node = value.node
    if node is None or any(node.all_graphs()):
        return None
    operands = [None if v is None else _evaluated(evaluator, v, known) for v in node.operands]
    if any(v is not None and o is None for v, o in zip(node.operands, operands, strict=True)):
        return None
    known.update(zip(node.results, evaluator.apply(node, operands), strict=True))
    return known[value]
