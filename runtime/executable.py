"""Executable: a compiled model as a function.  Compiles once per shape (or once for all), then replays.

The call path is: order the arguments, look the shapes up, run.  Everything else happens on the first call of a shape.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir.binding import check_assumptions
from ..ir.dims import DimError
from ..ir.dtypes import DType
from ..ir.errors import AssumptionError, InferenceError, InputError, IrcError
from ..ir.model import Function, Model
from .arguments import Arguments, as_size, dim_symbol
from .artifact import StoredProgram, save
from .backend import Backend, Program, was_restored
from .buckets import SHAPES, BucketedProgram, Rounding, candidates
from .outputs import Outputs
from .programs import Dims, Programs
from .report import Report

if TYPE_CHECKING:
    from .disk_cache import DiskCache
    from .segments import Compiler

CALLS = 1024
"""How many combinations of arguments' classes, shapes and element types are remembered as checked."""

_OF_HOST = (np.ndarray, list)

Key = tuple[tuple[type, tuple[int, ...], Any], ...]


class Executable:
    """Call it with arrays by position, by keyword, or with one mapping of names to arrays.

    NumPy arrays in (or no inputs at all) give owned, writable NumPy arrays out; else the target's arrays come back.
    There are no silent casts: element types must be those of the entry.

    `compile_count` counts compilations, `load_count` programs restored from an artifact or from `cache` instead.  At
    most `capacity` programs are kept; the one that has not been called for longest goes first.  `seed` fixes the keys
    of random operators that have no seed of their own.  With `shapes="bucket"` sizes are rounded up to powers of two
    where the operators allow it, see `runtime.buckets`; the report says which are and why others are not.
    """

    def __init__(
        self,
        model: Model,
        backend: Backend,
        *,
        entry: str | None = None,
        capacity: int = 64,
        report: Report | None = None,
        stored: Mapping[Dims, StoredProgram] | None = None,
        segments: Mapping[str, StoredProgram] | None = None,
        seed: int | None = None,
        shapes: str = "exact",
        cache: DiskCache | None = None,
    ) -> None:
        if shapes not in SHAPES:
            raise InputError(f"shapes must be one of {', '.join(SHAPES)}, got {shapes!r}")
        self.backend = backend
        self.shapes = shapes
        self.report = report if report is not None else Report()
        self.model = model
        self.entry: Function = model.entry(entry)
        if shapes == "bucket" and stored is None and not self.is_staged:
            self._round_up()
        self._rounding = Rounding(self.entry, self.report.limited)
        self.compile_count = 0
        self.load_count = 0
        self._state: dict[str, Any] = {"model": model, "cache": cache}
        self._calls: dict[Key, tuple[Program, Dims]] = {}
        self._programs = Programs(capacity)
        self._stored = dict(stored or {})
        self._stored_segments = dict(segments or {})
        self._unfit: set[Dims] = set()
        self._arguments = Arguments(self.entry, self._rounding, backend)
        self._ordered, self._touch = self._arguments.ordered, self._programs.touch
        self._names, self._hidden = self._arguments.names, self._arguments.hidden
        self._keys = np.random.SeedSequence(seed)
        self._output_names = tuple(self.entry.output_names)
        if len(set(self._output_names)) != len(self._output_names):
            raise IrcError(f"outputs of @{self.entry.name} share a name: {', '.join(self._output_names)}; rename them")

    @cached_property
    def is_staged(self) -> bool:
        """Whether the entry runs in stages, with the host's help."""
        from .staging import needs_staging

        return needs_staging(self.entry, self.backend)

    def _round_up(self) -> None:
        """Have the entry take capacities for its dims, as far as its operators allow."""
        from ..passes.bucket_dims import bucket_dims

        started = time.perf_counter()
        name, readable = self.entry.name, candidates(self.entry)
        done = bucket_dims(self.model, name, readable)
        self.report.bucketed = list(done.dims)
        self.report.exact = {
            **{n: "no input has a dim of just this size" for n in self.entry.dims if n not in readable}, **done.exact
        }  # fmt: skip
        if done.dims:
            self.model = done.model
            self.entry = done.model.entry(name)
        self.report.add_time("bucket", time.perf_counter() - started)

    @property
    def input_types(self) -> dict[str, Any]:
        """Name to type of each input."""
        return {n: v.type for n, v in zip(self._names, self.entry.inputs, strict=False)}

    @property
    def output_types(self) -> dict[str, Any]:
        """Name to type of each output."""
        return {n: v.type for n, v in zip(self._output_names, self.entry.outputs, strict=True)}

    def __call__(self, *arguments: Any, **named: Any) -> Outputs:
        ordered = self._ordered(arguments, named)
        if self._hidden:
            ordered += [self._fresh_key()] * self._hidden
        try:
            program, dims = self._calls[tuple([(a.__class__, a.shape, a.dtype) for a in ordered])]
            self._touch(dims)
        except (KeyError, AttributeError, TypeError):
            arrays = self._arguments.arrays(ordered)
            program = self._checked(arrays, all(a is b for a, b in zip(arrays, ordered, strict=True)))
            ordered = arrays
        given = ordered[: len(self._names)]
        as_numpy = not given or any([isinstance(a, _OF_HOST) for a in given])  # noqa: C419  (a generator is slower)
        return Outputs(program.run(ordered, as_numpy), self._output_names)

    def _fresh_key(self) -> Any:
        """u32[2] for the next call; with a seed the same sequence of keys in every process."""
        with self._programs.lock:
            return self._keys.spawn(1)[0].generate_state(2, np.uint32)

    def _checked(self, arguments: Sequence[Any], as_given: bool) -> Program:
        """Check the arguments, then find, load or compile the program for their shapes.

        The next call with arguments of the same classes, shapes and types finds it at once, if none needed converting.
        """
        bound = self._arguments.sizes(arguments)
        program = self._get(bound)
        if as_given and self._arguments.are_tensors:
            with self._programs.lock:
                while len(self._calls) >= CALLS:
                    del self._calls[next(iter(self._calls))]
                key = tuple([(a.__class__, a.shape, a.dtype) for a in arguments])
                self._calls[key] = (program, self._key(bound))
        return program

    def _forget(self, gone: Dims) -> None:
        """A program is dropped: arguments of its sizes are looked at anew."""
        self._calls = {k: found for k, found in self._calls.items() if found[1] != gone}

    def bind(
        self, shapes: Sequence[tuple[int, ...] | None], dtypes: Sequence[DType | None] | None = None
    ) -> dict[str, int]:
        """Values of the entry's dims for these input shapes; InputError or AssumptionError says what does not fit."""
        return self._arguments.bind(shapes, dtypes)

    def _key(self, bound: Mapping[str, int]) -> Dims:
        """What `_programs` has the program for these dims under."""
        if not self.backend.per_shape or self.is_staged:
            return ()
        return tuple(sorted(self._chosen(bound).items()))

    def _chosen(self, bound: Mapping[str, int]) -> dict[str, int]:
        """The sizes that the program for these dims is compiled for."""
        rounded = self._rounding.rounded(bound) if self._rounding.dims else dict(bound)
        return dict(bound) if tuple(sorted(rounded.items())) in self._unfit else rounded

    def _get(self, bound: Mapping[str, int]) -> Program:
        """The program for these dims; one thread compiles, others wait for it."""
        key = self._key(bound)
        try:
            return self._programs.get(key, self._make, self._forget)
        except (InferenceError, AssumptionError, DimError):
            if key == tuple(sorted(bound.items())) or not self._rounding.dims or not key:
                raise
            self._unfit.add(key)
            return self._get(bound)

    def _make(self, key: Dims) -> Program:
        stored = self._stored.get(key)
        if stored is not None and stored.is_intact():
            started = time.perf_counter()
            program = self.backend.load(stored.folder, self.model, self.entry.name, self._state)
            self.load_count += 1
            self.report.add_time("load", time.perf_counter() - started)
            return self._wrapped(program)
        if self.is_staged:
            from .staging import StagedProgram

            return StagedProgram(self.compiler, self.entry, self.shapes == "bucket")
        from .lower import lower

        legal = lower(self.model, self.entry.name, self.backend, dict(key), self.report)
        if not self.backend.per_shape:
            self._state["legal"] = legal
        started = time.perf_counter()
        program = self.backend.compile(legal, self.entry.name, self._state)
        if was_restored(program):
            self._segment_loaded(time.perf_counter() - started)
        else:
            self.report.add_time("compile", time.perf_counter() - started)
            self.compile_count += 1
        return self._wrapped(program)

    def _wrapped(self, program: Program) -> Program:
        """The program as one that takes arrays of true sizes."""
        if not self._rounding.dims:
            return program
        return BucketedProgram(program, self._rounding, self.backend, self._chosen)

    @cached_property
    def compiler(self) -> Compiler:
        """What compiles and has compiled the segments of an entry that runs in stages."""
        from .segments import Compiler

        return Compiler(self.model, self.backend, self.report, self._state, self._stored_segments, self._segment_loaded)

    def _segment_loaded(self, seconds: float) -> None:
        self.load_count += 1
        self.report.add_time("load", seconds)

    def prepare(self) -> None:
        """Ask the target's table about every node; compile if that needs no sizes.  UnsupportedError lists refusals."""
        from .lower import check_stages, lower

        if self.is_staged:
            check_stages(self.model, self.entry.name, self.backend)
        if self.backend.per_shape and self.entry.dims and not self.is_staged:
            lower(self.model, self.entry.name, self.backend, {}, self.report)
        else:
            self._get({})

    def specialize(self, **dims: int) -> None:
        """Compile ahead for these values of the entry's dims (by symbol, or by the name that the source model gave).

        A shape-polymorphic target compiles its one program.  InputError names a dim that is unknown or left out.
        """
        self.program_for(self.named_dims(dims))

    def program_for(self, bound: Mapping[str, int]) -> Program:
        """The program for these values of the entry's dims, by symbol; compiled if need be."""
        missing = [d for d in self.entry.dims if d not in bound]
        if missing and self.backend.per_shape and not self.is_staged:
            raise InputError(f"target {self.backend.name} needs every dim; unspecified: {', '.join(missing)}")
        check_assumptions(self.entry, bound)
        try:
            return self._get(bound)
        except DimError as error:
            given = ", ".join(f"{n}={v}" for n, v in bound.items())
            raise AssumptionError(f"@{self.entry.name} cannot run with {given}: {error}") from error

    def named_dims(self, dims: Mapping[str, Any]) -> dict[str, int]:
        """Dims by symbol from dims by symbol or source name; InputError for an unknown one, or for what is no size."""
        return {self.dim_symbol(n): as_size(n, v) for n, v in dims.items()}

    def dim_symbol(self, name: str) -> str:
        """The symbol of a dim that the user calls by its symbol or by the source model's name for it."""
        return dim_symbol(self.entry, name)

    @property
    def programs(self) -> dict[Dims, Program]:
        """Compiled programs by dims; the empty key for a shape-polymorphic one."""
        return self._programs.all()

    @property
    def stored(self) -> dict[Dims, StoredProgram]:
        """Programs of the artifact that this came from, by dims, loaded or not."""
        return dict(self._stored)

    @property
    def legal_model(self) -> Model:
        """The model that a shape-polymorphic target's one program was compiled from."""
        self._get({})
        legal: Model = self._state.get("legal", self.model)
        return legal

    @property
    def source(self) -> str:
        """The emitted code.  With several specializations ask `source_for(B=2)`; with none yet, an error says so."""
        programs = self.programs
        if not programs and (not self.entry.dims or not self.backend.per_shape):
            return self._get({}).source
        if not programs:
            raise IrcError(
                f"nothing is compiled yet; call it or specialize({'=..., '.join(self.entry.dims)}=...) first"
            )
        if len(programs) > 1:
            listed = "; ".join(", ".join(f"{n}={v}" for n, v in key) for key in programs)
            raise IrcError(f"there are {len(programs)} specializations; ask source_for(...) one of: {listed}")
        return next(iter(programs.values())).source

    def source_for(self, **dims: int) -> str:
        """The emitted code of one specialization, compiled if need be."""
        return self.program_for(self.named_dims(dims)).source

    def save(self, path: str | Path) -> None:
        """Write an artifact folder with everything compiled so far; see `runtime.artifact`."""
        save(self, Path(path))

    def __repr__(self) -> str:
        inputs = ", ".join(f"{n}: {t}" for n, t in self.input_types.items())
        return f"<executable @{self.entry.name}({inputs}) on {self.backend.spec}, {self.compile_count} compiled>"
