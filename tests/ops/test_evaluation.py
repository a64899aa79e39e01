"""The reference evaluator itself: calls of any depth, memory given back after the last use, derived constants."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np

from irc.ir import build, dtypes
from irc.ir.data import ArrayData
from irc.ir.model import Model
from irc.ir.reference import Evaluator, evaluate
from irc.ir.text import parse_model
from irc.ir.types import TensorType

BYTES = 400_000


def test_calls_nest_as_deep_as_the_model_likes():
    depth = sys.getrecursionlimit() + 100
    functions = "".join(
        f"""
  private func @f{i}(%x: f32[], %p: bool[]) -> (%y: f32[]) {{
    %y = if(%p) captures(%x, %p) : f32[]
      then {{ %a = call(%x, %p) {{callee = @f{i + 1}}} : f32[] yield %a }}
      else {{ yield %x }}
    return %y
  }}"""
        for i in range(depth)
    )
    model = parse_model(f"""irc 1 vocabulary 1
model "m" {{
  func @main(%x: f32[], %p: bool[]) -> (%y: f32[]) {{
    %y = call(%x, %p) {{callee = @f0}} : f32[]
    return %y
  }}{functions}
  private func @f{depth}(%x: f32[], %p: bool[]) -> (%y: f32[]) {{
    %y = negate(%x) : f32[]
    return %y
  }}
}}
""")
    assert evaluate(model, [np.array(2, np.float32), np.array(True)]) == (-2.0,)


def peak(run) -> int:
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_values_go_after_their_last_use():
    model = Model("chain")

    def body(b, x):
        for _ in range(60):
            x = b.tanh(x)
        return x

    build.function(model, "main", [("x", TensorType(dtypes.f32, (BYTES // 4,)))], body)
    x = np.ones(BYTES // 4, np.float32)
    assert peak(lambda: evaluate(model, [x])) < 8 * BYTES  # an operation holds its operand and result in f64 too


def test_a_value_that_a_loop_captures_stays():
    model = Model("m")
    scalar = TensorType(dtypes.i32, ())

    def body(b, x, n):
        y = b.add(x, 1)
        start = b.constant(0, dtypes.i32)
        loop = b.while_(
            (start, x),
            cond=b.region([scalar, scalar], lambda r, i, s: r.compare(i, n, direction="lt")),
            body=b.region([scalar, scalar], lambda r, i, s: (r.add(i, 1), r.add(s, y))),
        )
        return loop[1]

    build.function(model, "main", [("x", scalar), ("n", scalar)], body)
    assert evaluate(model, [np.array(5, np.int32), np.array(3, np.int32)]) == (23,)


def test_a_derived_constant_is_computed_with_its_own_slice_of_init():
    model = Model("m")
    init = build.Builder(model, model.init)
    derived = []
    for i in range(20):
        w = model.add_constant(f"w{i}", ArrayData(np.full(BYTES // 4, i, np.float32)))
        derived.append(model.add_derived(f"d{i}", init.negate(init.tanh(init.exponential(w)))))
    again = model.add_derived("again", init.abs(derived_value(model, 3)))
    seen = []
    evaluator = Evaluator(model, trace=lambda node, _: seen.append(node.op.name))
    assert evaluator.constant(derived[3])[0] == np.float32(-np.tanh(np.exp(3.0)))
    assert seen == ["exponential", "tanh", "negate"]
    assert evaluator.constant(again)[0] == -evaluator.constant(derived[3])[0]
    assert seen == ["exponential", "tanh", "negate", "abs"]
    fresh = Evaluator(model)
    assert peak(lambda: [fresh.constant(c) for c in derived]) < (len(derived) + 8) * BYTES


def derived_value(model: Model, index: int):
    return model.init.outputs[index]
