"""What a handler of an ONNX operator may ask: the builder, axes and sizes of operands, and ways to refuse the node."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ...ir import dims as sizes
from ...ir.build import Builder
from ...ir.data import Data
from ...ir.dims import Assumption, Dim, Size
from ...ir.dtypes import DType
from ...ir.errors import InferenceError, IrcError
from ...ir.facts import NeedsInts, data_of_ints
from ...ir.model import Graph, Model, Value
from ...ir.settled import settled
from ...ir.types import TensorType, Type
from .scope import InvalidNode, Poisoned

if TYPE_CHECKING:
    import onnx

    from .graph import Importer
    from .scope import Frame

class Refused(Exception):
    """A handler cannot import its node; the message is the reason that the report gives."""


class Expanded(Exception):
    """A handler asks for the function body that defines its operator instead."""


class Context:
    """Handed to every handler.  `version` is the operator-set version, `wanted[i]` says whether result i has a name."""

    def __init__(
        self, importer: Importer, build: Builder, frame: Frame, node: onnx.NodeProto, version: int, label: str
    ) -> None:
        self.importer = importer
        self.build = build
        self.frame = frame
        self.node = node
        self.version = version
        self.label = label
        self.wanted = tuple(bool(name) for name in node.output)
        self.read: list[Value] = []
        """Operands that became attributes."""
        self.unknown: list[Value] = []
        """Operands that would have to become attributes but are known only at run time."""

    @property
    def model(self) -> Model:
        return self.importer.model

    def wants(self, index: int) -> bool:
        """Whether result `index` is used by name."""
        return index < len(self.wanted) and self.wanted[index]

    def refuse(self, why: str) -> NoReturn:
        """The node cannot be imported; `why` goes into the report."""
        raise Refused(why)

    def expand(self) -> NoReturn:
        """Import the function body that onnx defines the operator by."""
        raise Expanded

    def fail(self, fault: str) -> NoReturn:
        """The node is not valid ONNX."""
        raise InferenceError(fault)

    def axis(self, axis: int, x: Value | int, *, extra: int = 0) -> int:
        """`axis` counted from the front, for a value or a rank; `extra` admits positions behind the last axis."""
        rank = (x if isinstance(x, int) else x.rank) + extra
        if not -rank <= axis < rank:
            raise InferenceError(f"axis {axis} is out of range for rank {rank}")
        return axis % rank

    def axes(self, axes: Iterable[int], x: Value | int) -> tuple[int, ...]:
        """Distinct normalized axes in the given order."""
        out = tuple(self.axis(a, x) for a in axes)
        if len(set(out)) != len(out):
            raise InferenceError(f"axes {list(out)} name one axis twice")
        return out

    def ints(self, value: Value, what: str) -> tuple[Size, ...]:
        """The elements of an integer operand that decides a shape; NeedsInts if they are known only at run time."""
        self.read.append(value)
        known = value.fact.known_ints()
        if known is not None:
            return known
        data = self.constant(value)
        if data is not None and data.dtype.is_integer:
            return tuple(int(v) for v in data.numpy().reshape(-1))
        self.unknown.append(value)
        raise NeedsInts(f"{what} is known only at run time")

    def numbers(self, value: Value, what: str) -> tuple[int, ...]:
        """As `ints`, but symbolic sizes will not do (axes, steps)."""
        known = self.ints(value, what)
        if any(isinstance(v, Dim) for v in known):
            self.unknown.append(value)
            raise NeedsInts(f"{what} depends on the sizes of the inputs")
        return known  # type: ignore[return-value]  # no Dim left

    def number(self, value: Value, what: str) -> int:
        """The one element of `numbers`."""
        only: int = _only(self.numbers(value, what), what)
        return only

    def size(self, value: Value, what: str) -> Size:
        """The one element of `ints`."""
        only: Size = _only(self.ints(value, what), what)
        return only

    def floats(self, value: Value, what: str) -> tuple[float, ...]:
        """The elements of a float operand that decides a shape; NeedsInts if they are known only at run time."""
        self.read.append(value)
        data = self.constant(value)
        if data is None:
            self.unknown.append(value)
            raise NeedsInts(f"{what} is known only at run time")
        return tuple(float(v) for v in data.numpy().reshape(-1))

    def whole(self, value: Value) -> Size | None:
        """The size that a float scalar was converted from, where its type holds such sizes exactly; else None."""
        node = value.node
        if node is None or node.op.name != "convert" or value.dtype.bits < 32:
            return None
        source = node.operands[0]
        known = None if source is None or not source.dtype.is_integer else source.fact.known_ints()
        if known is None or len(known) != 1:
            return None
        self.read.append(value)
        return known[0]

    def fresh_dim(self, base: str) -> str:
        """A name for a new dim that nothing else in the model has."""
        self.importer.bound_dims += 1
        name = "".join(c if c.isalnum() else "_" for c in self.label)
        return f"{base}_{name}_{self.importer.bound_dims}"

    def assume_at_most(self, size: Size, bound: Size) -> None:
        """Record that `size` must not exceed `bound`; checked per shape."""
        if sizes.less_equal(size, bound) is not True:
            self.importer.assumptions[Assumption("<=", size, bound, f"{self.node.op_type} {self.label!r}")] = None

    def constant(self, value: Value) -> Data | None:
        """The contents of a constant, or of a small value computed from constants; None if it depends on inputs."""
        if value.data is not None:
            return value.data
        if not isinstance(value.type, TensorType) or value.node is None:
            return None
        known = data_of_ints(value.type, value.ints) if value.ints is not None else None
        return known if known is not None else settled(value, self.model)

    def zeros(self, dtype: DType) -> Value:
        """A scalar zero of any element type (False, the empty string)."""
        zero: Any = np.zeros((), dtype.numpy) if not dtype.is_string else np.array("", object)
        return self.build.constant(zero, dtype)

    def scalar(self, value: Value) -> Value:
        """A one-element tensor as a scalar."""
        return value if value.rank == 0 else self.build.reshape(value, dims=())

    def shape(self, dims: Sequence[Size]) -> Value:
        """An i64 vector of sizes."""
        if all(isinstance(d, int) for d in dims):
            return self.build.constant(np.array(dims, np.int64))
        value: Value = self.build.dimensions(dims=tuple(dims))
        return value

    def dtype(self, number: int) -> DType:
        """The element type with that ONNX number."""
        try:
            return DType.from_onnx(number)
        except IrcError as error:
            raise InferenceError(str(error)) from None

    def graph(self, proto: onnx.GraphProto, inputs: Sequence[Type] = ()) -> Graph:
        """A sub-graph attribute as a graph of the IR; outer names are captures."""
        return self.importer.sub_graph(self.frame, self.build, proto, inputs)

    def branches(self, *protos: onnx.GraphProto) -> list[Graph]:
        """Sub-graphs without inputs that yield values of the same types, all looked at before one is given up.

        A branch that cannot be typed, beside one that can, becomes a trap: at these types it must never be taken.
        """
        out: list[Graph | InvalidNode] = []
        poisoned = False
        for proto in protos:
            mark = self.importer.mark(self.build.graph)
            try:
                out.append(self.graph(proto))
                sizes.relax(self.importer.assumptions, mark.assumed)
            except Poisoned:
                poisoned = True
            except InvalidNode as error:
                self.importer.undo(mark)
                out.append(error)
        if poisoned:
            raise Poisoned
        good = next((g for g in out if isinstance(g, Graph)), None)
        if good is None:
            raise next(e for e in out if isinstance(e, InvalidNode))
        types = tuple(v.type for v in good.outputs)
        return [
            g if isinstance(g, Graph) else self._trap(str(g).removeprefix(f"{self.importer.source.label}: "), types)
            for g in out
        ]

    def _trap(self, message: str, types: tuple[Type, ...]) -> Graph:
        graph = self.importer.draft()
        results = self.importer.builder(graph, self.build.location).trap(message=message, results=types)
        graph.set_outputs(results if isinstance(results, tuple) else (results,))
        return graph

    def inline(self, proto: onnx.GraphProto, arguments: Sequence[Value] = ()) -> tuple[Value, ...]:
        """The nodes of a sub-graph attribute written here; its outputs come back."""
        return self.importer.inline_graph(self.frame, self.build, proto, arguments)


def _only(values: tuple[Any, ...], what: str) -> Any:
    if len(values) != 1:
        raise InferenceError(f"{what} must have one element, got {len(values)}")
    return values[0]
