"""A compiled program of the XLA target: runs, prints and saves itself.  Compiling is the target's work."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...ir import dtypes
from ...ir.data import MappedData
from ...ir.dtypes import DType
from ...ir.errors import FormatError, IrcError
from ...ir.model import Model
from ...runtime.artifact import kept_constants
from .pjrt import Device, RuntimeFailure, Shape, Signature
from .weights import Contents, Placed, place, place_constant

MODULE, COMPILED, MANIFEST, WEIGHTS = "module.mlir", "program.bin", "program.json", "weights.bin"
ALIGNMENT = 64
"""Bytes; XLA reads mapped weights in place if they start at a multiple of it."""


@dataclass(frozen=True)
class StoredWeight:
    """A constant of the model as the program takes it: by name, transposed or not, on the device."""

    name: str
    permutation: tuple[int, ...] | None
    placed: Placed


class XlaProgram:
    """StableHLO compiled for one device.  `weights` are passed behind the inputs.

    `compiled` is the code where it is at hand: XLA cannot serialize a restored executable again.  `is_restored`: it
    came from the disk cache.
    """

    def __init__(
        self,
        device: Device,
        source: str,
        executable: Any,
        inputs: Signature,
        outputs: Signature,
        weights: Sequence[StoredWeight],
        traps: Sequence[str],
        overrides: Sequence[tuple[str, Any]],
        state: dict[str, Any],
        compiled: bytes | None = None,
        is_restored: bool = False,
    ) -> None:
        self.source = source
        self.is_restored = is_restored
        self._compiled = compiled
        self.device = device
        self.executable = executable
        self.inputs = inputs
        self.outputs = outputs
        self.weights = list(weights)
        self.traps = list(traps)
        self._overrides = list(overrides)
        self._state = state
        error: Signature = [(dtypes.i32, ())] if traps else []
        buffers = [w.placed.buffer for w in self.weights]
        self._run = device.runner(executable, inputs, [*outputs, *error], buffers)
        self._synchronous = bool(outputs or traps)

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        """See `runtime.backend.Program`."""
        # Copying the results waits for the program, so until then it may read the caller's NumPy memory in place.
        try:
            results = self._run(arguments, as_numpy and self._synchronous)
            if self.traps:
                results = list(results)
                if number := int(results.pop()):
                    raise IrcError(self.traps[number - 1])
            return [np.array(r) for r in results] if as_numpy else results
        except RuntimeFailure as error:
            raise IrcError(f"XLA cannot run this program: {error}") from error

    def save(self, folder: Path) -> None:
        """Write the module, the compiled code, a manifest, and the weights that the executable's model has not."""
        compiled = self._compiled or self.device.serialize(self.executable)
        (folder / MODULE).write_text(self.source)
        (folder / COMPILED).write_bytes(compiled)
        model: Model | None = self._state.get("model")
        known = None if model is None else Contents(model, self._state)
        kept = set() if model is None else kept_constants(model)
        rows = []
        with (folder / WEIGHTS).open("wb") as out:
            for weight in self.weights:
                placed, permutation = weight.placed, weight.permutation
                row: dict[str, Any] = {
                    "name": weight.name,
                    "dtype": placed.data.dtype.name,
                    "shape": list(placed.data.shape),
                    "permutation": None if permutation is None else list(permutation),
                }
                constant = None if model is None or weight.name not in kept else model.constants[weight.name]
                if constant is None or known is None or (known.key(constant), permutation) != placed.key:
                    out.write(b"\0" * (-out.tell() % ALIGNMENT))
                    row["offset"] = out.tell()
                    out.write(np.ascontiguousarray(placed.data.numpy()).reshape(-1).view(np.uint8).data)
                rows.append(row)
        manifest = {
            "fingerprint": self.device.fingerprint(),
            "overrides": [list(o) for o in self._overrides],
            "module_sha256": hashlib.sha256(self.source.encode()).hexdigest(),
            "compiled_sha256": hashlib.sha256(compiled).hexdigest(),
            "inputs": _signature_rows(self.inputs),
            "outputs": _signature_rows(self.outputs),
            "weights": rows,
            "traps": self.traps,
        }
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def load(
    device: Device, folder: Path, model: Model, overrides: Sequence[tuple[str, Any]], state: dict[str, Any]
) -> XlaProgram:
    """What `XlaProgram.save` wrote.  Where there is no code, or code compiled elsewhere, its module is compiled."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text())
        source = (folder / MODULE).read_text()
        inputs, outputs = _signature(manifest["inputs"]), _signature(manifest["outputs"])
        rows, traps = manifest["weights"], [str(t) for t in manifest["traps"]]
        wanted = (manifest["module_sha256"], manifest["compiled_sha256"])
        fingerprint, saved_overrides = manifest["fingerprint"], [tuple(o) for o in manifest["overrides"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{folder / MANIFEST}: not a compiled XLA program: {error}") from error
    if hashlib.sha256(source.encode()).hexdigest() != wanted[0]:
        raise FormatError(f"{folder / MODULE}: the checksum differs from the manifest's; the artifact is damaged")
    weights = [_stored_weight(device, folder, r, model, state) for r in rows]
    executable, compiled = None, None
    if not differences(fingerprint, device.fingerprint()) and saved_overrides == list(overrides):
        compiled = (folder / COMPILED).read_bytes() if (folder / COMPILED).exists() else b""
        if hashlib.sha256(compiled).hexdigest() != wanted[1]:
            raise FormatError(f"{folder / COMPILED}: the checksum differs from the manifest's; the artifact is damaged")
        executable = device.restore(compiled, overrides) if compiled else None
    if executable is None:
        executable = device.compile(source, overrides)
    return XlaProgram(device, source, executable, inputs, outputs, weights, traps, overrides, state, compiled)


def differences(saved: dict[str, str], here: dict[str, str]) -> list[str]:
    """What keeps compiled code from running here, one line each."""
    return [f"{k}: compiled for {saved.get(k)}, here {v}" for k, v in here.items() if saved.get(k) != v]


def _stored_weight(
    device: Device, folder: Path, row: dict[str, Any], model: Model, state: dict[str, Any]
) -> StoredWeight:
    dtype, shape = DType.of(row["dtype"]), tuple(int(n) for n in row["shape"])
    permutation = None if row["permutation"] is None else tuple(int(n) for n in row["permutation"])
    name = str(row["name"])
    if "offset" in row:
        mapped = MappedData(folder / WEIGHTS, int(row["offset"]), dtype, shape)
        return StoredWeight(name, permutation, place(device, (str(folder), row["offset"]), mapped, state))
    constant = model.constants.get(name)
    have = None if constant is None or constant.data is None else constant.data
    if constant is None or have is None or have.dtype is not dtype or _permuted(have.shape, permutation) != shape:
        raise FormatError(f"{folder / MANIFEST}: the model has no constant {name!r} that gives {dtype}{list(shape)}")
    contents = Contents(model, state)
    return StoredWeight(name, permutation, place_constant(device, contents, constant, permutation, state))


def _permuted(shape: Shape, permutation: tuple[int, ...] | None) -> Shape:
    return shape if permutation is None else tuple(shape[p] for p in permutation if p < len(shape))


def _signature_rows(signature: Signature) -> list[list[Any]]:
    return [[d.name, list(s)] for d, s in signature]


def _signature(rows: list[Any]) -> Signature:
    return [(DType.of(d), tuple(int(n) for n in s)) for d, s in rows]
