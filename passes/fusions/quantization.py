"""Fusion of dequantized weights into the product that they are used in.

Dequantize, product or convolution, quantize stays as it is (`qdq` says what it would be in integers).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...ir import dtypes
from ...ir.build import Builder
from ...ir.graph import Constant, Node, Value
from ...ir.ops.quantization.packed import packed
from ..pattern import Match, Tracer, equal, fusion
from .tables import in_init

_WEIGHTS = (dtypes.i2, dtypes.u2, dtypes.i4, dtypes.u4, dtypes.i8, dtypes.u8)


@dataclass(frozen=True)
class _Plan:
    """Operands of DequantizeLinear, and whether its matrix stands as [outputs, inputs]."""

    weights: Value
    scales: Value
    zero_points: Value | None
    turned: bool
    block_size: int


@fusion("quantized-matmul", near=1)
class FuseQuantizedMatMul:
    """MatMul(x, DequantizeLinear(w, scales, zero_points))   ->   QuantizedMatMul(x, packed w, scales, zero_points)

    for constant weights of 2, 4 or 8 bits in blocks of the axis that is summed over, transposed or not; a Gemm with
    them becomes the product and the addition of its bias.
    """

    def pattern(self, p: Tracer, x: Any) -> Any:
        return p.any_of(
            p.MatMul(x, p.any("w")),
            p.bind("gemm", p.Gemm(x, p.any("w"))),
            p.bind("gemm", p.Gemm(x, p.any("w"), p.any("bias"))),
        )

    def check(self, m: Match) -> None:
        turned = False
        if m.gemm is not None:
            keywords = m.gemm.node.keywords
            m.expect(keywords["alpha"] == 1 and keywords["beta"] == 1, "a Gemm with factors")
            m.expect(not keywords["transpose_a"], "a Gemm of a transposed operand")
            turned = keywords["transpose_b"]
        found = dequantized(m.w, turned)
        m.expect(found is not None, "no dequantized weights")
        node, turned = found  # type: ignore[misc]  # expect() refuses None
        weights, scales, zero_points = (*node.operands, None)[:3]
        keywords = node.keywords
        constants = [v for v in (weights, scales, zero_points) if v is not None]
        m.expect(weights.rank == 2 and keywords["block_size"] > 0, "weights that are not blocked")
        m.need(all(isinstance(v, Constant) and v.data is not None for v in constants), "weights that are computed")
        m.need(weights.dtype in _WEIGHTS, "weights of another type", weights)
        m.need(keywords["axis"] % 2 == int(turned), "blocks along the outputs", node)
        size, block = weights.dims[int(turned)], keywords["block_size"]
        m.need(isinstance(size, int) and size % block == 0, "the last block is not whole", weights)
        m.need(block * weights.dtype.bits % 8 == 0, "blocks that do not fill bytes", node)
        m.need(m.w.dtype is m.x.dtype and m.x.rank > 0, "operands of other types", m.x, m.w)
        m.need(equal(m.x.dims[-1], size), "another number of inputs", m.x, m.w)
        m.plan = _Plan(weights, scales, zero_points, turned, block)

    def rewrite(self, m: Match) -> Any:
        b, plan = m.build, m.plan
        bits = plan.weights.dtype.bits
        rows, scales = (_rows(b, v, plan.turned) for v in (_unsigned(b, plan.weights), plan.scales))
        zeros: Value | None = None
        if plan.zero_points is not None:
            zeros = _rows(b, _unsigned(b, plan.zero_points), plan.turned)
        elif not plan.weights.dtype.is_signed:
            zeros = b.full(0, dtypes.u8, scales.dims)
        words = packed(b, rows, bits)
        if words.node is not None:
            words.name = plan.weights.name
        out = b.QuantizedMatMul(m.x, words, scales, zeros, size=rows.dims[1], bits=bits, block_size=plan.block_size)
        return out if m.bias is None else b.add(out, m.bias)


def dequantized(value: Value, turned: bool) -> tuple[Node, bool] | None:
    """The DequantizeLinear that a matrix comes from, here or in `init`, and whether it stands as [outputs, inputs]."""
    current: Value | None = value
    while True:
        current = in_init(current) if isinstance(current, Constant) else current
        node = None if current is None else current.node
        if node is None:
            return None
        if node.op.name == "DequantizeLinear":
            return node, turned
        if node.op.name != "transpose" or node.keywords["permutation"] != (1, 0):
            return None
        turned, current = not turned, node.operands[0]


def _rows(b: Builder, x: Value, turned: bool) -> Value:
    """[outputs, inputs or blocks]"""
    out: Value = x if turned else b.transpose(x, permutation=(1, 0))
    return out


def _unsigned(b: Builder, x: Value) -> Value:
    """Integers in u8, signed ones moved by half of their range; every step takes a byte an element."""
    out: Value
    if x.dtype is dtypes.i8:
        out = b.xor(b.bitcast_convert(x, dtype=dtypes.u8), 0x80)
    elif x.dtype.is_signed:
        moved = b.add(b.convert(x, dtype=dtypes.i8), 1 << (x.dtype.bits - 1))
        out = b.convert(moved, dtype=dtypes.u8)
    else:
        out = x if x.dtype is dtypes.u8 else b.convert(x, dtype=dtypes.u8)
    return out
