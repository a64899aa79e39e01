"""Writes a legal, static model as one StableHLO module: functions, graphs, scopes and constants.

Single operators are lowered by the rules in the family files.  Constants above `INLINE_BYTES` become arguments behind
the entry's own; `Emitted.weights` says which, in order.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ...ir import dtypes
from ...ir.dtypes import DType
from ...ir.effects import callees
from ...ir.errors import Diagnostic, IrcError, UnsupportedError
from ...ir.model import Constant, Function, Graph, Model, Node, Value
from ...passes.dce import functions_in_call_order
from ..base import Refusal
from . import types
from .context import Context, Expr, Weight
from .lowering import load
from .mlir import context as mlir_context
from .mlir import func, hlo, ir

INLINE_BYTES = 1024
"""Constants of at most this many bytes are printed in the module."""

MAX_CALL_DEPTH = 64
"""Calls within calls; XLA itself recurses, and a few hundred end the process."""

Answer = TypeVar("Answer")
Permutation: TypeAlias = tuple[int, ...] | None

_SPLAT_BY_ATTRIBUTE = (dtypes.f64, dtypes.f32, dtypes.f16, dtypes.bf16)


@dataclass
class Emitted:
    """A module as text, and what to pass and expect when it runs."""

    text: str
    bytecode: bytes
    weights: list[tuple[Constant, Permutation]]
    inputs: list[tuple[DType, tuple[int, ...]]]
    outputs: list[tuple[DType, tuple[int, ...]]]
    traps: list[str]
    """Messages of traps; if there are any, one more i32 output says which was reached: 0 none, i message i - 1."""


@dataclass
class _Scope:
    """A block being written.  An isolated one sees no values of the blocks around it."""

    block: Any
    parent: _Scope | None
    isolated: bool
    values: dict[Value, Expr] = field(default_factory=dict)
    literals: dict[Any, Expr] = field(default_factory=dict)
    error: Expr | None = None

    def chain(self) -> Iterator[_Scope]:
        """This scope and the ones around it whose values it may use."""
        scope: _Scope | None = self
        while scope is not None:
            yield scope
            scope = None if scope.isolated else scope.parent


@dataclass
class _Written:
    """A function being written or written: its MLIR symbol, and the constants that it takes behind its parameters."""

    symbol: str
    block: Any
    weights: dict[tuple[Constant, Permutation], Any] = field(default_factory=dict)
    traps: bool = False


class Emitter:
    """Writes one module.  Use `emit`."""

    def __init__(self, model: Model, platform: str) -> None:
        self.model = model
        self.context = Context(self, platform)
        self.table = load()
        self.traps: list[str] = []
        self._module: Any = None
        self._scope: _Scope | None = None
        self._functions: dict[str, _Written] = {}
        self._current: _Written | None = None
        self._trapping: dict[Graph, bool] = {}
        self._answers: dict[Any, Any] = {}

    def emit(self, entry: str) -> Emitted:
        function = self.model.entry(entry)
        with mlir_context(), ir.Location.unknown():
            self._module = ir.Module.create()
            self._module.operation.attributes["sym_name"] = ir.StringAttr.get(_symbol(self.model.name))
            for name in self._called(entry):
                self._function(self.model.functions[name], _symbol(f"f_{name}"))
            written = self._function(function, "main")
            try:
                self._module.operation.verify()
            except ir.MLIRError as error:
                raise IrcError(f"the StableHLO emitted for @{entry} is not valid: {error}") from error
            text = str(self._module)
            bytecode = _bytecode(self._module)
        return Emitted(
            text,
            bytecode,
            list(written.weights),
            [types.static(v.type, f"input {v.name!r}") for v in function.inputs],
            [
                types.static(v.type, f"output {n!r}")
                for v, n in zip(function.outputs, function.output_names, strict=True)
            ],
            self.traps,
        )

    def remember(self, question: Callable[[Model], Answer]) -> Answer:
        """The answer of a rule's question about the whole model, asked once."""
        if question not in self._answers:
            self._answers[question] = question(self.model)
        answer: Answer = self._answers[question]
        return answer

    # Functions

    def _called(self, entry: str) -> list[str]:
        """The functions that an entry reaches, callees first; UnsupportedError if XLA would exhaust its stack."""
        order = functions_in_call_order(self.model, entry)
        depth: dict[str, int] = {}
        for name in order:
            depth[name] = 1 + max((depth[c] for c in callees(self.model.functions[name])), default=-1)
        if depth[entry] > MAX_CALL_DEPTH:
            fault = f"xla cannot run calls nested {depth[entry]} deep, only {MAX_CALL_DEPTH}; run the pass inline first"
            raise UnsupportedError([Diagnostic("unsupported", fault)])
        return order[:-1]

    def _function(self, function: Function, symbol: str) -> _Written:
        public = "public" if symbol == "main" else "private"
        body = self._module.body
        with ir.InsertionPoint.at_block_begin(body) if public == "public" else ir.InsertionPoint(body):
            ins = [
                types.tensor(*types.static(v.type, f"input {v.name!r} of @{function.name}")) for v in function.inputs
            ]
            operation = func.FuncOp(symbol, (ins, []), visibility=public)
        block = operation.add_entry_block()
        written = self._functions[function.name] = _Written(symbol, block)
        self._current = written
        written.traps = self.is_trapping(function.body)
        with self.scope(block, isolated=True) as scope:
            for value, argument in zip(function.inputs, list(block.arguments), strict=True):
                scope.values[value] = self.context.wrap(argument, value.dtype)
            if written.traps:
                scope.error = self.context.full(0, dtypes.i32)
            self._nodes(function.body)
            outputs = [self.value(v) for v in function.outputs] + ([scope.error] if scope.error else [])
            returned = [o.value for o in outputs]
            func.ReturnOp(returned)
        signature = ir.FunctionType.get([a.type for a in block.arguments], [v.type for v in returned])
        operation.attributes["function_type"] = ir.TypeAttr.get(signature)
        return written

    def call(self, name: str, operands: Sequence[Expr]) -> tuple[Expr, ...]:
        """Results of a function of the model."""
        function = self.model.functions[name]
        written = self._functions[name]
        arguments = [o.value for o in operands] + [self.weight(*key).value for key in written.weights]
        outputs = [types.static(v.type, f"an output of @{name}") for v in function.outputs]
        results = [types.tensor(*o) for o in outputs] + ([types.tensor(dtypes.i32, ())] if written.traps else [])
        made = list(func.CallOp(results, ir.FlatSymbolRefAttr.get(written.symbol), arguments).results)
        if written.traps:
            self.add_error(Expr(made.pop(), dtypes.i32, ()))
        return tuple(Expr(v, *o) for v, o in zip(made, outputs, strict=True))

    # Graphs

    @contextlib.contextmanager
    def scope(self, block: Any, *, isolated: bool) -> Iterator[_Scope]:
        """Write at the end of `block`."""
        outer = self._scope
        self._scope = scope = _Scope(block, outer, isolated)
        try:
            with ir.InsertionPoint(block):
                yield scope
        finally:
            self._scope = outer

    def inline(self, graph: Graph, arguments: Sequence[Expr]) -> tuple[Expr, ...]:
        """The outputs of a graph, its nodes written here."""
        assert self._scope is not None
        self._scope.values.update(zip(graph.inputs, arguments, strict=True))
        self._nodes(graph)
        return tuple(self.value(v) for v in graph.outputs)

    def _nodes(self, graph: Graph) -> None:
        assert self._scope is not None
        values = self._scope.values
        for node in graph.nodes:
            values.update(zip(node.results, self._node(node), strict=True))

    def _node(self, node: Node) -> Sequence[Expr]:
        entry = self.table.find(node.op.name)
        if entry is None:
            raise IrcError(f"xla has no lowering of {node.label}; legalize the model first")
        outer, self.context.node = self.context.node, node
        try:
            operands = [None if v is None else self.value(v) for v in node.operands]
            with ir.Location.name(node.label):
                out = entry.rule(self.context, *node.op.group(operands), **node.keywords)
        except Refusal as refusal:
            finding = Diagnostic("xla", f"cannot lower {node.label}: {refusal}", ", ".join(node.location.source))
            raise UnsupportedError([finding]) from None
        except (ir.MLIRError, ValueError, TypeError) as error:
            raise IrcError(f"xla: lowering {node.label} failed: {error}") from error
        finally:
            self.context.node = outer
        results = out if isinstance(out, tuple | list) else (out,)
        for value, result in zip(node.results, results, strict=True):
            expected = types.static(value.type, f"a result of {node.label}")
            if (result.dtype, result.dims) != expected:
                got = f"{result.dtype}[{','.join(map(str, result.dims))}]"
                raise IrcError(f"xla: the lowering of {node.label} made {got} where the model says {value.type}")
        return results

    def value(self, value: Value) -> Expr:
        """The expression of a value that is defined here or around here."""
        if isinstance(value, Constant):
            return self._constant(value)
        assert self._scope is not None
        for scope in self._scope.chain():
            if (found := scope.values.get(value)) is not None:
                return found
        raise IrcError(f"xla: {value!r} is used where it is not defined")

    # Constants

    def _constant(self, constant: Constant) -> Expr:
        data = constant.data
        dtype, _ = types.static(constant.type, f"constant {constant.name!r}")
        if data is not None and (data.splat is not None or data.nbytes <= INLINE_BYTES):
            return self.literal(data.numpy(), dtype)
        return self.weight(constant, None)

    def weight(self, constant: Constant, permutation: Permutation) -> Expr:
        """A constant as an argument of the program, transposed by `permutation` when it is put on the device."""
        dtype, dims = types.static(constant.type, f"constant {constant.name!r}")
        if permutation is not None:
            dims = tuple(dims[p] for p in permutation)

        def ask() -> Any:
            written = self._current
            assert written is not None
            assert self._scope is not None
            if [*self._scope.chain()][-1].parent is not None:
                raise Refusal("a body that uses a large constant; XLA's computations see only their parameters")
            key = (constant, permutation)
            if key not in written.weights:
                location = ir.Location.name(constant.name or "constant")
                written.weights[key] = written.block.add_argument(types.tensor(dtype, dims), location)
            return written.weights[key]

        return Weight(ask, dtype, dims, constant)

    def literal(self, array: Any, dtype: DType) -> Expr:
        """A constant printed here, or the equal one that is printed already in a scope around here."""
        assert self._scope is not None
        uniform = (array.size > 0 and not any(array.strides)) or array.size == 1
        element = array.reshape(-1)[:1].tobytes() if uniform else array.tobytes()
        key = (dtype, array.shape, uniform, element)
        for scope in self._scope.chain():
            if (found := scope.literals.get(key)) is not None:
                return found
        made = self._scope.literals[key] = self._written_literal(array, dtype, uniform)
        return made

    def _written_literal(self, array: Any, dtype: DType, uniform: bool) -> Expr:
        dims = tuple(array.shape)
        if uniform and dims and not _has_splat_attribute(dtype, array):
            # Splats of complex, of float8 and of integers beyond i64 cannot cross the Python binding.
            scalar = self.literal(array.reshape(-1)[0:1].reshape(()), dtype)
            return self.context.broadcast(scalar, dims)
        element = types.element(dtype)
        if uniform and dims:
            number = array.reshape(-1)[0]
            wanted: Any = (
                ir.FloatAttr.get(element, float(number)) if dtype.is_float else ir.IntegerAttr.get(element, int(number))
            )
            attribute = ir.DenseElementsAttr.get_splat(types.tensor(dtype, dims), wanted)
        else:
            contents = np.ascontiguousarray(array)
            attribute = ir.DenseElementsAttr.get(contents, type=element, shape=list(dims))
        return Expr(hlo.constant(attribute), dtype, dims)

    # Traps

    def is_trapping(self, graph: Graph) -> bool:
        """Whether a trap may be reached in the graph or in what it calls."""
        if graph not in self._trapping:
            self._trapping[graph] = any(
                n.op.name == "trap"
                or (n.op.name == "call" and self.is_trapping(self.model.functions[n.keywords["callee"]].body))
                for n in graph.walk()
            )
        return self._trapping[graph]

    @property
    def error(self) -> Expr:
        """The number of the first trap reached so far."""
        assert self._scope is not None
        for scope in self._scope.chain():
            if scope.error is not None:
                return scope.error
        raise Refusal("a trap inside the body of a reduction, sort or scatter")

    def set_error(self, error: Expr) -> None:
        assert self._scope is not None
        self._scope.error = error

    def add_error(self, error: Expr) -> None:
        """Remember an error unless an earlier one is remembered."""
        before = self.error
        self.set_error(self.context.select(self.context.compare(before, 0, "ne"), before, error))

    def trap(self, message: str) -> None:
        if message not in self.traps:
            self.traps.append(message)
        self.add_error(self.context.full(self.traps.index(message) + 1, dtypes.i32))


def _has_splat_attribute(dtype: DType, array: Any) -> bool:
    if dtype.is_integer:
        return dtype is not dtypes.u64 or int(array.reshape(-1)[0]) < 1 << 63
    return dtype.is_bool or dtype in _SPLAT_BY_ATTRIBUTE


def _symbol(name: str) -> str:
    """A module or function name that every consumer of MLIR text takes."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in name) or "model"


def _bytecode(module: Any) -> bytes:
    out = io.BytesIO()
    module.operation.write_bytecode(out)
    return out.getvalue()


def emit(model: Model, entry: str, platform: str) -> Emitted:
    """The StableHLO module of an entry of a legal model whose dims are all numbers."""
    return Emitter(model, platform).emit(entry)
