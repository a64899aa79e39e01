"""Safetensors files: a checked reader of their header and a streaming writer.  It knows nothing of models.

A file is a little-endian u64 length N, N bytes of JSON that name each tensor's dtype, shape and byte range, and the
bytes of the tensors without a gap (https://github.com/huggingface/safetensors, "Format").  Files are hostile until
checked: every FormatError names the file and the field, and nothing larger than the header is read or allocated.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

from .errors import FormatError, IrcError

ITEM_SIZES: Final = {
    "BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1, "U16": 2, "I16": 2, "F16": 2, "BF16": 2,
    "U32": 4, "I32": 4, "F32": 4, "U64": 8, "I64": 8, "F64": 8, "C64": 8,
}  # fmt: skip
"""Bytes an element, by safetensors' name of the dtype; those with parts of bytes are left out."""

MAX_HEADER: Final = 100_000_000
"""Bytes of JSON; the limit that the format's own library has."""
MAX_ENTRY: Final = 8192
"""Characters of one tensor's entry: far more than 64 sizes and two offsets take."""
MAX_METADATA: Final = 1 << 20
MAX_RANK: Final = 64
"""NumPy's limit."""
ALIGNMENT: Final = 64
"""XLA takes arrays that start at a multiple of this without copying them."""

Buffer: TypeAlias = bytes | memoryview

_SPACE = " \t\r\n"


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a file.  `offset` counts from the start of the file."""

    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def read_header(file: BinaryIO, path: Path, size: int) -> tuple[dict[str, Entry], dict[str, str]]:
    """The tensors and the metadata of an open file of `size` bytes; FormatError unless every byte is accounted for."""
    if size < 8:
        raise FormatError(f"{path}: {size} bytes; a safetensors file starts with 8 bytes that give the header's length")
    file.seek(0)
    length = int.from_bytes(file.read(8), "little")
    if length > MAX_HEADER:
        raise FormatError(f"{path}: header length {length} is more than the allowed {MAX_HEADER}")
    if length > size - 8:
        raise FormatError(f"{path}: header length {length} is more than the {size - 8} bytes that follow it")
    try:
        text = file.read(length).decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: the header is not UTF-8: byte {error.start} of it") from None
    entries: dict[str, Entry] = {}
    metadata: dict[str, str] | None = None
    for name, value in _members(text, path):
        if name == "__metadata__":
            if metadata is not None:
                raise FormatError(f"{path}: the header has __metadata__ twice")
            metadata = _metadata(value, path)
        elif name in entries:
            raise FormatError(f"{path}: the header has the tensor {name!r} twice")
        else:
            entries[name] = _entry(name, value, path, 8 + length)
    _check_ranges(entries, path, 8 + length, size)
    return entries, metadata or {}


def _members(text: str, path: Path) -> Iterator[tuple[str, Any]]:
    """The members of the header's one object.  Each is decoded from a short piece, so that memory stays bounded."""
    decoder = json.JSONDecoder(object_pairs_hook=lambda pairs: _distinct(pairs, path))
    at = _expect(text, 0, "{", path)
    if text[at : at + 1] == "}":
        at += 1
    else:
        while True:
            if text[at : at + 1] != '"':
                raise FormatError(f"{path}: header, character {at}: expected a tensor's name in quotation marks")
            name, at = _decode(decoder, text, at, path)
            at = _expect(text, at, ":", path)
            piece = text[at : at + (MAX_METADATA if name == "__metadata__" else MAX_ENTRY)]
            value, used = _decode(decoder, piece, 0, path, at, name)
            yield name, value
            at = _skip(text, at + used)
            if text[at : at + 1] == "}":
                at += 1
                break
            at = _expect(text, at, ",", path)
    if text[at:].strip(" "):
        raise FormatError(f"{path}: header, character {at}: only spaces may follow the object")


def _decode(
    decoder: json.JSONDecoder, text: str, at: int, path: Path, base: int = 0, name: str = ""
) -> tuple[Any, int]:
    try:
        return decoder.raw_decode(text, at)
    except (ValueError, RecursionError) as error:
        where = f" (entry {name!r}, of at most {len(text)} characters)" if name else ""
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise FormatError(f"{path}: header, character {base + at}: no valid JSON{where}: {reason}") from None


def _distinct(pairs: list[tuple[str, Any]], path: Path) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        names = [name for name, _ in pairs]
        raise FormatError(
            f"{path}: header: the key {next(n for n in names if names.count(n) > 1)!r} stands twice in one object"
        )
    return out


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _SPACE:
        at += 1
    return at


def _expect(text: str, at: int, token: str, path: Path) -> int:
    """The position of what follows `token`; the format wants { as the very first character."""
    at = _skip(text, at) if token != "{" else at
    if text[at : at + 1] != token:
        raise FormatError(f"{path}: header, character {at}: expected {token!r}, found {text[at : at + 1]!r}")
    return _skip(text, at + 1)


