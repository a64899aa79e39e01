"""Outlining: what counts as a repeated region, where it may begin, that bits stay, and one function on the targets."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir.data import ArrayData
from irc.ir.model import Model
from irc.passes import DEFAULT, run_passes
from irc.passes.outlining import common_name
from irc.testing import check_passes, model_of

SMALL = "outline{min-nodes=2}"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    """bench/outline.py, which builds the encoder that the figures in docs/passes.md are of."""
    path = Path(__file__).parents[2] / "bench" / "outline.py"
    spec = importlib.util.spec_from_file_location("bench_outline", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["bench_outline"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def sizes(model: Model) -> dict[str, int]:
    return {name: len(function.body) for name, function in model.functions.items()}


def calls(model: Model) -> list[str]:
    return [str(node.keywords["callee"]) for node in model.main.body.nodes if node.op.name == "call"]


@pytest.mark.parametrize("passes", ["dce", DEFAULT])
def test_the_layers_of_an_encoder_become_one_function(bench: ModuleType, passes: str):
    before = run_passes(bench.bert(12, 16, 2), passes)
    after = check_passes(before, "outline", {"B": 2, "S": 3})
    assert calls(after) == ["encoder_layer"] * 12
    assert len(after.main.body) == 12
    layer = after.functions["encoder_layer"]
    assert layer.dims == ["B", "S"]
    assert [v.name for v in layer.inputs if "." not in v.name] == ["x0", "mask"]
    assert "encoder.layer.attention.query.weight" in layer.input_names
    assert len(layer.outputs) == 1
    assert sizes(check_passes(after, "outline", {"B": 1, "S": 2})) == sizes(after)
    assert sizes(run_passes(after, "inline")) == sizes(before)


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}", "onnx"])
def test_targets_give_equal_bits_and_emit_one_function(bench: ModuleType, target: str):
    model = bench.bert(3, 16, 2)
    x = np.random.default_rng(0).standard_normal((2, 5, 16)).astype(np.float32)
    feeds = [x, np.zeros((2, 1, 1, 5), np.float32)]
    before = irc.compile(model, target=target)
    after = irc.compile(model, target=target, passes=f"{DEFAULT},outline")
    np.testing.assert_array_equal(after(*feeds)[0], before(*feeds)[0])
    if target == "onnx":
        return  # it takes no calls: they are inlined again
    called, defined, work = {
        "xla": ("call @f_encoder_layer(", "func.func private @f_encoder_layer(", "stablehlo.dot_general"),
        "mlx": ("= encoder_layer(", "def encoder_layer(", "scaled_dot_product_attention"),
    }[target.partition("{")[0]]
    assert (after.source.count(called), after.source.count(defined)) == (3, 1)
    assert 0 < 3 * after.source.count(work) == before.source.count(work)


def test_a_value_with_the_name_of_a_function_hides_it_nowhere():
    """On MLX both are Python names."""

    def layer(b: Any, x: Any, i: int) -> Any:
        return b.tanh(b.add(b.exponential(x, name="block"), float(i), name="main"), name="block")

    model = model_of(lambda b, x: layer(b, layer(b, layer(b, x, 1), 2), 3), x="f32[4]")
    exe = irc.compile(model, target="mlx{compile=off}", passes=SMALL)
    assert exe.source.count("= block(") == 3
    x = np.linspace(-1, 1, 4, dtype=np.float32)
    want = irc.compile(model, target="mlx{compile=off}", passes="dce")(x)[0]
    np.testing.assert_array_equal(exe(x)[0], want)


def chain(layer: Callable[[Any, Any, int], Any], count: int = 4) -> Callable[..., Any]:
    """A body that applies `layer(build, x, number)` some times."""

    def body(b: Any, x: Any, *_: Any) -> Any:
        for i in range(count):
            x = layer(b, x, i)
        return x

    return body


@pytest.mark.parametrize(
    "layer, why",
    [
        (lambda b, x, i: b.tanh(b.reshape(x, dims=(2, 8) if i % 2 else (16,))), "attributes"),
        (lambda b, x, i: b.tanh(b.power(x, 2.0) if i % 2 else b.exponential(x)), "operators"),
        (lambda b, x, i: b.optimization_barrier(b.if_(b.constant(True), then=b.region([], lambda c: x),
                                                      else_=b.region([], lambda c: x))), "sub-graphs"),
        (lambda b, x, i: b.tanh(b.take(x, b.constant(np.array([i, 1, 2, 3])), axis=0)), "known integers"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_regions_that_differ_stay(layer: Any, why: str):
    model = model_of(chain(layer, 3), x="f32[16]" if why == "attributes" else "f32[4]")
    assert list(check_passes(model, SMALL).functions) == ["main"], why


def test_what_flows_differently_stays_apart():
    """Every second layer adds its own input once more, every other one that of the whole."""

    def body(b: Any, x: Any) -> Any:
        y = x
        for i in range(6):
            z = b.tanh(y)
            y = b.add(b.multiply(z, z), y if i % 2 else x)
        return y

    out = check_passes(model_of(body, x="f32[4]"), SMALL)
    assert calls(out)  # both become parameters: the regions are equal where both are handed in
    assert {len(f.inputs) for n, f in out.functions.items() if n != "main"} == {2}


def test_an_inner_value_that_is_used_later_is_a_result():
    def body(b: Any, x: Any) -> Any:
        kept = []
        for i in range(4):
            middle = b.exponential(b.multiply(x, float(i + 2)))
            x = b.tanh(middle)
            kept.append(middle)
        return (x, *kept)

    out = check_passes(model_of(body, x="f32[4]"), "outline{min-nodes=3,min-calls=4}")
    (made,) = [f for n, f in out.functions.items() if n != "main"]
    assert len(calls(out)) == 4
    assert len(made.outputs) == 2


def test_scalars_that_differ_become_parameters_and_equal_ones_stay():
    out = check_passes(model_of(chain(lambda b, x, i: b.multiply(b.add(b.tanh(x), float(i)), 0.5)), x="f32[4]"), SMALL)
    (made,) = [f for n, f in out.functions.items() if n != "main"]
    assert [str(v.type) for v in made.inputs] == ["f32[4]", "f32[]"]


@pytest.mark.parametrize("told", [True, False])
def test_a_dim_that_no_parameter_tells_stays_outside(told: bool):
    def layer(b: Any, x: Any, i: int) -> Any:
        s = b.graph.function.inputs[1].dims[0]
        if told:  # a value of type f32[S] is handed in wherever the region begins but at iota
            row = b.exponential(b.iota(dtype=irc.ir.dtypes.f32, dims=(s,), axis=0))
            return b.tanh(b.add(x, b.reduce((b.multiply(row, float(i)),), axes=(0,), kind="sum")))
        return b.tanh(b.multiply(x, b.convert(b.dimensions(dims=(s,), scalar=True), dtype=irc.ir.dtypes.f32)))

    out = check_passes(model_of(chain(layer), x="f32[4]", like="f32[S]"), SMALL, {"S": 3})
    made = [f for name, f in out.functions.items() if name != "main"]
    assert [f.dims for f in made] == ([["S"]] if told else [])


def test_nodes_with_effects_stay_where_they_are():
    def layer(b: Any, x: Any, i: int) -> Any:
        return b.custom_call((b.tanh(b.exponential(x)),), target="probe", results=(x.type,))

    out = run_passes(model_of(chain(layer), x="f32[4]"), SMALL, verify_each=True)
    assert [n.op.name for n in out.main.body.nodes] == ["exponential", "tanh", "custom_call"] * 4


@pytest.mark.parametrize("seed", range(12))
def test_random_layers_keep_their_bits(seed: int):
    """Layers of random wiring: operands from the layer, the one before, the input of all; weights and equal scalars."""
    random = np.random.default_rng(seed)
    plan = [(int(random.integers(4)), random.integers(0, 6, 2).tolist()) for _ in range(int(random.integers(3, 7)))]
    count = int(random.integers(2, 6))
    model = Model("random")

    def body(b: Any, x: Any) -> Any:
        previous = [x, b.negate(x)]
        for i in range(count):
            values = [*previous, x]
            for kind, picks in plan:
                left, right = (values[p % len(values)] for p in picks)
                weight = model.add_constant(
                    f"w.{i}", ArrayData(np.full(8, i + 1, np.float32) + np.arange(8, dtype="f4"))
                )
                made = (b.add(left, right), b.multiply(left, weight), b.tanh(left), b.maximum(right, 0.25))[kind]
                values.append(made)
            previous = values[-2:]
        return tuple(previous)

    irc.ir.build.function(model, "main", [("x", irc.ir.types.tensor(irc.ir.dtypes.f32, irc.symbol("B"), 8))], body)
    for pipeline in (SMALL, "canonicalize,cse,outline{min-nodes=3},dce", f"{SMALL},inline"):
        check_passes(model, pipeline, {"B": 3})


@pytest.mark.parametrize(
    "names, common",
    [
        (["layer.0.w", "layer.1.w"], "layer.w"),
        (["/h.0/attn/MatMul", "/h.11/attn/MatMul"], "h./attn/MatMul".replace("./", ".")),
        (["w1.0.b", "w1.1.b"], "w1.b"),
        (["a", "b"], None),
        (["0", "1"], None),
        ([None, None], None),
        (["mask", "mask"], "mask"),
    ],
)
def test_common_names(names: list[str | None], common: str | None):
    assert common_name(names) == common
