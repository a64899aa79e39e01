"""Runs graphs that need the host: device functions one after another, and between them what only the host can do.

The host reads small tensors that decide shapes, chooses branches, repeats loops whose values are no tensors, and
handles sequences, optionals and strings.  Which node runs when is decided in `passes.stage`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.binding import bind_dims
from ..ir.data import ArrayData, Data
from ..ir.dims import Size
from ..ir.dtypes import DType
from ..ir.errors import InputError, IrcError
from ..ir.graph import Constant, Graph, Node, Value
from ..ir.model import Function, Model
from ..ir.reference import Evaluator, _Frame
from ..ir.types import TensorType, Type
from ..passes.stage import CONTROL, Left, Stage, after_reading, is_special, is_tensor, needed, next_stage, start
from .backend import Backend, Program
from .report import Report

Env = dict[Value, Any]


def needs_staging(function: Function, backend: Backend) -> bool:
    """Whether the target cannot run the function as one program."""
    edges = (*function.inputs, *function.outputs)
    if not backend.holds_any_value and not all(is_tensor(v.type) for v in edges):
        return True
    return any(is_special(n) and backend.claims(n) is not None for n in function.body.walk())


@dataclass
class _Step:
    """A stage, its compiled program, and the steps that have followed it so far, by what the host read."""

    stage: Stage
    program: Program | None
    following: dict[Any, _Step] = field(default_factory=dict)


class Stager:
    """What the stages of one executable share."""

    def __init__(self, model: Model, backend: Backend, report: Report, state: dict[str, Any]) -> None:
        self.model = model
        self.backend = backend
        self.report = report
        self.state = state
        self.evaluator = Evaluator(model)
        self.lock = threading.RLock()
        self.sources: list[str] = []
        self._bodies: dict[Graph, StagedGraph] = {}

    def body(self, graph: Graph) -> StagedGraph:
        """The sub-graph of a control-flow node that the host runs."""
        if graph not in self._bodies:
            self._bodies[graph] = StagedGraph(self, graph)
        return self._bodies[graph]

    def compile(self, model: Model) -> Program:
        from ..passes import parse_pipeline, run_pipeline
        from .lower import AFTER_SPECIALIZE, lower

        run_pipeline(model, parse_pipeline(AFTER_SPECIALIZE))
        legal = lower(model, "main", self.backend, {}, self.report)
        program = self.backend.compile(legal, "main", self.state)
        self.report.segments += 1
        self.sources.append(program.source)
        return program

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
        self._first: dict[Any, _Step] = {}

    def run(self, env: Env, sizes: Mapping[str, Size], as_numpy: bool) -> list[Any]:
        """`env` has NumPy arrays, arrays of the target, lists, None; it grows."""
        key: Any = (tuple((v, _kind(a)) for v, a in env.items()), tuple(sizes.items()))
        step = self._step(self._first, key, partial(start, self._graph, sizes), env)
        while True:
            stage = step.stage
            self._execute(step, env)
            if not stage.left.items and not stage.reads:
                return [self._output(stage.left, v, env, as_numpy) for v in stage.left.outputs]
            contents = {v: self._read(stage.left, v, env) for v in stage.reads}
            made = tuple((v, _kind(env[v])) for node, _ in stage.host for v in node.results)
            key = (tuple(d.tobytes() for d in contents.values()), made)
            step = self._step(step.following, key, partial(after_reading, stage.left, contents), env)

    def _step(self, known: dict[Any, _Step], key: Any, left: Callable[[], Left], env: Env) -> _Step:
        found = known.get(key)
        if found is None:
            with self._stager.lock:
                found = known.get(key)
                if found is None:
                    found = known[key] = self._made(left(), env)
        return found

    def _made(self, left: Left, env: Env) -> _Step:
        used = needed(left)
        stage = next_stage(self._stager.model, left, {v: _type(v, a) for v, a in env.items() if v in used})
        program = None if stage.model is None else self._stager.compile(stage.model)
        report = self._stager.report
        report.host_steps += bool(stage.reads) + len(stage.host)
        for node, _ in stage.host:
            if node.op.name not in ("if", "case"):
                report.host_operators[node.op.name] = report.host_operators.get(node.op.name, 0) + 1
        return _Step(stage, program)

    def _execute(self, step: _Step, env: Env) -> None:
        stage = step.stage
        if step.program is not None:
            arguments = [env[v] for v in stage.inputs]
            out = step.program.run(arguments, not arguments or any(isinstance(a, np.ndarray) for a in arguments))
            env.update(zip(stage.outputs, out, strict=True))
        for node, sizes in stage.host:
            env.update(zip(node.results, self._on_host(stage.left, node, sizes, env), strict=True))

    def _content(self, left: Left, value: Value, env: Env) -> Any:
        value = left.resolve(value)
        if isinstance(value, Constant):
            return self._stager.evaluator.constant(value)
        if (data := left.frozen.get(value)) is not None:
            return data.numpy()
        return env[value]

    def _read(self, left: Left, value: Value, env: Env) -> Data:
        dtype = value.type.dtype  # type: ignore[union-attr]  # a tensor
        return ArrayData(np.array(self._stager.numpy(self._content(left, value, env), dtype)), dtype)

    def _output(self, left: Left, value: Value, env: Env, as_numpy: bool) -> Any:
        content = self._content(left, value, env)
        if not as_numpy or not isinstance(value.type, TensorType):
            return content
        return np.array(self._stager.numpy(content, value.type.dtype))

    def _on_host(self, left: Left, node: Node, sizes: Mapping[str, Size], env: Env) -> Sequence[Any]:
        if node.op.name in CONTROL and any(node.all_graphs()):
            return self._control(left, node, sizes, env)
        contents = [
            None if v is None else self._stager.on_host(left.resolve(v), self._content(left, v, env))
            for v in node.operands
        ]
        numbers = {k: v for k, v in sizes.items() if isinstance(v, int)}
        return self._stager.evaluator.evaluate(node, contents, _Frame(dims=numbers))

    def _control(self, left: Left, node: Node, sizes: Mapping[str, Size], env: Env) -> Sequence[Any]:
        """`if`, `case` and `while` with bodies that need the host themselves."""

        def run(graph: Graph, arguments: Sequence[Any]) -> list[Any]:
            inner: Env = {v: self._content(left, v, env) for v in graph.captures()}
            inner.update(zip(graph.inputs, arguments, strict=True))
            return self._stager.body(graph).run(inner, sizes, as_numpy=False)

        state = [self._content(left, v, env) for v in node.operands if v is not None]
        if node.op.name == "while":
            cond, body = node.graphs["cond"][0], node.graphs["body"][0]
            while bool(_scalar(run(cond, state)[0])):
                state = run(body, state)
            return state
        choice = int(_scalar(state[0]))
        if node.op.name == "if":
            return run(node.graphs["then" if choice else "else_"][0], ())
        branches = node.graphs["branches"]
        return run(branches[choice if 0 <= choice < len(branches) else -1], ())


class StagedProgram:
    """An entry that runs in stages, as a program of an executable."""

    def __init__(
        self, model: Model, function: Function, backend: Backend, report: Report, state: dict[str, Any]
    ) -> None:
        self._stager = Stager(model, backend, report, state)
        self._function = function
        self._graph = StagedGraph(self._stager, function.body)

    @property
    def source(self) -> str:
        if not self._stager.sources:
            raise IrcError("nothing is compiled yet: what is emitted depends on the inputs' values; call it first")
        return "\n".join(self._stager.sources)

    def run(self, arguments: Sequence[Any], as_numpy: bool) -> Sequence[Any]:
        env: Env = dict(zip(self._function.inputs, arguments, strict=True))
        tensors = [isinstance(v.type, TensorType) for v in self._function.inputs]
        shapes = [tuple(a.shape) if t else None for a, t in zip(arguments, tensors, strict=True)]
        return self._graph.run(env, bind_dims(self._function, shapes, partial=True), as_numpy)

    def save(self, folder: Path) -> None:
        raise IrcError(
            f"@{self._function.name} is compiled in stages that depend on the inputs' values; it cannot be saved"
        )


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
