"""Element types as MLX has them: names, and the carriers of the types that MLX lacks."""

from __future__ import annotations

from ...ir import dtypes
from ...ir.dtypes import DType

NATIVE: dict[DType, str] = {
    dtypes.f64: "float64", dtypes.f32: "float32", dtypes.f16: "float16", dtypes.bf16: "bfloat16",
    dtypes.i64: "int64", dtypes.i32: "int32", dtypes.i16: "int16", dtypes.i8: "int8",
    dtypes.u64: "uint64", dtypes.u32: "uint32", dtypes.u16: "uint16", dtypes.u8: "uint8",
    dtypes.bool_: "bool_", dtypes.c64: "complex64",
}  # fmt: skip
"""Element types that MLX has, by the names in `mlx.core`."""

FORMATS: dict[DType, tuple[int, int, int, int, int, bool]] = {
    dtypes.f8e4m3fn: (4, 3, 7, 0x7E, 0x7F, True),
    dtypes.f8e4m3fnuz: (4, 3, 8, 0x7F, 0x80, False),
    dtypes.f8e5m2: (5, 2, 15, 0x7B, 0x7E, True),
    dtypes.f8e5m2fnuz: (5, 2, 16, 0x7F, 0x80, False),
    dtypes.f6e2m3fn: (2, 3, 1, 0x1F, -1, True),
    dtypes.f6e3m2fn: (3, 2, 3, 0x1F, -1, True),
    dtypes.f4e2m1fn: (2, 1, 1, 0x7, -1, True),
}
"""Exponent bits, mantissa bits, bias, code of the greatest finite value, code of NaN (-1: none), whether -0 exists."""


def is_code(dtype: DType) -> bool:
    """Whether arrays of the type hold bit codes (u8) instead of numbers."""
    return dtype.is_float and dtype.bits <= 8


def carrier(dtype: DType) -> DType:
    """The type that arrays of `dtype` have on the device: codes for narrow floats, bytes for sub-byte integers."""
    if is_code(dtype):
        return dtypes.u8
    if dtype.is_integer and dtype.bits < 8:
        return dtypes.i8 if dtype.kind == "int" else dtypes.u8
    return dtype


def wide(dtype: DType) -> DType:
    """The type that arithmetic on `dtype` runs in."""
    return dtypes.f32 if is_code(dtype) else carrier(dtype)


def accumulator(dtype: DType) -> DType:
    """The type that sums of many elements run in: f32 for narrower floats."""
    return dtypes.f32 if dtype.is_float and dtype.bits < 32 else carrier(dtype)


def refusal(dtype: DType) -> str | None:
    """Why MLX cannot hold the type, or None."""
    if carrier(dtype) in NATIVE:
        return None
    return "MLX has no strings" if dtype.is_string else f"MLX has no {dtype}"


def spelling(dtype: DType) -> str:
    """`mx.float32`: the type of arrays of `dtype`."""
    return f"mx.{NATIVE[carrier(dtype)]}"
