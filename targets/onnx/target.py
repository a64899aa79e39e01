"""The ONNX target: exports a legal model and runs it on ONNX Runtime's CPU provider."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import onnxruntime as ort

from ...ir.data import Data
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.model import Function, Model, Node
from ...ir.types import TensorType
from ...runtime.backend import Program
from ..base import Options, Target
from . import (  # noqa: F401 (importing a family registers its rules)
    attention,
    classical,
    control,
    convolution,
    elementwise,
    indexing,
    linalg,
    normalization,
    quantization,
    recurrent,
    reduction,
    resize,
    sequence,
    shape,
    sort,
    text,
    window,
)
from .border import back, barred, over
from .export import export_onnx, write_onnx
from .kernels import DEVIATIONS, NOT_IN_RUNTIME, lacks
from .lowering import OPSET, TABLE, Dialect
from .schemas import Schemas
from .weights import LARGEST, Weights, packs

MAX_DEPTH = 31
"""Graphs within graphs: each takes three of the hundred nested messages that protobuf reads."""


FILE = "model.onnx"
WEIGHTS_FILE = "model.onnx.data"
"""The two files of a saved program."""

SHARED_FROM = 1 << 20
"""Bytes from which a constant is handed to ONNX Runtime as it is instead of being copied into the model."""

NEWEST_TYPE = {21: 22, 22: 22, 23: 23, 24: 24, 25: 26, 26: 26, 27: 26, 28: 26}
"""The greatest number of an element type that an operator set has."""

RUN = (21, 22, 23, 24)
"""Operator sets of programs for ONNX Runtime, which knows newer ones only in part."""


@dataclass(frozen=True)
class OnnxOptions(Options):
    """`opset`: the operator set of the models that are handed to ONNX Runtime."""

    opset: int = field(default=OPSET, metadata={"choices": RUN})


class ClaimContext:
    """What a `when` of this target may ask."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    def numbers(self, values: Sequence[Any], what: str) -> str | None:
        """A refusal if a size that ONNX takes as an attribute is symbolic."""
        odd = next((v for v in values if not isinstance(v, int)), None)
        return None if odd is None else f"{what} {odd} is symbolic, and ONNX takes it as an attribute"


class OnnxProgram:
    """An ONNX Runtime session, on a model in memory whose large weights it reads where they are, or on a file."""

    def __init__(
        self, proto: onnx.ModelProto, function: Function, weights: Weights | None = None, path: Path | None = None
    ) -> None:
        self._proto = proto
        self._arguments = [v.type for v in function.inputs]
        self._results = [v.type for v in function.body.outputs]
        self._weights = weights
        self._path = path
        options = ort.SessionOptions()
        options.log_severity_level = 3
        size = sum(len(t.raw_data) for t in proto.graph.initializer)
        if size > LARGEST:
            raise IrcError(
                f"onnx: the model has {size} bytes of constants of {SHARED_FROM} bytes or less; expected at most "
                f"{LARGEST}, what one protobuf message holds"
            )
        try:
            if weights is not None and weights.held:
                self._shared = {name: _shared(data) for name, data in weights.held.items()}
                options.add_external_initializers(list(self._shared), list(self._shared.values()))
            source = str(path) if path is not None else proto.SerializeToString()
            self._session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # ONNX Runtime raises classes of its own without a common public base
            raise IrcError(f"ONNX Runtime refuses the exported model: {error}") from error
        self._inputs = [i.name for i in self._session.get_inputs()]
        self._given = [i.name for i in proto.graph.input]
        named = (
            *zip(function.input_names, self._arguments, strict=True),
            *zip(function.output_names, self._results, strict=True),
        )
        self._odd = ", ".join(f"{name} of type {t}" for name, type_ in named if (t := barred(type_)) is not None)

    @property
    def source(self) -> str:
        return onnx.printer.to_text(self._proto)

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        if self._odd:
            raise IrcError(
                f"ONNX Runtime's Python interface cannot pass {self._odd}; export the model and run it elsewhere"
            )
        rows = zip(self._given, arguments, self._arguments, strict=True)
        feeds = {n: over(a, t) for n, a, t in rows if n in self._inputs}
        try:
            results = self._session.run(None, feeds)
        except Exception as error:  # as above
            raise IrcError(f"ONNX Runtime cannot run this program: {error}") from error
        typed = zip(results, self._results, strict=True)
        return [back(np.array(r), t) if isinstance(r, np.ndarray) else r for r, t in typed]

    def save(self, folder: Path) -> None:
        path = folder / FILE
        if self._path is None:
            write_onnx(self._proto, self._weights, path)
        elif self._path.resolve() != path.resolve():
            for name in (FILE, WEIGHTS_FILE):
                if (source := self._path.with_name(name)).exists():
                    shutil.copyfile(source, folder / name)


