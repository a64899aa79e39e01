"""TensorProto -> Data.  Raw and external data are mapped or viewed, not copied; all is checked before it is trusted."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
import onnx
from onnx import numpy_helper

from ...ir import dtypes
from ...ir.data import ArrayData, Data, MappedData, MappedFile
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from .reading import Source

MAX_DENSE = 1 << 30
"""Bytes that a sparse tensor may take when it is written out."""


def data_of(tensor: onnx.TensorProto, source: Source) -> Data:
    """The contents of a tensor; FormatError names the tensor and the fault."""
    what = f"tensor {tensor.name!r}" if tensor.name else "a tensor"
    try:
        dtype = DType.from_onnx(tensor.data_type)
    except IrcError as error:
        raise source.fail(f"{what} has an unusable type: {error}") from None
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape):
        raise source.fail(f"{what} has a negative dimension: {list(shape)}")
    if tensor.HasField("segment"):
        raise source.fail(f"{what} is stored in segments, which ONNX does not define")
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        return _external(tensor, dtype, shape, source, what)
    if tensor.HasField("raw_data"):
        return _raw(tensor.raw_data, dtype, shape, source, what)
    return _typed(tensor, dtype, shape, source, what)


def stored_bytes(dtype: DType, shape: tuple[int, ...]) -> int:
    """Bytes that ONNX stores for a tensor; types below eight bits are packed."""
    return (
        (math.prod(shape) * dtype.bits + 7) // 8
        if dtype.bits and dtype.bits < 8 and not dtype.is_bool
        else (math.prod(shape) * dtype.itemsize)
    )


def _raw(raw: bytes, dtype: DType, shape: tuple[int, ...], source: Source, what: str) -> Data:
    region = source.region(raw)
    length = len(raw) if region is None else region[1]
    _need_bytes(length, dtype, shape, source, what)
    if region is None:
        return _viewed(np.frombuffer(raw, np.uint8), dtype, shape)
    if source.file is None:
        assert source.buffer is not None
        return _viewed(np.frombuffer(source.buffer, np.uint8, length, region[0]), dtype, shape)
    return _mapped(source.file, region[0], dtype, shape)


def _need_bytes(length: int, dtype: DType, shape: tuple[int, ...], source: Source, what: str) -> None:
    if dtype.is_string:
        raise source.fail(f"{what} holds strings as raw data; ONNX keeps them in string_data")
    need = stored_bytes(dtype, shape)
    if length != need:
        raise source.fail(f"{what} of type {dtype}{list(shape)} needs {need} bytes, the file has {length}")


def _mapped(file: MappedFile, offset: int, dtype: DType, shape: tuple[int, ...]) -> Data:
    if dtype.is_bool or dtype.bits < 8:
        packed = MappedData(file.path, offset, dtypes.u8, (stored_bytes(dtype, shape),), file=file)
        return _viewed(packed.numpy(), dtype, shape)
    return MappedData(file.path, offset, dtype, shape, file=file)


def _viewed(octets: np.ndarray, dtype: DType, shape: tuple[int, ...]) -> Data:
    """Data over the stored bytes; only bools (any non-zero byte is True) and packed types are copied."""
    if dtype.is_bool:
        return ArrayData((octets != 0).reshape(shape), dtype)
    if dtype.bits < 8:
        per_byte = 8 // dtype.bits
        count = math.prod(shape)
        parts = [(octets >> (i * dtype.bits)) & ((1 << dtype.bits) - 1) for i in range(per_byte)]
        elements = np.stack(parts, -1).reshape(-1)[:count]
        return ArrayData(_small(elements, dtype).reshape(shape), dtype)
    return ArrayData(octets.view(dtype.numpy).reshape(shape), dtype)


def _small(bits: np.ndarray, dtype: DType) -> np.ndarray:
    """Elements of a type below eight bits from their bit patterns."""
    if dtype.is_float:
        return bits.astype(np.uint8).view(dtype.numpy)
    if dtype.kind == "int":
        top = 1 << (dtype.bits - 1)
        return ((bits.astype(np.int8) ^ top) - top).astype(dtype.numpy)
    return bits.astype(dtype.numpy)


def _typed(tensor: onnx.TensorProto, dtype: DType, shape: tuple[int, ...], source: Source, what: str) -> Data:
    """Contents of the typed fields (float_data, int32_data with its packings, string_data, ...)."""
    if dtype.is_string:
        stored, per_element = len(tensor.string_data), 1
    else:
        name = onnx.helper.tensor_dtype_to_field(tensor.data_type)
        stored, per_element = len(getattr(tensor, name)), 2 if dtype.is_complex else 1
    per_entry = 8 // dtype.bits if 0 < dtype.bits < 8 and not dtype.is_bool else 1
    need = -(-math.prod(shape) // per_entry) * per_element
    if stored != need:
        raise source.fail(f"{what} of type {dtype}{list(shape)} needs {need} elements, the file has {stored}")
    if dtype.is_string:
        try:
            texts = [s.decode() for s in tensor.string_data]
        except UnicodeDecodeError:
            raise source.fail(f"{what} holds a string that is not UTF-8") from None
        array = np.empty(len(texts), object)
        array[:] = texts
        return ArrayData(array.reshape(shape), dtype)
    if dtype.is_bool:
        return ArrayData((np.asarray(tensor.int32_data, np.int32) != 0).reshape(shape), dtype)
    if dtype.bits < 8:
        return _viewed(np.asarray(tensor.int32_data, np.int64).astype(np.uint8), dtype, shape)
    try:
        return ArrayData(numpy_helper.to_array(tensor), dtype)
    except (ValueError, TypeError, OverflowError) as error:
        raise source.fail(f"{what} cannot be read: {error}") from None


def _external(tensor: onnx.TensorProto, dtype: DType, shape: tuple[int, ...], source: Source, what: str) -> Data:
    entries = {e.key: e.value for e in tensor.external_data}
    file = _external_file(entries.get("location", ""), source, what)
    offset = _number(entries.get("offset", "0"), "offset", source, what)
    need = stored_bytes(dtype, shape)
    if dtype.is_string:
        raise source.fail(f"{what} holds strings as external data; ONNX keeps them in string_data")
    if "length" in entries and _number(entries["length"], "length", source, what) != need:
        raise source.fail(
            f"{what} of type {dtype}{list(shape)} needs {need} bytes, its external length is {entries['length']}"
        )
    if offset + need > file.size:
        raise source.fail(
            f"{what} needs {need} bytes at offset {offset} of {file.path.name}, which has {file.size} bytes"
        )
    return _mapped(file, offset, dtype, shape)


def _external_file(location: str, source: Source, what: str) -> MappedFile:
    """The mapping of an external file, opened once an import: what was checked is what is read."""
    path = _inside_directory(location, source, what)
    if path not in source.external:
        try:
            with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
                if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                    raise source.fail(f"{what}: external data location {location!r} is not a regular file")
                source.external[path] = MappedFile(path, opened)
        except OSError as error:
            raise source.fail(f"{what}: the external data file {location!r} cannot be read: {error.strerror}") from None
    return source.external[path]


def _number(text: str, key: str, source: Source, what: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise source.fail(f"{what}: external data has the {key} {text!r}; expected a number of bytes")
    return int(text)


def _inside_directory(location: str, source: Source, what: str) -> Path:
    """The external file, which must be a regular file inside the model's directory."""
    if source.directory is None:
        raise source.fail(f"{what} has external data; import the model from its file so that its directory is known")
    pure = PurePosixPath(location)
    windows = PureWindowsPath(location)
    if (
        not location
        or pure.is_absolute()
        or windows.is_absolute()
        or windows.drive
        or ".." in windows.parts
        or "\0" in location
    ):
        raise source.fail(
            f"{what}: external data location {location!r} must be a relative path without '..' "
            "inside the model's directory"
        )
    try:
        path = (source.directory / pure).resolve(strict=True)
        status = path.stat()
    except (OSError, RuntimeError):
        raise source.fail(f"{what}: the external data file {location!r} does not exist beside the model") from None
    if not path.is_relative_to(source.directory.resolve()):
        raise source.fail(
            f"{what}: external data location {location!r} is a link that leaves the model's directory; "
            "copy the file there"
        )
    if not stat.S_ISREG(status.st_mode):
        raise source.fail(f"{what}: external data location {location!r} is not a regular file")
    return path


