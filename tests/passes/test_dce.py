"""Dead code elimination: what goes, and what effects and uses keep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irc.ir import build as building
from irc.ir import dtypes
from irc.ir.build import Builder
from irc.ir.data import ArrayData
from irc.ir.model import Function, Model
from irc.passes import run_passes

Run = Callable[..., Any]


def test_unused_chains_go_at_once(run: Run):
    def body(b: Any, x: Any) -> Any:
        b.negate(b.tanh(b.exponential(x)))
        return b.abs(x)

    assert run("dce", body, x="f32[4]").same_bits().ops == ["abs"]


def test_a_node_with_one_used_result_stays(run: Run):
    assert run("dce", lambda b, x: b.Split(x, axis=0, sizes=(1, 3))[1], x="f32[4]").same_bits().ops == ["Split"]


def test_effects_stay_inside_graphs_too(run: Run):
    def body(b: Any, x: Any, p: Any, n: Any) -> Any:
        def noisy(i: Any) -> Any:
            i.bind_dim(n, dim="N")
            return i.negate(x)

        b.if_(p, then=b.region([], noisy), else_=b.region([], lambda i: i.tanh(x)))
        b.if_(p, then=b.region([], lambda i: i.negate(x)), else_=b.region([], lambda i: i.tanh(x)))
        return x

    case = run("dce", body, x="f32[4]", p="bool[]", n="i64[]")
    assert case.ops == ["if"]
    assert [n.op.name for n in case.nodes[0].keywords["then"].nodes] == ["bind_dim", "negate"]


def test_inner_graphs_are_cleaned_first(run: Run):
    def body(b: Any, x: Any, p: Any) -> Any:
        outer = b.exponential(x)

        def then(i: Any) -> Any:
            i.tanh(outer)
            return i.negate(x)

        return b.if_(p, then=b.region([], then), else_=b.region([], lambda i: x))

    case = run("dce", body, x="f32[4]", p="bool[]").same_bits()
    assert case.ops == ["if"]
    assert [n.op.name for n in case.nodes[0].keywords["then"].nodes] == ["negate"]


def model_with_calls() -> Model:
    """main calls @used, which calls @inner; @unused calls @also; @noisy has an effect."""
    model = Model("calls")
    x = [("x", building.TensorType(dtypes.f32, (4,)))]

    def private(name: str, body: Any) -> None:
        building.function(model, name, x, body).public = False

    def noisy(b: Any, x: Any) -> Any:
        b.bind_dim(b.constant(3, dtypes.i64), dim="N")
        return x

    private("inner", lambda b, x: b.tanh(x))
    private("used", lambda b, x: b.negate(b.call((x,), callee="inner")))
    private("also", lambda b, x: b.abs(x))
    private("unused", lambda b, x: b.call((x,), callee="also"))
    private("noisy", noisy)

    def main(b: Any, x: Any) -> Any:
        b.call((x,), callee="inner")
        b.call((x,), callee="noisy")
        return b.call((x,), callee="used")

    building.function(model, "main", x, main)
    return model


def test_functions_that_nothing_calls_go(case: Any):
    out = case(model_with_calls(), "dce").same_bits()
    assert list(out.after.functions) == ["inner", "used", "noisy", "main"]
    assert [n.keywords["callee"] for n in out.nodes] == ["noisy", "used"]
    assert len(case(model_with_calls(), "dce{functions=false}").after.functions) == 6


def test_a_dropped_function_releases_its_constants(case: Any):
    model = model_with_calls()
    dead = model.add_function(Function("dead", public=False))
    b = Builder(model, dead.body)
    dead.body.set_outputs([b.add(b.constant(ArrayData(np.ones(100, "f4")), name="only_there"), 1.0)])
    assert "only_there" not in case(model, "dce").after.constants


def test_unused_constants_go_with_what_derives_them(run: Run):
    def body(b: Any, x: Any) -> Any:
        init = Builder(b.model, b.model.init)
        w, v = (b.constant(ArrayData(np.full(100, n, "f4")), name=f"w{n}") for n in (1, 2))
        kept = b.model.add_derived("kept", init.tanh(w))
        b.model.add_derived("dropped", init.negate(init.exponential(v)))
        return b.add(x, kept)

    case = run("dce", body, x="f32[100]").same_bits()
    assert list(case.after.constants) == ["w1", "kept"]
    assert case.init_ops == ["tanh"]
    assert [c.name for c in case.after.derived] == ["kept"]
    assert list(run("dce{constants=false}", body, x="f32[100]").after.constants) == ["w1", "w2", "kept", "dropped"]


# Values that loops carry


def loop(b: Any, x: Any, y: Any, *, step: Any, used: tuple[int, ...] = (1,)) -> Any:
    """Three rounds over (count, x, y, z)."""
    count = b.constant(0, dtypes.i32)
    types = [count.type, x.type, y.type, y.type]
    cond = b.region(types, lambda i, n, *s: i.compare(n, 3, direction="lt"))
    results = b.while_((count, x, y, y), cond=cond, body=b.region(types, step))
    return tuple(results[u] for u in used)


def carried(case: Any) -> int:
    (node,) = (n for n in case.nodes if n.op.name == "while")
    assert len(node.results) == len(node.keywords["body"].inputs) == len(node.keywords["cond"].inputs)
    return len(node.results)


def test_values_carried_for_themselves_go(run: Run):
    def step(i: Any, n: Any, x: Any, y: Any, z: Any) -> Any:
        return i.add(n, 1), i.tanh(x), i.negate(z), i.exponential(y)  # y and z only feed each other

    case = run("dce", lambda b, x, y: loop(b, x, y, step=step), x="f32[4]", y="f32[2]").same_bits()
    assert carried(case) == 2
    assert [n.op.name for n in case.nodes[0].keywords["body"].nodes] == ["add", "tanh"]
    assert (
        carried(run("dce{while-carries=false}", lambda b, x, y: loop(b, x, y, step=step), x="f32[4]", y="f32[2]")) == 4
    )


def test_a_value_that_a_used_one_needs_stays(run: Run):
    def step(i: Any, n: Any, x: Any, y: Any, z: Any) -> Any:
        return i.add(n, 1), i.add(x, i.reduce((z,), axes=(0,), kind="sum")), y, y

    case = run("dce", lambda b, x, y: loop(b, x, y, step=step), x="f32[4]", y="f32[2]").same_bits()
    assert carried(case) == 4


def test_a_used_result_in_the_middle_keeps_its_place(run: Run):
    def step(i: Any, n: Any, x: Any, y: Any, z: Any) -> Any:
        return i.add(n, 1), i.tanh(x), y, i.exponential(z)

    case = run("dce", lambda b, x, y: loop(b, x, y, step=step, used=(3, 0)), x="f32[4]", y="f32[2]").same_bits()
    assert carried(case) == 2


def test_effects_in_a_loop_keep_what_they_read(run: Run):
    def step(i: Any, n: Any, x: Any, y: Any, z: Any) -> Any:
        i.bind_dim(i.convert(i.reduce((z,), axes=(0,), kind="sum"), dtype=dtypes.i64), dim="N")
        return i.add(n, 1), x, y, i.abs(z)

    case = run("dce", lambda b, x, y: loop(b, x, y, step=step, used=()), x="f32[4]", y="f32[2]")
    assert carried(case) == 2


def test_nothing_to_do_changes_nothing(build: Callable[..., Model]):
    written: list[str] = []
    run_passes(build(lambda b, x: b.tanh(x), x="f32[4]"), "dce", print_changed=True, write=written.append)
    assert written == []
