"""The reference evaluator: runs a model node by node in NumPy, exactly and simply.  It defines what results are right.

float16, bfloat16 and float32 are computed in float64 and rounded once; integers wrap; a composite without a formula of
its own runs its decomposition.  A value is dropped after its last use.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

from . import dims as sizes
from .binding import bind_dims, check_assumptions
from .build import decomposed
from .conversion import rounded
from .data import Array, Data
from .dtypes import DType
from .errors import InferenceError, InputError, IrcError
from .facts import Fact, fact_of_data
from .model import Constant, Function, Graph, Model, Node, Value
from .operators import Operator, Trait
from .types import TensorType, Type

TraceHook = Callable[[Node, tuple[Any, ...]], None]
Steps: TypeAlias = Generator["Steps", Any, Any]
"""Work that hands out the work it needs done first and is sent its results; `_done` runs it."""


def _done(steps: Steps) -> Any:
    """The result of work, with an explicit stack: graphs and calls may nest as deep as the model likes."""
    stack, sent = [steps], None
    while stack:
        try:
            stack.append(stack[-1].send(sent))
            sent = None
        except StopIteration as finished:
            stack.pop()
            sent = finished.value
    return sent


@dataclass
class _Frame:
    """Values and dims of one running function; sub-graphs share it."""

    values: dict[Value, Any] = field(default_factory=dict)
    dims: dict[str, int] = field(default_factory=dict)


class ReferenceContext:
    """What a `reference` rule may ask.  Sizes among the attributes are already numbers.

    Control flow is written as generators: `outputs = yield ctx.steps(graph, ...)`, so that nothing recurses.
    """

    def __init__(self, evaluator: Evaluator, node: Node, frame: _Frame) -> None:
        self._evaluator = evaluator
        self._frame = frame
        self.node = node
        self.model = evaluator.model

    @property
    def result_types(self) -> tuple[Type, ...]:
        """Types of the results with dims as numbers."""
        return tuple(self._evaluator.concrete(r.type, self._frame) for r in self.node.results)

    def clamped(self, indices: Array, size: int) -> Array:
        """Indices in [-size, size) with negative ones counted from the end; others clamp to the nearest end.

        InputError if there are indices but nothing they could point to.
        """
        if indices.size and not size:
            raise InputError(f"{self.node.label}: an axis of 0 elements has none to take")
        if indices.dtype == np.uint64:  # those above the greatest i64 are no negative ones
            indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
        wide = indices.astype(np.int64)
        wide = np.where(wide < 0, wide + size, wide)
        return np.clip(wide, 0, max(size - 1, 0))

    def wide(self, x: Array) -> Array:
        """Narrow floats as f64 and c64 as c128, so that a rule rounds once; sub-byte integers as i64."""
        dtype = DType.from_numpy(x.dtype)
        if dtype.is_float and dtype.bits < 64:
            return x.astype(np.float64)
        if dtype.is_integer and dtype.bits < 8:
            return x.astype(np.int64)
        return x.astype(np.complex128) if dtype.is_complex and dtype.bits == 64 else x

    def rounded(self, x: Any, dtype: DType) -> Array:
        """`x` converted to `dtype` (the evaluator does this to every result by itself)."""
        with np.errstate(all="ignore"):
            array = np.asarray(x)
            return rounded(array, dtype) if dtype.is_float else array.astype(dtype.numpy)

    def run(self, graph: Graph, *arguments: Any) -> tuple[Any, ...]:
        """Run a sub-graph; captures are the values of the enclosing graphs."""
        return self._evaluator.run_graph(graph, arguments, self._frame)

    def steps(self, graph: Graph, *arguments: Any) -> Steps:
        """What a rule yields to have a sub-graph run; it is sent the outputs."""
        return self._evaluator.graph_steps(graph, arguments, self._frame)

    def call(self, name: str, *arguments: Any) -> Steps:
        """What a rule yields to have a function of the model run; it is sent the outputs."""
        return self._evaluator.call_steps(self.model.functions[name], arguments)

    def evaluate(self, model: Model, *arguments: Any) -> tuple[Any, ...]:
        """Run `main` of another model (one made for this node, which may mention dims of this function)."""
        return Evaluator(model).call(model.main, arguments, self._frame.dims)

    def value(self, value: Value) -> Any:
        """The content of a value of this function (a capture)."""
        return self._evaluator.value(value, self._frame)

    def bind(self, name: str, size: int) -> None:
        """Give the dim `name` its value (bind_dim)."""
        self._frame.dims[name] = size

    def fail(self, message: str) -> NoReturn:
        raise IrcError(f"{self.node.label}: {message}")


class Evaluator:
    """Runs functions of one model.  A derived constant is computed once, on first use, with what it depends on."""

    def __init__(self, model: Model, *, trace: TraceHook | None = None) -> None:
        self.model = model
        self.trace = trace
        self._derived: dict[Value, Array] = {}  # by output of `init`
        self._last: dict[Graph, dict[Node, list[Value]]] = {}
        self._decompositions: dict[Any, Model] = {}

    def call(
        self, function: Function, arguments: Sequence[Any], known: Mapping[str, int] | None = None
    ) -> tuple[Any, ...]:
        """Run a function on arrays (lists for sequences, None for absent optionals); `known` are dims bound before."""
        self._last = {}  # the model may have changed since the last call
        out: tuple[Any, ...] = _done(self.call_steps(function, arguments, known))
        return out

    def call_steps(self, function: Function, arguments: Sequence[Any], known: Mapping[str, int] | None = None) -> Steps:
        frame = _Frame()
        if len(arguments) != len(function.inputs):
            raise InputError(f"@{function.name} takes {len(function.inputs)} inputs, got {len(arguments)}")
        shapes = [argument_shape(v, a) for v, a in zip(function.inputs, arguments, strict=True)]
        frame.dims = {k: v for k, v in bind_dims(function, shapes, known).items() if isinstance(v, int)}
        check_assumptions(function, frame.dims)
        return (yield self.graph_steps(function.body, arguments, frame))

    def run_graph(self, graph: Graph, arguments: Sequence[Any], frame: _Frame) -> tuple[Any, ...]:
        out: tuple[Any, ...] = _done(self.graph_steps(graph, arguments, frame))
        return out

    def graph_steps(self, graph: Graph, arguments: Sequence[Any], frame: _Frame) -> Steps:
        frame.values.update(zip(graph.inputs, arguments, strict=True))
        if graph not in self._last:
            self._last[graph] = _last_uses(graph.nodes, graph.outputs)
        yield self._nodes(graph.nodes, self._last[graph], frame)
        outputs = tuple(self.value(v, frame) for v in graph.outputs)
        for value in graph.outputs:
            if value.graph is graph:
                frame.values.pop(value, None)
        return outputs

    def _nodes(self, nodes: Iterable[Node], last: Mapping[Node, Sequence[Value]], frame: _Frame) -> Steps:
        for node in nodes:
            operands = [None if v is None else self.value(v, frame) for v in node.operands]
            results = self._results(node, operands, frame)
            del operands
            if isinstance(results, Generator):
                results = yield results
            results = self._finished(node, results, frame)
            frame.values.update(zip(node.results, results, strict=True))
            if self.trace is not None:
                self.trace(node, results)
            del results
            for value in last.get(node, ()):
                frame.values.pop(value, None)

    def value(self, value: Value, frame: _Frame) -> Any:
        if isinstance(value, Constant):
            return self.constant(value)
        return frame.values[value]

    def constant(self, constant: Constant) -> Array:
        """Contents of a constant, derived ones included."""
        if constant.data is not None:
            return constant.data.numpy()
        init = self.model.init
        value = dict(zip(self.model.derived, init.outputs, strict=True))[constant]
        if value not in self._derived:
            frame = _Frame(dict(self._derived))
            needed: set[Node] = set()
            stack = [value]
            while stack:
                node = stack.pop().node
                if node is not None and node not in needed:
                    needed.add(node)
                    stack += [v for v in _read(node) if v.graph is init and v not in frame.values]
            nodes = [n for n in init.nodes if n in needed]
            _done(self._nodes(nodes, _last_uses(nodes, init.outputs), frame))
            self._derived.update((v, frame.values[v]) for v in init.outputs if v in frame.values)
        return self._derived[value]

    def fold(self, node: Node) -> tuple[Any, ...]:
        """Results of a node whose operands are all constants and whose attributes hold no symbol."""
        return self.apply(node, [None if v is None else self.value(v, _Frame()) for v in node.operands])

    def apply(self, node: Node, operands: Sequence[Any]) -> tuple[Any, ...]:
        """Results of one node on arrays; its attributes hold no symbol."""
        return self.evaluate(node, operands, _Frame())

    def evaluate(self, node: Node, operands: Sequence[Any], frame: _Frame) -> tuple[Any, ...]:
        """Results of one node, rounded to their types and checked against them."""
        if node.graphs:
            self._last = {}
        results = self._results(node, operands, frame)
        return self._finished(node, _done(results) if isinstance(results, Generator) else results, frame)

    def _results(self, node: Node, operands: Sequence[Any], frame: _Frame) -> Any:
        """What the operator's rule or decomposition returns: results, or the steps to them."""
        op = node.op
        keywords = {k: _concrete_sizes(v, frame.dims) for k, v in node.keywords.items()}
        ctx = ReferenceContext(self, node, frame)
        with np.errstate(all="ignore"):
            if op.reference is not None:
                if Trait.ELEMENTWISE in op.traits:
                    operands = [None if a is None else ctx.wide(a) for a in operands]
                return op.reference(ctx, *op.group(operands), **keywords)
            if op.decompose is not None:
                return self._decomposed(op, node, operands, keywords)
        raise IrcError(f"{node.label} has neither a reference nor a decomposition")

    def _finished(self, node: Node, results: Any, frame: _Frame) -> tuple[Any, ...]:
        rows = tuple(results) if isinstance(results, tuple | list) and len(node.results) != 1 else (results,)
        if isinstance(results, tuple) and len(node.results) == 1:
            rows = results
        return tuple(self._finish(node, v, r, frame) for v, r in zip(node.results, rows, strict=True))

    def _finish(self, node: Node, value: Value, result: Any, frame: _Frame) -> Any:
        type_ = value.type
        if not isinstance(type_, TensorType):
            return result
        array = np.asarray(result)
        if array.dtype != type_.dtype.numpy:
            with np.errstate(all="ignore"):
                array = rounded(array, type_.dtype) if type_.dtype.is_float else array.astype(type_.dtype.numpy)
        if type_.dims is not None:
            if len(type_.dims) != array.ndim:
                raise IrcError(f"{node.label}: result has rank {array.ndim}, its type is {type_}")
            for dim, size in zip(type_.dims, array.shape, strict=True):
                if isinstance(dim, int) or all(s in frame.dims for s in sizes.symbols(dim)):
                    wanted = sizes.evaluate(dim, frame.dims)
                    if wanted != size:
                        raise IrcError(
                            f"{node.label}: result has shape {array.shape}, its type is {type_} ({dim}={wanted})"
                        )
        return array

    def _decomposed(
        self, op: Operator, node: Node, operands: Sequence[Any], keywords: dict[str, Any]
    ) -> tuple[Any, ...]:
        facts: list[Fact | None] = []
        for operand, value in zip(operands, node.operands, strict=True):
            if operand is None or value is None:
                facts.append(None)
            elif isinstance(value.type, TensorType) and isinstance(operand, np.ndarray):
                inline = value.data if value.data is not None and value.data.is_inline else None
                known = fact_of_data(inline) if inline is not None else value.fact
                type_ = TensorType(value.type.dtype, operand.shape)
                facts.append(type(known)(type_, known.ints, known.data))
            else:
                facts.append(value.fact)
        key = (op, tuple((f.type, f.ints, None if f.data is None else f.data.digest) if f else None for f in facts),
               tuple((k, v) for k, v in keywords.items() if not isinstance(v, Graph)))  # fmt: skip
        model = self._decompositions.get(key)
        if model is None:
            model = self._decompositions[key] = decomposed(op, facts, keywords)
        inner = Evaluator(model)
        return inner.call(model.main, [o for o in operands if o is not None])

    def concrete(self, type_: Type, frame: _Frame) -> Type:
        """The type with dims as numbers."""
        if not isinstance(type_, TensorType) or type_.dims is None:
            return type_
        return TensorType(type_.dtype, tuple(sizes.evaluate(d, frame.dims) for d in type_.dims))


