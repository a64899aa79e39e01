"""Weights that stay quantized in a written model: those of products that runtimes compute in integers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir import dtypes
from ...ir.graph import Constant, Node
from ...passes.fusions.qdq import is_product
from ...passes.fusions.quantization import dequantized

_INTEGERS = (dtypes.i8, dtypes.u8, dtypes.i32)


@dataclass(frozen=True)
class StoredQuantized:
    """Operands of the DequantizeLinear that makes a weight."""

    x: Constant
    turned: bool
    scale: Constant
    zero_point: Constant | None
    axis: int


def stored_quantized(value: Constant) -> StoredQuantized | None:
    """How a derived constant is written as DequantizeLinear of stored integers, or None to write its values.

    Only where everything that uses it multiplies dequantized values: ONNX Runtime joins these nodes to one product of
    integers, and quantizes weights a second time, by scales of its own, where it finds them in floats.
    """
    found = dequantized(value, False) if value.data is None and not value.is_output else None
    if found is None or not value.users or not all(is_product(user) for user in value.users):
        return None
    node, turned = found
    x, scale, zero_point = (*node.operands, None)[:3]
    if not isinstance(x, Constant) or x.data is None or not isinstance(scale, Constant) or scale.data is None:
        return None
    if zero_point is not None:
        if not isinstance(zero_point, Constant) or zero_point.data is None:
            return None
        if x.dtype is dtypes.i32 and np.any(zero_point.data.numpy()):
            return None
    if not _is_plain(node) or x.dtype not in _INTEGERS or scale.dtype not in (dtypes.f32, dtypes.f16):
        return None
    axis = node.keywords["axis"] % max(x.rank, 1)
    return StoredQuantized(x, turned, scale, zero_point, 1 - axis if turned else axis)


def _is_plain(node: Node) -> bool:
    """Whether opset 21 says it: one type for scale and result, no blocks."""
    return node.keywords["block_size"] == 0 and node.keywords["dtype"] in (None, node.operand("scale").dtype)
