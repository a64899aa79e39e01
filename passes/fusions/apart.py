"""What is recognised and deliberately left as several nodes, with the reason: nothing here changes a model."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator

from ...ir.graph import Constant, Node, Value
from ...ir.model import Model
from ...ir.types import TensorType
from ..pattern import Apart, equal, number
from .qdq import NoIntegerForm, integer_form, is_product

_NORMS = {"LayerNormalization": "layer_norm", "RMSNormalization": "rms_norm"}
_LOSSLESS = ("convert", "reshape", "broadcast_in_dim")
_SKIP = "no target has a kernel for a sum and its normalization that beats two nodes; ONNX Runtime joins them itself"
_EMBED = "no target has a kernel for look-ups, their sum and its normalization; ONNX Runtime joins them itself"
_SLOWER = "XLA and MLX take longer for it"


def left_apart(model: Model) -> list[Apart]:
    """Everything of the kind in a model, in order."""
    return [found for node in model.nodes() for found in _found(node)]


def _found(node: Node) -> Iterator[Apart]:
    if (norm := _NORMS.get(node.op.name)) is not None and node.operands[0] is not None:
        if _is_embedding(node.operands[0]):
            yield Apart(f"embed_{norm}", node.label, _EMBED)
        elif len(_sum(node.operands[0], _normalized(node))) > 1:
            yield Apart(f"skip_{norm}", node.label, _SKIP)
    elif (product := is_product(node)) is not None:
        yield Apart(product, node.label, _why_not_integers(node))


def _why_not_integers(node: Node) -> str:
    """Why a product of dequantized values is none of integers."""
    try:
        error = integer_form(node).error
    except NoIntegerForm as reason:
        return f"no integer product: {reason}"
    if error == 0:
        return f"the integer product is the same bit for bit; {_SLOWER}; integer-products makes it"
    quanta = math.floor(error) + 1
    steps = "a step" if quanta == 1 else f"{quanta} steps"
    return f"the integer product may depart by {steps}; {_SLOWER}; integer-products{{quanta={quanta}}} makes it"


def _normalized(node: Node) -> int:
    """How many axes, the last ones, a normalization is along."""
    axis: int = node.keywords["axis"]
    rank: int = node.operands[0].rank  # type: ignore[union-attr]  # not None
    return -axis if axis < 0 else rank - axis


def _sum(value: Value, trailing: int) -> list[Value]:
    """The two computed values whose sum a value is, or the value itself.  Both are as large as the sum.

    Conversions do not count, nor do reshapes that leave the last `trailing` axes alone, nor biases.
    """
    node = value.node
    if node is None or value.rank < trailing:
        return [value]
    x = node.operands[0] if node.operands else None
    if node.op.name in ("convert", "reshape") and x is not None and _same_tail(x, value, trailing):
        return _sum(x, trailing)
    if node.op.name != "add":
        return [value]
    terms = [v for v in node.operands if v is not None]
    for bias, other in (terms, terms[::-1]):
        if _is_bias(bias, trailing):
            return _sum(other, trailing)
    computed = all(not isinstance(v, Constant) and _covers(v, value) for v in terms)
    return terms if computed else [value]


def _same_tail(x: Value, y: Value, count: int) -> bool:
    """Whether the last axes of two values are the same."""
    if not isinstance(x.type, TensorType) or x.type.dims is None or x.rank < count:
        return False
    return all(map(equal, x.dims[x.rank - count :], y.dims[y.rank - count :]))


def _covers(term: Value, total: Value) -> bool:
    return term.rank == total.rank and all(map(equal, term.dims, total.dims))


def _is_bias(value: Value, trailing: int) -> bool:
    """A constant that is the same for every normalized row."""
    return isinstance(value, Constant) and all(equal(d, 1) for d in value.dims[: max(value.rank - trailing, 0)])


def _is_embedding(value: Value) -> bool:
    """Whether a value is the sum of two or three rows of tables.

    What was looked up by constant positions is a constant, since constants are folded.
    """
    leaves = _leaves(value)
    rows = [_is_lookup(v) for v in leaves]
    folded = [isinstance(v, Constant) and v.rank >= 2 for v in leaves]
    return 2 <= len(leaves) <= 3 and any(rows) and all(map(operator.or_, rows, folded))


def _leaves(value: Value) -> list[Value]:
    """Terms of sums of sums, at most four of them."""
    pending: list[Value] = [value]
    leaves: list[Value] = []
    while pending and len(leaves) < 4:
        value = pending.pop()
        node = value.node
        if node is not None and node.op.name in ("add", "convert", "reshape"):
            pending += [v for v in node.operands if v is not None]
        else:
            leaves.append(value)
    return leaves


def _is_lookup(value: Value) -> bool:
    """Rows of a constant table, perhaps scaled by a number."""
    node = value.node
    while node is not None and node.operands and (x := node.operands[0]) is not None:
        if node.op.name == "multiply":
            scale, other = (number(v) for v in node.operands)
            value = node.operands[1 if scale is not None and other is None else 0] or x
            if scale is None and other is None:
                return False
        elif node.op.name in ("take", "GatherND", "slice", "dynamic_slice"):
            return isinstance(x, Constant) and x.rank >= 2 and x.dtype.is_float
        elif node.op.name in (*_LOSSLESS, "DequantizeLinear"):
            value = x
        else:
            return False
        node = value.node
    return False
