"""What the page shows, as plain data: every state of the model's graphs and, pass by pass, what its rewrites replaced.

Nodes, graphs and values keep a number through all passes, given by identity.  A state of a node (a record) and a state
of a graph (a snapshot) is stored once, however many passes leave it as it is.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...ir.attributes import Symbol
from ...ir.graph import Constant, Graph, Node, Value
from ...ir.model import Function, Model
from ...ir.rewrite import Change, Rewriter
from ...ir.text import attribute_text, constant_text
from ...passes import Pass, Pipeline, run_pipeline
from .layout import Line, lay_out

Row = dict[str, Any]

TITLE, UNDER, PADDING, NARROWEST, WIDEST = 8.4, 6.8, 28, 84, 260
"""Widths of a character of a box's first and second line, and of boxes, in the page's units."""
LONGEST_TEXT = 2000
"""Characters of an attribute or a constant; the rest is left out and counted."""


def record(model: Model, pipeline: Pipeline) -> Row:
    """Runs the pipeline on `model` itself; the data of the page, ready for JSON."""
    recorder = _Recorder(model)
    run_pipeline(model, pipeline, observe=recorder.observe)
    return {
        "model": model.name,
        "pipeline": str(pipeline),
        "metadata": recorder.metadata,
        "ops": dict(sorted(recorder.operators.items())),
        "records": recorder.records.rows,
        "graphs": recorder.snapshots.rows,
        "stages": recorder.stages,
    }


@dataclass
class _Table:
    """Rows stored once each, by content."""

    rows: list[Row] = field(default_factory=list)
    _index: dict[Hashable, int] = field(default_factory=dict)

    def find(self, key: Hashable) -> int | None:
        return self._index.get(key)

    def add(self, key: Hashable, row: Row) -> int:
        self._index[key] = len(self.rows)
        self.rows.append(row)
        return len(self.rows) - 1

    def put(self, row: Row) -> int:
        key = json.dumps(row)
        found = self._index.get(key)
        return self.add(key, row) if found is None else found


class _Recorder:
    """Holds every node, graph and value it has numbered, so that none is freed and its number given to another."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.metadata = dict(model.metadata)
        self.operators: dict[str, tuple[str, str]] = {}  # family, first paragraph
        self.records, self.snapshots = _Table(), _Table()
        self.numbers: dict[Node | Graph | Value, int] = {}
        self.counts = {Node: 0, Graph: 0, Value: 0}
        self.stages: list[Row] = []
        self.before: dict[int, int] = {}  # node -> record
        self._stage("as read", [], self._states())

    def number(self, item: Node | Graph | Value) -> int:
        if item not in self.numbers:
            kind: Any = Node if isinstance(item, Node) else Graph if isinstance(item, Graph) else Value
            self.numbers[item] = self.counts[kind]
            self.counts[kind] += 1
        return self.numbers[item]

    def observe(self, step: Pass, rewriter: Rewriter) -> None:
        """One more stage, after a run of a pass."""
        if rewriter.changed:
            self._stage(str(step), rewriter.changes, self._states())
        else:
            last = self.stages[-1]
            self.stages.append({"name": str(step), "graphs": last["graphs"], "nodes": last["nodes"], "changes": 0})

    def _states(self) -> list[int]:
        """The snapshots of all graphs, each function's right after it, outer ones first."""
        roots: list[tuple[str, Graph, Function | None]] = [
            (f"@{f.name}", f.body, f) for f in self.model.functions.values()
        ]
        if len(self.model.init):
            roots.append(("init", self.model.init, None))
        return [
            self._snapshot(graph, title, function if graph is root else None)
            for title, root, function in roots
            for graph in _outer_first(root)
        ]

    def _stage(self, name: str, changes: Sequence[Change], graphs: list[int]) -> None:
        now = {n: r for g in graphs for n, r in self.snapshots.rows[g]["nodes"]}
        row: Row = {"name": name, "graphs": graphs, "nodes": len(now), "changes": len(changes)}
        if self.stages:
            row["added"] = [n for n in now if n not in self.before]
            row["removed"] = [n for n in self.before if n not in now]
            row["altered"] = [n for n, r in now.items() if self.before.get(n, r) != r]
            row["rewrites"] = [self._rewrite(group) for group in rewrites_of(changes)]
        self.before = now
        self.stages.append(row)

    def _rewrite(self, group: Sequence[Change]) -> Row:
        """One application: what it made, what it removed, what it changed; nodes that came and went are in none."""

        def subjects(*kinds: str) -> list[int]:
            return list(dict.fromkeys(self.number(c.subject) for c in group if c.kind in kinds and c.subject))

        gone = subjects("erase", "replace")
        made = subjects("create")
        root = next((c for c in group if c.kind == "replace"), group[0])
        what = f"{root.node} → {root.detail}" if root.kind == "replace" else f"{root.kind} {root.node}"
        if root.kind != "replace" and root.detail:
            what += f" ({root.detail})"
        return {
            "label": root.rewrite,
            "what": what,
            "made": [n for n in made if n not in gone],
            "gone": [n for n in gone if n in self.before],
            "touched": [n for n in subjects("update", "move") if n not in gone and n not in made],
        }

    # One graph.

    def _snapshot(self, graph: Graph, root: str, function: Function | None) -> int:
        parent = graph.parent if isinstance(graph.parent, Node) else None
        captured = [v for v in graph.captures() if not isinstance(v, Constant)]
        names: list[str | None] = [*(function.output_names if function else ()), *[None] * len(graph.outputs)]
        nodes = [(self.number(node), self.records.put(self._record(node))) for node in graph.nodes]
        row: Row = {
            "id": self.number(graph),
            "root": root,
            "title": root if parent is None else _region_title(graph, parent),
            "dims": list(function.dims) if function else [],
            "inputs": [self._value(v) for v in graph.inputs],
            "captures": [self._value(v) for v in captured],
            "outputs": [[names[i], self._operand(v)] for i, v in enumerate(graph.outputs)],
            "nodes": nodes,
        }
        if parent is not None:
            row["holder"] = [self.number(parent), self.number(parent.graph) if parent.graph is not None else -1]
        key = json.dumps(row)
        found = self.snapshots.find(key)
        if found is None:
            row["layout"] = self._layout(row)
            found = self.snapshots.add(key, row)
        return found

    def _layout(self, row: Row) -> Row:
        """Boxes in this order: inputs, captures, nodes, outputs."""
        source: dict[int, int] = {}
        used: dict[int, list[int]] = {}
        widths: list[int] = []
        for value in [*row["inputs"], *row["captures"]]:
            source[value[0]] = len(widths)
            widths.append(_width(value[1], value[2]))
        inputs = len(widths)
        for _, number in row["nodes"]:
            state = self.records.rows[number]
            for operand in dict.fromkeys(v for v in (*[o[1] for o in state["operands"]], *state["captures"])):
                if isinstance(operand, int):
                    used.setdefault(operand, []).append(len(widths))
            for value in state["results"]:
                source[value[0]] = len(widths)
            widths.append(_width(state["op"], state["results"][0][2] if state["results"] else ""))
        for name, value in row["outputs"]:
            if isinstance(value, int):
                used.setdefault(value, []).append(len(widths))
            widths.append(_width(name or "output", ""))
        values = [v for v in used if v in source]
        placed = lay_out(widths, [Line(source[v], tuple(used[v])) for v in values], inputs)
        return {
            "x": placed.x,
            "layer": placed.layer,
            "boxes": widths,
            "width": placed.width,
            "layers": placed.layers,
            "lines": [[v, source[v], used[v], lanes] for v, lanes in zip(values, placed.lanes, strict=True)],
        }

    # One node.

    def _record(self, node: Node) -> Row:
        self.operators.setdefault(node.op.name, (node.op.family, node.op.doc.strip().split("\n\n")[0]))
        inner: dict[Value, None] = {}
        for graph in node.all_graphs():
            inner.update(dict.fromkeys(v for v in graph.captures() if not isinstance(v, Constant)))
        calls = [value for name, _, _ in node.op.fields if isinstance(value := getattr(node.attributes, name), Symbol)]
        return {
            "node": self.number(node),
            "op": node.op.name,
            "attributes": [
                [name, _cut(attribute_text(getattr(node.attributes, name), kind))] for name, kind, _ in node.op.fields
            ],
            "operands": [[name, self._operand(value)] for name, value in _named_operands(node)],
            "captures": [self.number(v) for v in inner],
            "results": [self._value(v) for v in node.results],
            "source": list(node.location.source),
            "rewrite": node.location.rewrite,
            "graphs": [[_region_title(g, node), self.number(g)] for g in node.all_graphs()],
            "calls": [str(c) for c in calls],
        }

    def _value(self, value: Value) -> list[Any]:
        """[number, name, type, known integers or None]"""
        ints = None if value.ints is None else ", ".join("_" if i is None else str(i) for i in value.ints)
        number = self.number(value)
        return [number, value.name or str(number), str(value.type), None if ints is None else _cut(ints)]

    def _operand(self, value: Value | None) -> int | str | None:
        """The number of a value, the text of a constant, None for one that is absent."""
        if not isinstance(value, Constant):
            return None if value is None else self.number(value)
        if value.name is not None or value.data is None:
            return f"#{value.name} : {value.type}"
        return _cut(constant_text(value.data))


