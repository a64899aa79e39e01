"""The XLA target: claims by the lowering table, emits StableHLO for one set of sizes, compiles it with PJRT."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.model import Model, Node
from ...ir.types import TensorType
from ...runtime.backend import Program
from ...runtime.disk_cache import DiskCache, key_of
from ..base import Options, Target, refuse
from . import pjrt, program, types, weights
from .emit import Emitted, emit
from .lowering import load


@dataclass(frozen=True)
class XlaOptions(Options):
    """`platform`: cpu, cuda, tpu, ... (empty: jax's default).  `device`: number of the device on it.

    `optimization_level`: XLA's, 0 to 3 (-1: its default); 0 halves the time to compile and costs about half the speed.
    """

    platform: str = ""
    device: int = 0
    optimization_level: int = -1


class _Claims:
    """The context of `when` rules, which look at facts only."""

    def refuse(self, why: str) -> None:
        refuse(why)


class XlaTarget(Target):
    """See the module.  `options` is an `XlaOptions`."""

    name = "xla"
    options_class = XlaOptions
    per_shape = True
    requires = ("jax", "jaxlib")
    options: XlaOptions

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        if not -1 <= self.options.optimization_level <= 3:
            raise IrcError(
                f"option optimization_level of target xla must be -1 to 3, got {self.options.optimization_level}"
            )

    @cached_property
    def device(self) -> pjrt.Device:
        """Opened at the first compilation; claims need none."""
        return pjrt.device(self.options.platform, self.options.device)

    @property
    def _overrides(self) -> list[tuple[str, Any]]:
        level = self.options.optimization_level
        return [] if level < 0 else [("xla_backend_optimization_level", level)]

    def claims(self, node: Node) -> str | None:
        for value in (*node.operands, *node.results):
            if value is None:
                continue
            if not isinstance(value.type, TensorType):
                return f"XLA has no values of type {value.type}"
            if (why := types.refusal(value.type.dtype)) is not None:
                return why
        return self.claim_by_table(load(), node, _Claims())

    def compile(self, model: Model, entry: str, state: dict[str, Any]) -> program.XlaProgram:
        emitted = emit(model, entry, self.device.platform)
        executable, code, is_restored = self._compiled(emitted, state.get("cache"))
        contents = weights.Contents(model, state)
        placed = [
            program.StoredWeight(c.name or "constant", p, weights.place_constant(self.device, contents, c, p, state))
            for c, p in emitted.weights
        ]
        return program.XlaProgram(
            self.device,
            emitted.text,
            executable,
            emitted.inputs,
            emitted.outputs,
            placed,
            emitted.traps,
            self._overrides,
            state,
            code,
            is_restored,
        )

    def _compiled(self, emitted: Emitted, cache: DiskCache | None) -> tuple[Any, bytes | None, bool]:
        """A loaded executable, its code if that was written down, and whether it came from the cache."""
        if cache is None:
            return self.device.compile(emitted.bytecode, self._overrides), None, False
        settings = [*pjrt.ALWAYS, *self._overrides, ("XLA_FLAGS", os.environ.get("XLA_FLAGS", ""))]
        key = key_of({"on": self.spec, "xla": self.device.fingerprint(), "settings": settings, "module": emitted.text})
        code = cache.get(key)
        if code is not None:
            try:
                return self.device.restore(code, self._overrides), code, True
            except IrcError:  # code that this XLA cannot load after all is compiled again
                pass
        executable = self.device.compile(emitted.bytecode, self._overrides)
        code = self.device.serialize(executable)
        if code:
            about = {"target": self.spec, "inputs": " ".join(f"{d}{list(s)}" for d, s in emitted.inputs)}
            cache.put(key, code, {**about, "jaxlib": self.device.fingerprint()["jaxlib"]})
        return executable, code, False

    def load(self, folder: Path, model: Model, entry: str, state: dict[str, Any]) -> program.XlaProgram:
        """Compiled code of another jaxlib, platform or CPU is not loaded; its module is compiled here instead."""
        return program.load(self.device, folder, model, self._overrides, state)

    def to_numpy(self, array: Any) -> np.ndarray[Any, Any]:
        return np.array(array)

    def to_device(self, array: Any) -> Any:
        return self.device.put(array, DType.from_numpy(array.dtype), alias=False)

    def wait(self, arrays: Sequence[Any]) -> None:
        for array in arrays:
            if pjrt.is_array(array):
                array.block_until_ready()

    def memory(self, program_: Program, call: Callable[[], object]) -> int | None:
        return pjrt.memory(program_.executable) if isinstance(program_, program.XlaProgram) else None

    def dtype_of(self, array: Any) -> DType | None:
        return DType.from_numpy(array.dtype) if pjrt.is_array(array) else None

    def versions(self) -> dict[str, str]:
        return self.device.fingerprint()

    def devices(self) -> Sequence[str]:
        return pjrt.devices()
