"""Constants as ONNX tensors: in the model, or beside it where no protobuf message can hold them.  No names or nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
import onnx

from ...ir.data import ArrayData, Data
from ...ir.dtypes import DType

LARGEST = (1 << 31) - (1 << 12)
"""Bytes of one tensor: protobuf holds 2 GiB, its name and dims included; larger ones are a fault or an attack."""

BESIDE_FROM = 1 << 10
"""Bytes from which a constant goes beside the model, where there is a beside."""

ALIGNMENT = 4096
"""Every tensor in a file of weights starts at a multiple of this, so that it can be mapped on its own."""


class Weights:
    """Constants that stand beside a model, in one file called `location`, in the order they were met.

    Nothing is copied: the bytes are read when `write` writes them or when a session takes the arrays.
    """

    def __init__(self, location: str, least: int = BESIDE_FROM) -> None:
        self.location = location
        self.least = least
        self.held: dict[str, Data] = {}
        self._offsets: list[int] = []
        self._end = 0

    def takes(self, data: Data) -> bool:
        """Whether a constant goes beside the model; ONNX keeps strings in it."""
        return data.nbytes >= self.least and not data.dtype.is_string

    def add(self, name: str, data: Data) -> onnx.TensorProto:
        """The tensor that points to the bytes of `data`."""
        offset = -(-self._end // ALIGNMENT) * ALIGNMENT
        length = -(-data.size * data.dtype.bits // 8) if packs(data.dtype) else data.nbytes
        self.held[name] = data
        self._offsets.append(offset)
        self._end = offset + length
        out = onnx.TensorProto(name=name, data_type=data.dtype.onnx, dims=data.shape)
        out.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", self.location), ("offset", offset), ("length", length)):
            out.external_data.add(key=key, value=str(value))
        return out

    def write(self, file: BinaryIO) -> None:
        """The bytes of all tensors at their offsets, piece by piece."""
        for offset, data in zip(self._offsets, self.held.values(), strict=True):
            file.seek(offset)
            for piece in _pieces(data):
                file.write(piece)


def tensor_proto(name: str, array: Any, dtype: DType) -> onnx.TensorProto:
    """A tensor with its bytes in it.  Sub-byte elements are packed, low bits first, as ONNX has it."""
    out = onnx.TensorProto(name=name, data_type=dtype.onnx, dims=array.shape)
    if dtype.is_string:
        out.string_data.extend(str(s).encode() for s in array.reshape(-1))
    else:
        out.raw_data = _packed(array, dtype) if packs(dtype) else np.ascontiguousarray(array).tobytes()
    return out


def as_data(array: Any, dtype: DType) -> Data:
    """An array as contents of a constant, not copied."""
    return ArrayData(array, dtype)


def packs(dtype: DType) -> bool:
    """Whether several elements share a byte in ONNX."""
    return dtype.bits < 8 and not dtype.is_bool


def _pieces(data: Data) -> Iterator[Any]:
    if packs(data.dtype):
        yield _packed(data.numpy(), data.dtype)
    else:
        yield from data.chunks()


def _packed(array: Any, dtype: DType) -> bytes:
    per_byte = 8 // dtype.bits
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8) & ((1 << dtype.bits) - 1)
    codes = np.pad(codes, (0, -len(codes) % per_byte)).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * np.uint8(dtype.bits)
    return bytes(np.bitwise_or.reduce(codes << shifts, axis=1).astype(np.uint8))
