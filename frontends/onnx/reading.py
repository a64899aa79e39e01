"""Reading an ONNX file as bytes: large raw tensors stay where they are, only the rest is parsed as protobuf.

A small scanner walks the wire format down to the tensors and replaces raw data above a threshold by a short reference
into the file, so weights are neither copied nor parsed and files above protobuf's 2 GiB limit can be read.
"""

from __future__ import annotations

import secrets
import stat
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError  # type: ignore[import-untyped]  # protobuf ships no stubs

from ...ir.data import MappedFile
from ...ir.errors import FormatError

KEEP = 1024
"""Raw data of at most this many bytes stays in the protobuf."""
MAX_DEPTH = 64
"""Graphs within graphs (counted as nested messages of the wire format)."""
_NONCE = secrets.token_bytes(16)  # a file cannot forge a reference into itself

# (message, field number) -> the message that field holds, down to where raw data can stand.
_INSIDE = {
    ("model", 7): "graph",
    ("model", 25): "function",
    ("function", 7): "node",
    ("graph", 1): "node",
    ("graph", 5): "tensor",
    ("node", 5): "attribute",
    ("attribute", 5): "tensor",
    ("attribute", 6): "graph",
    ("attribute", 10): "tensor",
    ("attribute", 11): "graph",
}
_RAW_DATA = 9


@dataclass(slots=True)
class Source:
    """A parsed model and where its large tensors are: in `file` or in `buffer`; `external` has other files, mapped."""

    model: onnx.ModelProto
    label: str
    file: MappedFile | None = None
    directory: Path | None = None
    buffer: memoryview | None = None
    regions: list[tuple[int, int]] = field(default_factory=list)
    external: dict[Path, MappedFile] = field(default_factory=dict)

    def region(self, raw: bytes) -> tuple[int, int] | None:
        """(offset, length) of the raw data that `raw` refers to, or None if it is raw data itself."""
        if len(raw) == len(_NONCE) + 8 and raw.startswith(_NONCE):
            return self.regions[int.from_bytes(raw[len(_NONCE) :], "little")]
        return None

    def fail(self, fault: str) -> FormatError:
        """The error to raise for a fault of the file."""
        return FormatError(f"{self.label}: {fault}")


def read(source: str | Path | bytes | onnx.ModelProto) -> Source:
    """The model in a file, in bytes, or already parsed; FormatError if it is not one."""
    if isinstance(source, onnx.ModelProto):
        return _checked(Source(source, source.graph.name or "ONNX model"))
    if isinstance(source, bytes | bytearray | memoryview):
        return _parsed(memoryview(source).cast("B"), Source(onnx.ModelProto(), "ONNX model"))
    path = Path(source)
    try:
        status = path.stat()
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise FormatError(f"{path}: is not a regular file; expected an ONNX model file")
    if not status.st_size:
        raise FormatError(f"{path}: is empty; expected an ONNX model")
    try:
        # One mapping for parsing and for the weights: another file that takes the name later changes nothing.
        file = MappedFile(path)
        out = _parsed(file.bytes(0, file.size).data, Source(onnx.ModelProto(), str(path), file, path.parent))
        out.buffer = None
        return out
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}") from None


def _parsed(view: memoryview, out: Source) -> Source:
    chunks: list[bytes | memoryview] = []
    try:
        _scan(view, 0, len(view), "model", chunks, out.regions, 0)
        small = b"".join(chunks)
        chunks.clear()
        out.model.ParseFromString(small)
    except _Malformed as error:
        raise out.fail(f"is not an ONNX model or is truncated: {error}") from None
    except DecodeError:
        raise out.fail("is not an ONNX model or is damaged: its protobuf cannot be decoded") from None
    out.buffer = view
    return _checked(out)


def _checked(source: Source) -> Source:
    model = source.model
    if not model.HasField("graph"):
        raise source.fail("is not an ONNX model: it holds no graph")
    if not model.opset_import and model.ir_version >= 3:
        raise source.fail("is not a valid ONNX model: it imports no operator set (opset_import is empty)")
    _check_strings(source)
    return source


@cache
def _fields(descriptor: Any) -> tuple[tuple[tuple[str, bool], ...], tuple[tuple[str, bool], ...]]:
    """The fields of a message that are text, and those that are messages: names, each with whether it is a list."""
    text = [f for f in descriptor.fields if f.type == f.TYPE_STRING]
    inner = [f for f in descriptor.fields if f.type == f.TYPE_MESSAGE]
    return tuple((f.name, f.is_repeated) for f in text), tuple((f.name, f.is_repeated) for f in inner)


def _check_strings(source: Source) -> None:
    """FormatError for text that is not UTF-8: protobuf gives it as bytes, where all else expects str."""
    stack: list[tuple[Any, str]] = [(source.model, "the model")]
    while stack:
        message, place = stack.pop()
        text, inner = _fields(message.DESCRIPTOR)
        for name, many in text:
            value = getattr(message, name)
            for one in value if many else (value,):
                if isinstance(one, bytes):
                    raise source.fail(f"the field {name} of {place} is not valid UTF-8: {one[:40]!r}")
        for name, many in inner:
            if many:
                values = getattr(message, name)
            else:
                values = [getattr(message, name)] if message.HasField(name) else []
            if values:
                label = getattr(message, "name", "")
                here = f"{message.DESCRIPTOR.name} {label!r}" if label else place
                stack += [(v, f"a {v.DESCRIPTOR.name} in {here}") for v in values]


class _Malformed(Exception):
    """The wire format is broken; becomes a FormatError that names the file."""


def _varint(view: memoryview, at: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while at < end:
        byte = view[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _Malformed(f"a number at byte {at} is too long")
    raise _Malformed(f"it ends inside a number at byte {at}")


def _encoded(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _scan(
    view: memoryview,
    at: int,
    end: int,
    kind: str,
    out: list[bytes | memoryview],
    regions: list[tuple[int, int]],
    depth: int,
) -> None:
    """Append the message at [at, end) to `out`, with large raw data replaced by references."""
    if depth > 4 * MAX_DEPTH:
        raise _Malformed(f"graphs are nested more than {MAX_DEPTH} deep")
    kept = at  # everything before has been appended
    while at < end:
        start = at
        tag, at = _varint(view, at, end)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            _, at = _varint(view, at, end)
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        elif wire == 2:
            length, at = _varint(view, at, end)
            if length > end - at:
                raise _Malformed(f"field {number} of a {kind} at byte {start} has {length} bytes, {end - at} are left")
            inner = _INSIDE.get((kind, number))
            is_raw = kind == "tensor" and number == _RAW_DATA
            if length > KEEP and (is_raw or inner is not None):
                out.append(view[kept:start].tobytes())
                if inner is None:
                    body: list[bytes | memoryview] = [_NONCE + len(regions).to_bytes(8, "little")]
                    regions.append((at, length))
                else:
                    body = []
                    _scan(view, at, at + length, inner, body, regions, depth + 1)
                out.append(_encoded(tag))
                out.append(_encoded(sum(map(len, body))))
                out.extend(body)
                kept = at + length
            at += length
        else:
            raise _Malformed(f"field {number} of a {kind} at byte {start} has wire type {wire}")
        if at > end:
            raise _Malformed(f"it ends inside field {number} of a {kind} at byte {start}")
    if kept < end:
        out.append(view[kept:end].tobytes())
