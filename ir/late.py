"""How a late `onnx` node becomes typed nodes once its operands are known.

The ONNX front door registers the function that does it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .data import INLINE_LIMIT, ArrayData
from .errors import IrcError
from .facts import Fact, fact_of_data
from .types import TensorType

if TYPE_CHECKING:
    from .model import Graph, Model, Value

Materializer = Callable[[str, str, int, Any, "tuple[Graph, ...]", "Sequence[Fact | None]", "Model"], "Model"]
"""(domain, type, version, attributes, graphs, operand facts, model of the node) -> a model of its own.

The result's `main` computes the node.  It takes every operand that is present, in order, then `captures(graphs)`.
Facts carry concrete dims, and data where an operand is a constant or small.
"""

_materializers: list[Materializer] = []


def register_materializer(function: Materializer) -> Materializer:
    """Make `function` the one that `materialize` calls; the last one registered counts."""
    _materializers.append(function)
    return function


def materialize(
    domain: str,
    type_: str,
    version: int,
    attributes: Any,
    graphs: tuple[Graph, ...],
    operands: Sequence[Fact | None],
    model: Model,
) -> Model:
    """The typed model of one late node; IrcError if no front door can make it."""
    if not _materializers:
        name = f"{domain or 'ai.onnx'}.{type_}"
        raise IrcError(
            f"the late node {name} is typed by the ONNX front door, which is not loaded; import irc.frontends.onnx"
        )
    return _materializers[-1](domain, type_, version, attributes, graphs, operands, model)


def fact_of_value(value: Value | None, content: Any) -> Fact | None:
    """What is known of an operand whose content is at hand: concrete dims, and data if it is constant or small."""
    if value is None or content is None:
        return None
    if value.data is not None:
        return fact_of_data(value.data)
    if not isinstance(value.type, TensorType) or not isinstance(content, np.ndarray):
        return Fact(value.type)
    if content.size <= INLINE_LIMIT:
        return fact_of_data(ArrayData(content, value.type.dtype))
    return Fact(TensorType(value.type.dtype, content.shape))


def captures(graphs: Sequence[Graph]) -> tuple[Value, ...]:
    """Outer values that the graphs of a late node use, each once; `main` of its materialized model takes them last."""
    return tuple(dict.fromkeys(v for graph in graphs for v in graph.captures()))
