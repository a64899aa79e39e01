"""Structural equality and differences of models: what counts, what does not, and how nodes are aligned."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.ir import build, dtypes
from irc.ir.build import Builder
from irc.ir.clone import clone_model
from irc.ir.compare import Difference, aligned, diff, equal, same_attribute, same_data
from irc.ir.data import ArrayData, SplatData
from irc.ir.dims import Assumption, symbol
from irc.ir.model import Function, Graph, Location, Model, Value
from irc.ir.rewrite import Rewriter
from irc.ir.types import TensorType

B = symbol("B")
F32 = dtypes.f32
X = TensorType(F32, (B, 4))


def base(weight: float = 1.0) -> Model:
    """A weight, a derived constant, a loopless function with a condition, a private helper."""
    model = Model("m", metadata={"producer": "test"})
    w = model.add_constant("w", ArrayData(np.full(4, weight, np.float32)))
    model.add_derived("d", Builder(model, model.init).negate(w))
    build.function(model, "helper", [("x", X)], lambda b, x: b.multiply(x, 2.0)).public = False

    def body(b: Builder, x: Value, flag: Value) -> dict[str, Value]:
        h = b.add(x, model.constants["d"], name="h")
        y = b.if_(
            flag,
            then=b.region([], lambda c: c.multiply(h, 3.0)),
            else_=b.region([], lambda c: c.call((h,), callee="helper")),
            name="y",
        )
        return {"out": b.Softmax(y, axis=1, name="z")}

    build.function(model, "main", [("x", X), ("flag", TensorType(dtypes.bool_, ()))], body)
    return model


def node(model: Model, op: str) -> Any:
    return next(n for n in model.main.body.walk() if n.op.name == op)


def changed(change: Callable[[Model], None]) -> list[str]:
    model = base()
    change(model)
    return [str(d) for d in diff(base(), model)]


def test_equal_models():
    assert equal(base(), base())
    assert diff(base(), clone_model(base())) == []


def test_labels_of_inner_values_and_locations_do_not_count():
    other = base()
    node(other, "add").result.name = "elsewhere"
    node(other, "add").location = Location(("Add_1",), "fuse")
    assert equal(base(), other)


def rename(model: Model) -> None:
    model.name = "other"


def change_metadata(model: Model) -> None:
    model.metadata = {"producer": "you", "date": "today"}


def change_constant_metadata(model: Model) -> None:
    model.constants["w"].metadata["label"] = "weight"


def change_function(model: Model) -> None:
    main = model.main
    main.kind, main.public, main.dims = "host", True, ["B", "S"]
    main.output_names = ["probs"]
    main.inputs[0].name = "x:0"
    main.input_attributes[1]["role"] = "flag"
    main.metadata["a"] = "b"
    main.assumptions[Assumption("<=", B, 7, "n")] = None


def add_function(model: Model) -> None:
    build.function(model, "extra", [("x", X)], lambda b, x: b.abs(x))


def remove_helper(model: Model) -> None:
    del model.functions["helper"]


def change_attribute(model: Model) -> None:
    Rewriter(model).set_attributes(node(model, "Softmax"), axis=0)


def change_inside(model: Model) -> None:
    inner = node(model, "multiply")
    Rewriter(model).set_operand(inner, 1, model.inline_constant(ArrayData(np.float32(5.0))))


def change_use(model: Model) -> None:
    Rewriter(model).set_operand(node(model, "Softmax"), 0, node(model, "add").result)


def change_output(model: Model) -> None:
    Rewriter(model).set_output(model.main.body, 0, node(model, "if").result)


def change_type(model: Model) -> None:
    node(model, "Softmax").result.type = TensorType(F32, (B, 5))


def insert_node(model: Model) -> None:
    rewriter, softmax = Rewriter(model), node(model, "Softmax")
    value = rewriter.before(softmax).abs(softmax.operands[0], name="a")
    rewriter.set_operand(softmax, 0, value)


def add_input(model: Model) -> None:
    model.main.add_input(X, "more")


def change_init(model: Model) -> None:
    (negate,) = model.init.nodes
    Rewriter(model).replace(negate, Rewriter(model).before(negate).abs(model.constants["w"]))


@pytest.mark.parametrize(
    "change, expected",
    [
        (rename, ["model: name: m -> other"]),
        (change_metadata, ["model: metadata producer: test -> you", "model: metadata date only in the second: today"]),
        (change_constant_metadata, ["constant #w: metadata label only in the second: weight"]),
        (
            change_function,
            [
                "@main: kind: device -> host",
                "@main: dims: B -> B, S",
                "@main: metadata a only in the second: b",
                "@main: assumption only in the second: B <= 7 from 'n'",
                "@main: mark of input 1 role only in the second: flag",
                '@main: input names: x, flag -> "x:0", flag',
                "@main: output names: out -> probs",
            ],
        ),
        (
            add_function,
            ["model: function only in the second: func @extra(x: f32[B,4]) -> (f32[B,4])"],
        ),
        (remove_helper, ["model: function only in the first: private func @helper(x: f32[B,4]) -> (f32[B,4])"]),
        (change_attribute, ["@main: %z = Softmax: attribute axis: 1 -> 0"]),
        (change_inside, ["@main: %y = if then: multiply: operand 1: f32[] 3.0 -> f32[] 5.0"]),
        (change_use, ["@main: %z = Softmax: operand 0: %y -> %h"]),
        (change_output, ["@main: output 0: %z -> %y"]),
        (change_type, ["@main: %z = Softmax: type of result 0: f32[B,4] -> f32[B,5]"]),
        (
            insert_node,
            [
                "@main: node only in the second: %a = abs(%y) : f32[B,4]",
                "@main: %z = Softmax: operand 0: %y -> %a",
            ],
        ),
        (add_input, ["@main: input names: x, flag -> x, flag, more", "@main: number of inputs: 2 -> 3"]),
        (
            change_init,
            [
                "init: node only in the first: %0 = negate(#w) : f32[4]",
                "init: node only in the second: %0 = abs(#w) : f32[4]",
                "init: output 0: an unnamed value of type f32[4] -> an unnamed value of type f32[4]",
            ],
        ),
    ],
    ids=lambda x: getattr(x, "__name__", None),
)
def test_what_differs(change: Callable[[Model], None], expected: list[str]):
    assert changed(change) == expected


def test_constants_are_compared_by_contents():
    assert [str(d) for d in diff(base(), base(2.0))] == [
        "model: constant #w: f32[4] [1.0, 1.0, 1.0, 1.0] -> f32[4] [2.0, 2.0, 2.0, 2.0]"
    ]
    a, b = Model("m"), Model("m")
    a.add_constant("w", ArrayData(np.arange(100, dtype=np.int64)))
    b.add_constant("w", ArrayData(np.arange(1, 101, dtype=np.int64)))
    (difference,) = diff(a, b)
    assert difference.first is not None
    assert difference.first.startswith("i64[100] sha256:")
    assert difference.first != difference.second


def test_contents():
    zeros = ArrayData(np.zeros((2, 3), np.float32))
    assert same_data(zeros, SplatData(0.0, F32, (2, 3)))
    assert not same_data(zeros, SplatData(-0.0, F32, (2, 3)))
    assert not same_data(zeros, ArrayData(np.zeros((3, 2), np.float32)))
    assert not same_data(zeros, None)
    assert same_data(None, None)
    huge = (1 << 20, 1 << 20)
    start = time.perf_counter()
    assert same_data(SplatData(1, dtypes.i8, huge), SplatData(1, dtypes.i8, huge))
    assert not same_data(SplatData(1, dtypes.i8, huge), SplatData(2, dtypes.i8, huge))
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed


@pytest.mark.parametrize(
    "x, y, same",
    [
        (0.0, -0.0, False),
        (float("nan"), float("nan"), True),
        (1, 1.0, False),
        (1, True, False),
        ((1, 2), [1, 2], True),
        ((1, (2.0,)), (1, (2.5,)), False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, False),
        (np.zeros(3, np.int8), ArrayData(np.zeros(3, np.int8)), True),
        (np.zeros(3, np.int8), np.zeros(3, np.int16), False),
        (None, 0, False),
        (B, symbol("B"), True),
    ],
)
def test_attributes(x: Any, y: Any, same: bool):
    assert same_attribute(x, y) is same
    assert same_attribute({"k": (x,)}, {"k": (y,)}) is same


def chain(ops: list[str]) -> Model:
    model = Model("m")

    def body(b: Builder, x: Value) -> Value:
        for op in ops:
            x = b.apply(op, x)
        return x

    build.function(model, "main", [("x", X)], body)
    return model


OPS = ["negate", "abs", "exponential", "tanh", "logistic", "sign"]


@pytest.mark.parametrize("seed", range(30))
def test_alignment_is_an_order_preserving_matching(seed: int):
    chance = random.Random(seed)
    first = [chance.choice(OPS) for _ in range(chance.randint(0, 30))]
    second = list(first)
    for _ in range(chance.randint(0, 4)):
        at = chance.randint(0, len(second))
        if chance.random() < 0.5:
            second.insert(at, chance.choice(OPS))
        else:
            second[at : at + 1] = []
    a, b = (list(chain(ops).main.body.nodes) for ops in (first, second))
    pairs = list(aligned(a, b))
    assert [x for x, _ in pairs if x is not None] == a
    assert [y for _, y in pairs if y is not None] == b
    assert all(x.op is y.op for x, y in pairs if x is not None and y is not None)
    assert sum(x is None or y is None for x, y in pairs) <= 8


def test_one_inserted_node_is_one_difference_however_long_the_graph():
    ops = [random.Random(7).choice(OPS) for _ in range(5000)]
    a, b = chain(ops), chain([*ops[:2500], "floor", *ops[2500:]])
    start = time.perf_counter()
    differences = [str(d) for d in diff(a, b)]
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed
    assert sum("only in the second: %0 = floor" in d for d in differences) == 1
    assert len(differences) == 2  # and the operand of the node behind it


def test_long_graphs_with_little_in_common_take_bounded_time():
    chance = random.Random(1)
    a, b = (chain([chance.choice(OPS) for _ in range(4000)]) for _ in range(2))
    start = time.perf_counter()
    assert diff(a, b)
    assert time.perf_counter() - start < 60  # finds a hang or quadratic work, not a speed


def test_deeply_nested_graphs():
    def nested(depth: int, value: float) -> Model:
        model = Model("m")
        main = model.add_function(Function("main", dims=["B"]))
        x, flag = main.add_input(X, "x"), main.add_input(TensorType(dtypes.bool_, ()), "flag")
        graph = Graph()
        graph.set_outputs([Builder(model, graph).multiply(x, value)])
        for _ in range(depth):
            outer, other = Graph(), Graph()
            other.set_outputs([x])
            outer.set_outputs([Builder(model, outer).if_(flag, then=graph, else_=other)])
            graph = outer
        main.body.set_outputs([Builder(model, main.body).if_(flag, then=graph, else_=other)])
        return model

    assert equal(nested(2000, 1.0), nested(2000, 1.0))
    shallow = diff(nested(2000, 1.0), chain(["abs"]))
    assert any(d.what == "node" and str(d.first).startswith("%0 = if(%flag) captures") for d in shallow)
    (difference,) = diff(nested(30, 1.0), nested(30, 2.0))
    assert difference.what == "operand 1"
    assert difference.where.count("then") == 31


def test_how_a_difference_reads():
    assert str(Difference("@main", "node", "a", None)) == "@main: node only in the first: a"
    assert str(Difference("@main", "node", None, "b")) == "@main: node only in the second: b"
    assert str(Difference("@main", "dims", "a", "b")) == "@main: dims: a -> b"