def dense(sparse: onnx.SparseTensorProto, source: Source) -> Data:
    """A sparse initializer written out."""
    what = f"sparse tensor {sparse.values.name!r}"
    values, indices = data_of(sparse.values, source), data_of(sparse.indices, source)
    shape = tuple(sparse.dims)
    if not shape or any(d < 0 for d in shape) or indices.dtype is not dtypes.i64 or len(values.shape) != 1:
        raise source.fail(f"{what} is malformed: dims {list(shape)}, values {values.type}, indices {indices.type}")
    if math.prod(shape) * values.dtype.itemsize > MAX_DENSE:
        raise source.fail(f"{what} of dims {list(shape)} would take more than {MAX_DENSE} bytes written out")
    count = values.shape[0]
    at = indices.numpy()
    if indices.shape == (count,):
        limits, rows = (math.prod(shape),), at.reshape(count, 1)
    elif indices.shape == (count, len(shape)):
        limits, rows = shape, at
    else:
        raise source.fail(f"{what} has {count} values but indices of shape {list(indices.shape)}")
    if count and (rows.min() < 0 or (rows >= np.array(limits)).any()):
        raise source.fail(f"{what} has an index outside its dims {list(shape)}")
    out = np.zeros(shape if len(limits) > 1 or len(shape) == 1 else limits, values.dtype.numpy)
    out[tuple(rows.T)] = values.numpy()
    return ArrayData(out.reshape(shape), values.dtype)
