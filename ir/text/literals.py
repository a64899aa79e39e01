"""How sizes, types, elements of constants and attribute values are spelled.  The reading half is in reading.py.

Floats are the shortest decimals that give the same bits back; a NaN other than the usual one is spelled by its bits.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from .. import dtypes
from ..attributes import AttributeKind, Symbol
from ..data import ArrayData, Data
from ..dims import Dim
from ..dtypes import DType
from ..types import OptionalType, SequenceType, TensorType
from .lexer import key, label, quote

SPLAT_FROM = 5
"""Equal elements are written once (`splat 0.0`) from this many on."""

Bits = np.ndarray[Any, np.dtype[Any]]


class FloatBits(int):
    """The bits of a float, as `0x7fc00001` spells them."""

    __slots__ = ()


class DoesNotFit(ValueError):
    """An element that its type cannot hold; `index` says which one."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


def part_type(dtype: DType) -> DType:
    """The type of a complex type's parts."""
    return dtypes.f32 if dtype is dtypes.c64 else dtypes.f64


def unsigned(dtype: DType) -> np.dtype[Any]:
    """The unsigned integers as wide as an element's storage."""
    return np.dtype(f"u{dtype.itemsize}")


@lru_cache(maxsize=64)
def usual_nan(dtype: DType) -> int:
    """Bits of the NaN that `nan` spells; -1 if the type has none."""
    with np.errstate(all="ignore"):
        nan = np.array([math.nan]).astype(dtype.numpy)
    return int(nan.view(unsigned(dtype))[0]) if np.isnan(nan.astype(np.float64))[0] else -1


def rounded_bits(value: float, dtype: DType) -> int:
    """Bits of a float rounded to a type."""
    with np.errstate(all="ignore"):
        return int(np.array([value]).astype(dtype.numpy).view(unsigned(dtype))[0])


@lru_cache(maxsize=4096)
def _decimal(magnitude: float, dtype: DType) -> str:
    """The shortest decimal that rounds to a finite value > 0 of the type."""
    if dtype is dtypes.f64:
        return repr(magnitude)
    wanted = rounded_bits(magnitude, dtype)
    if dtype is dtypes.f32 or dtype is dtypes.f16:
        candidates = [str(dtype.numpy.type(magnitude))]
    else:
        candidates = [f"{magnitude:.{p}g}" for p in range(1, 10)]
    text = next((c for c in candidates if rounded_bits(float(c), dtype) == wanted), repr(magnitude))
    return text if any(c in text for c in ".e") else f"{text}.0"


def float_text(value: float, bits: int, dtype: DType) -> str:
    """A float of the type, given as a number and by its bits."""
    if math.isnan(value):
        return "nan" if bits == usual_nan(dtype) else f"0x{bits:0{max(1, dtype.bits // 4)}x}"
    sign = "-" if math.copysign(1.0, value) < 0 else ""
    if math.isinf(value):
        return f"{sign}inf"
    return f"{sign}{_decimal(abs(value), dtype) if value else '0.0'}"


def python_float_text(value: float) -> str:
    """A Python float, as attributes hold it."""
    return float_text(value, struct.unpack("<Q", struct.pack("<d", value))[0], dtypes.f64)


def element_texts(array: np.ndarray[Any, Any], dtype: DType) -> list[str]:
    """The elements of a flat array."""
    match dtype.kind:
        case "bool":
            return ["true" if v else "false" for v in array.tolist()]
        case "int":
            return [str(v) for v in array.astype(np.int64).tolist()]
        case "uint":
            return [str(v) for v in array.astype(np.uint64).tolist()]
        case "float":
            bits = np.ascontiguousarray(array).view(unsigned(dtype)).tolist()
            with np.errstate(all="ignore"):
                values = array.astype(np.float64).tolist()
            return [float_text(v, b, dtype) for v, b in zip(values, bits, strict=True)]
        case "complex":
            part = part_type(dtype)
            parts = element_texts(np.ascontiguousarray(array).view(part.numpy), part)
            return [f"({re}, {im})" for re, im in zip(parts[::2], parts[1::2], strict=True)]
        case _:
            return [quote(str(v)) for v in array.tolist()]


def splat_text(data: Data) -> str:
    """`splat x` for contents that are one element repeated."""
    return f"splat {element_texts(np.asarray(data.splat, data.dtype.numpy).reshape(1), data.dtype)[0]}"


