"""What the pass manager holds passes to: their order, sound results, a trace of where every node comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

import irc
from irc.cli.main import run as run_command
from irc.ir.errors import IrcError
from irc.ir.model import Model
from irc.ir.rewrite import Rewriter
from irc.passes import DEFAULT, Pass, PassError, Pipeline, all_passes, get_pass, manager, parse_pipeline, register
from irc.passes import run_passes as run_all
from irc.passes.canonicalize.table import _BY_OPERATOR, _EVERY
from irc.passes.cse import Cse
from irc.passes.pattern import all_fusions

EXPORTED = Path(__file__).parents[1] / "fusion" / "exported"
DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


@pytest.fixture
def ordered() -> Iterator[None]:
    """Passes that do nothing, and say where they stand."""

    def add(label: str, **constraints: tuple[str, ...]) -> None:
        namespace = {"__doc__": "a -> a", "name": label, "run": lambda self, model, rewriter: None, **constraints}
        register(dataclass(frozen=True)(type(label, (Pass,), namespace)))

    add("late", after=("cse",))
    add("early", before=("cse",))
    add("needy", requires=("dce", "cse"))
    add("lost", after=("csse",))
    yield
    for label in ("late", "early", "needy", "lost"):
        del manager._REGISTRY[label]


@pytest.mark.usefixtures("ordered")
@pytest.mark.parametrize(
    "text",
    ["cse,late", "late", "early,cse", "early", "dce,fixpoint{cse},needy", "fixpoint{cse,late},cse", "cse,late,cse"],
)
def test_pipelines_in_order(text: str):
    assert str(parse_pipeline(text)).replace("(max=8)", "") == text


@pytest.mark.usefixtures("ordered")
@pytest.mark.parametrize(
    "text, message",
    [
        ("late,cse", "the pass 'late' must come after 'cse'; in 'late,cse' it does not"),
        ("fixpoint{late,cse}", "the pass 'late' must come after 'cse'"),
        ("cse,early", "the pass 'early' must come before 'cse'"),
        ("dce,fixpoint{cse,fixpoint{early}}", "the pass 'early' must come before 'cse'"),
        ("dce,needy,cse", "the pass 'needy' requires 'cse' before it: cse,needy"),
        ("needy", "the pass 'needy' requires 'dce' before it: dce,needy"),
        ("lost", "no pass is called 'csse'; did you mean 'cse'"),
    ],
)
def test_pipelines_out_of_order_are_refused(text: str, message: str):
    with pytest.raises(IrcError, match=re.escape(message)):
        parse_pipeline(text)


@pytest.mark.usefixtures("ordered")
def test_pipelines_made_in_python_are_checked_too(build: Callable[..., Model]):
    model = build(lambda b, x: b.tanh(x), x="f32[4]")
    with pytest.raises(IrcError, match="'late' must come after 'cse'"):
        run_all(model, [get_pass("late")(), Cse()])
    with pytest.raises(IrcError, match="'late' must come after 'cse'"):
        run_all(model, Pipeline((get_pass("late")(), Cse())))


def test_constraints_of_all_passes_name_passes():
    named = [n for p in all_passes() for n in (*p.requires, *p.after, *p.before)]
    assert [get_pass(n).name for n in named] == named


@pytest.fixture
def backwards() -> Iterator[None]:
    @register
    @dataclass(frozen=True)
    class Backwards(Pass):
        """a; b -> b; a"""

        name: ClassVar[str] = "backwards"

        def run(self, model: Model, rewriter: Rewriter) -> None:
            rewriter.move_before(model.main.body.last, model.main.body.first)

    yield
    del manager._REGISTRY["backwards"]


@pytest.mark.usefixtures("backwards")
def test_the_verifier_names_rule_pass_and_node_and_the_reproducer_shows_it_again(
    build: Callable[..., Model], capsys: pytest.CaptureFixture[str]
):
    model = build(lambda b, x: b.tanh(b.exponential(x, name="grown"), name="small"), x="f32[B,4]")
    with pytest.raises(PassError) as error:
        run_all(model, "dce,backwards", verify_each=True)
    said = str(error.value)
    assert said.startswith("the pass 'backwards' left an invalid model: ")
    assert "error[V006]" in said
    assert "tanh" in said
    path = Path(error.value.reproducer)
    assert f"reproducer: {path}" in said
    (line,) = [t for t in path.read_text().splitlines() if t.startswith("// RUN: ")]
    pipeline = line.split("'")[1]
    with pytest.raises(PassError, match=r"the pass 'backwards' left an invalid model: .*error\[V006\]") as again:
        run_all(irc.ir.text.parse_model(path.read_text()), pipeline, verify_each=True)
    Path(again.value.reproducer).unlink()
    path.unlink()


def rewrites() -> set[str]:
    """What a location may name as the maker of a node."""
    rules = {label for rows in (*_BY_OPERATOR.values(), _EVERY) for label, _ in rows}
    return rules | {f"fuse/{f.name}" for f in all_fusions()} | {p.name for p in all_passes()}


@pytest.mark.parametrize("path", [DIGITS, *sorted(EXPORTED.glob("bert_eager*")), *sorted(EXPORTED.glob("llama*"))],
                         ids=lambda p: p.stem)  # fmt: skip
def test_every_node_says_which_rewrite_made_it_from_what(path: Path):
    """After the default pipeline: source nodes are those of the model, what is new names a rewrite that there is."""
    model = irc.read(path)
    sources = {s for node in model.nodes() for s in node.location.source}
    assert sources
    out = run_all(model, DEFAULT)
    known = rewrites()
    made = [node for node in [*out.nodes(), *out.init.nodes] if node.location.rewrite is not None]
    assert made
    assert not [(n.label, n.location.rewrite) for n in made if n.location.rewrite not in known]
    assert not [n.label for n in out.nodes() if not n.location.source]
    assert {s for node in out.nodes() for s in node.location.source} <= sources


def test_the_log_names_kind_node_and_rewrite(build: Callable[..., Model]):
    model = build(lambda b, x: b.negate(b.negate(x)), x="f32[4]")
    rewriter = Rewriter(model, "canonicalize")
    get_pass("canonicalize")().run(model, rewriter)
    assert [str(c) for c in rewriter.changes if c.kind == "replace"] == [
        "canonicalize/involution: replace negate (value)"
    ]


def test_timing_table_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert run_command(["opt", str(DIGITS), "-p", "canonicalize,dce", "-o", str(tmp_path / "out.ir")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [re.sub(r"[\d.]+", "N", line.split("  ")[0]) for line in lines[1:3]] == ["canonicalize", "dce"]
