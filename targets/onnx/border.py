"""Element types that ONNX Runtime computes with but its Python interface cannot pass, and the wider ones carrying them.

A session's inputs and outputs of these types are declared in the carrier, and a Cast stands next to the border: the
carrier holds every value, so nothing is rounded.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.types import OptionalType, SequenceType, TensorType, Type

CARRIERS: Final[dict[DType, DType]] = {
    dtypes.bf16: dtypes.f32,
    dtypes.f8e4m3fn: dtypes.f32,
    dtypes.f8e4m3fnuz: dtypes.f32,
    dtypes.f8e5m2: dtypes.f32,
    dtypes.f8e5m2fnuz: dtypes.f32,
    dtypes.i4: dtypes.i8,
    dtypes.u4: dtypes.u8,
}


def carried(type_: Type) -> TensorType | None:
    """The type that stands at the border for a tensor that cannot cross it; None if it can, or nothing helps."""
    if not isinstance(type_, TensorType) or type_.dtype not in CARRIERS:
        return None
    return type_.with_dtype(CARRIERS[type_.dtype])


def barred(type_: Type) -> str | None:
    """The element type for which a value cannot cross the border at all."""
    if isinstance(type_, TensorType):
        return type_.dtype.name if type_.dtype.is_complex else None
    assert isinstance(type_, SequenceType | OptionalType)
    inner = type_.element
    return inner.dtype.name if isinstance(inner, TensorType) and inner.dtype in CARRIERS else barred(inner)


def cast_attributes(dtype: DType) -> dict[str, int]:
    """Attributes of a Cast to `dtype` that changes no value; infinities stay what they are."""
    return {"to": dtype.onnx, "saturate": 0} if dtype.is_float and dtype.bits == 8 else {"to": dtype.onnx}


def over(array: Any, type_: Type) -> Any:
    """An argument as it crosses the border."""
    wide = carried(type_)
    return array if wide is None else np.asarray(array).astype(wide.dtype.numpy)


def back(array: Any, type_: Type) -> Any:
    """A result of `type_` as it was before it crossed."""
    if not isinstance(type_, TensorType) or carried(type_) is None:
        return array
    return np.asarray(array).astype(type_.dtype.numpy)
