"""The lowering table of the ONNX target and what its rules may ask: `ctx.op` adds an ONNX node, `Ref` names a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir import dims as sizes
from ...ir import dtypes
from ...ir.dims import Size
from ...ir.dtypes import DType
from ...ir.errors import IrcError
from ...ir.facts import Ints
from ...ir.graph import Graph, Node
from ...ir.types import TensorType, Type
from ..base import LoweringTable, refuse

if TYPE_CHECKING:
    from .export import GraphExporter

TABLE = LoweringTable("onnx")
lower = TABLE.lower

OPSET = 21
"""The operator set that is written unless another is asked for: runtimes some years old read it."""

ATTRIBUTES_ONLY = frozenset({"TreeEnsemble"})
"""Operators whose constants a node holds as attributes: rules read them, and no initializer is made of them."""

IR_VERSIONS = {21: 10, 22: 10, 23: 11, 24: 12, 25: 13, 26: 13, 27: 13, 28: 14}
"""Operator sets that can be written, and the version of the file format that came with each."""


_CHOSEN_AS = {dtypes.i16: dtypes.i32, dtypes.u16: dtypes.i32, dtypes.u64: dtypes.i64}
"""Types that ONNX Runtime's Where lacks, and those that hold their bits."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """What an exported model may hold: nodes of one operator set; if `runtime`, only what ONNX Runtime does right."""

    opset: int = OPSET
    runtime: bool = False

    def __post_init__(self) -> None:
        if self.opset not in IR_VERSIONS:
            known = ", ".join(map(str, IR_VERSIONS))
            raise IrcError(f"opset {self.opset} cannot be written; expected one of {known}")


@dataclass(frozen=True, slots=True)
class Ref:
    """A value of the exported graph: its ONNX name, its IR type, and its integers if known."""

    name: str
    type: Type
    ints: Ints = None

    @property
    def tensor(self) -> TensorType:
        assert isinstance(self.type, TensorType)
        return self.type

    @property
    def dtype(self) -> DType:
        return self.tensor.dtype

    @property
    def dims(self) -> tuple[Size, ...]:
        return self.tensor.shape

    @property
    def rank(self) -> int:
        return self.tensor.rank


class Context:
    """One node being lowered.  `results` are the types that its results must have."""

    def __init__(self, exporter: GraphExporter, node: Node) -> None:
        self.exporter = exporter
        self.node = node
        self.results = tuple(r.type for r in node.results)

    @property
    def dialect(self) -> Dialect:
        return self.exporter.root.dialect

    def refuse(self, why: str) -> Any:
        refuse(why)

    def op(self, kind: str, *inputs: Ref | None, type: Type | None = None, domain: str = "", **attributes: Any) -> Ref:
        """Add a node with one output of `type` (default: the type of the lowered node's first result)."""
        return self.ops(kind, *inputs, types=(type or self.results[0],), domain=domain, **attributes)[0]

    def ops(
        self,
        kind: str,
        *inputs: Ref | None,
        types: Sequence[Type | None] | None = None,
        domain: str = "",
        **attributes: Any,
    ) -> tuple[Ref, ...]:
        """Add a node with several outputs; a None among `types` leaves that output out."""
        return self.exporter.node(kind, inputs, self.results if types is None else types, domain, attributes)

    def constant(self, value: Any, dtype: DType | None = None) -> Ref:
        """An initializer."""
        array = np.asarray(value) if dtype is None else np.asarray(value, dtype.numpy)
        return self.exporter.constant(array, dtype)

    def like(self, value: Any, x: Ref) -> Ref:
        """A scalar of x's element type."""
        return self.constant(value, x.dtype)

    def cast(self, x: Ref, dtype: DType) -> Ref:
        if x.dtype is dtype:
            return x
        return self.op("Cast", x, type=x.tensor.with_dtype(dtype), to=dtype.onnx)

    def where(self, predicate: Ref, x: Ref, y: Ref, type: Type | None = None) -> Ref:
        """Where, in a wider type where ONNX Runtime has no kernel; nothing is rounded by it."""
        carrier = _CHOSEN_AS.get(x.dtype, x.dtype)
        given = predicate, self.cast(x, carrier), self.cast(y, carrier)
        made = type or self.results[0]
        assert isinstance(made, TensorType)
        return self.cast(self.op("Where", *given, type=made.with_dtype(carrier)), x.dtype)

    def ints(self, values: Iterable[Size]) -> Ref:
        """An i64 vector of sizes: an initializer when all are numbers, computed from input shapes otherwise."""
        return self.exporter.sizes(tuple(values))

    def reshape(self, x: Ref, dims: Sequence[Size]) -> Ref:
        """Reshape, with -1 for a lone symbolic dim, 0 for those that stay in place, else a computed shape.

        With several symbolic dims, of which some move past ones, it is an Unsqueeze or a Squeeze.
        """
        type_ = x.tensor.with_dims(dims)
        unknown = [i for i, d in enumerate(dims) if not isinstance(d, int)]
        empty = any(isinstance(d, int) and d == 0 for d in dims)
        if len(unknown) == 1 and not empty:
            shape = self.constant([d if isinstance(d, int) else -1 for d in dims], dtypes.i64)
        elif not empty and all(i < x.rank and sizes.equal(dims[i], x.dims[i]) is True for i in unknown):
            shape = self.constant([d if isinstance(d, int) else 0 for d in dims], dtypes.i64)
        elif axes := _ones_between(x.dims, dims):
            return self.op("Unsqueeze", x, self.constant(axes, dtypes.i64), type=type_)
        elif axes := _ones_between(dims, x.dims):
            return self.op("Squeeze", x, self.constant(axes, dtypes.i64), type=type_)
        else:
            shape = self.ints(dims)
        zero: dict[str, Any] = {"allowzero": 1} if empty else {}
        return self.op("Reshape", x, shape, type=type_, **zero)

    def transpose(self, x: Ref, permutation: Sequence[int]) -> Ref:
        if list(permutation) == list(range(x.rank)):
            return x
        dims = [x.dims[p] for p in permutation]
        return self.op("Transpose", x, type=x.tensor.with_dims(dims), perm=list(permutation))

    def broadcast(self, x: Ref, dims: Sequence[Size]) -> Ref:
        """x expanded to `dims` as NumPy broadcasts."""
        if len(dims) == x.rank and all(sizes.equal(a, b) is True for a, b in zip(dims, x.dims, strict=True)):
            return x
        return self.op("Expand", x, self.ints(dims), type=x.tensor.with_dims(dims))

    def graph(self, graph: Graph, name: str) -> Any:
        """A sub-graph as a GraphProto."""
        return self.exporter.subgraph(graph, name)


def _ones_between(fewer: Sequence[Size], more: Sequence[Size]) -> list[int]:
    """Axes of `more` that are 1 and without which it is `fewer`; none if there are no such axes."""
    axes: list[int] = []
    for axis, dim in enumerate(more):
        at = axis - len(axes)
        if at < len(fewer) and sizes.equal(dim, fewer[at]) is True:
            continue
        if dim != 1:
            return []
        axes.append(axis)
    return axes if len(axes) == len(more) - len(fewer) else []


def flat_pads(pads: Sequence[Sequence[Size]]) -> list[Size]:
    """(low, high) pairs as ONNX lists them: all low ones, then all high ones."""
    return [low for low, _ in pads] + [high for _, high in pads]
