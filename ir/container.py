"""The container `model.ir`: a model as one safetensors file, its text in tensor `irc.module`, its constants beside it.

Constants start at multiples of 64 bytes, so that XLA and NumPy use the mapped file as it is.  A constant keeps its
dtype only if all common readers take that (one F64 or F8 tensor makes `mx.load` reject a whole file); every other one
is U8, and its type stands in the text only.  What the text spells itself (inline and uniform constants) has no tensor.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np

from . import dtypes, safetensors
from .data import Data, DataSource, MappedData, MappedFile
from .dtypes import DType
from .errors import FormatError, IrcError
from .model import Model
from .types import TensorType

MODULE: Final = "irc.module"
PADDING: Final = "irc.pad."
ESCAPE: Final = "irc.constant."
"""Stands before the names of constants that would meet reserved ones."""
VERSION_KEY: Final = "irc.container"
VERSION: Final = "1"

TEXT: Final = b"irc "
"""How the text form begins, unless with a comment."""

NATIVE: Final[dict[DType, str]] = {
    dtypes.f32: "F32", dtypes.f16: "F16", dtypes.bf16: "BF16", dtypes.bool_: "BOOL", dtypes.c64: "C64",
    dtypes.i64: "I64", dtypes.i32: "I32", dtypes.i16: "I16", dtypes.i8: "I8",
    dtypes.u64: "U64", dtypes.u32: "U32", dtypes.u16: "U16", dtypes.u8: "U8",
}  # fmt: skip
"""Element types that a container stores under their own safetensors dtype."""


def tensor_key(name: str) -> str:
    """The key of the tensor that holds the constant `name`; distinct names have distinct keys."""
    return ESCAPE + name if name.startswith("irc.") or name == "__metadata__" else name


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model, constant by constant, without holding a copy of any.  The same model gives the same bytes.

    The file takes its place only when it is complete and on the disk: if anything fails, IrcError says what, and a file
    that was there before stays.
    """
    from .text import print_model

    where = Path(path)
    text = print_model(model, locations=True).encode()
    module = safetensors.Tensor(MODULE, "U8", (len(text),), len(text), (memoryview(text),))
    tensors = [module, *(stored(name, data) for name, data in stored_constants(model))]
    safetensors.write(where, tensors, metadata={VERSION_KEY: VERSION}, padding=PADDING)


def stored_constants(model: Model) -> Iterator[tuple[str, Data]]:
    """The constants that the text refers to by name and does not spell, in order."""
    from .text.printer import is_in_text

    for name, constant in model.constants.items():
        if constant.data is not None and not is_in_text(constant):
            yield name, constant.data