class _Beside(Weights):
    """Weights that a session reads where they are: large ones, of whole bytes."""

    def takes(self, data: Data) -> bool:
        return super().takes(data) and not packs(data.dtype)


def _shared(data: Data) -> Any:
    """A value of ONNX Runtime on the bytes of `data`."""
    array = data.numpy()
    if array.dtype.isbuiltin == 1:
        return ort.OrtValue.ortvalue_from_numpy(array)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(f"u{array.dtype.itemsize}"), data.dtype.onnx)


def _depth(node: Node) -> int:
    """How deep the graphs of a node nest in those around it."""
    depth = 0
    holder: object = node
    while isinstance(holder, Node):
        depth += 1
        holder = holder.graph.parent if holder.graph is not None else None
    return depth


class OnnxTarget(Target):
    """Export in ONNX's idioms; ONNX Runtime runs it, for every size."""

    name: ClassVar[str] = "onnx"
    options_class: ClassVar[type[Options]] = OnnxOptions
    runs: ClassVar[bool] = True
    deviations: ClassVar[Mapping[str, str]] = DEVIATIONS
    ulps: ClassVar[Mapping[str, float]] = {"logistic": 64}

    def __init__(self, options: Options | None = None) -> None:
        super().__init__(options)
        assert isinstance(self.options, OnnxOptions)
        self.dialect = Dialect(self.options.opset, self.runs)
        self.schemas = Schemas(self.dialect)

    def claims(self, node: Node) -> str | None:
        opset = self.dialect.opset
        if node.graphs and _depth(node) > MAX_DEPTH:
            return f"its graphs nest more than {MAX_DEPTH} deep, which an ONNX file cannot hold"
        for value in (*node.operands, *node.results):
            if self.runs and value is not None and (barrier := barred(value.type)) in ("c64", "c128"):
                return f"ONNX Runtime has no kernels for {barrier}"
            number = value.type.dtype.onnx if value is not None and isinstance(value.type, TensorType) else 0
            if number > NEWEST_TYPE[opset]:
                return f"opset {opset} has no element type {DType.from_onnx(number)}"
            if self.runs and number > NEWEST_TYPE[OPSET]:
                return f"ONNX Runtime has no kernels for {DType.from_onnx(number)}"
        dtype = lacks(NOT_IN_RUNTIME, node)
        if dtype is not None and (self.runs or (node.op.is_composite and DType.of(dtype).is_integer)):
            return f"ONNX Runtime has no {dtype} kernel for it"
        refusal = self.claim_by_table(TABLE, node, ClaimContext(self.dialect))
        return refusal if refusal is not None else self.schemas.refusal(node)

    def compile(self, model: Model, entry: str, state: dict[str, Any]) -> Program:
        weights = _Beside(WEIGHTS_FILE, SHARED_FROM)
        return OnnxProgram(export_onnx(model, entry, self.dialect, weights), model.entry(entry), weights)

    def load(self, folder: Path, model: Model, entry: str, state: dict[str, Any]) -> Program:
        path = folder / FILE
        return OnnxProgram(onnx.load(path, load_external_data=False), model.entry(entry), path=path)

    def to_numpy(self, array: Any) -> Any:
        return np.array(array)

    def dtype_of(self, array: Any) -> DType | None:
        return DType.from_numpy(array.dtype) if isinstance(array, np.ndarray) else None

    def versions(self) -> dict[str, str]:
        return {"onnx": onnx.__version__, "onnxruntime": ort.__version__}

    def devices(self) -> Sequence[str]:
        return tuple(p.removesuffix("ExecutionProvider").lower() for p in ort.get_available_providers())


class OnnxFile(OnnxTarget):
    """What an ONNX file of an operator set can say, whether ONNX Runtime has the kernels or not."""

    runs: ClassVar[bool] = False

    def __init__(self, opset: int = OPSET) -> None:
        super().__init__(OnnxOptions(opset))