def _metadata(value: Any, path: Path) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise FormatError(f"{path}: __metadata__ must be an object of strings")
    return value


def _entry(name: str, value: Any, path: Path, start: int) -> Entry:
    what = f"{path}: tensor {name!r}"
    if not isinstance(value, dict) or set(value) != {"dtype", "shape", "data_offsets"}:
        raise FormatError(f"{what} must be an object with dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in ITEM_SIZES:
        raise FormatError(f"{what}: unknown dtype {dtype!r}; expected one of {', '.join(ITEM_SIZES)}")
    if not _are_sizes(shape) or len(shape) > MAX_RANK:
        raise FormatError(f"{what}: shape must be a list of at most {MAX_RANK} integers >= 0")
    if not _are_sizes(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise FormatError(f"{what}: data_offsets must be two integers, 0 <= begin <= end")
    if math.prod(n for n in shape if n) >= 1 << 60:
        raise FormatError(f"{what}: its shape has too many elements")
    nbytes = math.prod(shape) * ITEM_SIZES[dtype]
    if nbytes != offsets[1] - offsets[0]:
        raise FormatError(
            f"{what}: {dtype} of shape {shape} takes {nbytes} bytes, data_offsets span {offsets[1] - offsets[0]}"
        )
    return Entry(dtype, tuple(shape), start + offsets[0], nbytes)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 1 << 63 for n in value)


def _check_ranges(entries: dict[str, Entry], path: Path, start: int, size: int) -> None:
    """No overlap, no gap, no byte left over."""
    at = start
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].offset, item[1].nbytes)):
        if entry.offset != at:
            fault = "overlaps the one before it" if entry.offset < at else "leaves a gap before it"
            raise FormatError(
                f"{path}: data_offsets of tensor {name!r}: it {fault} (begins at {entry.offset}, not {at})"
            )
        at += entry.nbytes
    if at != size:
        raise FormatError(f"{path}: data_offsets: the tensors end at byte {at}, the file has {size} bytes")


@dataclass(frozen=True, slots=True)
class Tensor:
    """One tensor to be written: `chunks` yields its `nbytes` bytes piece by piece, when its turn comes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    chunks: Iterable[Buffer]


def write(path: Path, tensors: Iterable[Tensor], *, metadata: dict[str, str], padding: str) -> None:
    """Write a file whose tensors all start at multiples of 64 bytes, by padding tensors called `padding` + number.

    The bytes go to a temporary file in the same folder, which takes the name at the end: whatever fails, a file that
    was there before stays as it was.  IrcError if the system refuses.
    """
    target = path.resolve()
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")
    header, placed = _layout(tensors, metadata, padding)
    try:
        # Not a tempfile: the new file gets the permissions that the user's umask gives.
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        try:
            with open(descriptor, "wb", buffering=0) as file:
                _write_all(file, header)
                for tensor in placed:
                    _write_tensor(file, tensor, path)
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
        _sync_folder(target.parent)
    except OSError as error:
        raise IrcError(f"{path}: cannot be written: {error.strerror or error}") from error


def _layout(tensors: Iterable[Tensor], metadata: dict[str, str], padding: str) -> tuple[bytes, list[Tensor]]:
    table: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    placed: list[Tensor] = []
    at = pads = 0
    for tensor in tensors:
        if tensor.nbytes and at % ALIGNMENT:
            gap = -at % ALIGNMENT
            placed.append(Tensor(f"{padding}{pads}", "U8", (gap,), gap, (bytes(gap),)))
            pads += 1
            table[placed[-1].name] = {"dtype": "U8", "shape": [gap], "data_offsets": [at, at + gap]}
            at += gap
        if tensor.name in table:
            raise IrcError(f"two tensors are called {tensor.name!r}")
        placed.append(tensor)
        table[tensor.name] = {"dtype": tensor.dtype, "shape": [*tensor.shape], "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGNMENT)
    if len(text) > MAX_HEADER:
        raise IrcError(f"a header of {len(text)} bytes is more than the {MAX_HEADER} that readers allow")
    return len(text).to_bytes(8, "little") + text, placed


def _write_tensor(file: io.RawIOBase, tensor: Tensor, path: Path) -> None:
    written = 0
    for chunk in tensor.chunks:
        written += _write_all(file, chunk)
    if written != tensor.nbytes:
        raise IrcError(f"{path}: tensor {tensor.name!r} has {written} bytes, {tensor.nbytes} were announced")


def _write_all(file: io.RawIOBase, chunk: Buffer) -> int:
    view = memoryview(chunk).cast("B")
    done = 0
    while done < len(view):  # one call may write less: the system takes at most 2 GiB at a time
        done += file.write(view[done:]) or 0
    return len(view)


def _sync_folder(folder: Path) -> None:
    """Make the new name itself durable, where the system lets one open a folder."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
