"""All calls below jax's public interface: compile, place arrays, run, serialize.  No other file touches jaxlib.

Tested with jax 0.10.2 (Python 3.11) and written for the calls that 0.12.0 has too.  Nothing here changes jax's
configuration: 64-bit types are asked for call by call.
"""

from __future__ import annotations

import hashlib
import platform as host
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jaxlib.version
import numpy as np
from jax.extend import backend as jax_backend
from jax.sharding import SingleDeviceSharding
from jaxlib import _jax, xla_client

from ...ir.dtypes import DType
from ...ir.errors import IrcError

TESTED = ("0.10.2",)
"""Versions of jax that the tests were run with."""

ALWAYS = [("xla_allow_excess_precision", False)]
"""Options of every compilation: bf16 and f16 values are rounded where the program says so, not where a fusion ends."""

RuntimeFailure = jax.errors.JaxRuntimeError
"""What XLA raises when a program fails."""

Shape = tuple[int, ...]
Signature = Sequence[tuple[DType, Shape]]
Runner = Callable[[Sequence[Any], bool], Sequence[Any]]


class Device:
    """One device of a platform, and what compiling and running for it takes."""

    def __init__(self, platform: str, index: int) -> None:
        try:
            self.client = jax_backend.get_backend(platform or None)
        except RuntimeError as error:
            raise IrcError(f"XLA has no platform {platform!r} here: {error}") from error
        devices = self.client.local_devices()
        if not 0 <= index < len(devices):
            raise IrcError(
                f"XLA's platform {self.client.platform} has {len(devices)} devices, there is no number {index}"
            )
        self.device = devices[index]
        self.platform: str = "cpu" if self.device.platform == "cpu" else self.client.platform
        self.sharding = SingleDeviceSharding(self.device)
        self._list = xla_client.DeviceList((self.device,))

    def put(self, array: np.ndarray[Any, Any], dtype: DType, *, alias: bool) -> Any:
        """A device array.  With `alias` it may share the memory of a host array, which must then never change."""
        aval = jax.core.ShapedArray(array.shape, dtype.numpy)
        return _jax.batched_device_put(aval, self.sharding, [array], [self.device], True, not alias, enable_x64=True)

    def move(self, array: Any) -> Any:
        """A jax array on this device; one that is there already is returned as it is."""
        if array.sharding == self.sharding:
            return array
        return jax.device_put(array, self.sharding)

    def options(self, overrides: Sequence[tuple[str, Any]]) -> Any:
        options = xla_client.CompileOptions()
        options.env_option_overrides = [*ALWAYS, *overrides]
        return options

    def compile(self, module: bytes | str, overrides: Sequence[tuple[str, Any]]) -> Any:
        """A loaded executable from StableHLO text or bytecode; IrcError with XLA's message if it refuses."""
        _register_kernels(self.platform)
        try:
            return self.client.compile_and_load(module, self._list, self.options(overrides))
        except RuntimeFailure as error:
            raise IrcError(f"XLA cannot compile this program: {error}") from error

    def restore(self, data: bytes, overrides: Sequence[tuple[str, Any]]) -> Any:
        """A loaded executable from `serialize`'s bytes.  Check `fingerprint` first: XLA loads foreign code, too."""
        _register_kernels(self.platform)
        try:
            return self.client.deserialize_executable(data, self._list, self.options(overrides))
        except RuntimeFailure as error:
            raise IrcError(f"XLA cannot load this compiled program: {error}") from error

    def serialize(self, executable: Any) -> bytes:
        """Compiled code as bytes; none where XLA cannot write it down (on the CPU: any program that sorts)."""
        try:
            return bytes(executable.serialize())
        except RuntimeFailure as error:
            if "UNIMPLEMENTED" not in str(error):
                raise
            return b""

    def runner(self, executable: Any, inputs: Signature, outputs: Signature, weights: Sequence[Any]) -> Runner:
        """run(arguments, alias) -> device arrays: places NumPy arguments, appends the weights, executes.

        With `alias` the device may read the arguments' memory until the program is done.  Everything that is the same
        at every call is prepared here: this is the path of all calls.
        """
        put, sharding, devices, move = _jax.batched_device_put, self.sharding, [self.device], self.move
        execute, behind, numpy_array = executable.execute_sharded, list(weights), np.ndarray
        avals = [jax.core.ShapedArray(dims, dtype.numpy) for dtype, dims in inputs]
        handlers = [
            _jax.array_result_handler(jax.core.ShapedArray(dims, dtype.numpy), sharding, True, True)
            for dtype, dims in outputs
        ]

        def run(arguments: Sequence[Any], alias: bool) -> Sequence[Any]:
            copy = not alias
            buffers = [
                put(aval, sharding, [a], devices, True, copy, enable_x64=True)
                if isinstance(a, numpy_array)
                else move(a)
                for aval, a in zip(avals, arguments, strict=True)
            ]
            buffers += behind
            results: Sequence[Any] = execute(buffers).consume_with_handlers(handlers)
            return results

        return run

    def fingerprint(self) -> dict[str, str]:
        """What compiled code depends on besides the program: versions, platform, device kind, features of the CPU."""
        return {
            "jaxlib": jaxlib.version.__version__,
            "platform": self.platform,
            "platform_version": str(self.client.platform_version),
            "device_kind": str(self.device.device_kind),
            "cpu": cpu_features(),
        }


@cache
def device(platform: str, index: int) -> Device:
    """The device number `index` of a platform (empty: jax's default)."""
    return Device(platform, index)


def is_array(value: Any) -> bool:
    """Whether it is one of XLA's arrays."""
    return isinstance(value, jax.Array)


def memory(executable: Any) -> int | None:
    """Bytes that a program takes while it runs: arguments, weights among them, results and what is between."""
    try:
        stats = executable.get_compiled_memory_stats()
    except RuntimeFailure:  # not every platform says
        return None
    parts = (stats.argument_size_in_bytes, stats.output_size_in_bytes, stats.temp_size_in_bytes)
    return int(sum(parts) - stats.alias_size_in_bytes)


def devices() -> list[str]:
    """`platform:index` of every local device of the default platform and of the CPU."""
    found: dict[str, None] = {}
    for name in (None, "cpu"):
        for d in jax_backend.get_backend(name).local_devices():
            found[f"{d.platform}:{d.id}"] = None
    return list(found)


@cache
def cpu_features() -> str:
    """A digest of the instruction sets of this machine's CPU, with the architecture in front."""
    path = Path("/proc/cpuinfo")
    flags: set[str] = set()
    if path.exists():
        for line in path.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("flags", "Features"):
                flags.update(value.split())
                break
    digest = hashlib.sha256(" ".join(sorted(flags)).encode()).hexdigest()[:16]
    return f"{host.system()}-{host.machine()}-{digest}"


@cache
def _register_kernels(platform: str) -> None:
    """Load LAPACK's kernels: programs that call them crash the process otherwise."""
    if platform == "cpu":
        from jaxlib.lapack import _lapack  # type: ignore[attr-defined]  # private

        _lapack.initialize()
