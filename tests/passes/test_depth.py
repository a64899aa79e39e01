"""No pass recurses along operands or into graphs: chains and nests deeper than Python's stack."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from irc.ir import dims, dtypes
from irc.ir.build import Builder, function
from irc.ir.graph import Graph, Node
from irc.ir.model import Model
from irc.ir.types import TensorType
from irc.passes import DEFAULT, run_passes
from irc.passes.legalize import legalize

B = dims.symbol("B")
DEEP = sys.getrecursionlimit() + 200
PIPELINES = ["canonicalize", "fold", "cse", "dce", "batch-norm", 'specialize{dims="B=3"}', DEFAULT]


class NoSwish:
    name = "toy"

    def claims(self, node: Node) -> str | None:
        return "no kernel" if node.op.name == "Swish" else None


def chain() -> Model:
    model = Model("chain")

    def body(b: Any, x: Any) -> Any:
        for i in range(DEEP):
            x = b.Swish(x) if i % 100 == 0 else b.negate(b.tanh(x))
        return x

    function(model, "main", [("x", TensorType(dtypes.f32, (B,)))], body)
    return model


def nest() -> Model:
    """`if` in `if`, a Swish in the innermost."""
    model = Model("nest")

    def body(b: Any, x: Any, p: Any) -> Any:
        def within(make: Callable[[Any], Any]) -> Graph:
            graph = Graph()
            graph.set_outputs([make(Builder(model, graph))])
            return graph

        inner = within(lambda i: i.Swish(x))
        for _ in range(DEEP):
            inner = within(lambda i, g=inner: i.if_(p, then=g, else_=within(lambda j: x)))
        return b.if_(p, then=inner, else_=within(lambda j: x))

    function(model, "main", [("x", TensorType(dtypes.f32, (B,))), ("p", TensorType(dtypes.bool_, ()))], body)
    return model


@pytest.mark.parametrize("make", [chain, nest], ids=["chain", "nest"])
def test_depth(make: Callable[[], Model]):
    model = make()
    count = sum(len(g) for g in model.graphs())
    for pipeline in PIPELINES:
        out = run_passes(model, pipeline)
        assert sum(len(g) for g in out.graphs()) == count, pipeline
    assert not [n for n in run_passes(run_passes(model, "outline"), "inline").nodes() if n.op.name == "call"]
    legalize(model, NoSwish())
    assert "Swish" not in {n.op.name for n in model.nodes()}
