"""Immutable contents of constants: an array in memory, a region of a mapped file, or one repeated element.

Data is shared by models, clones and threads and never copied on the way.  It knows nothing of the graph.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import mmap
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from . import dtypes
from .dtypes import DType
from .errors import FormatError
from .types import TensorType

Array = np.ndarray[Any, np.dtype[Any]]

INLINE_LIMIT = 64
"""Constants of at most this many elements print inside the text; larger ones are named."""

PIECE = 1 << 20
"""Bytes that are read or written at a time."""


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

    @property
    def stored_bytes(self) -> int:
        """Bytes that `chunks` yields together: those of the NumPy view, or of the strings and their lengths."""
        return len(self.tobytes()) if self.dtype.is_string else self.nbytes

    def chunks(self) -> Iterator[memoryview]:
        """What `tobytes` returns, piece by piece, without a copy of the whole."""
        if self.dtype.is_string:
            yield memoryview(self.tobytes())
        elif self.size:
            flat = np.ascontiguousarray(self.numpy()).reshape(-1).view(np.uint8)
            for start in range(0, len(flat), PIECE):
                yield flat[start : start + PIECE].data

    @cached_property
    def digest(self) -> str:
        """SHA-256 of dtype, shape and bytes, in hexadecimal.  Equal contents have equal digests whatever their kind."""
        h = hashlib.sha256(f"{self.dtype}{list(self.shape)}".encode())
        for chunk in self.chunks():
            h.update(chunk)
        return h.hexdigest()

    def equals(self, other: Data) -> bool:
        """Same dtype, shape and bits."""
        if self is other:
            return True
        if self.dtype is not other.dtype or self.shape != other.shape:
            return False
        if isinstance(self, SplatData) and isinstance(other, SplatData):
            return scalar(self.splat, self.dtype).tobytes() == scalar(other.splat, self.dtype).tobytes()
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

    def chunks(self) -> Iterator[memoryview]:
        if self.dtype.is_string:
            yield from super().chunks()
            return
        count = max(PIECE // self.dtype.itemsize, 1)
        block = np.full(min(count, self.size), self._value, self.dtype.numpy).view(np.uint8)
        for start in range(0, self.nbytes, max(len(block), 1)):
            yield block[: self.nbytes - start].data


class MappedFile:
    """A file mapped whole and read-only.  It stays as it was when opened, also if another file takes its name."""

    def __init__(self, path: Path, file: BinaryIO | None = None) -> None:
        self.path = Path(path)
        with open(self.path, "rb") if file is None else contextlib.nullcontext(file) as opened:
            self.size = os.fstat(opened.fileno()).st_size
            self._map = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if self.size else None

    def bytes(self, offset: int, count: int) -> Array:
        """A read-only view of a region, as u8; nothing is read yet."""
        if self._map is None or not count:
            return np.zeros(0, np.uint8)
        return np.frombuffer(self._map, np.uint8, count, offset)

    def release(self, offset: int, count: int) -> None:
        """Let the system take back the memory of pages that lie wholly in a region; they can be read again."""
        first = -(-offset // mmap.PAGESIZE) * mmap.PAGESIZE
        last = (offset + count) // mmap.PAGESIZE * mmap.PAGESIZE
        if self._map is not None and first < last and hasattr(mmap, "MADV_DONTNEED"):
            self._map.madvise(mmap.MADV_DONTNEED, first, last - first)


class MappedData(Data):
    """A region of a file, mapped when first read.  Bounds are checked when the object is made.

    `file` is a mapping that several share; without one the region gets its own.  Contents that no element of the type
    has (a bool of 2, a 4-bit integer of 16, a string that is no UTF-8) are a FormatError when first read.
    """

    def __init__(
        self,
        path: Path,
        offset: int,
        dtype: DType,
        shape: Sequence[int],
        *,
        length: int | None = None,
        file: MappedFile | None = None,
    ) -> None:
        self.path = Path(path)
        self.offset = offset
        self.dtype = dtype
        self.shape = tuple(shape)
        self._file = file
        have = self.path.stat().st_size if file is None else file.size
        if dtype.is_string:
            # Each string stands behind its length; how long they are together stands in the file's table of contents.
            if length is None or 4 * self.size > length:
                raise FormatError(
                    f"{path}: {self.size} strings at offset {offset} need at least {4 * self.size} bytes, got {length}"
                )
            self._length = length
        else:
            self._length = self.nbytes
        if math.prod(n for n in self.shape if n) * max(dtype.itemsize, 1) >= 1 << 62:
            raise FormatError(f"{path}: a tensor of shape {list(self.shape)} at offset {offset} has too many elements")
        if offset < 0 or offset + self._length > have:
            raise FormatError(
                f"{path}: a tensor of {self._length} bytes at offset {offset} does not fit in the file's {have} bytes"
            )

    @cached_property
    def _raw(self) -> Array:
        if self._file is None:
            self._file = MappedFile(self.path)
            if self.offset + self._length > self._file.size:
                raise FormatError(
                    f"{self.path}: the file has become shorter than the tensor at offset {self.offset} needs"
                )
        return self._file.bytes(self.offset, self._length)

    @cached_property
    def _array(self) -> Array:
        if not self.size:
            return np.zeros(self.shape, self.dtype.numpy)
        if self.dtype.is_string:
            return self._strings()
        if self.dtype.bits < 8 and not all(int(chunk.max()) < 1 << self.dtype.bits for chunk in self._pieces()):
            raise FormatError(f"{self.path}: the tensor at offset {self.offset} has a byte that is no {self.dtype}")
        return self._raw.view(self.dtype.numpy).reshape(self.shape)

    def _strings(self) -> Array:
        raw, at = self._raw.tobytes(), 0
        out = np.empty(self.size, object)
        for i in range(self.size):
            end = at + 4 + int.from_bytes(raw[at : at + 4], "little")
            if end > len(raw):
                raise FormatError(f"{self.path}: string {i} of the tensor at offset {self.offset} reaches beyond it")
            try:
                out[i] = raw[at + 4 : end].decode()
            except UnicodeDecodeError:
                raise FormatError(
                    f"{self.path}: string {i} of the tensor at offset {self.offset} is not UTF-8"
                ) from None
            at = end
        if at != len(raw):
            raise FormatError(
                f"{self.path}: {len(raw) - at} bytes follow the strings of the tensor at offset {self.offset}"
            )
        view = out.reshape(self.shape)
        view.flags.writeable = False
        return view

    def _pieces(self) -> Iterator[Array]:
        """The bytes piece by piece; a piece's memory is given back when the next one is asked for."""
        raw = self._raw
        for start in range(0, self._length, PIECE):
            piece = raw[start : start + PIECE]
            yield piece
            if self._file is not None:
                self._file.release(self.offset + start, len(piece))

    def numpy(self) -> Array:
        return self._array

    def chunks(self) -> Iterator[memoryview]:
        for piece in self._pieces():
            yield piece.data


class DataSource(Mapping[str, Data]):
    """Contents by name that take the type they are asked for: a file whose readers know fewer types than a model."""

    def typed(self, name: str, type_: TensorType) -> Data:
        """The contents called `name`, of that type; FormatError if they cannot be of it, KeyError if there are none."""
        raise AssertionError("every source says how it types its contents")


def scalar(value: Any, dtype: DType) -> Data:
    """A rank-0 constant."""
    return ArrayData(np.asarray(value, dtype.numpy) if dtype is not dtypes.string else np.asarray(value, object), dtype)
