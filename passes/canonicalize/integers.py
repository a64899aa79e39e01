"""Canonical rewrite of whatever computes integers that typing knows already: a constant, or `dimensions`."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir import dtypes
from ...ir.data import INLINE_LIMIT
from ...ir.effects import has_effects
from ...ir.facts import Ints, data_of_ints
from ...ir.graph import Node, Value
from ...ir.rewrite import Rewriter
from ...ir.types import TensorType
from .table import inferred, maker, rewrite


@rewrite()
def refined_integers(rewriter: Rewriter, node: Node) -> None:
    """Operands may say more than when the node was typed: its integers are inferred again where some are unknown."""
    if not any(map(_may_know_more, node.results)):
        return
    facts = inferred(rewriter.model, node, [None if v is None else v.fact for v in node.operands])
    for result, fact in zip(node.results, facts, strict=bool(facts)):
        if fact.type == result.type and _count(fact.ints) > _count(result.ints):
            rewriter.set_fact(result, fact)


def _may_know_more(value: Value) -> bool:
    type_ = value.type
    if not isinstance(type_, TensorType) or not (type_.dtype.is_integer or type_.dtype.is_bool) or not type_.is_static:
        return False
    size = type_.size
    return isinstance(size, int) and size <= INLINE_LIMIT and _count(value.ints) < size


def _count(ints: Ints) -> int:
    """How many elements are known."""
    return sum(i is not None for i in ints or ())


@rewrite()
def known_integers(rewriter: Rewriter, node: Node) -> Sequence[Value] | None:
    """Every result's integers are known: constants, or for symbolic sizes dimensions (reshaped, converted)."""
    if not node.results or not all(map(_is_known, node.results)) or has_effects(node, rewriter.model):
        return None
    if all(data_of_ints(r.tensor, r.ints) is None for r in node.results) and _is_canonical(node):
        return None
    return [_spell(rewriter, node, r) for r in node.results]


def _is_known(value: Value) -> bool:
    type_ = value.type
    if not isinstance(type_, TensorType) or not type_.is_static or value.fact.known_ints() is None:
        return False
    # Sizes are integers; a bool that depends on a symbol has no spelling by `dimensions`.
    return type_.dtype.is_integer or data_of_ints(type_, value.ints) is not None


def _is_canonical(node: Node) -> bool:
    """dimensions, perhaps reshaped, perhaps then converted."""
    current: Node | None = node
    if node.op.name == "convert":
        current = maker(node.operands[0], "reshape", "dimensions")
    if current is not None and current.op.name == "reshape" and current.result.rank > 1:
        current = maker(current.operands[0], "dimensions")
    return current is not None and current.op.name == "dimensions"


def _spell(rewriter: Rewriter, node: Node, result: Value) -> Value:
    type_ = result.tensor
    build = rewriter.before(node)
    data = data_of_ints(type_, result.ints)
    if data is not None:
        return build.constant(data)
    value: Value = build.dimensions(dims=result.ints, scalar=type_.rank == 0)
    if type_.rank > 1:
        value = build.reshape(value, dims=type_.shape)
    return value if type_.dtype is dtypes.i64 else build.convert(value, dtype=type_.dtype)
