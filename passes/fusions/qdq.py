"""Products between DequantizeLinear and QuantizeLinear: how they read as integer products, and how far these depart.

The pass `integer-products` rewrites them; `irc explain` tells of those that stand in a model.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.build import Builder
from ...ir.graph import Constant, Node, Value
from ...ir.types import TensorType
from .quantization import dequantized

_PRODUCTS = {"MatMul": "qdq_matmul", "Gemm": "qdq_matmul", "Conv": "qdq_conv"}
_BYTES = (dtypes.i8, dtypes.u8)
_ROUNDING = 2.0**-24
_EXACT = 1 << 24
"""Sums of integers up to this are exact in f32, whatever the order."""
_RANGE = (2.0**-100, 2.0**100)


class NoIntegerForm(Exception):
    """Why a product has none."""


@dataclass(frozen=True)
class Quantized:
    """What DequantizeLinear takes: integers, scales and zero points (one, or one an output channel) as arrays."""

    value: Value
    turned: bool
    scale: Any
    zero_point: Any

    @property
    def reach(self) -> int:
        """The largest distance of an integer from its zero point."""
        low, high = int(self.value.dtype.min_value()), int(self.value.dtype.max_value())
        zero = np.asarray(self.zero_point, np.int64)
        return int(max(np.abs(low - zero).max(), np.abs(high - zero).max()))

    def magnitudes(self, channel: int) -> Any | None:
        """Distances of constant integers from their zero points, the output channels first, else in one row each."""
        if not isinstance(self.value, Constant) or self.value.data is None:
            return None
        rows = np.moveaxis(self.value.data.numpy().astype(np.int64), channel, 0)
        rows = rows.reshape(len(rows), -1)
        return np.abs(rows - np.reshape(self.zero_point, (-1, 1)).astype(np.int64))


@dataclass(frozen=True)
class IntegerForm:
    """A product as QLinearMatMul or QLinearConv.  Results depart by less than `error` quanta; 0 is bit for bit."""

    last: Node
    layer: Node
    relu: bool
    x: Quantized
    w: Quantized
    bias: Any | None
    scale: Any
    zero_point: Any
    error: float

    def build(self, b: Builder) -> Value:
        """The operator, and a maximum where a Relu came before a quantization that does not clip at zero itself."""
        dtype = self.last.result.dtype
        w, zero = self.w.value, b.constant(np.asarray(self.zero_point, dtype.numpy), dtype)
        if self.w.turned:
            w = b.transpose(w, permutation=(1, 0))
        operands = [*_operands(b, self.x, self.x.value), *_operands(b, self.w, w), b.constant(self.scale), zero]
        if self.layer.op.name == "Conv":
            bias = None if self.bias is None else b.constant(self.bias)
            out: Value = b.QLinearConv(*operands, bias, **self.layer.keywords)
        else:
            out = b.QLinearMatMul(*operands)
        clips = int(self.zero_point) == int(dtype.min_value())
        return b.maximum(out, zero) if self.relu and not clips else out


def _operands(b: Builder, side: Quantized, value: Value) -> list[Value]:
    zero = np.asarray(side.zero_point, side.value.dtype.numpy)
    return [value, b.constant(side.scale), b.constant(zero, side.value.dtype)]


def is_product(node: Node) -> str | None:
    """qdq_matmul or qdq_conv for a product of two dequantized values, not both constant."""
    name = _PRODUCTS.get(node.op.name)
    if name is None:
        return None
    found = [dequantized(v, False) if v is not None else None for v in node.operands[:2]]
    return name if all(found) and not all(isinstance(v, Constant) for v in node.operands[:2]) else None


def integer_form(layer: Node) -> IntegerForm:
    """How a product of two dequantized values reads in integers; NoIntegerForm says why it does not."""
    last, relu, added = _quantization(layer)
    need(last.keywords["block_size"] == 0 and last.result.dtype in _BYTES, "its result is not quantized to bytes")
    need(layer.result.dtype is dtypes.f32, "it is not computed in f32")
    k = layer.keywords
    if layer.op.name == "Gemm":
        need(k["alpha"] == 1 and k["beta"] == 1 and not k["transpose_a"], "its Gemm has factors or turns its operand")
    is_conv = layer.op.name == "Conv"
    bias = added or (layer.operands[2] if len(layer.operands) > 2 else None)
    need(is_conv or bias is None, "QLinearMatMul takes no bias")
    need(is_conv or all(v is not None and v.rank > 1 for v in layer.operands[:2]), "it multiplies vectors")
    x = _side(layer.operands[0], False, None)
    w = _side(layer.operands[1], layer.op.name == "Gemm" and k["transpose_b"], 0 if is_conv else -1)
    need(x.turned is False, "its operand is turned")
    scale = _number(last.operands[1], "scale of the result")
    zero = last.operands[2] if len(last.operands) > 2 else None
    zero_point = np.int64(0) if zero is None else _number(zero, "zero point of the result")
    terms = _terms(layer, is_conv)
    step = np.float32(x.scale) * np.asarray(w.scale, np.float32)
    integers = None if bias is None else _bias(bias, step)
    sums = _sums(w, terms, 0 if is_conv or w.turned else -1) * x.reach
    sums = sums if integers is None else sums + np.abs(integers.astype(np.int64))
    need(int(np.max(sums)) < 1 << 31, "its sums may leave 32 bits")
    scales = [x.scale, w.scale, scale, step, step / scale]
    exact = all(map(_is_power, scales)) and int(np.max(sums)) <= _EXACT
    # Roundings of f32: three a term, one a partial sum, one for the bias, the quotient; four of the integer form.
    quanta = float(np.max(sums * step.astype(np.float64) / np.float64(scale)))
    error = 0.0 if exact else (terms + 10) * _ROUNDING * 1.01 * quanta
    return IntegerForm(last, layer, relu, x, w, integers, scale, zero_point, error)


def need(condition: bool, why: str) -> None:
    if not condition:
        raise NoIntegerForm(why)


def _quantization(layer: Node) -> tuple[Node, bool, Value | None]:
    """The one QuantizeLinear behind a layer, whether a Relu stands between, and what is added there."""
    value, relu, added = layer.result, False, None
    while True:
        need(len(value.uses) == 1 and not value.is_output, "its result is used unquantized too")
        (user,) = value.users
        if user.op.name == "QuantizeLinear" and user.operands[0] is value:
            return user, relu, added
        if user.op.name == "Relu":
            relu = True
        elif user.op.name == "add" and not relu and added is None and layer.op.name != "Conv":
            added = next((v for v in user.operands if v is not value), None)
            need(isinstance(added, Constant), "something is added to it before it is quantized")
        else:
            raise NoIntegerForm(f"{user.op.name} stands before its quantization")
        value = user.result


def _side(value: Value | None, turned: bool, channel: int | None) -> Quantized:
    """An operand of a product; `channel` is the axis, as the product sees it, along which scales may vary."""
    found = None if value is None else dequantized(value, turned)
    if found is None:
        raise NoIntegerForm("an operand is not dequantized")
    node, turned = found
    x, scale, zero = (*node.operands, None)[:3]
    assert x is not None
    need(x.dtype in _BYTES and node.keywords["block_size"] == 0, "its operands are not whole bytes, or are in blocks")
    need(not isinstance(x, Constant) or x.data is not None, "its weights are computed")
    need(node.graph is not None and (isinstance(x, Constant) or not _is_init(node)), "its weights are computed")
    axis = node.keywords["axis"] % max(x.rank, 1)
    along = None if channel is None else x.rank - 1 - (channel % x.rank) if turned else channel % x.rank
    arrays = []
    for parameter, what in ((scale, "scale"), (zero, "zero point")):
        array = np.int64(0) if parameter is None else _array(parameter, what)
        need(array.size == 1 or axis == along, f"a {what} varies along an axis that is summed over")
        arrays.append(array.reshape(()) if array.size == 1 else array)
    need(arrays[0].dtype == np.float32, "a scale is not f32")
    return Quantized(x, turned, *arrays)


def _is_init(node: Node) -> bool:
    return node.graph is not None and node.graph.function is None


def _array(value: Value | None, what: str) -> Any:
    need(isinstance(value, Constant) and value.data is not None, f"a {what} is computed")
    return value.data.numpy()  # type: ignore[union-attr]  # just looked for


def _number(value: Value | None, what: str) -> Any:
    array = _array(value, what)
    need(array.size == 1, f"the {what} varies")
    return array.reshape(())[()]


def _terms(layer: Node, is_conv: bool) -> int:
    """How many products make an element."""
    dims = layer.operands[1].dims[1:] if is_conv else layer.operands[0].dims[-1:]  # type: ignore[union-attr]  # ranked
    known = [d for d in dims if isinstance(d, int)]
    need(len(known) == len(dims), "the number of terms of its sums is not known")
    return math.prod(known)


def _sums(w: Quantized, terms: int, channel: int) -> Any:
    """For each output channel, or for all, the largest sum of distances of weights from their zero points."""
    exact = w.magnitudes(channel) if w.value.rank == 2 or channel == 0 else None
    return np.int64(w.reach * terms) if exact is None else exact.sum(axis=1)


def _bias(value: Value, step: Any) -> Any:
    """A bias in steps of x_scale * w_scale as i32."""
    found = dequantized(value, False)
    if found is not None:
        integers, scale, zero = (*found[0].operands, None)[:3]
        need(zero is None or not np.any(_array(zero, "zero point")), "its bias has a zero point")
        need(bool(np.all(_array(scale, "scale") == step)), _STEPS)
        out = _array(integers, "bias")
    else:
        need(isinstance(value.type, TensorType) and value.dtype is dtypes.f32, _STEPS)
        quotient = _array(value, "bias").astype(np.float64) / step.astype(np.float64)
        need(bool((quotient == np.rint(quotient)).all() and (np.abs(quotient) < 1 << 31).all()), _STEPS)
        out = quotient
    return out.astype(np.int32)


_STEPS = "its bias is not in steps of the product of the scales"


def _is_power(array: Any) -> bool:
    """Whether all elements are powers of two far from the ends of f32's range."""
    values = np.asarray(array, np.float64)
    low, high = _RANGE
    return bool((np.frexp(values)[0] == 0.5).all() and (values >= low).all() and (values <= high).all())
