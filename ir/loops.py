"""What is known of a `while` node: how often it runs.  Rewriting loops is the passes' work."""

from __future__ import annotations

from . import dims as sizes
from .dims import Size
from .graph import Node, Value
from .types import TensorType


def trip_count(node: Node) -> Size | None:
    """How often a while node runs that counts a state up to a known limit, else None; it needs no condition then."""
    (cond,), (body,) = node.graphs["cond"], node.graphs["body"]
    test = cond.outputs[0].node
    if test is None or test.op.name != "compare" or len(cond) != 1 or test.keywords["direction"] not in ("lt", "le"):
        return None
    left, right = test.operands
    if left not in cond.inputs or right is None:
        return None
    index = cond.inputs.index(left)
    limit, start = _known(right), _known(node.operands[index])
    update = body.outputs[index].node
    if limit is None or start is None or update is None or update.op.name != "add" or update.graph is not body:
        return None
    counter = body.inputs[index]
    others = [v for v in update.operands if v is not counter]
    if len(others) != 1 or (step := _known(others[0])) is None or not isinstance(step, int) or step < 1:
        return None
    if isinstance(limit, int) and isinstance(start, int) and limit + step > int(counter.dtype.max_value()):
        return None
    distance = limit - start + (test.keywords["direction"] == "le")
    return sizes.maximum(sizes.ceildiv(distance, step), 0)


def counted_value(node: Node) -> Value | None:
    """What a while node that counts a state from 0 by ones stays below, if that is one value from outside the loop."""
    (cond,), (body,) = node.graphs["cond"], node.graphs["body"]
    test = cond.outputs[0].node
    if test is None or test.op.name != "compare" or len(cond) != 1 or test.keywords["direction"] != "lt":
        return None
    left, right = test.operands
    if left not in cond.inputs or right is None or right in cond.inputs:
        return None
    index = cond.inputs.index(left)
    counter, update = body.inputs[index], body.outputs[index].node
    if update is None or update.op.name != "add" or update.graph is not body or counter not in update.operands:
        return None
    others = [v for v in update.operands if v is not counter]
    steps = len(others) == 1 and _known(others[0]) == 1 and _known(node.operands[index]) == 0
    return right if steps else None


def _known(value: Value | None) -> Size | None:
    if value is None or not isinstance(value.type, TensorType) or not value.dtype.is_integer:
        return None
    ints = value.fact.known_ints()
    return ints[0] if ints is not None and len(ints) == 1 else None
