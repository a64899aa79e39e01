"""Graphs, the builder, the rewriter and clones: uses, order, names, captures, locations."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from irc.ir import build, dtypes
from irc.ir.clone import clone_model
from irc.ir.dims import symbol
from irc.ir.effects import dominates, has_effects
from irc.ir.errors import InferenceError, IrcError
from irc.ir.model import Function, Location, Model
from irc.ir.rewrite import Rewriter
from irc.ir.types import TensorType, tensor

B = symbol("B")
X = tensor(dtypes.f32, B, 4)


def chain(length: int = 3) -> Model:
    """x + 1 + 1 + ..."""
    model = Model("chain")

    def body(b, x):
        for i in range(length):
            x = b.add(x, 1.0, name=f"y{i}")
        return {"out": x}

    build.function(model, "main", [("x", X)], body)
    return model


def test_builder_types_and_shares_inline_constants():
    model = chain(3)
    nodes = list(model.main.body.nodes)
    assert [str(n.result.type) for n in nodes] == ["f32[B,4]"] * 3
    assert len({id(n.operands[1]) for n in nodes}) == 1, "equal inline constants are one object"
    assert model.main.dims == ["B"]
    assert model.main.output_names == ["out"]


def test_uses_are_ordered_and_include_outputs():
    model = chain(2)
    first, second = model.main.body.nodes
    assert first.result.uses == ((second, 0),)
    assert second.result.is_output
    assert not first.result.is_output
    assert model.main.inputs[0].users == (first,)


def test_order_survives_many_insertions_at_one_place():
    model = chain(2)
    first, last = model.main.body.nodes
    rewriter = Rewriter(model)
    made = [rewriter.before(last).negate(first.result).node for _ in range(200)]
    for a, b in pairwise(made):
        assert a.comes_before(b)
        assert not b.comes_before(a)
    assert first.comes_before(made[0])
    assert made[-1].comes_before(last)
    assert len(model.main.body) == 202


def test_replace_moves_uses_names_and_locations():
    model = Model("m")
    function = model.add_function(Function("main"))
    x = function.add_input(X, "x")
    b = build.Builder(model, function.body, location=Location(("Add_7",)))
    y = b.add(x, 1.0, name="y")
    z = b.negate(y)
    function.body.set_outputs([z, y])
    rewriter = Rewriter(model, "test.rewrite")
    new = rewriter.before(y.node).subtract(x, -1.0)
    rewriter.replace(y.node, new)
    assert function.outputs == (z, new)
    assert z.node.operands == (new,)
    assert new.name == "y"
    assert new.node.location == Location(("Add_7",), "test.rewrite")
    assert [c.kind for c in rewriter.changes] == ["create", "replace"]
    assert x.users == (new.node,)


def test_replace_refuses_a_wrong_count_and_used_results_left_out():
    model = chain(2)
    first, _ = model.main.body.nodes
    with pytest.raises(IrcError, match="has 1 results, got 2"):
        Rewriter(model).replace(first, [first.result, first.result])
    with pytest.raises(IrcError, match="still used"):
        Rewriter(model).replace(first, [None])
    with pytest.raises(IrcError, match="still used"):
        Rewriter(model).erase(first)


def test_worklist_brings_back_what_a_change_touched():
    model = chain(3)
    rewriter = Rewriter(model)
    seen = []
    for node in rewriter.worklist(model.main.body.nodes):
        seen.append(node)
        if len(seen) == 3:
            rewriter.set_operand(node, 0, model.main.inputs[0])
    assert seen[3:] == [seen[1], seen[2]], "the node that lost a use, then the changed one; the first is untouched"


def captured_model() -> Model:
    """main(x, flag): if flag then x + h else h, with h = -x computed outside."""
    model = Model("captured")

    def body(b, x, flag):
        h = b.negate(x, name="h")
        then = b.region([], lambda inner: inner.add(h, x))
        orelse = b.region([], lambda inner: h)
        return b.if_(flag, then=then, else_=orelse)

    build.function(model, "main", [("x", X), ("flag", tensor(dtypes.bool_))], body)
    return model


def test_captures_are_the_outer_values_used_inside():
    model = captured_model()
    node = model.main.body.last
    then, orelse = node.all_graphs()
    h, x = model.main.body.first.result, model.main.inputs[0]
    assert then.captures() == (h, x)
    assert orelse.captures() == (h,)
    assert dominates(h, then.first)
    assert not dominates(node.results[0], then.first)
    assert not has_effects(node, model)


def test_clone_is_deep_in_structure_and_shares_data():
    model = captured_model()
    model.add_constant("w", build.ArrayData(np.zeros((100,), np.float32)))
    copy = clone_model(model)
    assert copy.constants["w"].data is model.constants["w"].data
    original, cloned = list(model.nodes()), list(copy.nodes())
    assert [n.op.name for n in original] == [n.op.name for n in cloned]
    assert not set(original) & set(cloned)
    values = {v for n in original for v in n.results} | set(model.main.inputs)
    for node in cloned:
        assert not values & {v for v in node.operands if v is not None}, "a clone uses its own values only"
    before = len(model.main.body)
    Rewriter(copy).set_outputs(copy.main.body, [copy.main.inputs[0]])
    assert len(model.main.body) == before
    assert model.main.outputs[0] is model.main.body.last.results[0]


def test_clone_copies_nested_graphs_of_any_depth():
    model = Model("deep")
    function = model.add_function(Function("main", dims=["B"]))
    x = function.add_input(X, "x")
    flag = function.add_input(tensor(dtypes.bool_), "flag")

    def nest(b, depth):
        if depth == 0:
            return b.negate(x)
        inner = b.region([], lambda i: nest(i, depth - 1))
        return b.if_(flag, then=inner, else_=b.region([], lambda i: x))

    function.body.set_outputs([nest(build.Builder(model, function.body), 60)])
    copy = clone_model(model)
    assert [n.op.name for n in copy.nodes()] == ["if"] * 60 + ["negate"]
    assert copy.main.body.last.graph is copy.main.body


def test_errors_name_the_node_and_the_fault():
    model = Model("m")
    function = model.add_function(Function("main"))
    x = function.add_input(tensor(dtypes.f32, 2, 3), "x")
    y = function.add_input(tensor(dtypes.f32, 2, 4), "y")
    b = build.Builder(model, function.body, location=Location(("Add_1",)))
    with pytest.raises(InferenceError, match=r"add 'Add_1': shapes \[2,3\] and \[2,4\] do not broadcast: 3 and 4"):
        b.add(x, y)
    with pytest.raises(InferenceError, match=r"take has no attribute 'axes'; did you mean 'axis'"):
        b.take(x, y, axes=1)
    with pytest.raises(IrcError, match="no operator is called 'multply'; did you mean 'multiply'"):
        b.multply(x, y)
    with pytest.raises(InferenceError, match="operand indices of take has type"):
        b.take(x, y, axis=1)
    assert len(function.body) == 0, "a rejected node leaves nothing behind"


def test_unproved_broadcasts_are_recorded_with_the_node():
    model = Model("m")
    function = model.add_function(Function("main", dims=["H", "W"]))
    x = function.add_input(tensor(dtypes.f32, symbol("H")), "x")
    y = function.add_input(tensor(dtypes.f32, symbol("W")), "y")
    z = build.Builder(model, function.body, location=Location(("Add_12",))).add(x, y)
    assert str(z.type) == "f32[bcast(H, W)]"
    (assumption,) = function.assumptions
    assert (assumption.relation, assumption.node) == ("bcast", "add 'Add_12'")


def test_names_and_types_read_well():
    assert str(tensor(dtypes.f32, B, 64)) == "f32[B,64]"
    assert str(TensorType(dtypes.bf16, None)) == "bf16[*]"
    assert str(tensor(dtypes.bool_)) == "bool[]"
