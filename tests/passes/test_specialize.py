"""Specialization: sizes replaced, every node typed again, calls copied, assumptions checked with the node's name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irc.ir import build as building
from irc.ir import dims, dtypes
from irc.ir.data import ArrayData
from irc.ir.errors import AssumptionError, InferenceError, InputError, IrcError
from irc.ir.graph import Location
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.types import TensorType
from irc.ir.verify import check
from irc.passes import parse_pipeline, run_passes
from irc.passes.specialize import parse_dims, specialize

B, S, T = (dims.symbol(n) for n in "BST")
f32 = dtypes.f32


def types(model: Model) -> list[str]:
    return [str(r.type) for n in model.nodes() for r in n.results]


def test_numbers(build: Callable[..., Model]):
    model = build(lambda b, x: b.tanh(b.reshape(x, dims=(2 * B, S))), x="f32[B,2,S]")
    out = specialize(model, None, [TensorType(f32, (3, 2, 5))])
    check(out)
    assert types(out) == ["f32[6,5]", "f32[6,5]"]
    assert out.main.dims == []
    assert out.main.body.first.keywords["dims"] == (6, 5)
    assert types(model) == ["f32[2*B,S]", "f32[2*B,S]"]
    x = np.random.default_rng(0).standard_normal((3, 2, 5)).astype("f4")
    assert np.array_equal(evaluate(model, [x])[0], evaluate(out, [x])[0])


def test_symbols_for_symbols(build: Callable[..., Model]):
    model = build(lambda b, x: b.reshape(x, dims=(B * S,)), x="f32[B,S]")
    out = specialize(model, "main", [TensorType(f32, (2 * S, T + 1))])
    check(out)
    assert out.main.dims == ["S", "T"]
    assert types(out) == ["f32[2*S*T + 2*S]"]


def test_nodes_are_typed_again_not_only_substituted(build: Callable[..., Model]):
    model = build(lambda b, x, y: b.add(x, y), x="f32[B]", y="f32[S]")
    assert types(model) == ["f32[bcast(B, S)]"]
    assert types(specialize(model, None, [TensorType(f32, (1,)), TensorType(f32, (S,))])) == ["f32[S]"]
    out = specialize(model, None, [TensorType(f32, (4,)), TensorType(f32, (4,))])
    assert types(out) == ["f32[4]"]
    assert out.main.assumptions == {}


def test_ints_are_known_afterwards(build: Callable[..., Model]):
    model = build(lambda b, x: b.dimensions(dims=(B, 2 * B)), x="f32[B]")
    out = run_passes(specialize(model, None, [TensorType(f32, (7,))]), "canonicalize,dce")
    assert list(out.nodes()) == []
    assert out.main.outputs[0].data.numpy().tolist() == [7, 14]


def test_sub_graphs(build: Callable[..., Model]):
    def body(b: Any, x: Any, p: Any) -> Any:
        cond = b.region([x.type], lambda i, s: i.compare(i.reduce((s,), axes=(0, 1), kind="max"), 0.5, direction="gt"))
        x = b.while_((x,), cond=cond, body=b.region([x.type], lambda i, s: i.reshape(i.tanh(s), dims=(B, S))))
        then = b.region([], lambda i: i.transpose(i.reshape(x, dims=(S, B)), permutation=(1, 0)))
        return b.if_(p, then=then, else_=b.region([], lambda i: x))

    model = build(body, x="f32[B,S]", p="bool[]")
    out = specialize(model, None, [TensorType(f32, (2, 3)), TensorType(dtypes.bool_, ())])
    check(out)
    assert {t for t in types(out) if "[2," in t or "[3," in t} == {"f32[2,3]", "f32[3,2]"}
    assert not any("B" in t for t in types(out))
    x = np.array([[0.1, 0.9, 0.2], [0.3, 3, 1]], "f4")
    for p in (np.array(True), np.array(False)):
        assert np.array_equal(evaluate(model, [x, p])[0], evaluate(out, [x, p])[0])


def model_with_calls() -> Model:
    model = Model("calls")
    building.function(model, "inner", [("x", TensorType(f32, (S,)))], lambda b, x: b.tanh(x)).public = False
    building.function(
        model, "outer", [("x", TensorType(f32, (S, T)))],
        lambda b, x: b.call((b.reshape(x, dims=(S * T,)),), callee="inner"),
    ).public = False  # fmt: skip

    def main(b: Any, x: Any, y: Any) -> Any:
        return b.call((x,), callee="outer"), b.call((y,), callee="outer"), b.call((x,), callee="outer")

    building.function(model, "main", [("x", TensorType(f32, (B, 4))), ("y", TensorType(f32, (B, B)))], main)
    building.function(model, "other", [("x", TensorType(f32, (B,)))], lambda b, x: b.abs(x))
    return model


def test_called_functions_are_copied_per_type():
    model = model_with_calls()
    out = specialize(model, "main", [TensorType(f32, (3, 4)), TensorType(f32, (3, 3))])
    check(out)
    calls = [str(n.keywords["callee"]) for n in out.main.body.nodes]
    assert calls[0] == calls[2] != calls[1]
    assert sorted(str(f.inputs[0].type) for f in out.functions.values() if not f.public) == [
        "f32[12]", "f32[3,3]", "f32[3,4]", "f32[9]",
    ]  # fmt: skip
    assert [n for n, f in out.functions.items() if f.public] == ["main"]
    inputs = [np.ones((3, 4), "f4"), np.ones((3, 3), "f4")]
    for old, new in zip(evaluate(model, inputs), evaluate(out, inputs), strict=True):
        assert np.array_equal(old, new)


def test_a_bound_dim_makes_room_for_a_size_of_its_name(build: Callable[..., Model]):
    def body(b: Any, x: Any, n: Any) -> Any:
        b.bind_dim(n, dim="T")
        return b.broadcast_in_dim(x, dims=(T, B), broadcast_dimensions=(1,))

    model = build(body, x="f32[B]", n="i64[]")
    out = specialize(model, None, [TensorType(f32, (T,)), TensorType(dtypes.i64, ())])
    check(out)
    assert types(out) == ["f32[T_1,T]"]
    inputs = [np.ones(3, "f4"), np.array(2)]
    assert evaluate(out, inputs)[0].shape == evaluate(model, inputs)[0].shape == (2, 3)


def test_frozen_values_become_constants(build: Callable[..., Model]):
    model = build(lambda b, n: b.add(n, 1), n="i64[2]")
    out = specialize(model, None, [TensorType(dtypes.i64, (2,))], {model.main.inputs[0]: ArrayData(np.array([4, 5]))})
    check(out)
    assert out.main.body.first.result.ints == (5, 6)
    assert out.main.inputs[0].has_uses is False


def test_derived_constants_come_along(build: Callable[..., Model]):
    def body(b: Any, x: Any) -> Any:
        w = b.constant(ArrayData(np.ones(100, "f4")), name="w")
        return b.add(x, b.model.add_derived("d", type(b)(b.model, b.model.init).tanh(w)))

    model = build(body, x="f32[B,100]")
    out = specialize(model, None, [TensorType(f32, (2, 100))])
    check(out)
    x = np.zeros((2, 100), "f4")
    assert np.array_equal(evaluate(model, [x])[0], evaluate(out, [x])[0])


# Errors


@pytest.fixture
def adding(build: Callable[..., Model]) -> Model:
    """y must be as long as x, which only a call can tell."""
    return build(lambda b, x, y: b.at(Location(("Add_12",))).add(x, y), x="f32[B]", y="f32[S]")


def test_a_broken_assumption_names_the_node(adding: Model):
    message = re.escape("@main cannot run with B=3, S=4: add 'Add_12' needs bcast(B, S), got 3 and 4")
    with pytest.raises(AssumptionError, match=message):
        specialize(adding, None, [TensorType(f32, (3,)), TensorType(f32, (4,))])


def test_a_node_that_cannot_be_typed_is_named(adding: Model):
    adding.main.assumptions.clear()  # as a pass that forgot to record one would leave it
    with pytest.raises(InferenceError, match=r"^add 'Add_12': shapes \[3\] and \[4\] do not broadcast.*with B=3, S=4"):
        specialize(adding, None, [TensorType(f32, (3,)), TensorType(f32, (4,))])


@pytest.mark.parametrize(
    "given, message",
    [
        ([], "@main takes 2 inputs, got 0 types"),
        (
            [TensorType(f32, (3,)), TensorType(f32, (3, 3))],
            "@main: input 'y' expects f32[S] (rank 1), got shape [3, 3]",
        ),
        ([TensorType(f32, (3,)), TensorType(dtypes.f16, (3,))], "@main: input 'y' expects f32[S], got f16[3]"),
        ([TensorType(f32, (3,)), TensorType(f32, None)], "@main: input 'y' expects f32[S], got f32[*]"),
    ],
)
def test_types_that_do_not_fit(adding: Model, given: list[TensorType], message: str):
    with pytest.raises(InputError, match=re.escape(message)):
        specialize(adding, None, given)


def test_sizes_that_contradict(build: Callable[..., Model]):
    model = build(lambda b, x, y: b.add(x, y), x="f32[2*B]", y="f32[B,1]")
    message = re.escape("input 'x' expects f32[2*B], got shape [7]: axis 0 must be 2*B (where B=3), got 7")
    with pytest.raises(InputError, match=message):
        specialize(model, None, [TensorType(f32, (7,)), TensorType(f32, (3, 1))])
    with pytest.raises(InputError, match=re.escape("@main: the sizes B do not follow")):
        specialize(build(lambda b, x: x, x="f32[B*B]"), None, [TensorType(f32, (9,))])


# The pass


def test_pass():
    out = run_passes(model_with_calls(), 'specialize{dims="B=3"}')
    check(out)
    assert [str(v.type) for v in out.functions["main"].inputs] == ["f32[3,4]", "f32[3,3]"]
    assert [str(v.type) for v in out.functions["other"].inputs] == ["f32[3]"]
    assert all(c.owner is out for c in out.constants.values())
    assert out.init.parent is out


def test_pass_needs_a_known_size():
    with pytest.raises(InputError, match="no input of an entry has the size N; the symbols are B"):
        run_passes(model_with_calls(), 'specialize{dims="N=3"}')
    with pytest.raises(IrcError, match=r"expected NAME=SIZE, got 'B'"):
        run_passes(model_with_calls(), parse_pipeline("specialize{dims=B}"))


def test_parse_dims():
    assert parse_dims("B=1, S = 2*T,") == {"B": 1, "S": 2 * T}
