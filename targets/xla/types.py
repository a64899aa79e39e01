"""Element and tensor types of irc as MLIR types.  Operators and values live elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.types import TensorType, Type
from .mlir import ir

_FLOATS: dict[DType, str] = {
    dtypes.f64: "F64Type",
    dtypes.f32: "F32Type",
    dtypes.f16: "F16Type",
    dtypes.bf16: "BF16Type",
    dtypes.f8e4m3fn: "Float8E4M3FNType",
    dtypes.f8e4m3fnuz: "Float8E4M3FNUZType",
    dtypes.f8e5m2: "Float8E5M2Type",
    dtypes.f8e5m2fnuz: "Float8E5M2FNUZType",
    dtypes.f8e8m0fnu: "Float8E8M0FNUType",
    dtypes.f4e2m1fn: "Float4E2M1FNType",
}


def refusal(dtype: DType) -> str | None:
    """Why XLA cannot hold the element type, or None."""
    if dtype.is_string:
        return "XLA has no strings"
    if dtype.is_float and not hasattr(ir, _FLOATS[dtype]):
        return f"this jaxlib has no element type {dtype}"
    return None


def element(dtype: DType) -> Any:
    """The MLIR element type; needs a current context.  Signed integers are signless, as StableHLO wants them."""
    if (why := refusal(dtype)) is not None:
        raise IrcError(why)
    match dtype.kind:
        case "float":
            return getattr(ir, _FLOATS[dtype]).get()
        case "bool":
            return ir.IntegerType.get_signless(1)
        case "int":
            return ir.IntegerType.get_signless(dtype.bits)
        case "uint":
            return ir.IntegerType.get_unsigned(dtype.bits)
        case _:
            return ir.ComplexType.get(element(part(dtype)))


def part(dtype: DType) -> DType:
    """Element type of the parts of a complex type; other types are their own."""
    return {dtypes.c64: dtypes.f32, dtypes.c128: dtypes.f64}.get(dtype, dtype)


def tensor(dtype: DType, dims: Sequence[int]) -> Any:
    """The ranked tensor type."""
    return ir.RankedTensorType.get(list(dims), element(dtype))


def static(type_: Type, what: str) -> tuple[DType, tuple[int, ...]]:
    """Element type and sizes of a static tensor type; IrcError names `what` otherwise."""
    if not isinstance(type_, TensorType) or not type_.is_static:
        raise IrcError(f"{what} has type {type_}; XLA needs tensors of fixed sizes: specialize the model first")
    return type_.dtype, tuple(int(d) for d in type_.shape)


def carrier(dtype: DType) -> DType:
    """The type that arithmetic on sub-byte integers and floats below 16 bits runs in; other types are their own."""
    if dtype.is_float and dtype.bits < 16:
        return dtypes.f32
    if dtype.is_integer and dtype.bits < 8:
        return dtypes.i8 if dtype.kind == "int" else dtypes.u8
    return dtype


def accumulator(dtype: DType) -> DType:
    """The type that sums and products of many elements run in: f32 for narrower floats, else as `carrier`."""
    return dtypes.f32 if dtype.is_float and dtype.bits < 32 else carrier(dtype)
