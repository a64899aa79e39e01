"""How many composites a model holds, by the names that people use: made by fusions or there before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from ...ir.graph import Node, Value
from ...ir.model import Model
from ..pattern import about, number
from .apart import left_apart

_NAMES: dict[str, Callable[[Node], str]] = {
    "Attention": lambda node: "attention",
    "RotaryEmbedding": lambda node: "rope",
    "RMSNormalization": lambda node: "rms_norm",
    "LayerNormalization": lambda node: "layer_norm",
    "GroupNormalization": lambda node: "group_norm",
    "InstanceNormalization": lambda node: "instance_norm",
    "BatchNormalization": lambda node: "batch_norm",
    "Gelu": lambda node: "gelu",
    "Swish": lambda node: "silu" if node.keywords["alpha"] == 1.0 else _scaled_swish(node),
    "HardSwish": lambda node: "hard_swish",
    "Mish": lambda node: "mish",
    "Softplus": lambda node: "softplus",
    "QuantizedMatMul": lambda node: "quantized_matmul",
    "QLinearMatMul": lambda node: "integer_matmul",
    "MatMulInteger": lambda node: "integer_matmul",
    "QLinearConv": lambda node: "integer_conv",
    "ConvInteger": lambda node: "integer_conv",
}


def _scaled_swish(node: Node) -> str:
    return "quick_gelu" if about(node.keywords["alpha"], 1.702) else "swish"


def composites_in(model: Model) -> dict[str, int]:
    """Name to count, sorted by name.

    A gate (swiglu, geglu) counts beside the activation in it, a sum before a normalization (skip_layer_norm,
    skip_rms_norm, embed_layer_norm) beside the normalization.  qdq_matmul, qdq_conv: products of dequantized values.
    """
    counts: Counter[str] = Counter(found.name for found in left_apart(model))
    for node in model.nodes():
        if node.op.name in _NAMES:
            counts[_NAMES[node.op.name](node)] += 1
        elif node.op.name == "multiply" and (gate := _gate(node)):
            counts[gate] += 1
    return dict(sorted(counts.items()))


def _gate(node: Node) -> str | None:
    """An activation times something that is no number: SwiGLU, GeGLU."""
    x, y = node.operands
    for side, other in ((x, y), (y, x)):
        name = _activation(side)
        if name is not None and number(other) is None:
            return name
    return None


def _activation(value: Value | None) -> str | None:
    while value is not None and value.node is not None and value.node.op.name == "convert":
        value = value.node.operands[0]
    node = value.node if value is not None else None
    return {"Swish": "swiglu", "Gelu": "geglu"}.get(node.op.name) if node is not None else None