def stored(name: str, data: Data) -> safetensors.Tensor:
    """A constant as a tensor of the file."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise IrcError(f"the constant {name!r} cannot be saved: its name is not valid Unicode; rename it") from None
    native = NATIVE.get(data.dtype)
    nbytes = data.stored_bytes
    shape = data.shape if native else (nbytes,)
    return safetensors.Tensor(tensor_key(name), native or "U8", shape, nbytes, _canonical_chunks(data))


def _canonical_chunks(data: Data) -> Iterator[memoryview]:
    """The bytes of a constant.  Bits that no element of a narrow type has are dropped: readers reject them."""
    if data.dtype.bits >= 8 or data.dtype.is_string:
        yield from data.chunks()
        return
    for chunk in data.chunks():
        elements = np.frombuffer(chunk, np.uint8)
        narrow = elements != 0 if data.dtype.is_bool else elements & ((1 << data.dtype.bits) - 1)
        yield narrow.view(np.uint8).data


class Tensors(DataSource):
    """The constants of an open container by name.  `typed` gives one the type that the text states.

    All share one mapping of the file; nothing of their contents is read before someone asks for it.
    """

    def __init__(self, path: Path, entries: Mapping[str, safetensors.Entry], file: MappedFile) -> None:
        self.path = path
        self._entries = {_name(key): e for key, e in entries.items() if key != MODULE and not key.startswith(PADDING)}
        self._file = file

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __getitem__(self, name: str) -> Data:
        """The constant under the type that the file itself states (U8 for those that are stored as bytes)."""
        entry = self._entries[name]
        dtype = next((d for d, native in NATIVE.items() if native == entry.dtype), None)
        if dtype is None:
            raise FormatError(
                f"{self.path}: tensor {tensor_key(name)!r}: a container has no tensors of dtype {entry.dtype}"
            )
        return MappedData(self.path, entry.offset, dtype, entry.shape, file=self._file)

    def typed(self, name: str, type_: TensorType) -> Data:
        """The constant under its type; FormatError if the tensor has another dtype, shape or length."""
        entry = self._entries[name]
        what = f"{self.path}: tensor {tensor_key(name)!r}"
        native = NATIVE.get(type_.dtype)
        shape = tuple(d for d in type_.shape if isinstance(d, int))
        if len(shape) != len(type_.shape):
            raise FormatError(f"{what}: a constant cannot have the symbolic type {type_}")
        if entry.dtype != (native or "U8"):
            raise FormatError(
                f"{what}: the text says {type_}, so its dtype must be {native or 'U8'}, not {entry.dtype}"
            )
        if native is None and len(entry.shape) != 1:
            raise FormatError(
                f"{what}: the text says {type_}, so it must be a vector of bytes, not of shape {list(entry.shape)}"
            )
        if native is not None and entry.shape != shape:
            raise FormatError(
                f"{what}: the text says {type_}, so its shape must be {list(shape)}, not {list(entry.shape)}"
            )
        data = MappedData(self.path, entry.offset, type_.dtype, shape, length=entry.nbytes, file=self._file)
        if native is None and not type_.dtype.is_string and data.nbytes != entry.nbytes:
            raise FormatError(f"{what}: the text says {type_}, which takes {data.nbytes} bytes, not {entry.nbytes}")
        return data


def _name(key: str) -> str:
    return key.removeprefix(ESCAPE)


def load(path: str | os.PathLike[str]) -> Model:
    """Read a container; constants stay in the file until used.  FormatError names the file and what is wrong.

    A file that begins as the text form does is read as that (reproducers, what `irc print` prints): no container can,
    because its first eight bytes would be the length of an impossible header.
    """
    where = Path(path)
    try:
        if not stat.S_ISREG(os.stat(where).st_mode):  # opening a pipe would wait for its writer
            raise FormatError(f"{where}: cannot be read: it is no regular file")
        with open(where, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if file.peek(len(TEXT))[: len(TEXT)].startswith((TEXT, b"//")):
                return _from_text(file.read(safetensors.MAX_HEADER + 1), where)
            entries, metadata = safetensors.read_header(file, where, size)
            mapped = MappedFile(where, file)
    except OSError as error:
        raise FormatError(f"{where}: cannot be read: {error.strerror or error}") from error
    if mapped.size != size:
        raise FormatError(f"{where}: the file changed from {size} to {mapped.size} bytes while it was read")
    return _model(where, entries, metadata, mapped)


def _from_text(contents: bytes, path: Path) -> Model:
    from .text import parse_model

    if len(contents) > safetensors.MAX_HEADER:
        raise FormatError(f"{path}: the text is longer than the allowed {safetensors.MAX_HEADER} bytes")
    try:
        return parse_model(contents.decode(), filename=str(path))
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: the text is not valid UTF-8: {error.reason} at byte {error.start}") from None


def _model(
    path: Path, entries: Mapping[str, safetensors.Entry], metadata: Mapping[str, str], file: MappedFile
) -> Model:
    from .text import parse_model

    if (version := metadata.get(VERSION_KEY, VERSION)) != VERSION:
        raise FormatError(f"{path}: container version {version!r} is not known; this irc reads version {VERSION}")
    module = entries.get(MODULE)
    if module is None:
        raise FormatError(f"{path}: it has no tensor {MODULE}, so it is a safetensors file but not a model of irc")
    if module.dtype != "U8" or len(module.shape) != 1:
        raise FormatError(
            f"{path}: tensor {MODULE} must be a vector of U8, got {module.dtype} of shape {list(module.shape)}"
        )
    for key in entries:
        if key.startswith("irc.") and key != MODULE and not key.startswith((PADDING, ESCAPE)):
            raise FormatError(
                f"{path}: tensor {key!r}: names that start with irc. are reserved, and this one has no meaning"
            )
        if key.startswith(ESCAPE) and tensor_key(_name(key)) != key:
            raise FormatError(f"{path}: tensor {key!r}: {_name(key)!r} needs no escape")
    try:
        text = file.bytes(module.offset, module.nbytes).tobytes().decode()
    except UnicodeDecodeError as error:
        raise FormatError(f"{path}: tensor {MODULE}: the text is not UTF-8 at byte {error.start}") from None
    file.release(module.offset, module.nbytes)
    tensors = Tensors(path, entries, file)
    model = parse_model(text, filename=str(path), data=tensors)
    if unused := [name for name in tensors if name not in model.constants]:
        raise FormatError(f"{path}: tensor {tensor_key(unused[0])!r}: the text declares no constant {unused[0]!r}")
    return model
