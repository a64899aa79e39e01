"""Runs graphs that need the host: device functions one after another, and between them what only the host can do.

The host reads small tensors that decide shapes, chooses branches, repeats loops whose values are no tensors, and
handles sequences, optionals and strings.  Which node runs when is decided in `passes.stage`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.binding import bind_dims
from ..ir.data import ArrayData, Data
from ..ir.dims import Size, symbol
from ..ir.dims import substitute as substituted
from ..ir.dtypes import DType
from ..ir.errors import InferenceError, InputError, IrcError
from ..ir.graph import Constant, Graph, Node, Value
from ..ir.model import Function
from ..ir.reference import Evaluator, _Frame
from ..ir.types import TensorType, Type, substitute, symbols
from ..passes.left import Left, after_reading, needed, only_bind, rounded_sizes, start, with_sizes
from ..passes.special import CONTROL, is_special, is_tensor
from ..passes.stage import Stage, next_stage
from .backend import Backend
from .buckets import candidates, cut, fitted, shape_of
from .segments import Compiler, MustBeExact, Segment

Env = dict[Value, Any]


def needs_staging(function: Function, backend: Backend) -> bool:
    """Whether the target cannot run the function as one program."""
    edges = (*function.inputs, *function.outputs)
    if not backend.holds_any_value and not all(is_tensor(v.type) for v in edges):
        return True
    return any(is_special(n) and backend.claims(n) is not None for n in function.body.walk())


@dataclass
class _Step:
    """A stage, its compiled segment, and the steps that have followed it so far, by what the host read.

    `settled` are sizes that have numbers from here on although rounding up was asked for; `binding` the values read
    that stand for sizes which are rounded up.  `exact` has, by what was read, the sizes that the next step needs.
    """

    stage: Stage | None
    segment: Segment | None
    settled: frozenset[str] = frozenset()
    binding: dict[Value, str] = field(default_factory=dict)
    following: dict[Any, _Step] = field(default_factory=dict)
    exact: dict[Any, frozenset[str]] = field(default_factory=dict)


@dataclass
class _Run:
    """One run of a graph: contents, types with symbols of those that have room behind what counts, true sizes."""

    env: Env
    types: dict[Value, TensorType]
    bound: dict[str, int]


class Stager:
    """What the stages of one executable share."""

    def __init__(self, compiler: Compiler, rounds_up: bool) -> None:
        self.model = compiler.model
        self.compiler = compiler
        self.backend = compiler.backend
        self.report = compiler.report
        self.rounds_up = rounds_up
        self.evaluator = Evaluator(self.model)
        self.lock = compiler.lock
        self._bodies: dict[Graph, StagedGraph] = {}

    def body(self, graph: Graph) -> StagedGraph:
        """The sub-graph of a control-flow node that the host runs."""
        if graph not in self._bodies:
            self._bodies[graph] = StagedGraph(self, graph)
        return self._bodies[graph]

    def numpy(self, array: Any, dtype: DType) -> Any:
        """A tensor as a NumPy array of its element type."""
        if isinstance(array, np.ndarray):
            return array
        out = self.backend.to_numpy(array)
        if out.dtype == dtype.numpy:
            return out
        return out.view(dtype.numpy) if out.dtype.itemsize == dtype.numpy.itemsize else out.astype(dtype.numpy)

    def on_host(self, value: Value, content: Any) -> Any:
        """Any value as the reference evaluator takes it."""
        return self.numpy(content, value.type.dtype) if isinstance(value.type, TensorType) else content


class StagedGraph:
    """One graph.  `run` takes contents of its inputs and captures, and gives those of its outputs."""

    def __init__(self, stager: Stager, graph: Graph) -> None:
        self._stager = stager
        self._graph = graph
        self._first = _Step(None, None)

    def run(
        self, env: Env, sizes: Mapping[str, Size], as_numpy: bool, open_types: Mapping[Value, TensorType] | None = None
    ) -> list[Any]:
        """`env` has NumPy arrays, arrays of the target, lists, None; it grows.

        `open_types` has types of values in `env` whose sizes are to be rounded up, as symbols.
        """
        run = _Run(env, dict(open_types or {}), {n: s for n, s in sizes.items() if isinstance(s, int)})
        symbolic = {s for t in run.types.values() for s in symbols(t)}
        known = {n: symbol(n) if n in symbolic else s for n, s in sizes.items()}
        key: Any = (tuple((v, run.types.get(v) or _kind(a)) for v, a in env.items()), tuple(known.items()))
        step = self._step(self._first, key, lambda: start(self._graph, known), run)
        while True:
            stage = step.stage
            assert stage is not None, "only the step before the first has no stage"
            self._execute(step, stage, run)
            if not stage.left.items and not stage.reads:
                return [self._output(stage.left, v, run, as_numpy) for v in stage.left.outputs]
            contents = {v: self._read(stage.left, v, run) for v in stage.reads}
            run.bound.update((n, _size(contents[v])) for v, n in step.binding.items())
            frozen = {v: d for v, d in contents.items() if v not in step.binding}
            rounded: dict[Value, Size] = {v: symbol(n) for v, n in step.binding.items()}
            made = tuple((v, _kind(env[v])) for node, _ in stage.host for v in node.results)
            key = (tuple(d.tobytes() for d in frozen.values()), made)
            step = self._step(step, key, partial(after_reading, stage.left, frozen, rounded), run)

    def _step(self, before: _Step, key: Any, left: Callable[[], Left], run: _Run) -> _Step:
        """The step behind `before`.  Sizes that it cannot round up become part of its key."""
        found = before.following.get(self._whole(before, key, run))
        if found is None:
            with self._stager.lock:
                while (found := before.following.get(whole := self._whole(before, key, run))) is None:
                    settled = before.settled | before.exact.get(key, frozenset())
                    try:
                        found = before.following[whole] = self._made(left(), run, settled)
                    except MustBeExact as error:
                        before.exact[key] = before.exact.get(key, frozenset()) | set(error.reasons)
                        self._stager.report.exact.update(error.reasons)
        return found

    def _whole(self, before: _Step, key: Any, run: _Run) -> Any:
        return key, tuple(run.bound[n] for n in sorted(before.exact.get(key, ())))

    def _made(self, left: Left, run: _Run, settled: frozenset[str]) -> _Step:
        used = needed(left)
        numbers = {n: run.bound[n] for n in settled}
        left = with_sizes(left, numbers) if numbers else left
        known = {v: self._type(v, a, run, numbers) for v, a in run.env.items() if v in used}
        stager = self._stager
        try:
            stage = next_stage(stager.model, left, known)
        except InferenceError as error:
            if not (open_ := rounded_sizes(left)):
                raise
            raise MustBeExact(dict.fromkeys(open_, str(error))) from error
        segment = None if stage.model is None else Segment(stager.compiler, stage.model)
        binding = only_bind(stage.left, stage.reads) if stager.rounds_up else {}
        report = stager.report
        report.bucketed += [n for n in binding.values() if n not in report.bucketed]
        report.host_steps += bool(stage.reads) + len(stage.host)
        for node, _ in stage.host:
            if node.op.name not in ("if", "case"):
                report.host_operators[node.op.name] = report.host_operators.get(node.op.name, 0) + 1
        return _Step(stage, segment, settled, binding)

    def _type(self, value: Value, content: Any, run: _Run, numbers: Mapping[str, int]) -> Type:
        open_ = run.types.get(value)
        return _type(value, content) if open_ is None else substitute(open_, dict(numbers))

    def _execute(self, step: _Step, stage: Stage, run: _Run) -> None:
        if step.segment is not None:
            arguments = [self._argument(v, run, step.settled) for v in stage.inputs]
            as_numpy = not arguments or any(isinstance(a, np.ndarray) for a in arguments)
            out = step.segment.run(arguments, run.bound, as_numpy)
            run.env.update(zip(stage.outputs, out, strict=True))
            for value, type_ in zip(stage.outputs, step.segment.outputs, strict=True):
                if isinstance(type_, TensorType) and symbols(type_):
                    run.types[value] = type_
        for node, sizes in stage.host:
            numbers = {n: substituted(s, run.bound) for n, s in sizes.items()}
            run.env.update(zip(node.results, self._on_host(stage.left, node, numbers, run), strict=True))

    def _argument(self, value: Value, run: _Run, settled: frozenset[str]) -> Any:
        """What a segment takes: axes whose sizes are settled are cut, those that are rounded up it fits itself."""
        open_ = run.types.get(value)
        if open_ is None or not settled.intersection(symbols(open_)):
            return run.env[value]
        return fitted(run.env[value], shape_of(open_.shape, run.bound), self._stager.backend.to_numpy)

    def _content(self, left: Left, value: Value, run: _Run) -> Any:
        """All of a value that counts."""
        value = left.resolve(value)
        if isinstance(value, Constant):
            return self._stager.evaluator.constant(value)
        if (data := left.frozen.get(value)) is not None:
            return data.numpy()
        content, open_ = run.env[value], run.types.get(value)
        return content if open_ is None else cut(content, shape_of(open_.shape, run.bound))

    def _read(self, left: Left, value: Value, run: _Run) -> Data:
        dtype = value.type.dtype  # type: ignore[union-attr]  # a tensor
        return ArrayData(np.array(self._stager.numpy(self._content(left, value, run), dtype)), dtype)

    def _output(self, left: Left, value: Value, run: _Run, as_numpy: bool) -> Any:
        content = self._content(left, value, run)
        if not as_numpy or not isinstance(value.type, TensorType):
            return content
        return np.array(self._stager.numpy(content, value.type.dtype))

    def _on_host(self, left: Left, node: Node, sizes: Mapping[str, Size], run: _Run) -> Sequence[Any]:
        if node.op.name in CONTROL and any(node.all_graphs()):
            return self._control(left, node, sizes, run)
        contents = [
            None if v is None else self._stager.on_host(left.resolve(v), self._content(left, v, run))
            for v in node.operands
        ]
        numbers = {k: v for k, v in sizes.items() if isinstance(v, int)}
        return self._stager.evaluator.evaluate(node, contents, _Frame(dims=numbers))

    def _control(self, left: Left, node: Node, sizes: Mapping[str, Size], run: _Run) -> Sequence[Any]:
        """`if`, `case` and `while` with bodies that need the host themselves."""

        def ran(graph: Graph, arguments: Sequence[Any]) -> list[Any]:
            inner: Env = {v: self._content(left, v, run) for v in graph.captures()}
            inner.update(zip(graph.inputs, arguments, strict=True))
            return self._stager.body(graph).run(inner, sizes, as_numpy=False)

        state = [self._content(left, v, run) for v in node.operands if v is not None]
        if node.op.name == "while":
            cond, body = node.graphs["cond"][0], node.graphs["body"][0]
            while bool(_scalar(ran(cond, state)[0])):
                state = ran(body, state)
            return state
        choice = int(_scalar(state[0]))
        if node.op.name == "if":
            return ran(node.graphs["then" if choice else "else_"][0], ())
        branches = node.graphs["branches"]
        return ran(branches[choice if 0 <= choice < len(branches) else -1], ())


class StagedProgram:
    """An entry that runs in stages, as a program of an executable."""

    def __init__(self, compiler: Compiler, function: Function, rounds_up: bool) -> None:
        self.compiler = compiler
        self._function = function
        self._graph = StagedGraph(Stager(compiler, rounds_up), function.body)
        self._open = self._open_types() if rounds_up else {}
        compiler.report.bucketed = sorted({s for t in self._open.values() for s in symbols(t)})

    def _open_types(self) -> dict[Value, TensorType]:
        """Types of inputs whose sizes are to be rounded up."""
        names = set(candidates(self._function))
        return {
            v: v.type
            for v in self._function.inputs
            if isinstance(v.type, TensorType) and v.type.dims is not None and symbols(v.type)
            and symbols(v.type) <= names
        }  # fmt: skip

    @property
    def source(self) -> str:
        if not self.compiler.known:
            raise IrcError("nothing is compiled yet: what is emitted depends on the inputs' values; call it first")
        return "\n".join(program.source for program, _ in self.compiler.known.values())

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        env: Env = dict(zip(self._function.inputs, arguments, strict=True))
        tensors = [isinstance(v.type, TensorType) for v in self._function.inputs]
        shapes = [tuple(a.shape) if t else None for a, t in zip(arguments, tensors, strict=True)]
        return self._graph.run(env, bind_dims(self._function, shapes, partial=True), as_numpy, self._open)

    def save(self, folder: Path) -> None:
        """Its segments are saved one by one; see `runtime.artifact`."""


def _size(data: Data) -> int:
    return int(data.numpy().reshape(()))


def _scalar(array: Any) -> Any:
    return np.asarray(array).reshape(())


def _kind(content: Any) -> Any:
    """What of a value at hand types depend on."""
    return (tuple(content.shape), str(content.dtype)) if hasattr(content, "shape") else type(content)


def _type(value: Value, content: Any) -> Type:
    """The type of a value at hand: a tensor's sizes are known."""
    if not isinstance(value.type, TensorType):
        return value.type
    if not hasattr(content, "shape"):
        raise InputError(f"{value.name!r} expects {value.type}, got {type(content).__name__}")
    return TensorType(value.type.dtype, tuple(content.shape))


__all__ = ["StagedProgram", "needs_staging"]