def rewrites_of(changes: Iterable[Change]) -> list[list[Change]]:
    """The log cut into single rewrites: nodes made, then nodes replaced by them, then nodes erased with those."""
    out: list[list[Change]] = []
    for change in changes:
        if out and _continues(out[-1], change):
            out[-1].append(change)
        else:
            out.append([change])
    return out


def _continues(group: Sequence[Change], change: Change) -> bool:
    last = group[-1]
    if last.rewrite != change.rewrite:
        return False
    replaced = any(c.kind == "replace" for c in group)
    match change.kind:
        case "create":
            return last.kind == "create"
        case "replace":
            return not replaced and any(c.kind == "create" for c in group)
        case "erase":
            return replaced
        case _:
            return last.kind == "create" or (last.kind == change.kind and last.subject is change.subject)


def _outer_first(root: Graph) -> Iterator[Graph]:
    """`root` and every graph nested in it, in the order of the text."""
    stack = [root]
    while stack:
        graph = stack.pop()
        yield graph
        inner = [g for node in graph.nodes for g in node.all_graphs()]
        stack.extend(reversed(inner))


def _named_operands(node: Node) -> list[tuple[str, Value | None]]:
    """Operands with the names that the operator declares; those of a variadic group are numbered."""
    if node.op.groups == 0:
        names = [spec.name for spec in node.op.operands]
        return list(zip(names, node.operands, strict=False))
    out: list[tuple[str, Value | None]] = []
    for spec, value in zip(node.op.operands, node.grouped, strict=True):
        members = value if isinstance(value, tuple) else None
        out += [(spec.name, value)] if members is None else [(f"{spec.name}[{i}]", v) for i, v in enumerate(members)]
    return out


def _region_title(graph: Graph, holder: Node) -> str:
    """`else` of an `if`; `branches 2` of a variadic group."""
    for name, group in holder.graphs.items():
        for i, other in enumerate(group):
            if other is graph:
                return name.rstrip("_") + (f" {i}" if len(group) > 1 else "")
    return "graph"


def _width(title: str, under: str) -> int:
    return round(min(max(len(title) * TITLE + PADDING, len(under) * UNDER + PADDING, NARROWEST), WIDEST))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}… ({len(text)} characters)"
