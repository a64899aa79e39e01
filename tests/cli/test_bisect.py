"""`irc bisect` finds planted faults: wrong rewrites, crashes, invalid models, wrong lowerings, wrong imports."""

from __future__ import annotations

import importlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

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
from irc.targets.base import Lowering
from irc.testing.bisection import bisect

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"

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


def _plant(monkeypatch: pytest.MonkeyPatch, target: str, operator: str, rule: Any) -> None:
    """Have a target lower an operator by another rule."""
    table = importlib.import_module(f"irc.targets.{target}.lowering").load()
    monkeypatch.setitem(table.entries, operator, Lowering(rule))


def _bisected(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert cli(["bisect", *map(str, words), "--json"]) == 1
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def one_sinh(tmp_path: Path) -> Path:
    """tanh, ten times, with one sinh in the middle."""

    def body(b, x):
        for i in range(10):
            at = b.at(type(b.location)((f"layer{i}",)))
            x = at.sinh(x) if i == 6 else at.tanh(b.add(x, np.float32(0.1)))
        return x

    made = Model("m")
    build.function(made, "main", [("x", TensorType(dtypes.f32, (3,)))], body)
    irc.save(made, tmp_path / "m.ir")
    return tmp_path / "m.ir"


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}"])
def test_a_wrong_lowering_is_blamed_by_its_node(
    target: str, one_sinh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    name = target.partition("{")[0]
    table = importlib.import_module(f"irc.targets.{name}.lowering").load()
    _plant(monkeypatch, name, "sinh", table.entries["sine"].rule)
    row = _bisected(capsys, one_sinh, "-t", target, "-o", one_sinh.parent / "out")
    assert (row["blame"], row["pass_name"], row["source"], row["files"]) == ("target", "", ["layer6"], {})
    assert "sinh" in row["node"]
    assert "DIFFERS" in row["reason"]
    assert cli(["bisect", str(one_sinh), "-t", target]) == 1
    text = capsys.readouterr().out
    assert "the target's lowering is wrong" in text
    assert "from ['layer6']" in text


@pytest.mark.parametrize("target", ["xla", "mlx{compile=off}"])
def test_a_crash_of_a_lowering_is_blamed_by_its_node(
    target: str, one_sinh: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def crash(ctx, x):
        raise ZeroDivisionError("planted")

    _plant(monkeypatch, target.partition("{")[0], "sinh", crash)
    row = _bisected(capsys, one_sinh, "-t", target)
    assert (row["blame"], row["source"]) == ("target", ["layer6"])
    assert "sinh" in row["node"]
    assert "ZeroDivisionError: planted" in row["reason"]


def test_a_wrong_lowering_that_a_pass_brings_up_is_not_put_on_the_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """x * sigmoid(x) is right on the target; the Swish that a fusion makes of it is not."""

    def body(b, x):
        return b.tanh(b.multiply(x, b.logistic(x)))

    made = Model("m")
    build.function(made, "main", [("x", TensorType(dtypes.f32, (3,)))], body)
    irc.save(made, tmp_path / "m.ir")

    def wrong(ctx, x, *, alpha):
        return ctx.call("mx.negative", x)

    _plant(monkeypatch, "mlx", "Swish", wrong)
    row = _bisected(capsys, tmp_path / "m.ir", "-t", "mlx{compile=off}", "-o", tmp_path / "out")
    assert (row["blame"], sorted(row["files"])) == ("target", ["after", "before"])
    assert row["pass_name"]
    assert "Swish" in row["node"]
    after = irc.load(row["files"]["after"])
    assert "Swish" in [n.op.name for n in after.main.body.nodes]
    assert cli(["bisect", str(tmp_path / "m.ir"), "-t", "mlx{compile=off}"]) == 1
    assert f"which shows after the pass {row['pass_name']}" in capsys.readouterr().out


def _digits(tmp_path: Path) -> tuple[Path, Path]:
    """The digits model, and as it would be if its convolution's weights were read wrongly."""
    import onnx

    proto = onnx.load(DIGITS)
    conv = next(n for n in proto.graph.node if n.op_type == "Conv")
    weight = next(t for t in proto.graph.initializer if t.name == conv.input[1])
    array = onnx.numpy_helper.to_array(weight).copy()
    array.reshape(-1)[0] += 1
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    onnx.save(proto, tmp_path / "misread.onnx")
    return DIGITS, tmp_path / "misread.onnx"


def test_against_an_onnx_file_the_import_may_be_to_blame(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    right, misread = _digits(tmp_path)
    np.savez(tmp_path / "x.npz", image=np.random.default_rng(0).standard_normal((2, 1, 8, 8), np.float32))
    given = ("--inputs", tmp_path / "x.npz", "--against", right)
    assert cli(["bisect", *map(str, (right, *given))]) == 0
    assert "nothing is wrong" in capsys.readouterr().out
    row = _bisected(capsys, misread, *given)
    assert (row["blame"], row["pass_name"]) == ("model", "")
    assert "Conv" in row["node"]
    assert cli(["bisect", *map(str, (misread, *given))]) == 1
    assert "the model is wrong as it was read" in capsys.readouterr().out
    assert cli(["bisect", str(misread), "--dim", "batch=2"]) == 0, "its own reference finds nothing"


def test_given_inputs_decide(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """sine instead of tanh gives the same at 0: only the inputs that are given show it."""

    def body(b, x):
        return b.tanh(x)

    made = Model("m")
    build.function(made, "main", [("x", TensorType(dtypes.f32, (3,)))], body)
    irc.save(made, tmp_path / "m.ir")
    np.savez(tmp_path / "zeros.npz", x=np.zeros(3, np.float32))
    np.savez(tmp_path / "ones.npz", x=np.ones(3, np.float32))
    words = ["bisect", str(tmp_path / "m.ir"), "-p", "planted{at=0}"]
    assert cli([*words, "--inputs", str(tmp_path / "zeros.npz")]) == 0
    assert cli([*words, "--inputs", str(tmp_path / "ones.npz")]) == 1
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    assert cli([*words, "--inputs", str(tmp_path / "ones.npz"), "--input", f"x={tmp_path / 'x.npy'}"]) == 0
    capsys.readouterr()


@pytest.mark.parametrize(
    "write, said",
    [
        (lambda path: path.write_bytes(b"PK nothing"), "not an .npz file"),
        (lambda path: np.save(path.open("wb"), np.zeros(3, np.float32)), "got one array"),
        (lambda path: np.savez(path.open("wb"), y=np.zeros(3, np.float32)), "no input 'y'"),
        (lambda path: np.savez(path.open("wb"), x=np.zeros(3)), "expects f32[3], got"),
        (lambda path: np.savez(path.open("wb"), x=np.array([{}])), "not an .npz file"),
        (lambda path: zipfile.ZipFile(path, "w").writestr("x", b"text"), "no .npy file"),
        (lambda path: None, "No such file"),
    ],
    ids=["damaged", "npy", "name", "dtype", "pickle", "text", "missing"],
)
def test_archives_that_do_not_fit(write: Any, said: str, one_sinh: Path, capsys: pytest.CaptureFixture[str]):
    path = one_sinh.parent / "x.npz"
    write(path)
    assert cli(["bisect", str(one_sinh), "--inputs", str(path)]) == 1
    assert said in capsys.readouterr().err


def test_a_judge_that_is_another_model_is_refused(one_sinh: Path, capsys: pytest.CaptureFixture[str]):
    for command in ("bisect", "verify"):
        words = [command, str(one_sinh), "-t", "reference"]
        assert cli([*words, "--against", str(DIGITS)]) == 1
        assert "has no input 'x'" in capsys.readouterr().err
        (one_sinh.parent / "no.onnx").write_bytes(b"no model")
        assert cli([*words, "--against", str(one_sinh.parent / "no.onnx")]) == 1
        assert "ONNX Runtime cannot load it" in capsys.readouterr().err
        assert cli([*words, "--against", str(one_sinh.parent / "missing.onnx")]) == 1
        assert "no such file" in capsys.readouterr().err
