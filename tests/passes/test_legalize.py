"""Legalization: what a target refuses is decomposed to a fixpoint; what cannot be is reported all at once."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.ir.clone import clone_model
from irc.ir.errors import InferenceError, IrcError, UnsupportedError
from irc.ir.graph import Location, Node
from irc.ir.model import Model
from irc.ir.operators import get
from irc.ir.reference import evaluate
from irc.ir.verify import check
from irc.passes import Level
from irc.passes.capabilities import Capabilities
from irc.passes.legalize import legalize
from irc.passes.manager import level_of


class Refusing:
    """A target that lowers everything but what it is told to refuse."""

    name = "toy"

    def __init__(self, *refused: str, composites: bool = True) -> None:
        self.refused = refused
        self.composites = composites
        self.asked = 0

    def claims(self, node: Node) -> str | None:
        self.asked += 1
        if node.op.name in self.refused:
            return "it has no such kernel"
        return None if self.composites or not node.op.is_composite else "it has core operators only"


def at(b: Any, name: str) -> Any:
    return b.at(Location((name,)))


def test_the_protocol():
    assert isinstance(Refusing(), Capabilities)
    assert not isinstance(object(), Capabilities)


def test_what_is_claimed_stays(build: Callable[..., Model]):
    model = build(lambda b, x: b.Gelu(b.tanh(x)), x="f32[B,4]")
    report = legalize(model, Refusing())
    assert [n.op.name for n in model.nodes()] == ["tanh", "Gelu"]
    assert str(report) == "decomposed for toy: nothing"
    assert level_of(model) is Level.LEGAL


def test_composites_are_decomposed_to_a_fixpoint(build: Callable[..., Model]):
    def body(b: Any, x: Any) -> Any:
        return at(b, "Softmax_3").Softmax(at(b, "Swish_2").Swish(x), axis=1, name="probabilities")

    model = build(body, x="f32[B,4]")
    before = clone_model(model)
    report = legalize(model, Refusing(composites=False))
    check(model)
    assert not [n for n in model.nodes() if n.op.is_composite]
    assert report.decomposed["Softmax"] == report.decomposed["Swish"] == 1
    assert {n.location.source for n in model.nodes()} == {("Swish_2",), ("Softmax_3",)}
    assert {n.location.rewrite for n in model.nodes()} == {"legalize"}
    assert model.main.outputs[0].name == "probabilities"
    x = np.random.default_rng(0).standard_normal((3, 4)).astype("f4")
    # Intermediate values are rounded to f32 now: a few units in the last place of numbers below 1.
    np.testing.assert_allclose(evaluate(model, [x])[0], evaluate(before, [x])[0], rtol=8 * 2.0**-23)


def test_inner_graphs_are_legalized(build: Callable[..., Model]):
    def body(b: Any, x: Any, p: Any) -> Any:
        return b.if_(p, then=b.region([], lambda i: i.Swish(x)), else_=b.region([], lambda i: x))

    model = build(body, x="f32[4]", p="bool[]")
    legalize(model, Refusing(composites=False))
    check(model)
    assert "Swish" not in [n.op.name for n in model.nodes()]


def test_everything_refused_is_reported_at_once(build: Callable[..., Model]):
    def body(b: Any, x: Any) -> Any:
        y = at(b, "Tanh_1").tanh(at(b, "Tanh_0").tanh(x))
        return at(b, "Erf_7").erf(at(b, "Softmax_2").Softmax(y))

    model = build(body, x="f32[B,4]")
    with pytest.raises(UnsupportedError) as error:
        legalize(model, Refusing("tanh", "erf", "exponential", composites=False))
    lines = [str(d) for d in error.value.diagnostics]
    assert len(lines) == 3
    assert re.search(r"toy cannot run tanh: it has no such kernel \(2 nodes, first tanh 'Tanh_0'\)", lines[0])
    assert re.search(r"toy cannot run erf: it has no such kernel \(1 node, first erf 'Erf_7'\)", lines[1])
    assert re.search(r"toy cannot run exponential: .* first exponential 'Softmax_2'\)", lines[2])
    assert level_of(model) is Level.IMPORTED


def test_a_decomposition_that_refuses_is_undone(build: Callable[..., Model], monkeypatch: pytest.MonkeyPatch):
    def refuse(ctx: Any, x: Any, *, alpha: float) -> Any:
        ctx.build.tanh(ctx.build.negate(x))
        return ctx.refuse("the moon is wrong")

    monkeypatch.setattr(get("Swish"), "decompose", refuse)
    model = build(lambda b, x: b.Swish(x), x="f32[4]")
    with pytest.raises(UnsupportedError, match="core operators only; it cannot be decomposed: the moon is wrong"):
        legalize(model, Refusing(composites=False))
    assert [n.op.name for n in model.nodes()] == ["Swish"]


@pytest.mark.parametrize(
    "rule, message",
    [
        (lambda ctx, x, *, alpha: ctx.build.Swish(x, alpha=alpha), "the decomposition of Swish comes back to itself"),
        (lambda ctx, x, *, alpha: (x, x), "Swish has 1 results, its decomposition 2"),
        (lambda ctx, x, *, alpha: ctx.build.is_finite(x), r"Swish has type f32\[4\], its decomposition bool\[4\]"),
        (lambda ctx, x, *, alpha: ctx.build.reshape(x, dims=(2, 2)), r"its decomposition f32\[2,2\]"),
    ],
)
def test_a_wrong_decomposition_is_a_defect(
    build: Callable[..., Model], monkeypatch: pytest.MonkeyPatch, rule: Any, message: str
):
    model = build(lambda b, x: b.Swish(x), x="f32[4]")
    monkeypatch.setattr(get("Swish"), "decompose", rule)
    with pytest.raises(IrcError, match=message) as error:
        legalize(model, Refusing(composites=False))
    assert not isinstance(error.value, UnsupportedError | InferenceError)


def test_each_node_is_asked_a_few_times_only(build: Callable[..., Model]):
    def body(b: Any, x: Any) -> Any:
        for _ in range(200):
            x = b.Swish(x)
        return x

    model, target = build(body, x="f32[4]"), Refusing(composites=False)
    legalize(model, target)
    assert target.asked < 8 * sum(1 for _ in model.nodes())
