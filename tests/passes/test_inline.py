"""Inlining: bound dims stay apart, growth is bounded, legalization inlines for targets that refuse `call`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irc.ir.errors import IrcError
from irc.ir.graph import Node
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.text import parse_model
from irc.ir.verify import check
from irc.passes import inline, run_passes
from irc.passes.legalize import legalize


def model_of(text: str) -> Model:
    return parse_model(f'irc 1 vocabulary 1\nmodel "m" {{\n{text}\n}}\n')


@pytest.fixture
def counting() -> Model:
    """Two calls of a function that binds a dim of the name that the entry's input has."""
    return model_of("""
  func @main<N>(%x: f32[N], %n: i64[]) -> (%x: f32[N], %a: f32[], %b: f32[]) {
    %a = call(%n) {callee = @total} : f32[]
    %m = add(%n, %n) : i64[]
    %b = call(%m) {callee = @total} : f32[]
    return %x, %a, %b
  }
  private func @total(%n: i64[]) -> (%y: f32[]) {
    bind_dim(%n) {dim = "N"}
    %i = iota() {dims = [N], dtype = f32, axis = 0} : f32[N]
    %y = reduce(%i) {axes = [0], kind = "sum"} : f32[]
    return %y
  }""")


def test_dims_that_a_callee_binds_get_names_of_their_own(counting: Model):
    out = run_passes(counting, "inline")
    check(out)
    assert list(out.functions) == ["main"]
    assert [n.keywords["dim"] for n in out.nodes() if n.op.name == "bind_dim"] == ["N_1", "N_2"]
    x, a, b = evaluate(out, [np.ones(5, np.float32), np.array(3)])
    assert (x.shape, a, b) == ((5,), 3.0, 15.0)


def test_legalization_inlines_for_a_target_without_calls(counting: Model):
    class NoCall:
        name = "toy"

        def claims(self, node: Node) -> str | None:
            return "it has no functions" if node.op.name == "call" else None

    legalize(counting, NoCall())
    check(counting)
    assert not [n for n in counting.nodes() if n.op.name == "call"]


def test_growth_is_bounded(monkeypatch: pytest.MonkeyPatch):
    """Each function calls the next twice: 2^40 nodes."""
    pairs = "".join(
        f"""
  private func @f{i}(%x: f32[]) -> (%y: f32[]) {{
    %a = call(%x) {{callee = @f{i + 1}}} : f32[]
    %y = call(%a) {{callee = @f{i + 1}}} : f32[]
    return %y
  }}"""
        for i in range(40)
    )
    model = model_of(
        """
  func @main(%x: f32[]) -> (%y: f32[]) {
    %y = call(%x) {callee = @f0} : f32[]
    return %y
  }
  private func @f40(%x: f32[]) -> (%y: f32[]) {
    %y = tanh(%x) : f32[]
    return %y
  }"""
        + pairs
    )
    monkeypatch.setattr(inline, "LIMIT", 1000)
    with pytest.raises(IrcError, match=r"would make more than 1000 nodes"):
        run_passes(model, "inline")


BRANCH = """
  func @main<L>(%x: f32[L,2], %n: i64[]) -> (%y: f32[2]) {
    %y, %k = while(f32[2] splat 0.0, i64[] 0) captures(%n, %x) : f32[2], i64[]
      cond (%s: f32[2], %i: i64[]) {
        %c = compare(%i, %n) {direction = "lt"} : bool[]
        yield %c
      }
      body (%s: f32[2], %i: i64[]) {
        %r = take(%x, %i) : f32[2]
        %q = add(%s, %r) : f32[2]
        %j = add(%i, i64[] 1) : i64[]
        yield %q, %j
      }
    return %y
  }"""


def test_a_body_that_cannot_have_the_sizes_becomes_a_trap(build: Callable[..., Model]):
    out = run_passes(model_of(BRANCH), 'specialize{dims="L=0"}')
    check(out)
    (trap,) = (n for n in out.nodes() if n.op.name == "trap")
    assert "empty" in trap.keywords["message"]
    x = np.zeros((0, 2), np.float32)
    assert evaluate(out, [x, np.array(0)])[0].tolist() == [0, 0]
    with pytest.raises(IrcError, match="empty"):
        evaluate(out, [x, np.array(1)])
    fits = run_passes(model_of(BRANCH), 'specialize{dims="L=1"}')
    assert not [n for n in fits.nodes() if n.op.name == "trap"]
