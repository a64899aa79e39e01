"""Writes the function of a chain of equal regions and the calls in their place.  The pass `outline` finds chains."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import takewhile

from ..ir import dims as sizes
from ..ir import types
from ..ir.attributes import Symbol
from ..ir.errors import InferenceError, InputError
from ..ir.graph import Location, Node, Value
from ..ir.model import Constant, Function, fresh_name
from ..ir.operators import get
from ..ir.rewrite import Rewriter
from .special import mentioned


@dataclass
class Chain:
    """Regions of `period` nodes that follow each other.

    `slots` has, for each node of a region, where its operands come from: (place, result) inside, the number of a
    parameter, or a constant that is the same in all regions, or None.  `parameters` are values by region.  `results`
    are (place, result) pairs that something outside uses.
    """

    nodes: list[Node]
    starts: list[int]
    period: int
    slots: list[list[object]] = field(default_factory=list)
    parameters: list[tuple[Value, ...]] = field(default_factory=list)
    results: list[tuple[int, int]] = field(default_factory=list)

    def region(self, number: int) -> list[Node]:
        return self.nodes[number * self.period : (number + 1) * self.period]

    def at(self, offset: int) -> list[Node]:
        """The nodes at one place of all regions."""
        return self.nodes[offset :: self.period]


def write(chain: Chain, caller: Function, rewriter: Rewriter) -> Function | None:
    """The function of the regions, called in place of each; None (and nothing has changed) if types forbid it."""
    dims = _dims(chain, caller)
    if dims is None:
        return None
    model = rewriter.model
    names = [common_name(v.name for v in values) for values in chain.parameters]
    made = Function(fresh_name(_function_name(names), model.functions), public=False, dims=dims)
    model.add_function(made)
    mark, calls = len(rewriter.changes), list[Node]()
    try:
        _body(chain, made, names, rewriter)
        for number in range(len(chain.starts)):
            calls.append(_call(chain, number, made, rewriter))
    except (InferenceError, InputError):
        for call in calls:
            rewriter.erase(call)
        rewriter.erase_function(made.name)
        del rewriter.changes[mark:]  # nothing has changed
        return None
    for number, call in enumerate(calls):
        region = chain.region(number)
        for (offset, index), value in zip(chain.results, call.results, strict=True):
            rewriter.replace_uses(region[offset].results[index], value)
    for node in reversed(chain.nodes):
        rewriter.erase(node)
    return made


def _dims(chain: Chain, caller: Function) -> list[str] | None:
    """The dims of the function: those of its parameters' types; None if its nodes mention others."""
    region = chain.region(0)
    given = [values[0] for values in chain.parameters]
    used = {s for value in given for s in types.symbols(value.type)}
    inside = {s for node in region for s in mentioned(node)}
    for value in (*given, *(result for node in region for result in node.results)):
        inside |= types.symbols(value.type)
        inside.update(s for size in value.ints or () if size is not None for s in sizes.symbols(size))
    return [d for d in caller.dims if d in used] if inside <= used <= set(caller.dims) else None


def _body(chain: Chain, made: Function, names: list[str | None], rewriter: Rewriter) -> None:
    taken: dict[str, None] = {}
    inputs = []
    for i, (values, name) in enumerate(zip(chain.parameters, names, strict=True)):
        label = fresh_name(name or f"x{i}", taken)
        taken[label] = None
        value = made.add_input(values[0].type, label)
        value.ints = values[0].ints
        inputs.append(value)
    build = rewriter.end(made.body)
    written: list[Node] = []
    for offset, slots in enumerate(chain.slots):
        same = chain.at(offset)
        sources = dict.fromkeys(s for node in same for s in node.location.source)
        labels = [common_name(n.results[i].name for n in same) for i in range(len(same[0].results))]
        operands = [_operand(slot, inputs, written) for slot in slots]
        node = build.at(Location(tuple(sources), rewriter.label)).create(
            same[0].op, operands, same[0].attributes.as_dict(), names=labels
        )
        if [(r.type, r.ints) for r in node.results] != [(r.type, r.ints) for r in same[0].results]:
            raise InferenceError(f"{node.label} has another type when its constants are parameters")
        written.append(node)
    made.body.set_outputs([written[offset].results[index] for offset, index in chain.results])


def _operand(slot: object, inputs: list[Value], written: list[Node]) -> Value | None:
    match slot:
        case int():
            return inputs[slot]
        case (int(offset), int(index)):
            return written[offset].results[index]
        case Constant():
            return slot
    return None


def _call(chain: Chain, number: int, made: Function, rewriter: Rewriter) -> Node:
    """The call behind a region, whose values are still those that the next region uses."""
    region = chain.region(number)
    sources = dict.fromkeys(s for node in region for s in node.location.source)
    build = rewriter.after(region[-1]).at(Location(tuple(sources), rewriter.label))
    arguments = [values[number] for values in chain.parameters]
    names = [region[offset].results[index].name for offset, index in chain.results]
    return build.create(get("call"), arguments, {"callee": Symbol(made.name)}, names=names)


def common_name(names: Iterable[str | None]) -> str | None:
    """`layer.attention.weight` of `layer.0.attention.weight`, `layer.1.attention.weight`, ...; None if they differ."""
    rows = [re.split(r"(\d+)", name or "") for name in names]
    if len({len(row) for row in rows}) != 1:
        return None
    columns = [set(column) for column in zip(*rows, strict=True)]
    if any(len(column) > 1 for column in columns[::2]):
        return None
    kept = "".join(column.pop() if len(column) == 1 else "" for column in columns)
    return re.sub(r"([./_:])[./_:]+", r"\1", kept).strip("./_:") or None


def _function_name(names: Iterable[str | None]) -> str:
    """What the names of the weights begin with, or `block`."""
    rows = [n.split(".")[:-1] for n in names if n is not None and "." in n]
    shared = [parts[0] for parts in takewhile(lambda parts: len(set(parts)) == 1, zip(*rows, strict=False))]
    return re.sub(r"\W+", "_", "_".join(shared)).strip("_") or "block"
