"""How a case runs: through irc on a target, or on ONNX Runtime alone for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from judge import fault
from suite import Case

ORT = "onnxruntime"
"""The name under which ONNX Runtime by itself, without irc, is counted."""

TARGETS = ("reference", "xla", "mlx{compile=off}", "onnx", ORT)


@dataclass(frozen=True)
class Result:
    """`status` is pass, fail (wrong, or broke off) or cannot (refused, and says why)."""

    case: str
    status: str
    reason: str = ""

    def row(self) -> dict[str, str]:
        return asdict(self)


def run_case(case: Case, target: str) -> Result:
    """Run one case in this process and judge it."""
    try:
        for inputs, want in case.data_sets:
            feeds = {i.name: v for i, v in zip(case.model.graph.input, inputs, strict=False)}
            got = _on_ort(case, feeds) if target == ORT else _on_irc(case, feeds, target)
            if reason := fault(case, inputs, want, got):
                return Result(case.name, "fail", reason)
    except Exception as error:  # whatever an engine throws is this case's result
        return Result(case.name, "cannot" if _refused(error) else "fail", _spelled(error))
    return Result(case.name, "pass")


def _refused(error: Exception) -> bool:
    return type(error).__name__ in ("UnsupportedError", "NotImplemented", "InvalidGraph", "OrtFail")


def _spelled(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " / ".join(lines[:3])
    name = type(error).__name__
    return text if name == "UnsupportedError" else f"{name}: {text}"


def _on_irc(case: Case, feeds: dict[str, Any], target: str) -> Sequence[Any]:
    import irc

    run = irc.compile(case.model, target=target)
    return list(run(*[feeds[name] for name in run.input_types]))


def _on_ort(case: Case, feeds: dict[str, Any]) -> Sequence[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    types = {i.name: i.type for i in case.model.graph.input}
    given = {n: _for_ort(v, types[n]) for n, v in feeds.items() if n in wanted}
    if any(isinstance(v, ort.OrtValue) for v in given.values()):
        values = {
            n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v) for n, v in given.items()
        }
        outputs = session.run_with_ort_values(None, values)
    else:
        outputs = session.run(None, given)
    return [_from_ort(v, o.type) for v, o in zip(outputs, case.model.graph.output, strict=True)]


def _for_ort(value: Any, kind: Any) -> Any:
    """Arrays of types that NumPy lacks go in by their bits."""
    import onnxruntime as ort

    if not isinstance(value, np.ndarray) or value.dtype.kind in "biufcOSU":
        return value
    bits = np.ascontiguousarray(value).view(np.uint16 if value.dtype.itemsize == 2 else np.uint8)
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, kind.tensor_type.elem_type)


def _from_ort(value: Any, kind: Any) -> Any:
    from onnx.helper import tensor_dtype_to_np_dtype

    if hasattr(value, "numpy"):
        value = value.numpy()
    if not isinstance(value, np.ndarray) or not kind.HasField("tensor_type"):
        return value
    dtype = tensor_dtype_to_np_dtype(kind.tensor_type.elem_type)
    exotic = dtype.kind not in "biufcOSU" and value.dtype.kind in "ui" and value.dtype.itemsize == dtype.itemsize
    return value.view(dtype) if exotic else value
