"""The toy target `numpy`: one readable NumPy function for one set of sizes.  What it can do stands in numpy_rules."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from irc.ir.dtypes import DType
from irc.ir.types import TensorType
from irc.targets.base import Target

from .numpy_emit import emit
from .numpy_rules import DTYPES, TABLE


class NumpyProgram:
    """The emitted module, executed once; `run` calls its `main`."""

    def __init__(self, source, weights):
        self.source = source
        self.weights = weights
        namespace = {}
        exec(compile(source, "<emitted by the numpy target>", "exec"), namespace)  # our own text
        self._main = namespace["main"]

    def run(self, arguments, as_numpy):
        with np.errstate(all="ignore"):
            results = self._main(*arguments, *([self.weights] if self.weights else []))
        return [np.array(r) for r in results]

    def save(self, folder: Path):
        (folder / "main.py").write_text(self.source)
        np.savez(folder / "weights.npz", **self.weights)


class NumpyTarget(Target):
    """Readable NumPy code, a sample of a target in a plug-in.

    Dtypes and operators are few; a composite is decomposed, and a core operator that is not in the table is reported.
    """

    name = "numpy"
    per_shape = True
    requires = ("numpy",)

    def claims(self, node):
        for value in (*node.operands, *node.results):
            if value is not None and not (isinstance(value.type, TensorType) and value.type.dtype in DTYPES):
                return f"the numpy target has no values of type {value.type}"
        return self.claim_by_table(TABLE, node, None)

    def compile(self, model, entry, state):
        return NumpyProgram(*emit(model, entry))

    def load(self, folder, model, entry, state):
        with np.load(folder / "weights.npz") as weights:
            return NumpyProgram((folder / "main.py").read_text(), dict(weights))

    def to_numpy(self, array):
        return np.array(array)

    def dtype_of(self, array):
        return DType.from_numpy(array.dtype) if isinstance(array, np.ndarray) else None

    def versions(self):
        return {"numpy": np.__version__}

    def devices(self):
        return ("cpu",)
