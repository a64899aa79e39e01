"""Nodes that fit, for the generator to change: one function a node in `corpus.ir`, and the graphs of tests/filecheck.

`python -P tests/fuzz/corpus.py` writes corpus.ir anew from the operator cases of irc.testing and from the models of the
ONNX backend suite.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from irc.ir.clone import copy_nodes
from irc.ir.errors import IrcError
from irc.ir.model import Constant, Function, Model, Node
from irc.ir.operators import Trait
from irc.ir.text import parse_model, print_model
from irc.ir.types import TensorType

HERE = Path(__file__).parent
FILE = HERE / "corpus.ir"
FILECHECK = HERE.parent / "filecheck"
MOST = 6
"""Nodes of one operator."""
LARGEST = 600
"""Elements of one value."""


@cache
def nodes() -> dict[str, list[Function]]:
    """Functions of one node each, by operator."""
    model = parse_model(FILE.read_text(encoding="utf-8"))
    out: dict[str, list[Function]] = {}
    for function in model.functions.values():
        (node,) = function.body.nodes
        out.setdefault(node.op.name, []).append(function)
    return out


@cache
def patterns() -> list[Function]:
    """What the passes' own tests are about: device functions on tensors, without calls."""
    out = []
    for path in sorted(FILECHECK.glob("*.ir")):
        try:
            model = parse_model(path.read_text(encoding="utf-8"), filename=path.name)
        except IrcError:
            continue  # text of several models
        out += [f for f in model.functions.values() if _fits(f)]
    return out


def _fits(function: Function) -> bool:
    every = [*function.body.nodes, *(n for node in function.body.nodes for g in node.all_graphs() for n in g.nodes)]
    return (
        bool(every)
        and function.kind == "device"
        and all(isinstance(v.type, TensorType) and v.type.dims is not None for v in function.inputs)
        and all(n.op.name not in ("call", "custom_call", "bind_dim", "freeze", "onnx", "trap") for n in every)
        and all(v.data is not None for n in every for v in n.operands if isinstance(v, Constant))
    )


# ------------------------------------------------------------------------------------------------------------ writing


def _takes(node: Node) -> bool:
    """A pure node on tensors of known, small shapes."""
    values = [v for v in (*node.operands, *node.results, *(c for g in node.all_graphs() for c in g.captures())) if v]
    return (
        Trait.PURE in node.op.traits
        and not (Trait.HOST in node.op.traits or Trait.LATE in node.op.traits)
        and node.op.name != "custom_call"
        and all(_is_small(v.type) for v in values)
    )


def _is_small(type_: Any) -> bool:
    if not isinstance(type_, TensorType) or type_.dims is None:
        return False
    return isinstance(type_.size, int) and type_.size <= LARGEST


def _alone(model: Model, name: str, node: Node) -> None:
    """A function of `model` of this node alone; operands and captures are its inputs, inline constants stay."""
    function = model.add_function(Function(name))
    mapping: dict[Any, Any] = {}
    used = [*node.operands, *(c for g in node.all_graphs() for c in g.captures())]
    for value in dict.fromkeys(v for v in used if v is not None):
        inline = isinstance(value, Constant) and value.data is not None and value.data.is_inline
        if inline:
            mapping[value] = model.inline_constant(value.data)
        else:
            mapping[value] = function.add_input(value.type, f"x{len(function.inputs)}")
            mapping[value].ints = None
    for graph in node.all_graphs():
        for inner in graph.nodes:
            for value in inner.operands:
                if isinstance(value, Constant):
                    mapping[value] = model.inline_constant(value.data)
    copy_nodes([node], function.body, mapping)
    function.body.set_outputs([mapping[r] for r in node.results])
    function.output_names = [f"y{i}" for i in range(len(node.results))]


def _signature(node: Node) -> Any:
    """Two nodes with equal ones teach the generator the same: ranks, kinds of types, which attributes."""
    types = tuple(None if v is None else (v.type.dtype.kind, v.type.rank) for v in node.operands)
    return node.op.name, types, tuple(sorted((k, str(v)) for k, v in node.keywords.items() if v))


def _sources() -> Iterator[Model]:
    from irc.frontends.onnx import import_onnx
    from irc.testing import cases, cases_of_families

    for case in (*cases_of_families.cases(), *cases.cases()):
        yield case.model()
    path = HERE.parent / "conformance" / "suite.py"
    spec = importlib.util.spec_from_file_location("conformance_suite", path)
    assert spec is not None
    assert spec.loader is not None
    suite = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = suite
    spec.loader.exec_module(suite)
    for case in suite.load().values():
        yield import_onnx(case.model)


def collect() -> Model:
    out = Model("corpus")
    seen: set[Any] = set()
    count: dict[str, int] = {}
    for model in _sources():
        for node in model.nodes():
            if not _takes(node) or count.get(node.op.name, 0) >= MOST or (key := _signature(node)) in seen:
                continue
            seen.add(key)
            trial = Model("trial")
            try:
                _alone(trial, "trial", node)
                text = print_model(trial)
                parse_model(text)
            except (IrcError, AttributeError):
                continue  # captures of captures, and constants that are computed
            if len(text) > 3000:
                continue
            count[node.op.name] = number = count.get(node.op.name, 0) + 1
            _alone(out, f"{node.op.name.replace('.', '_')}_{number}", node)
    return out


if __name__ == "__main__":
    FILE.write_text(print_model(collect()), encoding="utf-8")
