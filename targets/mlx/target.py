"""The MLX target: one shape-polymorphic Python module for all sizes, run by MLX."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import mlx.core as mx
import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.model import Constant, Model, Node
from ...ir.types import TensorType
from ...runtime.backend import Program
from ..base import Options, Refusal, Target
from . import program, types
from .emit import Emitted, dry_run, emit
from .lowering import load


@dataclass(frozen=True)
class MlxOptions(Options):
    """`compile`: mx.compile where no value is read on the host (auto: off on Linux, where each fused kernel costs a
    second of g++).  `device`: cpu or gpu (empty: MLX's default)."""

    compile: str = field(default="auto", metadata={"choices": ("auto", "on", "off")})
    device: str = field(default="", metadata={"choices": ("", "cpu", "gpu")})


class MlxTarget(Target):
    """See the module.  `options` is an `MlxOptions`."""

    name: ClassVar[str] = "mlx"
    options_class: ClassVar[type[Options]] = MlxOptions
    requires: ClassVar[tuple[str, ...]] = ("mlx",)
    ulps: ClassVar[Mapping[str, float]] = {"exponential": 4}
    options: MlxOptions

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        for name in ("compile", "device"):
            choices = MlxOptions.__dataclass_fields__[name].metadata["choices"]
            if (value := getattr(self.options, name)) not in choices:
                listed = ", ".join(map(repr, choices))
                raise IrcError(f"option {name} of target mlx must be one of {listed}, got {value!r}")
        if self.options.device == "gpu" and not mx.is_available(mx.gpu):
            raise IrcError("option device of target mlx is gpu, but MLX has no GPU here")

    @property
    def _is_gpu(self) -> bool:
        return self.options.device == "gpu" or (not self.options.device and mx.default_device() == mx.Device(mx.gpu))

    @property
    def _device(self) -> Any:
        """The device to enter for a call, None where it is MLX's default anyway."""
        if not self.options.device:
            return None
        wanted = mx.Device(mx.gpu if self.options.device == "gpu" else mx.cpu)
        return None if wanted == mx.default_device() else wanted

    @property
    def _compiles(self) -> bool:
        if self.options.compile != "auto":
            return self.options.compile == "on"
        return sys.platform != "linux" or self._is_gpu

    def claims(self, node: Node) -> str | None:
        """The rule itself is asked: it is run on a copy of the node that goes nowhere."""
        for value in (*node.operands, *node.results):
            if value is None:
                continue
            if not isinstance(value.type, TensorType):
                return f"MLX has no values of type {value.type}"
            if (why := types.refusal(value.type.dtype)) is not None:
                return why
            if value.type.dtype is dtypes.f64 and self._is_gpu:
                return "MLX computes f64 on the CPU only: use mlx{device=cpu}"
        if load().find(node.op.name) is None:
            return f"mlx has no lowering of {node.op.name}"
        try:
            dry_run(node)
        except Refusal as refusal:
            return str(refusal)
        return None

    def compile(self, model: Model, entry: str, state: dict[str, Any]) -> program.MlxProgram:
        return self._program(emit(model, entry), entry, model, state)

    def load(self, folder: Path, model: Model, entry: str, state: dict[str, Any]) -> program.MlxProgram:
        return self._program(program.load_emitted(folder, model), entry, model, state)

    def _program(self, emitted: Emitted, entry: str, model: Model, state: dict[str, Any]) -> program.MlxProgram:
        constants: dict[str, Constant] = emitted.weights
        return program.MlxProgram(emitted, entry, program.placed(model, constants, state), self._device, self._compiles)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return program.to_numpy(array)

    def to_device(self, array: Any) -> Any:
        with contextlib.nullcontext() if self._device is None else mx.stream(self._device):
            return program.to_device(array, DType.from_numpy(array.dtype))

    def wait(self, arrays: Sequence[Any]) -> None:
        mx.eval([a for a in arrays if isinstance(a, mx.array)])

    def memory(self, program_: Program, call: Callable[[], object]) -> int | None:
        mx.reset_peak_memory()
        call()
        return int(mx.get_peak_memory())

    def dtype_of(self, array: Any) -> DType | None:
        return program.dtype_of(array)

    def versions(self) -> dict[str, str]:
        return {"mlx": mx.__version__}

    def devices(self) -> Sequence[str]:
        return tuple(n for n in ("cpu", "gpu") if mx.is_available(getattr(mx, n)))
