"""Folding: nodes of constant operands become constants where every machine gets the same bits, else move to `init`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from ..ir.build import Builder
from ..ir.data import INLINE_LIMIT, ArrayData, Data, SplatData, scalar
from ..ir.dims import Dim
from ..ir.errors import IrcError
from ..ir.graph import Constant, Node, Value
from ..ir.model import Model
from ..ir.operators import Trait
from ..ir.reference import Evaluator
from ..ir.rewrite import Rewriter
from ..ir.types import TensorType
from .manager import Level, Pass, register

_SMALL = 4096
"""Bytes up to which a result may be larger than what it is made of."""
_UNTOUCHED = frozenset({"optimization_barrier", "call"})
"""Pure, and not for this pass: what a barrier holds back, and what a callee computes."""


@register
@dataclass(frozen=True)
class Fold(Pass):
    """Evaluate what depends on constants only.

    %a = transpose(#w) {permutation = [1, 0]}; %y = MatMul(%x, %a)   ->   weight #a (evaluated now); %y = MatMul(%x, #a)
    %s = exponential(#w); %y = add(%x, %s)                          ->   init { %s = exponential(#w) }; %y = add(%x, #s)

    Evaluated here: moved elements, integers, comparisons, and correctly rounded float operations (trait EXACT), while
    a result has at most `max-bytes` and the work, in bytes read and written, stays within `budget`.  The rest moves to
    the model's `init` graph (unless `hoist` is false), which runs once per model.  Never random operators, never
    effects; a constant repeated over a large shape stays the broadcast that it is.
    """

    name: ClassVar[str] = "fold"
    level: ClassVar[Level] = Level.LEGAL

    max_bytes: int = 1 << 26
    budget: int = 1 << 28
    hoist: bool = True

    def run(self, model: Model, rewriter: Rewriter) -> None:
        state = _State(model, rewriter, self)
        for function in model.functions.values():
            for node in function.body.walk():
                if node.graph is not None and _depends_on_constants_only(node):
                    state.visit(node)
        state.publish()


def _depends_on_constants_only(node: Node) -> bool:
    """Pure, plain, of static type, and all operands constants."""
    if not all(v is None or isinstance(v, Constant) for v in node.operands):
        return False
    op = node.op
    if not op.is_pure or any(node.all_graphs()) or op.family == "random" or op.name in _UNTOUCHED:
        return False
    if op.traits & (Trait.HOST | Trait.LATE):
        return False
    static = all(isinstance(r.type, TensorType) and r.type.is_static for r in node.results)
    return static and not any(map(_is_symbolic, node.attributes.as_dict().values()))


def _is_symbolic(attribute: Any) -> bool:
    """Whether a symbol stands in it: dimensions() {dims = [B, 4]} has the static type i64[2]."""
    if isinstance(attribute, tuple):
        return any(map(_is_symbolic, attribute))
    return isinstance(attribute, Dim) or (isinstance(attribute, TensorType) and not attribute.is_static)


def is_exact(node: Node) -> bool:
    """Whether every machine computes the same bits: elements moved, integers, or correctly rounded operations."""
    traits = node.op.traits
    if Trait.MOVES_DATA in traits:
        return True
    types = [v.type.dtype for v in (*node.operands, *node.results) if v is not None and isinstance(v.type, TensorType)]
    if all(t.is_integer or t.is_bool for t in types):
        return True
    if Trait.EXACT not in traits or any(t.is_complex for t in types):
        return False
    # Narrower floats are computed in f64 and rounded again, which is innocuous for these operators.
    return not any(t.is_string for t in types) or node.op.name == "compare"


def _bytes(value: Value | None) -> int:
    if value is None or not isinstance(value.type, TensorType) or value.type.dims is None:
        return 0
    size = value.type.size
    return size * value.type.dtype.itemsize if isinstance(size, int) else 0


@dataclass
class _State:
    model: Model
    rewriter: Rewriter
    options: Fold
    spent: int = 0
    evaluator: Evaluator = field(init=False)
    hoisted: dict[Constant, Value] = field(default_factory=dict)
    """Placeholders in the functions -> the values of `init` that they stand for."""

    def __post_init__(self) -> None:
        self.evaluator = Evaluator(self.model)
        self.derived = dict(zip(self.model.derived, self.model.init.outputs, strict=True))

    def visit(self, node: Node) -> None:
        """Fold or hoist one node."""
        made = [_bytes(r) for r in node.results]
        taken = sum(_bytes(v) for v in node.operands)
        constants = [v for v in node.operands if isinstance(v, Constant)]
        if all(c.data is not None for c in constants) and is_exact(node):
            if (splat := _splat(node)) is not None:
                # A large splat is worth a constant only when it was one before.
                if splat.size <= INLINE_LIMIT or any(
                    c.data is not None and c.data.size > INLINE_LIMIT for c in constants
                ):
                    self.replace(node, [splat])
                return
            grows = sum(made) > max(taken, _SMALL)
            if not grows and max(made, default=0) <= self.options.max_bytes and self.afford(node, sum(made) + taken):
                self.evaluate(node)
                return
        if self.options.hoist and constants and sum(made) <= max(4 * taken, _SMALL) and not self.is_cheap(node):
            self.move(node)

    def is_cheap(self, node: Node) -> bool:
        """Spread over a shape: cheaper to do again than to store."""
        return node.op.name in ("broadcast_in_dim", "Tile") and sum(map(_bytes, node.results)) > _SMALL

    def afford(self, node: Node, size: int) -> bool:
        """Whether the budget has room for the work: deterministic, so no clock is read."""
        elementwise = Trait.ELEMENTWISE in node.op.traits or Trait.MOVES_DATA in node.op.traits
        work = size if elementwise else size * 16
        if self.spent + work > self.options.budget:
            return False
        self.spent += work
        return True

    def evaluate(self, node: Node) -> None:
        try:
            results = self.evaluator.fold(node)
        except IrcError:
            return  # no reference for this case: the node stays, and whoever runs it says what is wrong
        self.replace(node, [ArrayData(np.array(r), v.dtype) for r, v in zip(results, node.results, strict=True)])

    def replace(self, node: Node, contents: list[Data]) -> None:
        values = []
        for result, data in zip(node.results, contents, strict=True):
            if data.is_inline:
                values.append(self.model.inline_constant(data))
            else:
                values.append(self.model.add_constant(self.name(result, node), data))
        self.rewriter.replace(node, values)

    def name(self, result: Value, node: Node) -> str:
        """What to call new contents: as the result is called, else as the weight that moved or the source node."""
        moved = node.operands[:1] if Trait.MOVES_DATA in node.op.traits else ()
        weight = next((v.name for v in moved if isinstance(v, Constant) and v.name), None)
        return result.name or weight or (node.location.source[0] if node.location.source else node.op.name)

    def move(self, node: Node) -> None:
        """Recompute the node in `init`; its results become placeholders until it is known which are used."""
        build = self.rewriter.end(self.model.init).at(node.location)
        operands = [self.inside(v) for v in node.operands]
        copy = build.create(node.op, operands, node.attributes.as_dict(), names=[r.name for r in node.results])
        placeholders = [Constant(self.model, r.name, r.type, None) for r in copy.results]
        self.hoisted.update(zip(placeholders, copy.results, strict=True))
        names = [(p, self.name(r, node)) for p, r in zip(placeholders, node.results, strict=True)]
        self.rewriter.replace(node, placeholders)
        for placeholder, name in names:
            placeholder.name = name

    def inside(self, value: Value | None) -> Value | None:
        """What a constant is called inside `init`."""
        if not isinstance(value, Constant):
            return value
        return self.hoisted.get(value) or self.derived.get(value) or value

    def publish(self) -> None:
        """Placeholders that something uses become derived constants."""
        for placeholder, value in self.hoisted.items():
            if placeholder.has_uses:
                constant = self.model.add_derived(placeholder.name or "derived", value)
                self.rewriter.replace_uses(placeholder, constant)


def _is_constant(value: Value | None) -> bool:
    return value is None or isinstance(value, Constant)


def _splat(node: Node) -> Data | None:
    """The result as one repeated element, if the node only moves or combines repeated elements; no memory is taken."""
    if len(node.results) != 1 or not all(_is_constant(v) for v in node.operands):
        return None
    constants = [v for v in node.operands if v is not None]
    if not constants:
        return None
    values = [v.data.splat if v.data is not None else None for v in constants]
    result = node.result.tensor
    if any(v is None for v in values) or not result.size:
        return None
    shape: tuple[int, ...] = result.shape  # type: ignore[assignment]  # static
    if Trait.MOVES_DATA in node.op.traits and len(constants) == 1 and node.op.family == "shape":
        return SplatData(values[0], result.dtype, shape)
    if Trait.ELEMENTWISE in node.op.traits and result.size > INLINE_LIMIT:
        return _elementwise_splat(node)
    return None


def _elementwise_splat(node: Node) -> Data | None:
    """The same operator on rank-0 constants, spread over the result's shape."""
    scratch = Model("splat")
    build = Builder(scratch, scratch.init)
    operands = [
        None if v is None or v.data is None else build.constant(scalar(v.data.splat, v.dtype)) for v in node.operands
    ]
    try:
        element = build.create(node.op, operands, node.attributes.as_dict())
        (value,) = Evaluator(scratch).fold(element)
    except IrcError:
        return None
    return SplatData(value, node.result.dtype, node.result.tensor.shape)  # type: ignore[arg-type]  # static
