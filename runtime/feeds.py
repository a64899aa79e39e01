"""Inputs for a run: from files, or seeded random arrays of the entry's types."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..ir import dims as sizes
from ..ir.binding import bind_dims
from ..ir.errors import FormatError, InputError, did_you_mean
from ..ir.types import TensorType
from .executable import Executable

_NOT_AN_ARCHIVE = (ValueError, EOFError, KeyError, zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError)
"""What a damaged or foreign archive raises, encryption and unknown compression included."""


def read_array(path: Path) -> np.ndarray[Any, np.dtype[Any]]:
    """The array of a .npy file; nothing is unpickled."""
    try:
        array: np.ndarray[Any, np.dtype[Any]] = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FormatError(f"{path}: not a .npy file of numbers: {error}") from None
    if not isinstance(array, np.ndarray):
        raise FormatError(f"{path}: expected one array (.npy), got an archive")
    return array


def read_archive(path: Path) -> dict[str, Any]:
    """The arrays of an .npz file by name; nothing is unpickled."""
    try:
        archive = np.load(path, allow_pickle=False)
        if isinstance(archive, np.ndarray):
            raise FormatError(f"{path}: expected an archive of arrays (.npz), got one array")
        with archive:
            arrays = {name: archive[name] for name in archive.files}
    except _NOT_AN_ARCHIVE as error:
        raise FormatError(f"{path}: not an .npz file of numbers: {error}") from None
    for name, array in arrays.items():
        if not isinstance(array, np.ndarray):  # what does not end in .npy comes as bytes
            raise FormatError(f"{path}: its member {name!r} is no .npy file")
    return arrays


def make_inputs(
    executable: Executable,
    arrays: Mapping[str, np.ndarray[Any, np.dtype[Any]]],
    shapes: Mapping[str, tuple[int, ...]],
    dims: Mapping[str, int],
    seed: int,
) -> list[Any]:
    """One array an input of the entry.  Those not in `arrays` are random; sizes come from `shapes`, `dims`, `arrays`.

    Floats are standard normal, integers uniform in [0, 10), bool fair coins.  InputError names a dim left unspecified.
    """
    names = list(executable.input_types)
    for name in [*arrays, *shapes]:
        if name not in names:
            raise InputError(f"@{executable.entry.name} has no input {name!r}{did_you_mean(name, names)}")
    given = [arrays[n].shape if n in arrays else shapes.get(n) for n in names]
    hidden = [None] * (len(executable.entry.inputs) - len(names))
    bound = bind_dims(executable.entry, [*given, *hidden], executable.named_dims(dims), partial=True)
    generator = np.random.default_rng(seed)
    out = []
    for name, value in zip(names, executable.entry.inputs, strict=False):
        if name in arrays:
            out.append(arrays[name])
            continue
        if not isinstance(value.type, TensorType) or value.type.dims is None:
            raise InputError(
                f"input {name!r} of type {value.type} cannot be made up; give it with --input {name}=FILE.npy"
            )
        shape = shapes.get(name)
        if shape is None:
            unknown = dict.fromkeys(s for d in value.type.dims for s in sizes.symbols(d) if s not in bound)
            if unknown:
                spelled = "x".join(str(d) for d in value.type.dims)
                raise InputError(
                    f"input {name!r} has type {value.type}; its dims {', '.join(unknown)} are unspecified: "
                    f"give --dim {next(iter(unknown))}=SIZE or --shape {name}={spelled}"
                )
            numbers = {k: v for k, v in bound.items() if isinstance(v, int)}
            shape = tuple(sizes.evaluate(d, numbers) for d in value.type.dims)
        out.append(random_array(generator, value.type, shape))
    return out


def random_array(
    generator: np.random.Generator, type_: TensorType, shape: tuple[int, ...]
) -> np.ndarray[Any, np.dtype[Any]]:
    """A random array of that element type; see `make_inputs`."""
    dtype = type_.dtype
    if dtype.is_bool:
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.is_integer:
        return generator.integers(0, min(10, 1 << (dtype.bits - 1)), shape).astype(dtype.numpy)
    if dtype.is_complex:
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype.numpy)
    if dtype.is_string:
        return np.array([f"s{i}" for i in generator.integers(0, 10, int(np.prod(shape)))], object).reshape(shape)
    return np.asarray(generator.standard_normal(shape)).astype(dtype.numpy)
