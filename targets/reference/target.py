"""The reference evaluator as a target: runs canonical or imported models as they are, for every size."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ...ir.dtypes import DType
from ...ir.model import Model, Node
from ...ir.reference import Evaluator
from ...ir.text import print_model
from ...runtime.backend import Program
from ..base import Target


class ReferenceProgram:
    """One entry of a model, evaluated node by node in NumPy."""

    def __init__(self, model: Model, entry: str) -> None:
        self._function = model.entry(entry)
        self._evaluator = Evaluator(model)
        self._model = model

    @property
    def source(self) -> str:
        return print_model(self._model)

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        results = self._evaluator.call(self._function, arguments)
        return [np.array(r) if isinstance(r, np.ndarray) else r for r in results]

    def save(self, folder: Path) -> None:
        (folder / "model.txt").write_text(self.source)


class ReferenceTarget(Target):
    """NumPy; exact and slow.  Operators without a formula run their decomposition."""

    name: ClassVar[str] = "reference"
    holds_any_value: ClassVar[bool] = True

    def claims(self, node: Node) -> str | None:
        if node.op.reference is None and node.op.decompose is None:
            return f"{node.op.name} has no reference"
        return None

    def compile(self, model: Model, entry: str, state: dict[str, Any]) -> Program:
        return ReferenceProgram(model, entry)

    def load(self, folder: Path, model: Model, entry: str, state: dict[str, Any]) -> Program:
        return ReferenceProgram(model, entry)

    def to_numpy(self, array: Any) -> Any:
        return np.array(array)

    def dtype_of(self, array: Any) -> DType | None:
        return DType.from_numpy(array.dtype) if isinstance(array, np.ndarray) else None

    def versions(self) -> dict[str, str]:
        return {"numpy": np.__version__}

    def devices(self) -> Sequence[str]:
        return ("cpu",)
