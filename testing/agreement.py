"""Do two runs agree?  Comparison of outputs, and of every intermediate value to find the first node that departs."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.clone import clone_model
from ..ir.errors import IrcError, did_you_mean
from ..ir.model import Model, Node
from ..ir.reference import Evaluator
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from ..runtime.executable import Executable
from ..targets import get
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
    """Outputs of an ONNX file on ONNX Runtime's CPU without graph optimizations; with `intermediates` every node's.

    IrcError if ONNX Runtime cannot load or run the file, or the file has other inputs.
    """
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    if not path.is_file():
        raise IrcError(f"{path}: no such file")
    try:
        source = _with_all_outputs(path) if intermediates else str(path)
        session = ort.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime raises classes of its own without a common public base
        raise IrcError(f"{path}: ONNX Runtime cannot load it: {error}") from error
    taken = [i.name for i in (*session.get_inputs(), *session.get_overridable_initializers())]
    for name in feeds:
        if name not in taken:
            raise IrcError(f"{path} has no input {name!r}{did_you_mean(name, taken)}; it is not the same model")
    names = [o.name for o in session.get_outputs()]
    try:
        return dict(zip(names, session.run(names, dict(feeds)), strict=True))
    except Exception as error:  # as above
        raise IrcError(f"{path}: ONNX Runtime cannot run it on these inputs: {error}") from error


def _with_all_outputs(path: Path) -> bytes:
    """The file's model with the results of all nodes of its graph as outputs."""
    import onnx

    proto = onnx.load(path)
    outputs = {o.name for o in proto.graph.output}
    extra = dict.fromkeys(o for n in proto.graph.node for o in n.output if o and o not in outputs)
    proto.graph.output.extend(onnx.ValueInfoProto(name=n) for n in extra)
    serialized: bytes = proto.SerializeToString()
    return serialized


@dataclass(frozen=True)
class Judge:
    """What a model's outputs should be: by the reference on `model`, or if that is None by ONNX Runtime on `path`."""

    path: Path
    model: Model | None
    entry: str | None = None

    @classmethod
    def of(cls, path: Path, model: Model | None = None, entry: str | None = None) -> Judge:
        """ONNX Runtime for a .onnx file, else the reference; `model` is what the file holds, if it was read before."""
        if path.suffix.lower() == ".onnx":
            return cls(path, None, entry)
        from .. import read

        return cls(path, read(path) if model is None else model, entry)

    def __str__(self) -> str:
        return f"{'ONNX Runtime' if self.model is None else 'the reference'} on {self.path}"

    def outputs(self, executable: Executable, feeds: Sequence[Any]) -> dict[str, Any]:
        """By name, what the outputs of `executable` for these inputs should be."""
        if self.model is None and len(executable.entry.inputs) > len(executable.input_types):
            raise IrcError(
                f"@{executable.entry.name} draws random numbers without a seed, which differ from run to run; "
                "give its random operators a seed to compare them"
            )
        found = self._values(list(executable.input_types), feeds, False)
        for name in executable.output_types:
            if name not in found:
                raise IrcError(f"{self} has no output {name!r}{did_you_mean(name, found)}; it is not the same model")
        return {name: found[name] for name in executable.output_types}

    def intermediates(self, names: Sequence[str], feeds: Sequence[Any]) -> dict[str, Any]:
        """By name, what nodes of the entry's body should give, for inputs called so."""
        return self._values(names, feeds, True)

    def _values(self, names: Sequence[str], feeds: Sequence[Any], every: bool) -> dict[str, Any]:
        if self.model is None:
            return run_onnx_file(self.path, dict(zip(names, feeds, strict=False)), intermediates=every)
        model = with_intermediates(self.model, self.entry) if every else self.model
        return reference_run(model, feeds, self.entry)


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


def reference_run(
    model: Model, feeds: Sequence[Any], entry: str | None = None, *, seconds: float | None = None
) -> dict[str, Any]:
    """What the reference gives for the entry's outputs, by name; random operators draw as with seed 0.

    IrcError if it has not finished after so many seconds (random models without seeds are not watched).
    """
    function = model.entry(entry)
    if len(function.inputs) > len(feeds):  # the executable fills in keys
        return dict(Executable(model, get("reference"), entry=entry, seed=0)(*feeds).by_name)
    until = None if seconds is None else time.monotonic() + seconds

    def watch(node: Node, results: tuple[Any, ...]) -> None:
        if until is not None and time.monotonic() > until:
            raise IrcError(f"the reference has not finished after {seconds:g} seconds; it is at {node.label}")

    outputs = Evaluator(model, trace=watch).call(function, list(feeds))
    return dict(zip(function.output_names, outputs, strict=True))


@dataclass(frozen=True, slots=True)
class Departure:
    """The first node whose result is wrong although its operands still agree, or that makes the target break off."""

    node: str
    value: str
    agreement: Agreement | None
    source: tuple[str, ...] = ()
    """Nodes of the source model that it comes from."""
    error: str = ""
    """What the target said when it broke off."""

    def __str__(self) -> str:
        if self.agreement is None:
            return f"breaks off at {self.node}: {self.error}"
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

    `want` holds intermediate values by name; values it lacks are not compared.  Random operators draw as with seed 0.
    """
    every = with_intermediates(model, entry)
    executable = Executable(every, target, entry=entry, seed=0)
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
            return Departure(_label(node), name, agreement, () if node is None else node.location.source)
    if not compared:
        raise IrcError("no intermediate value has the same name on both sides, so nodes cannot be compared")
    return None


def first_crash(model: Model, target: Target, feeds: Sequence[Any], *, entry: str | None = None) -> Departure | None:
    """The first node, in order, with which `target` can no longer compile or run `model` as it is (no passes).

    The search halves: a target that breaks off at some nodes breaks off at these and more.
    """

    def error(count: int) -> str:
        """What the target says of the first nodes alone."""
        try:
            Executable(_first_nodes(model, count, entry), target, entry=entry, seed=0)(*feeds)
        except Exception as raised:  # whatever breaks off is what is looked for
            return said_by(raised)
        return ""

    nodes = list(model.entry(entry).body.nodes)
    if not nodes or not error(len(nodes)):
        return None
    low, high = 0, len(nodes)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if error(middle) else (middle, high)
    node = nodes[high - 1]
    return Departure(_label(node), "", None, node.location.source, error(high))


def _first_nodes(model: Model, count: int, entry: str | None) -> Model:
    """A copy with the first `count` nodes of the entry's body only; their results of numbers are its outputs."""
    out = clone_model(model)
    function = out.entry(entry)
    nodes = list(function.body.nodes)
    results = [v for n in nodes[:count] for v in n.results if isinstance(v.type, TensorType)]
    function.body.set_outputs(results)
    function.output_names = [f"value{i}" for i in range(len(results))]
    rewriter = Rewriter(out, "first-nodes")
    for node in reversed(nodes[count:]):
        rewriter.erase(node)
    return out


def said_by(error: Exception) -> str:
    """An error's text; with its class if it is not one of irc's, which say what is wrong by themselves."""
    return str(error) if isinstance(error, IrcError) else f"{type(error).__name__}: {error}"


def _label(node: Node | None) -> str:
    return node.label if node is not None else "input"
