"""Immutable contents of constants: an array in memory, a region of a mapped file, or one repeated element.

Data is shared by models, clones and threads and never copied on the way.  It knows nothing of the graph.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import FormatError
from .types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]

INLINE_LIMIT = 64
"""Constants of at most this many elements print inside the text; larger ones are named."""


class Data:
    """Immutable contents of a constant.  Subclasses say where the bytes are; `numpy()` never copies mapped bytes."""

    dtype: DType
    shape: tuple[int, ...]

    def numpy(self) -> Array:
        """A read-only array of `shape`."""
        raise AssertionError("every kind of Data says where its bytes are")

    @property
    def type(self) -> TensorType:
        return TensorType(self.dtype, self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the NumPy view."""
        return self.size * self.dtype.itemsize

    @property
    def is_inline(self) -> bool:
        """Whether the text prints it in place."""
        return self.size <= INLINE_LIMIT

    @property
    def splat(self) -> Any | None:
        """The one element that fills the tensor, as a NumPy scalar, if that is known without reading a large file."""
        if self.size == 1:
            return self.numpy().reshape(())[()]
        return None

    def tobytes(self) -> bytes:
        """Row-major bytes; strings are UTF-8, each behind its length (u32, little-endian)."""
        array = self.numpy()
        if self.dtype.is_string:
            parts = (str(s).encode() for s in array.reshape(-1))
            return b"".join(len(p).to_bytes(4, "little") + p for p in parts)
        return array.tobytes()

    @cached_property
    def digest(self) -> str:
        """SHA-256 of dtype, shape and bytes, in hexadecimal.  Equal contents have equal digests whatever their kind."""
        h = hashlib.sha256(f"{self.dtype}{list(self.shape)}".encode())
        if self.dtype.is_string or not self.size:
            h.update(self.tobytes())
        else:
            h.update(np.ascontiguousarray(self.numpy()).reshape(-1).view(np.uint8).data)
        return h.hexdigest()

    def equals(self, other: Data) -> bool:
        """Same dtype, shape and bits."""
        if self is other:
            return True
        if self.dtype is not other.dtype or self.shape != other.shape:
            return False
        if self.size <= 4096:
            return self.tobytes() == other.tobytes()
        return self.digest == other.digest


class ArrayData(Data):
    """Contents held in memory.  The array is made read-only; hand over a copy if you still write to yours."""

    def __init__(self, array: Any, dtype: DType | None = None) -> None:
        a = np.asarray(array)
        self.dtype = dtype if dtype is not None else DType.from_numpy(a.dtype)
        if a.dtype != self.dtype.numpy:
            a = a.astype(self.dtype.numpy)
        if not a.flags.c_contiguous:
            a = a.copy(order="C")
        view = a.view()
        view.flags.writeable = False
        self._array = view
        self.shape = a.shape

    def numpy(self) -> Array:
        return self._array


class SplatData(Data):
    """One element repeated over a shape; takes no memory until someone asks for the array."""

    def __init__(self, value: Any, dtype: DType, shape: Sequence[int]) -> None:
        self.dtype = dtype
        self.shape = tuple(shape)
        self._value = np.asarray(value).astype(dtype.numpy).reshape(())

    def numpy(self) -> Array:
        view = np.broadcast_to(self._value, self.shape)
        view.flags.writeable = False
        return view

    @property
    def splat(self) -> Any:
        return self._value[()]


class MappedData(Data):
    """A region of a file, mapped when first read.  Bounds are checked when the object is made."""

    def __init__(self, path: Path, offset: int, dtype: DType, shape: Sequence[int]) -> None:
        self.path = Path(path)
        self.offset = offset
        self.dtype = dtype
        self.shape = tuple(shape)
        have = self.path.stat().st_size
        if offset < 0 or offset + self.nbytes > have:
            raise FormatError(
                f"{path}: a tensor of {self.nbytes} bytes at offset {offset} does not fit in the file's {have} bytes"
            )

    @cached_property
    def _array(self) -> Array:
        if not self.size:
            return np.zeros(self.shape, self.dtype.numpy)
        mapped = np.memmap(self.path, np.uint8, "r", self.offset, (self.nbytes,))
        return np.asarray(mapped).view(self.dtype.numpy).reshape(self.shape)

    def numpy(self) -> Array:
        return self._array


def scalar(value: Any, dtype: DType) -> Data:
    """A rank-0 constant."""
    return ArrayData(np.asarray(value, dtype.numpy) if dtype is not dtypes.string else np.asarray(value, object), dtype)
