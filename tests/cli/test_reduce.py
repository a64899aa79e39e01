"""`irc reduce` leaves little more than the node at fault."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import irc
from irc.cli.main import run as cli
from irc.ir import build, dtypes
from irc.ir.model import Model
from irc.ir.text import print_model
from irc.ir.types import TensorType
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
