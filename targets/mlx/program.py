"""A program of the MLX target: emitted Python as a module, with its weights on the device."""

from __future__ import annotations

import contextlib
import itertools
import json
import linecache
import types as python_types
import weakref
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.errors import FormatError, IrcError
from ...ir.model import Constant, Model
from ...ir.reference import Evaluator
from . import types
from .context import held_as
from .emit import Emitted

MODULE, MANIFEST = "main.py", "program.json"
EMPTY_AXIS = "an axis of 0 elements has none to take"
"""What the recipe `_some` raises."""
_MX: dict[DType, Any] = {d: getattr(mx, n) for d, n in types.NATIVE.items()}
_FROM_MX = {v: k for k, v in _MX.items()}
_numbers = itertools.count()


def dtype_of(array: Any) -> DType | None:
    """Element type of an MLX array, None for anything else."""
    return _FROM_MX[array.dtype] if isinstance(array, mx.array) else None


def to_device(array: Any, dtype: DType) -> Any:
    """An MLX array with a copy of a NumPy array of element type `dtype`."""
    held = held_as(array, dtype)
    return mx.array(held, dtype=_MX[types.carrier(dtype)])


def to_numpy(array: Any, dtype: DType | None = None) -> np.ndarray[Any, Any]:
    """An owned NumPy array of element type `dtype` (the array's own by default)."""
    dtype = dtype if dtype is not None else _FROM_MX[array.dtype]
    if dtype is dtypes.bf16:
        return np.array(array.view(mx.uint16)).view(dtype.numpy)
    out = np.array(array)
    if types.is_code(dtype):
        return out.view(dtype.numpy)
    return out.astype(dtype.numpy, copy=False)


def run_module(text: str, label: str) -> Any:
    """The emitted text as a module of its own; tracebacks show its lines."""
    filename = f"<irc mlx {label} #{next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    module = python_types.ModuleType(f"irc_mlx_{identifier_of(label)}")
    module.__file__ = filename
    exec(compile(text, filename, "exec"), module.__dict__)  # our own emitted text
    weakref.finalize(module, linecache.cache.pop, filename, None)
    return module


def identifier_of(label: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in label)


class MlxProgram:
    """One entry of a model as Python code, for every size."""

    def __init__(
        self,
        emitted: Emitted,
        entry: str,
        weights: Mapping[str, Any],
        place: AbstractContextManager[Any] | None,
        compiled: bool,
    ) -> None:
        self.source = emitted.text
        self.module = run_module(emitted.text, entry)
        self._emitted = emitted
        self._entry = entry
        self._device = place
        with self.device():
            held = dict(weights)
            if hasattr(self.module, "prepare"):
                held = self.module.prepare(held)
            mx.eval(list(held.values()))
        main = self.module.main
        self._call = (lambda *xs: main(*xs, held)) if emitted.takes_weights else main
        if compiled and emitted.is_straight:
            self._call = mx.compile(self._call)

    def device(self) -> AbstractContextManager[Any]:
        """Inside it, work goes to the program's device."""
        return contextlib.nullcontext() if self._device is None else mx.stream(self._device)

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        """See `runtime.backend.Program`."""
        with self.device():
            arrays = [
                a if isinstance(a, mx.array) else to_device(a, d)
                for a, d in zip(arguments, self._emitted.inputs, strict=True)
            ]
            try:
                out = self._call(*arrays)
            except RuntimeError as error:
                if str(error) in (*self._emitted.traps, EMPTY_AXIS):
                    raise IrcError(str(error)) from None
                raise
            results = list(out) if isinstance(out, tuple) else [out]
            mx.eval(results)
        if as_numpy:
            return [to_numpy(r, d) for r, d in zip(results, self._emitted.outputs, strict=True)]
        return results

    def save(self, folder: Path) -> None:
        """Write the module and what irc must know to run it again.  The weights are those of the artifact's model."""
        e = self._emitted
        manifest = {
            "inputs": [d.name for d in e.inputs],
            "outputs": [d.name for d in e.outputs],
            "weights": list(e.weights),
            "takes_weights": e.takes_weights,
            "is_straight": e.is_straight,
            "traps": e.traps,
        }
        (folder / MODULE).write_text(self.source)
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=1, sort_keys=True) + "\n")


def load_emitted(folder: Path, model: Model) -> Emitted:
    """What `MlxProgram.save` wrote; FormatError says what is wrong with it."""
    try:
        text = (folder / MODULE).read_text()
        m = json.loads((folder / MANIFEST).read_text())
        missing = [n for n in m["weights"] if n not in model.constants]
        if missing:
            raise FormatError(f"{folder / MANIFEST}: the model has no constant {missing[0]!r}")
        return Emitted(
            text, {n: model.constants[n] for n in m["weights"]}, bool(m["takes_weights"]),
            [DType.of(d) for d in m["inputs"]], [DType.of(d) for d in m["outputs"]], bool(m["is_straight"]),
            list(m["traps"]),
        )  # fmt: skip
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{folder / MANIFEST}: not a program of the MLX target: {error}") from error


def placed(model: Model, constants: Mapping[str, Constant], state: dict[str, Any]) -> dict[str, Any]:
    """The constants as MLX arrays, derived ones evaluated; each is put on the device once for an executable."""
    known: dict[Any, Any] = state.setdefault("mlx.placed", {})
    evaluator = Evaluator(model)
    out = {}
    for name, constant in constants.items():
        if (name, constant.type) not in known:
            known[name, constant.type] = to_device(evaluator.constant(constant), constant.dtype)
        out[name] = known[name, constant.type]
    mx.eval(list(out.values()))
    return out
