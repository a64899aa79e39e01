"""What the runtime needs of a target: `Backend` compiles a legal model to a `Program`.  Targets implement both."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from ..ir.dtypes import DType
from ..ir.model import Model, Node


class Program(Protocol):
    """Compiled code of one entry, for fixed sizes or (a shape-polymorphic target) for all sizes."""

    @property
    def source(self) -> str:
        """The emitted code."""

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        """Results in entry order.  Arguments are checked and in entry order: NumPy arrays or the target's own.

        With `as_numpy` results are owned, writable NumPy arrays (ml_dtypes where NumPy lacks the type), else the
        target's arrays.
        """

    def save(self, folder: Path) -> None:
        """Write what `Backend.load` needs to run without compiling, into an existing empty folder."""


class Backend(Protocol):
    """A target with its options filled in."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> str:
        """Name and options in the form that `targets.get` parses: `mlx{device=cpu}`."""

    @property
    def per_shape(self) -> bool:
        """Whether `compile` needs every dim to be a number."""

    @property
    def holds_any_value(self) -> bool:
        """Whether programs take and give sequences, optionals and strings, as lists, None and arrays of objects."""

    def claims(self, node: Node) -> str | None:
        """None if the target lowers the node natively, else why not."""

    def compile(self, model: Model, entry: str, state: dict[str, Any]) -> Program:
        """Compile a legal model.  `state` belongs to one executable: the place to keep weights put on the device.

        `state.get("cache")` is a `DiskCache` or None: a target that can write its code down asks it first, and gives
        the program an attribute `is_restored` that is true if the code came from there.
        """

    def load(self, folder: Path, model: Model, entry: str, state: dict[str, Any]) -> Program:
        """What `Program.save` wrote.  `model` is the artifact's (canonical if `per_shape`, else the compiled one)."""

    def to_numpy(self, array: Any) -> Any:
        """An owned NumPy copy of one of the target's arrays."""

    def dtype_of(self, array: Any) -> DType | None:
        """Element type of one of the target's arrays; None if `array` is not one."""

    def versions(self) -> dict[str, str]:
        """Versions that compiled code depends on."""


def was_restored(program: Program) -> bool:
    """Whether `Backend.compile` took the code from the disk cache."""
    return bool(getattr(program, "is_restored", False))
