"""From a canonical model to a legal one: specialize to sizes, clean up, decompose what the target does not take.

And what can be said of a target's refusals before any stage of an entry that runs in stages is compiled.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from ..ir import types
from ..ir.clone import clone_model
from ..ir.dims import Size
from ..ir.graph import Node
from ..ir.model import Model
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from ..passes import parse_pipeline, run_pipeline
from ..passes.dce import drop_functions
from ..passes.legalize import legalize, report_refused, try_legalize
from ..passes.special import is_special
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


class _OfDevices:
    """The target's claims of nodes that a device runs for certain and whose types are known; it takes all others."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self.name = backend.name

    def claims(self, node: Node) -> str | None:
        if is_special(node) or any(is_special(n) for g in node.all_graphs() for n in g.walk()):
            return None
        types_ = [v.type for v in (*node.operands, *node.results) if v is not None]
        known = all(isinstance(t, TensorType) and t.dims is not None for t in types_)
        if known and not self._backend.per_shape:
            known = all(t.is_static for t in types_ if isinstance(t, TensorType))
        return self._backend.claims(node) if known else None


def check_stages(model: Model, entry: str, backend: Backend) -> None:
    """UnsupportedError with all operators that the target refuses, as far as types are known before anything runs."""
    copy = clone_model(model)
    for function in copy.functions.values():
        function.public = function.name == entry
    drop_functions(copy, Rewriter(copy, "stages"))
    report_refused(backend.name, try_legalize(copy, _OfDevices(backend))[1])
