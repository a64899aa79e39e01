"""How a case runs: through irc on a target, or on ONNX Runtime alone for comparison."""

from __future__ import annotations

import ctypes
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
    """`status` is pass, fail (wrong, or broke off) or cannot (refused, and says why).

    `host` names the operators that the host ran: sequences, strings, images, loops whose shapes change.  Reading
    integers that decide shapes and choosing a branch do not count.
    """

    case: str
    status: str
    reason: str = ""
    host: str = ""

    def row(self) -> dict[str, str]:
        return asdict(self)


def run_case(case: Case, target: str) -> Result:
    """Run one case in this process and judge it."""
    host: set[str] = set()
    try:
        for inputs, want in case.data_sets:
            feeds = {i.name: v for i, v in zip(case.model.graph.input, inputs, strict=False)}
            got = _on_ort(case, feeds) if target == ORT else _on_irc(case, feeds, target, host)
            if reason := fault(case, inputs, want, got):
                return Result(case.name, "fail", reason)
    except Exception as error:  # whatever an engine throws is this case's result
        return Result(case.name, "cannot" if _refused(error) else "fail", _spelled(error))
    return Result(case.name, "pass", host=", ".join(sorted(host)))


def _refused(error: Exception) -> bool:
    return type(error).__name__ in ("UnsupportedError", "NotImplemented", "InvalidGraph", "OrtFail")


def _spelled(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = " / ".join(lines[:3])
    name = type(error).__name__
    return text if name == "UnsupportedError" else f"{name}: {text}"


def _on_irc(case: Case, feeds: dict[str, Any], target: str, host: set[str]) -> Sequence[Any]:
    import irc

    run = irc.compile(case.model, target=target)
    outputs = list(run(*[feeds[name] for name in run.input_types]))
    host.update(run.report.host_operators)
    return outputs


def _on_ort(case: Case, feeds: dict[str, Any]) -> Sequence[Any]:
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = ort.InferenceSession(case.model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    wanted = {i.name for i in session.get_inputs()}
    types = {i.name: i.type for i in case.model.graph.input}
    given = {n: _for_ort(v, types[n]) for n, v in feeds.items() if n in wanted}
    strange = any(isinstance(v, ort.OrtValue) for v in given.values())
    if not strange and all(_is_plain(o.type) for o in case.model.graph.output):
        return list(session.run(None, given))
    values = {n: v if isinstance(v, ort.OrtValue) else ort.OrtValue.ortvalue_from_numpy(v) for n, v in given.items()}
    outputs = session.run_with_ort_values(None, values)
    return [_from_ort(v, o.type) for v, o in zip(outputs, case.model.graph.output, strict=True)]


def _is_plain(kind: Any) -> bool:
    """Whether NumPy itself has the type."""
    from onnx.helper import tensor_dtype_to_np_dtype

    if not kind.HasField("tensor_type"):
        return True
    return tensor_dtype_to_np_dtype(kind.tensor_type.elem_type).isbuiltin == 1


def _for_ort(value: Any, kind: Any) -> Any:
    """Arrays of types that NumPy lacks go in by their bits."""
    import onnxruntime as ort

    if not isinstance(value, np.ndarray) or value.dtype.isbuiltin == 1:
        return value
    bits = np.ascontiguousarray(value).view(np.uint16 if value.dtype.itemsize == 2 else np.uint8)
    width = WIDTHS.get(value.dtype.name, 8)
    if width == 8:
        return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, kind.tensor_type.elem_type)
    parts = np.zeros(-(-bits.size * width // 8) * (8 // width), np.uint8)
    parts[: bits.size] = bits.reshape(-1) & ((1 << width) - 1)
    packed = (parts.reshape(-1, 8 // width) << np.arange(0, 8, width, dtype=np.uint8)).sum(1, dtype=np.uint8)
    out = ort.OrtValue.ortvalue_from_shape_and_type(value.shape, kind.tensor_type.elem_type)
    ctypes.memmove(out.data_ptr(), packed.ctypes.data, packed.nbytes)
    return out


def _from_ort(value: Any, kind: Any) -> Any:
    """And come out by their bits, which lie packed in memory."""
    from onnx.helper import tensor_dtype_to_np_dtype

    if not kind.HasField("tensor_type") or _is_plain(kind):
        return value.numpy()
    dtype, shape = tensor_dtype_to_np_dtype(kind.tensor_type.elem_type), value.shape()
    count, width = int(np.prod(shape)), WIDTHS.get(dtype.name, dtype.itemsize * 8)
    memory = (ctypes.c_uint8 * (-(-count * width // 8))).from_address(value.data_ptr())
    raw = np.frombuffer(bytes(memory), np.uint8)
    if width >= 8:
        return raw.view(dtype).reshape(shape)
    parts = (raw[:, None] >> np.arange(0, 8, width, dtype=np.uint8)) & np.uint8((1 << width) - 1)
    parts = parts.reshape(-1)[:count]
    if dtype.name.startswith("int"):
        parts = ((parts.astype(np.int8) ^ (1 << (width - 1))) - (1 << (width - 1))).astype(dtype)
        return parts.reshape(shape)
    return (parts.astype(dtype) if dtype.name.startswith("uint") else parts.view(dtype)).reshape(shape)


WIDTHS = {"int4": 4, "uint4": 4, "float4_e2m1fn": 4, "int2": 2, "uint2": 2}
"""Bits of an element in ONNX Runtime's memory, where they are fewer than in NumPy's."""
