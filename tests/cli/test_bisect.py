"""`irc bisect` finds planted faults: a wrong rewrite among right ones, a crash, an invalid model, a wrong target."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import irc
from irc.cli.main import run as cli
from irc.ir import build, dtypes
from irc.ir.model import Model
from irc.ir.reference import evaluate
from irc.ir.rewrite import Rewriter
from irc.ir.types import TensorType
from irc.passes import Level, Pass, manager
from irc.testing.bisection import bisect

COUNT = 40


@dataclass(frozen=True)
class Planted(Pass):
    """Turns every tanh into itself, one of them wrongly.

    tanh(%x)   ->   tanh(%x)
    """

    name: ClassVar[str] = "planted"
    level: ClassVar[Level] = Level.LEGAL

    fault: str = "wrong"
    at: int = 23

    def run(self, model: Model, rewriter: Rewriter) -> None:
        rewriter.label = "planted/tanh"
        for i, node in enumerate([n for n in model.main.body.nodes if n.op.name == "tanh"]):
            b, x = rewriter.before(node), node.operands[0]
            if i == self.at and self.fault == "crash":
                raise ZeroDivisionError("planted")
            if self.fault == "stepwise":
                # Right, but for one: in between, the node reads something else.
                rewriter.set_operand(node, 0, model.main.inputs[0])
                rewriter.set_operand(node, 0, b.negate(x) if i == self.at else x)
                continue
            if i == self.at and self.fault == "invalid":
                later = model.main.body.nodes
                rewriter.set_operand(node, 0, list(later)[-1].results[0])
                continue
            made = b.sine(x) if i == self.at and self.fault == "wrong" else b.tanh(x)
            rewriter.replace(node, made)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    from irc.passes import all_passes

    all_passes()
    monkeypatch.setitem(manager._REGISTRY, "planted", Planted)


@pytest.fixture
def model() -> Model:
    def body(b, x):
        total = x
        for i in range(COUNT):
            x = b.at(type(b.location)((f"layer{i}",))).tanh(b.add(x, b.constant(np.float32(0.1 * i))))
            total = b.add(total, x)
        return total

    made = Model("m")
    build.function(made, "main", [("x", TensorType(dtypes.f32, (3,)))], body)
    return made


X = np.array([0.3, -0.2, 0.9], np.float32)


@pytest.mark.parametrize("at", [0, 23, COUNT - 1])
def test_a_wrong_rewrite_is_found(at: int, model: Model):
    passes = f"canonicalize,planted{{at={at}}},cse,dce"
    found = bisect(model, lambda m: evaluate(m, [X]), evaluate(model, [X]), passes=passes)
    assert (found.blame, found.pass_name.partition("{")[0], found.pass_number) == ("pass", "planted", 2)
    assert (found.rewrite, found.rewrite_number, found.source) == ("planted/tanh", at + 1, (f"layer{at}",))
    assert "DIFFERS" in found.reason
    assert found.tried <= 45, "both searches halve; what follows a change is looked at"
    ops = [[n.op.name for n in m.main.body.nodes].count("sine") for m in (found.before, found.after)]
    assert ops == [0, 1]


@pytest.mark.parametrize("at", [3, 20, 37])
def test_the_middle_of_a_right_rewrite_is_not_blamed(at: int, model: Model):
    passes = f"planted{{fault=stepwise,at={at}}},dce"
    found = bisect(model, lambda m: evaluate(m, [X]), evaluate(model, [X]), passes=passes)
    assert found.blame == "pass"
    assert found.source == (f"layer{at}",)


def test_of_two_runs_of_one_pass_the_one_that_breaks_is_blamed(model: Model):
    passes = "planted{fault=none},cse,planted{fault=crash}"
    found = bisect(model, lambda m: evaluate(m, [X]), evaluate(model, [X]), passes=passes)
    assert (found.blame, found.pass_name, found.pass_number) == ("pass", "planted{fault=crash}", 3)


def test_a_crash_is_found(model: Model):
    found = bisect(model, lambda m: evaluate(m, [X]), evaluate(model, [X]), passes="cse,planted{fault=crash},dce")
    assert (found.blame, found.pass_number) == ("pass", 2)
    assert "ZeroDivisionError: planted" in found.reason


def test_an_invalid_model_is_found(model: Model):
    found = bisect(model, lambda m: evaluate(m, [X]), evaluate(model, [X]), passes="cse,planted{fault=invalid},dce")
    assert (found.blame, found.pass_number, found.rewrite_number) == ("pass", 2, 24)
    assert "V0" in found.reason


def test_right_passes_are_not_blamed(model: Model):
    found = bisect(model, lambda m: evaluate(m, [X]), evaluate(model, [X]))
    assert (found.blame, str(found)) == ("nothing", "nothing is wrong: outputs agree after all passes")


def test_a_wrong_target_is_not_put_on_a_pass(model: Model):
    wrong = [evaluate(model, [X])[0] + 1]
    found = bisect(model, lambda m: evaluate(m, [X]), wrong, passes="cse,dce")
    assert found.blame == "target"


def test_the_command(model: Model, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "m.ir"
    irc.save(model, path)
    arguments = ["bisect", str(path), "--passes", "cse,planted,dce", "--json", "-o", str(tmp_path / "out")]
    assert cli(arguments) == 1
    row = json.loads(capsys.readouterr().out)
    assert (row["pass_name"], row["rewrite_number"], row["source"]) == ("planted", 24, ["layer23"])
    before, after = (irc.load(row["files"][name]) for name in ("before", "after"))
    assert evaluate(before, [X])[0].tolist() == evaluate(model, [X])[0].tolist() != evaluate(after, [X])[0].tolist()
    assert cli(["bisect", str(path)]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
