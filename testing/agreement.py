"""Do two runs agree?  Comparison of outputs, and of every intermediate value to find the first node that departs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.clone import clone_model
from ..ir.errors import IrcError
from ..ir.model import Model
from ..ir.reference import evaluate
from ..ir.types import TensorType
from ..runtime.executable import Executable
from ..targets.base import Target

RTOL = 1e-4
ATOL = 1e-6


@dataclass(frozen=True, slots=True)
class Agreement:
    """One compared value.  It agrees if shape and dtype are equal, NaNs are at the same places, infinities equal, and
    |got - want| <= rtol * max|want| + atol everywhere (integers, bools and strings: equal)."""

    name: str
    agrees: bool
    max_abs: float
    max_rel: float
    why: str = ""

    def __str__(self) -> str:
        verdict = "agrees" if self.agrees else f"DIFFERS ({self.why})"
        return f"{self.name}: max abs error {self.max_abs:.3g}, max rel error {self.max_rel:.3g}  {verdict}"


def compare(name: str, got: Any, want: Any, *, rtol: float = RTOL, atol: float = ATOL) -> Agreement:
    """Compare one array with what it should be.  `max_rel` is relative to the greatest magnitude of `want`."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        why = f"got {got.dtype}{list(got.shape)}, expected {want.dtype}{list(want.shape)}"
        return Agreement(name, False, np.inf, np.inf, why)
    if not got.size:
        return Agreement(name, True, 0.0, 0.0)
    if got.dtype.kind in "iubOSU":
        different = int(np.count_nonzero(got != want))
        gap = 0.0
        if different and got.dtype.kind in "iu":
            gap = float(np.abs(got.astype(np.float64) - want.astype(np.float64)).max())
        return Agreement(
            name, not different, gap, gap, f"{different} of {got.size} elements differ" if different else ""
        )
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    a, b = got.astype(wide), want.astype(wide)
    finite = np.isfinite(b)
    with np.errstate(all="ignore"):
        same_specials = bool(np.all((a == b) | (np.isnan(a) & np.isnan(b)) | finite)) and bool(
            np.all(np.isfinite(a) == finite)
        )
    scale = float(np.abs(b[finite]).max()) if finite.any() else 0.0
    error = float(np.abs(a[finite] - b[finite]).max()) if finite.any() and same_specials else 0.0
    relative = error / scale if scale else error
    if not same_specials:
        return Agreement(name, False, np.inf, np.inf, "NaN or infinite at other places")
    agrees = error <= rtol * scale + atol
    return Agreement(name, agrees, error, relative, "" if agrees else f"more than {rtol:g} * {scale:.3g} + {atol:g}")


def run_onnx_file(path: Path, feeds: Mapping[str, Any], *, intermediates: bool = False) -> dict[str, Any]:
    """Outputs of an ONNX file on ONNX Runtime's CPU without graph optimizations; with `intermediates` every node's."""
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if not intermediates:
        session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    else:
        import onnx

        proto = onnx.load(path)
        outputs = {o.name for o in proto.graph.output}
        extra = dict.fromkeys(o for n in proto.graph.node for o in n.output if o and o not in outputs)
        proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in extra)
        session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def with_intermediates(model: Model, entry: str | None = None) -> Model:
    """A copy whose entry returns the result of every node of its body, in order; of a name, the first one."""
    out = clone_model(model)
    function = out.entry(entry)
    named: dict[str, Any] = {}
    for node in function.body.nodes:
        for i, value in enumerate(node.results):
            if isinstance(value.type, TensorType):
                named.setdefault(value.name or f"{node.label}:{i}", value)
    function.body.set_outputs(list(named.values()))
    function.output_names = list(named)
    return out


def reference_values(model: Model, feeds: Sequence[Any], entry: str | None = None) -> dict[str, Any]:
    """What the reference gives for the entry's outputs, by name."""
    return dict(zip(model.entry(entry).output_names, evaluate(model, feeds, entry=entry), strict=True))


@dataclass(frozen=True, slots=True)
class Departure:
    """The first node whose result is wrong although its operands still agree."""

    node: str
    value: str
    agreement: Agreement

    def __str__(self) -> str:
        return f"first departs at {self.node} (value {self.value!r}): {self.agreement}"


def first_departure(
    model: Model,
    target: Target,
    feeds: Sequence[Any],
    want: Mapping[str, Any],
    *,
    entry: str | None = None,
    rtol: float = RTOL,
    atol: float = ATOL,
) -> Departure | None:
    """Run every node of `model` as it is (no passes) on `target`; the first, in order, that departs from `want`.

    `want` holds intermediate values by name; values it lacks are not compared.
    """
    every = with_intermediates(model, entry)
    executable = Executable(every, target, entry=entry)
    got = executable(*feeds).by_name
    by_name = dict(zip(every.entry(entry).output_names, every.entry(entry).outputs, strict=True))
    compared = 0
    for name, array in got.items():
        if name not in want:
            continue
        compared += 1
        agreement = compare(name, array, want[name], rtol=rtol, atol=atol)
        if not agreement.agrees:
            node = by_name[name].node
            return Departure(node.label if node is not None else "input", name, agreement)
    if not compared:
        raise IrcError("no intermediate value has the same name on both sides, so nodes cannot be compared")
    return None