def contents_text(data: Data) -> str:
    """The elements of a constant: nested lists by shape, `splat x`, or a bare element."""
    if data.splat is not None and data.size >= SPLAT_FROM:
        return splat_text(data)
    if not data.size:
        return "[]"
    flat = data.numpy().reshape(-1)
    if data.size >= SPLAT_FROM and data.tobytes() == ArrayData(flat[:1], data.dtype).tobytes() * data.size:
        return f"splat {element_texts(flat[:1], data.dtype)[0]}"
    rows = element_texts(flat, data.dtype)
    for count in reversed(data.shape):
        rows = ["[" + ", ".join(rows[i : i + count]) + "]" for i in range(0, len(rows), count)]
    return rows[0]


def constant_text(data: Data) -> str:
    """A constant with its type: `i64[2] [1, 2]`."""
    return f"{data.type} {contents_text(data)}"


def array_of(values: list[Any], dtype: DType) -> np.ndarray[Any, Any]:
    """A flat array of elements as they were read; DoesNotFit if the type cannot hold one."""
    match dtype.kind:
        case "bool":
            return np.array(values, np.bool_)
        case "string":
            out = np.empty(len(values), object)
            out[:] = values
            return out
        case "int" | "uint":
            low = -(1 << (dtype.bits - 1)) if dtype.kind == "int" else 0
            high = low + (1 << dtype.bits)
            for i, value in enumerate(values):
                if not low <= value < high:
                    raise DoesNotFit(i)
            return np.array(values, np.int64 if dtype.kind == "int" else np.uint64).astype(dtype.numpy)
        case "complex":
            try:
                return array_of([part for pair in values for part in pair], part_type(dtype)).view(dtype.numpy)
            except DoesNotFit as error:
                raise DoesNotFit(error.index // 2) from None
        case _:
            return _floats(values, dtype)


def _floats(values: list[Any], dtype: DType) -> np.ndarray[Any, Any]:
    given = np.array([0.0 if isinstance(v, FloatBits) else v for v in values], np.float64)
    with np.errstate(all="ignore"):
        array = given.astype(dtype.numpy)
        got = array.astype(np.float64)
    same_class = (np.isnan(given) == np.isnan(got)) & (np.isinf(given) == np.isinf(got))
    if dtype is dtypes.f4e2m1fn:  # too large a value becomes the largest one, silently
        same_class &= np.abs(given) <= float(dtype.max_value())
    bits = array.view(unsigned(dtype))
    for i, value in enumerate(values):
        if isinstance(value, FloatBits):
            if value >> dtype.bits:
                raise DoesNotFit(i)
            bits[i] = value
        elif not same_class[i]:
            raise DoesNotFit(i)
    return array


def attribute_text(value: Any, kind: AttributeKind) -> str:
    """An attribute's value, as its declared kind is written."""
    if value is None:
        return "none"
    text = _nested_text(value, kind, kind.depth)
    return f"({text})" if kind.base == "size" and kind.optional and text.startswith("none") else text  # a symbol


def _nested_text(value: Any, kind: AttributeKind, depth: int) -> str:
    if depth:
        return "[" + ", ".join([_nested_text(v, kind, depth - 1) for v in value]) + "]"
    match kind.base:
        case "float":
            return python_float_text(float(value))
        case "bool":
            return "true" if value else "false"
        case "str":
            return quote(value)
        case "symbol":
            return f"@{label(value)}"
        case "payload":
            return payload_text(value)
        case _:
            return str(value)


def payload_text(value: Any) -> str:
    """Any literal, spelled so that its Python type can be told from the text."""
    match value:
        case None:
            return "none"
        case bool():
            return "true" if value else "false"
        case np.generic():
            return payload_text(value.item())
        case float():
            return python_float_text(value)
        case Symbol():
            return f"@{label(value)}"
        case str():
            return quote(value)
        case bytes():
            return f'bytes "{value.hex()}"'
        case Dim():
            return f"size({value})"
        case list() | tuple():
            return "[" + ", ".join([payload_text(v) for v in value]) + "]"
        case Mapping():
            return "{" + ", ".join([f"{key(str(k))} = {payload_text(v)}" for k, v in value.items()]) + "}"
        case Data():
            return constant_text(value)
        case np.ndarray():
            return constant_text(ArrayData(value))
        case int() | DType() | TensorType() | SequenceType() | OptionalType():
            return str(value)
        case _:
            return quote(repr(value))
