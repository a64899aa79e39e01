"""`irc reduce` leaves little more than the node at fault, in whatever branch or loop it is."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.cli.main import run as cli
from irc.ir import build, dtypes
from irc.ir.model import Constant, Model, Node
from irc.ir.reference import evaluate
from irc.ir.rewrite import Rewriter
from irc.ir.text import print_model
from irc.ir.types import TensorType
from irc.ir.verify import check
from irc.targets.base import Lowering
from irc.testing.agreement import reference_run
from irc.testing.reduce import shrink


def chain(count: int, bad: int) -> Model:
    """A chain of tanh with one cosine in it, and three outputs."""

    def body(b, x):
        kept = []
        for i in range(count):
            x = b.cosine(x) if i == bad else b.add(b.tanh(x), np.float32(i))
            kept += [x] if i % 80 == 79 else []
        return (*kept, x)

    model = Model("m")
    build.function(model, "main", [("x", TensorType(dtypes.f32, (2, 3))), ("z", TensorType(dtypes.f32, ()))],
                   lambda b, x, z: body(b, x))  # fmt: skip
    return model


def has_cosine(model: Model) -> bool:
    return any(n.op.name == "cosine" for n in model.nodes())


@pytest.mark.parametrize("bad", [0, 57, 99])
def test_two_hundred_nodes_become_a_few(bad: int):
    model = chain(100, bad)
    before = print_model(model)
    seen: list[int] = []
    found = shrink(model, has_cosine, improved=lambda m: seen.append(sum(1 for _ in m.nodes())))
    assert found.nodes_before == 199
    assert found.nodes_after <= 3
    assert found.complete
    assert has_cosine(found.model)
    assert seen == sorted(seen, reverse=True)
    assert print_model(model) == before, "the model stays as it is"
    again = shrink(model, has_cosine)
    assert print_model(again.model) == print_model(found.model)


def test_tries_are_bounded():
    found = shrink(chain(100, 50), has_cosine, tries=3)
    assert (found.tried, found.complete) == (3, False)
    assert has_cosine(found.model)


def test_what_does_not_fail_is_an_error():
    with pytest.raises(irc.IrcError, match="does not fail"):
        shrink(chain(4, 9), has_cosine)


def test_a_condition_that_breaks_counts_as_no():
    def fails(model: Model) -> bool:
        if sum(1 for _ in model.nodes()) < 5:
            raise ValueError("too small")
        return has_cosine(model)

    found = shrink(chain(20, 10), fails)
    assert 5 <= found.nodes_after <= 8


def test_the_command_with_a_test(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path, out = tmp_path / "m.ir", tmp_path / "small.ir"
    irc.save(chain(12, 6), path)
    script = "import sys; sys.exit(0 if b'= cosine(' in open(sys.argv[1], 'rb').read() else 1)"
    assert cli(["reduce", str(path), "-o", str(out), "--test", f'{sys.executable} -c "{script}" {{}}']) == 0
    assert "nodes 23 -> " in capsys.readouterr().out
    small = irc.load(out)
    assert has_cosine(small)
    assert sum(1 for _ in small.nodes()) <= 3


def test_one_condition_is_needed(tmp_path: Path):
    path = tmp_path / "m.ir"
    irc.save(chain(2, 1), path)
    assert cli(["reduce", str(path), "-o", str(tmp_path / "o.ir")]) == 2


@pytest.mark.parametrize(
    "line, said",
    [
        ("true", "does not name the model"),
        ("no-such-command {}", "no such command"),
        ("echo 'x {}", "No closing quotation"),
    ],
)
def test_test_commands_are_checked_first(line: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.ir"
    irc.save(chain(2, 1), path)
    assert cli(["reduce", str(path), "-o", str(tmp_path / "o.ir"), "--test", line]) == 2
    assert said in capsys.readouterr().err


def test_every_step_makes_it_smaller():
    """With a fault that never goes, little is left after few tries: nothing is tried again and again."""
    found = shrink(chain(30, 7), lambda m: True)
    assert found.complete
    assert found.nodes_after <= 1
    assert found.tried < 60


def test_what_breaks_on_the_model_itself_is_shown():
    def fails(model: Model) -> bool:
        raise ZeroDivisionError("planted")

    with pytest.raises(ZeroDivisionError, match="planted"):
        shrink(chain(4, 1), fails)


# ----------------------------------------------------------------------------------------------------- sub-graphs


def f32(*dims: int) -> TensorType:
    return TensorType(dtypes.f32, dims)


def model_of(body: Any, *types: TensorType) -> Model:
    model = Model("m")
    build.function(model, "main", [(f"x{i}", t) for i, t in enumerate(types)], body)
    return model


def nested(bad: str) -> Model:
    """A branch in a branch, with the operator at fault among others in the inner one."""

    def busy(b: Any, x: Any) -> Any:
        for i in range(2):
            x = b.subtract(x, b.multiply(b.tanh(x), np.float32(0.1 * i)))
        return x

    def body(b: Any, x: Any, flag: Any) -> Any:
        x = busy(b, x)

        def inner(b: Any) -> Any:
            return busy(b, getattr(b, bad)(busy(b, x)))

        def outer(b: Any) -> Any:
            y = busy(b, x)
            return b.if_(flag, then=b.region([], lambda b: b.exponential(y)), else_=b.region([], inner))

        return busy(b, b.if_(flag, then=b.region([], outer), else_=b.region([], lambda b: busy(b, x))))

    return model_of(body, f32(6), TensorType(dtypes.bool_, ()))


def names(model: Model) -> list[str]:
    return [n.op.name for n in model.nodes()]


def test_branches_are_dissolved():
    found = shrink(nested("cosine"), has_cosine)
    assert found.complete
    assert names(found.model) == ["cosine"]


def test_what_is_inside_a_branch_that_must_stay_is_cut():
    def fails(model: Model) -> bool:
        """A cosine two branches deep."""
        return any(n.op.name == "cosine" and _depth(n) == 2 for n in model.nodes())

    def _depth(node: Any) -> int:
        depth = 0
        while hasattr(node.graph.parent, "graph"):
            node, depth = node.graph.parent, depth + 1
        return depth

    found = shrink(nested("cosine"), fails)
    assert found.complete
    assert sorted(names(found.model)) == ["cosine", "if", "if"]
    check(found.model)


def loop(bad: str) -> Model:
    """Five rounds of a loop that carries a counter, the value at fault, and two more."""

    def body(b: Any, x: Any, y: Any) -> Any:
        state = [TensorType(dtypes.i32, ()), f32(2, 3), f32(2, 3), f32(4)]

        def cond(b: Any, i: Any, p: Any, q: Any, r: Any) -> Any:
            return b.compare(i, 5, direction="lt")

        def step(b: Any, i: Any, p: Any, q: Any, r: Any) -> Any:
            p = getattr(b, bad)(b.add(p, b.negate(q)))
            return b.add(i, 1), p, b.tanh(q), b.multiply(r, b.exponential(r))

        out = b.while_((b.constant(np.int32(0)), x, x, y), cond=b.region(state, cond), body=b.region(state, step))
        return tuple(out[1:])

    return model_of(body, f32(2, 3), f32(4))


def test_loops_lose_what_they_carry_but_not_what_ends_them():
    def fails(model: Model) -> bool:
        evaluate(model, [np.zeros(v.type.shape, np.float32) for v in model.main.inputs])  # it must end
        return any(n.op.name == "while" and "cosine" in [m.op.name for g in n.all_graphs() for m in g.walk()]
                   for n in model.nodes())  # fmt: skip

    found = shrink(loop("cosine"), fails)
    assert found.complete
    assert sorted(names(found.model)) == ["add", "compare", "cosine", "while"]
    (kept,) = [n for n in found.model.nodes() if n.op.name == "while"]
    assert len(kept.operands) == 2


def test_a_loop_that_need_not_be_is_one_round():
    found = shrink(loop("cosine"), has_cosine)
    assert names(found.model) == ["cosine"]


def test_calls_are_inlined():
    def body(b: Any, x: Any) -> Any:
        return b.tanh(b.call((b.tanh(x),), callee="inner"))

    model = Model("m")
    build.function(model, "inner", [("x", f32(3))], lambda b, x: b.cosine(b.negate(x)))
    model.functions["inner"].public = False
    build.function(model, "main", [("x", f32(3))], body)
    assert names(shrink(model, has_cosine).model) == ["cosine"]


def test_sizes_and_constants_shrink():
    def body(b: Any, x: Any) -> Any:
        w = b.constant(np.arange(32 * 48, dtype=np.float32).reshape(32, 48))
        y = b.dot_general(x, w, lhs_contracting=(1,), rhs_contracting=(0,))
        return b.reshape(b.broadcast_in_dim(y, dims=(3, 64, 48), broadcast_dimensions=(1, 2)), dims=(3 * 64, 48))

    def fails(model: Model) -> bool:
        """A product, of something with a 48."""
        dots = [n for n in model.nodes() if n.op.name == "dot_general"]
        return any(48 in n.result.type.shape for n in dots)

    found = shrink(model_of(body, f32(64, 32)), fails)
    assert names(found.model) == ["dot_general"]
    (dot,) = found.model.nodes()
    assert [v.type.shape for v in dot.operands if v is not None] == [(1, 1), (1, 48)]
    assert [v.data.splat for v in dot.operands if isinstance(v, Constant)] == [0]


def test_an_unsound_model_is_not_reduced():
    model = chain(4, 1)
    nodes = list(model.main.body.nodes)
    nodes[0]._operands[0] = nodes[-1].results[0]
    with pytest.raises(irc.VerifyError):
        shrink(model, lambda m: True)


# -------------------------------------------------------------------------------------------------------- targets


def _plant(monkeypatch: pytest.MonkeyPatch, target: str, operator: str, rule: Any) -> None:
    table = importlib.import_module(f"irc.targets.{target}.lowering").load()
    monkeypatch.setitem(table.entries, operator, Lowering(rule))


@pytest.mark.parametrize("make, target", [(loop, "xla"), (loop, "mlx{compile=off}"), (nested, "mlx{compile=off}")])
def test_a_wrong_lowering_in_a_sub_graph(
    make: Any, target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    name = target.partition("{")[0]
    table = importlib.import_module(f"irc.targets.{name}.lowering").load()
    _plant(monkeypatch, name, "sinh", table.entries["sine"].rule)
    path, out = tmp_path / "m.ir", tmp_path / "small.ir"
    irc.save(make("sinh"), path)
    given = []
    if make is nested:  # the branch with the fault
        np.savez(tmp_path / "x.npz", x1=np.array(True))
        given = ["--inputs", str(tmp_path / "x.npz")]
        irc.save(_other_way(make("sinh")), path)
    assert cli(["reduce", str(path), "-o", str(out), "-t", target, *given, "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    small = irc.load(out)
    assert (row["complete"], row["nodes_after"], names(small)) == (True, 1, ["sinh"])
    assert sorted(p.name for p in tmp_path.iterdir() if p.suffix != ".npz") == ["m.ir", "small.ir"]
    assert cli(["verify", str(out), "-t", target, *given]) == 1
    assert cli(["verify", str(out), "-t", "reference", *given]) == 0
    capsys.readouterr()


def _other_way(model: Model) -> Model:
    """The inner choice made by false: both predicates are one input, so its second use is negated."""
    inner = next(n for n in model.nodes() if n.op.name == "if" and isinstance(n.graph.parent, Node))
    rewriter = Rewriter(model)
    rewriter.set_operand(inner, 0, rewriter.before(inner).not_(inner.operands[0]))
    return model


def test_a_crash_stays_the_same_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of two operators that crash, the model is reduced to the one that crashed it first."""

    def crash(error: type[Exception]) -> Any:
        def rule(ctx, x):
            raise error("planted")

        return rule

    _plant(monkeypatch, "mlx", "sinh", crash(ZeroDivisionError))
    _plant(monkeypatch, "mlx", "cosh", crash(KeyError))
    path, out = tmp_path / "m.ir", tmp_path / "small.ir"
    irc.save(model_of(lambda b, x: b.cosh(b.tanh(b.sinh(b.tanh(x)))), f32(3)), path)
    assert cli(["reduce", str(path), "-o", str(out), "-t", "mlx{compile=off}"]) == 0
    assert names(irc.load(out)) == ["sinh"]


def test_a_reference_that_does_not_end_is_no_fault():
    def body(b: Any, x: Any) -> Any:
        state = [f32(3)]
        always = b.region(state, lambda b, p: b.compare(b.constant(np.int32(0)), 1, direction="lt"))
        return b.while_((x,), cond=always, body=b.region(state, lambda b, p: b.tanh(p)))

    with pytest.raises(irc.IrcError, match=r"has not finished after 0\.2 seconds"):
        reference_run(model_of(body, f32(3)), [np.zeros(3, np.float32)], seconds=0.2)
