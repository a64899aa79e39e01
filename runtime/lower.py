"""From a canonical model to a legal one: specialize to sizes, clean up, decompose what the target does not take."""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..ir import types
from ..ir.clone import clone_model
from ..ir.dims import Size
from ..ir.model import Model
from ..passes import parse_pipeline, run_pipeline
from ..passes.legalize import legalize
from ..passes.specialize import specialize
from .backend import Backend
from .report import Report

AFTER_SPECIALIZE = "canonicalize,fold,cse,dce"
AFTER_LEGALIZE = "fold,cse,dce"


def lower(model: Model, entry: str, backend: Backend, dims: Mapping[str, int], report: Report) -> Model:
    """A model of its own in which `backend` claims every node, with the entry's dims replaced by `dims`.

    UnsupportedError lists every core operator that the target refuses.
    """
    started = time.perf_counter()
    entry_dims = model.entry(entry).dims
    # A called function has dims of its own, even if the entry has none.
    if backend.per_shape and (dims or (not entry_dims and any(f.dims for f in model.functions.values()))):
        mapping: dict[str, Size] = dict(dims)
        inputs = [types.substitute(v.type, mapping) for v in model.entry(entry).inputs]
        legal = specialize(model, entry, inputs, known=mapping)
        run_pipeline(legal, parse_pipeline(AFTER_SPECIALIZE))
        report.add_time("specialize", time.perf_counter() - started)
        started = time.perf_counter()
    else:
        legal = clone_model(model)
    report.decomposed = dict(legalize(legal, backend).decomposed)
    run_pipeline(legal, parse_pipeline(AFTER_LEGALIZE))
    report.add_time("legalize", time.perf_counter() - started)
    return legal
