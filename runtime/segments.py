"""Segments: the device functions of an entry that runs in stages, compiled once for each content and set of sizes."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ..ir import types
from ..ir.binding import check_assumptions
from ..ir.clone import clone_model
from ..ir.container import load as load_model
from ..ir.container import save as save_model
from ..ir.dims import Size
from ..ir.model import Model
from ..ir.text import print_function
from ..passes import parse_pipeline, run_pipeline
from ..passes.bucket_dims import bucket_dims, touches
from ..passes.specialize import specialize
from .artifact import MODEL, StoredProgram, evaluate_init
from .backend import Backend, Program, was_restored
from .buckets import Rounding, fitted, shape_of
from .lower import AFTER_SPECIALIZE, lower
from .report import Report


class MustBeExact(Exception):
    """Sizes that cannot be rounded up, and why."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        self.reasons = dict(reasons)
        super().__init__(", ".join(self.reasons))


@dataclass
class Compiler:
    """Compiles segments of one executable, or loads them if its artifact has them.

    `known` are all programs by a digest of what they do, `loaded` is told of each that was loaded.
    """

    model: Model
    backend: Backend
    report: Report
    state: dict[str, Any]
    stored: Mapping[str, StoredProgram] = field(default_factory=dict)
    loaded: Callable[[float], None] = lambda seconds: None
    known: dict[str, tuple[Program, Model]] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)

    def program(self, segment: Model, dims: Mapping[str, int]) -> Program:
        """The program of the function `main` of a model for these sizes."""
        digest = _digest(segment, dims, self.model)
        with self.lock:
            if digest not in self.known:
                self.known[digest] = self._load(digest) or self._compile(segment, dims)
            return self.known[digest][0]

    def _load(self, digest: str) -> tuple[Program, Model] | None:
        stored = self.stored.get(digest)
        if stored is None or not stored.is_intact():
            return None
        started = time.perf_counter()
        model = self.model if self.backend.per_shape else load_model(stored.folder / MODEL)
        program = self.backend.load(stored.folder, model, "main", self.state)
        self.loaded(time.perf_counter() - started)
        return program, model

    def _compile(self, segment: Model, dims: Mapping[str, int]) -> tuple[Program, Model]:
        if dims:
            known: dict[str, Size] = dict(dims)
            inputs = [types.substitute(v.type, known) for v in segment.main.inputs]
            segment = specialize(segment, "main", inputs, known=known)
        run_pipeline(segment, parse_pipeline(AFTER_SPECIALIZE))
        legal = lower(segment, "main", self.backend, {}, self.report)
        started = time.perf_counter()
        program = self.backend.compile(legal, "main", self.state)
        if was_restored(program):
            self.loaded(time.perf_counter() - started)
        else:
            self.report.add_time("compile", time.perf_counter() - started)
            self.report.segments += 1
        return program, legal

    def save(self, digest: str, folder: Path) -> None:
        """Write a program; a shape-polymorphic target's with the model that it was compiled from."""
        program, legal = self.known[digest]
        program.save(folder)
        if not self.backend.per_shape:
            save_model(evaluate_init(legal), folder / MODEL)


def _digest(segment: Model, dims: Mapping[str, int], model: Model) -> str:
    """Of what a segment does: the executable's own weights count by their names, others (of late nodes) by contents."""
    foreign = [
        f"{name} {constant.data.digest}"
        for name, constant in segment.constants.items()
        if constant.data is not None
        and ((own := model.constants.get(name)) is None or own.data is not constant.data)
    ]
    texts = [print_function(f, locations=False, labels=False) for f in segment.functions.values()]
    return hashlib.sha256("\n".join([repr(sorted(dims.items())), *foreign, *texts]).encode()).hexdigest()


class Segment:
    """One device function.  Symbols in its types are sizes that are rounded up; MustBeExact if they cannot be."""

    def __init__(self, compiler: Compiler, model: Model) -> None:
        self._compiler = compiler
        self._function = model.main
        self._lock = compiler.lock
        names = [n for n in model.main.dims if _mentions(model, n)]
        model.main.dims = names
        if names:
            done = bucket_dims(model, "main", names)
            if done.exact:
                raise MustBeExact(done.exact)
            model = done.model
        self._model = model
        self._rounding = Rounding(model.main, compiler.report.limited)
        self._programs: dict[tuple[int, ...], Program] = {}
        if not names:
            self._programs[()] = compiler.program(model, {})

    @cached_property
    def outputs(self) -> list[types.Type]:
        """Types of the results; sizes that are rounded up are symbols."""
        return [v.type for v in self._model.main.outputs]

    def run(self, arguments: Sequence[Any], bound: Mapping[str, int], as_numpy: bool) -> Sequence[Any]:
        """Results with room for capacities.  `bound` has the true sizes."""
        names = self._rounding.dims
        if not names:
            return self._programs[()].run(arguments, as_numpy)
        true = {n: bound[n] for n in names}
        check_assumptions(self._function, true)
        capacities = self._rounding.rounded(true)
        filled = []
        for value, argument in zip(self._rounding.inputs, arguments, strict=True):
            dims = self._rounding.open_dims(value)
            shape = argument.shape if dims is None else shape_of(dims, capacities)
            filled.append(fitted(argument, shape, self._compiler.backend.to_numpy))
        return self._program(capacities).run([*filled, *self._rounding.true(true)], as_numpy)

    def _program(self, capacities: Mapping[str, int]) -> Program:
        key = tuple(capacities[n] for n in self._rounding.dims)
        program = self._programs.get(key)
        if program is None:
            program = self._programs[key] = self._compiler.program(clone_model(self._model), capacities)
        return program


def _mentions(model: Model, name: str) -> bool:
    """Whether a type or a size of `main` mentions a symbol."""
    if any(name in types.symbols(v.type) for v in model.main.inputs):
        return True
    return any(touches(n, (name,)) for n in model.main.body.walk())
