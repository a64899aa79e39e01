"""One pattern at a time, for tests of fusions: a small graph, whether the fusion fires, and that results stay."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..ir import build as building
from ..ir import dims as sizes
from ..ir import dtypes
from ..ir.clone import clone_model
from ..ir.model import Model
from ..ir.reference import evaluate
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from ..ir.verify import check
from ..passes import run_passes
from ..passes.pattern import Fusion, FusionReport, apply_fusions, define, get_fusion
from ..passes.pipeline import BEFORE_FUSIONS


def tensor_type(text: str) -> TensorType:
    """`f32[B,64]`"""
    name, _, rest = text.partition("[")
    inside = [s for s in rest.rstrip("]").split(",") if s]
    return TensorType(dtypes.DType.of(name), tuple(sizes.parse(s) for s in inside))


def model_of(body: Callable[..., Any], **inputs: str) -> Model:
    """A model whose `main` is `body(build, *inputs)`; inputs by name and type text."""
    model = Model("pattern")
    building.function(model, "main", [(name, tensor_type(text)) for name, text in inputs.items()], body)
    return model


@dataclass
class Outcome:
    """A canonical model, what fusions made of it, and their report."""

    before: Model
    after: Model
    report: FusionReport

    @property
    def fired(self) -> dict[str, int]:
        return dict(self.report.counts)

    @property
    def operators(self) -> list[str]:
        """Operators of `main`, in order."""
        return [node.op.name for node in self.after.main.body.nodes]

    @property
    def reasons(self) -> list[str]:
        """Why fusions that nearly fired did not."""
        return [miss.why for miss in self.report.misses]

    def largest_difference(self, inputs: Sequence[Any]) -> float:
        """The largest difference of results before and after; NaN must stand in the same places (else infinity)."""
        largest = 0.0
        for a, b in zip(evaluate(self.before, inputs), evaluate(self.after, inputs), strict=True):
            wide, other = np.asarray(a, np.float64), np.asarray(b, np.float64)
            if not np.array_equal(np.isnan(wide), np.isnan(other)):
                return float("inf")
            apart = np.where(wide == other, 0.0, np.abs(wide - other))
            largest = max(largest, float(np.nanmax(apart, initial=0.0)))
        return largest


def try_fusions(model: Model, *fusions: str | type) -> Outcome:
    """Bring a model to canonical form and try fusions on it: names, or classes with `pattern` and `rewrite`."""
    canonical = run_passes(model, BEFORE_FUSIONS)
    work = clone_model(canonical)
    report = apply_fusions(work, Rewriter(work, "fuse"), [_fusion(f) for f in fusions])
    work = run_passes(work, "dce")
    check(work)
    return Outcome(canonical, work, report)


def _fusion(what: str | type) -> Fusion:
    if isinstance(what, str):
        from ..passes import fusions  # noqa: F401  (registers them)

        return get_fusion(what)
    return define(what, what.__name__)


def random_inputs(model: Model, dims: Mapping[str, int], seed: int = 0) -> list[Any]:
    """Inputs of `main` for these sizes: standard normal floats, small non-negative integers, fair bools."""
    rng = np.random.default_rng(seed)
    out = []
    for value in model.main.inputs:
        shape = [sizes.evaluate(d, dict(dims)) for d in value.dims]
        if value.dtype.is_bool:
            out.append(np.asarray(rng.random(shape) < 0.5))
        elif value.dtype.is_integer:
            out.append(rng.integers(0, 4, shape).astype(value.dtype.numpy))
        else:
            out.append(rng.standard_normal(shape).astype(value.dtype.numpy))
    return out
