"""The cases of the ONNX backend suite that the installed onnx package ships: models, inputs, expected outputs."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

SEED = 0
"""Most node cases draw their inputs from NumPy's global generator while their modules are imported."""

FOLDERS = ("simple", "pytorch-converted", "pytorch-operator")


@dataclass(frozen=True)
class Case:
    """One case: `name` is `kind/test_name`.  Inputs and outputs are arrays, lists (sequences), None (absent optionals).

    A data set's inputs belong to the first graph inputs of the model, in order.
    """

    name: str
    operator: str
    model: onnx.ModelProto
    data_sets: Sequence[tuple[Sequence[Any], Sequence[Any]]]
    rtol: float
    atol: float

    @property
    def short(self) -> str:
        return self.name.partition("/")[2]


def load() -> dict[str, Case]:
    """All cases by name, in sorted order; always the same inputs."""
    cases = [*_node_cases(), *(c for folder in FOLDERS for c in _stored_cases(folder))]
    return {c.name: c for c in sorted(cases, key=lambda c: c.name)}


def _node_cases() -> list[Case]:
    from onnx.backend.test.loader import load_model_tests

    np.random.seed(SEED)  # the suite's own generator is this one
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = load_model_tests(kind="node")
    operators = {row.name: _operator(row.name, row.model) for row in rows}
    return [
        Case(
            f"node/{row.name}",
            operators.get(re.sub(r"_expanded.*$", "", row.name), operators[row.name]),
            row.model,
            [tuple([_plain(v) for v in side] for side in data) for data in row.data_sets],  # type: ignore[misc]  # two sides
            row.rtol,
            row.atol,
        )
        for row in rows
    ]


def _operator(name: str, model: onnx.ModelProto) -> str:
    """The operator that a node case is about."""
    kinds = dict.fromkeys(f"{n.domain}.{n.op_type}" if n.domain else n.op_type for n in model.graph.node)
    flat = name.replace("_", "").lower()
    named = [k for k in kinds if k.rpartition(".")[2].lower() in flat]
    others = [k for k in kinds if k != "Constant"]
    return max(named, key=len) if named else next(iter(others or kinds))


def _plain(value: Any) -> Any:
    """TensorProto and NumPy scalars as arrays, inside sequences too."""
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else np.asarray(value)


def _stored_cases(folder: str) -> list[Case]:
    from onnx.backend.test.loader import DATA_DIR

    out = []
    for path in sorted(Path(DATA_DIR, folder).iterdir()):
        if not (path / "model.onnx").exists():
            continue
        model = onnx.load(path / "model.onnx")
        sets = [
            (_files(data, "input", model.graph.input), _files(data, "output", model.graph.output))
            for data in sorted(path.glob("test_data_set*"))
        ]
        out.append(Case(f"{folder}/{path.name}", f"({folder})", model, sets, 1e-3, 1e-7))
    return out


def _files(folder: Path, side: str, infos: Sequence[onnx.ValueInfoProto]) -> list[Any]:
    count = len(list(folder.glob(f"{side}_*.pb")))
    return [_value((folder / f"{side}_{i}.pb").read_bytes(), infos[i].type) for i in range(count)]


def _value(content: bytes, kind: onnx.TypeProto) -> Any:
    """A serialized value of a declared type."""
    if kind.HasField("sequence_type"):
        return _plain(numpy_helper.to_list(onnx.SequenceProto.FromString(content)))
    if kind.HasField("optional_type"):
        return _plain(numpy_helper.to_optional(onnx.OptionalProto.FromString(content)))
    return numpy_helper.to_array(onnx.TensorProto.FromString(content))


def version() -> str:
    """The onnx package whose suite this is."""
    return f"onnx {onnx.__version__}, operator set {onnx.defs.onnx_opset_version()}"