def _read(node: Node) -> list[Value]:
    """The values that a node uses, those that its graphs capture included."""
    return [v for v in node.operands if v is not None] + [v for g in node.all_graphs() for v in g.captures()]


def _last_uses(nodes: Iterable[Node], kept: Iterable[Value]) -> dict[Node, list[Value]]:
    """For each of these nodes of one graph, the graph's values that nothing after it uses; `kept` are none of them."""
    last: dict[Value, Node] = {}
    for node in nodes:
        last.update((v, node) for v in (*_read(node), *node.results) if v.graph is node.graph)
    for value in kept:
        last.pop(value, None)
    out: dict[Node, list[Value]] = {}
    for value, node in last.items():
        out.setdefault(node, []).append(value)
    return out


def _concrete_sizes(value: Any, dims: Mapping[str, int]) -> Any:
    if isinstance(value, sizes.Dim):
        return sizes.evaluate(value, dims)
    if isinstance(value, tuple) and value and not isinstance(value[0], Graph):
        return tuple(_concrete_sizes(v, dims) for v in value)
    if isinstance(value, TensorType) and value.dims is not None:
        return TensorType(value.dtype, tuple(_concrete_sizes(d, dims) for d in value.dims))
    return value


def argument_shape(value: Value, argument: Any) -> tuple[int, ...] | None:
    """The shape of an argument, None for what is no tensor; InputError if it is no array of the input's dtype."""
    type_ = value.type
    if not isinstance(type_, TensorType):
        return None
    what = f"input {value.name!r} expects {type_}"
    if not isinstance(argument, np.ndarray):
        raise InputError(f"{what}, got {type(argument).__name__}")
    if type_.dtype.is_string:
        if argument.dtype.kind not in "OSU":
            raise InputError(f"{what}, got dtype {argument.dtype}")
    elif argument.dtype != type_.dtype.numpy:
        raise InputError(f"{what}, got dtype {argument.dtype}; convert it with .astype({type_.dtype.numpy.name!r})")
    shape: tuple[int, ...] = argument.shape
    return shape


def evaluate(
    model: Model,
    inputs: Sequence[Any] | Mapping[str, Any],
    *,
    entry: str | None = None,
    trace: TraceHook | None = None,
) -> tuple[Any, ...]:
    """Run an entry of a model in NumPy.  `inputs` by position or by name; `trace(node, results)` sees every node."""
    function = model.entry(entry)
    if isinstance(inputs, Mapping):
        missing = [n for n in function.input_names if n not in inputs]
        if missing:
            raise InputError(f"@{function.name} needs the inputs {', '.join(missing)}")
        inputs = [inputs[n] for n in function.input_names]
    return Evaluator(model, trace=trace).call(function, inputs)


__all__ = ["Data", "Evaluator", "InferenceError", "ReferenceContext", "argument_shape", "evaluate"]
