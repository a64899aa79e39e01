"""The text of pipelines, running them, reports, verification, printing and reproducers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from irc.ir.errors import IrcError, UnsupportedError
from irc.ir.model import Model
from irc.ir.rewrite import Rewriter
from irc.passes import DEFAULT, Level, Pass, PassError, PipelineReport, get_pass, manager, parse_pipeline, register
from irc.passes import run_passes as run_all
from irc.passes.cse import Cse
from irc.passes.manager import all_passes, level_of


@pytest.mark.parametrize(
    "text",
    [
        "",
        "dce",
        "canonicalize,cse{across-graphs=false},fixpoint(max=4){fold,dce}",
        'specialize{dims="B=1,S=2*T"}',
        "fixpoint(max=2){fixpoint(max=3){cse},dce}",
        DEFAULT,
    ],
)
def test_text_comes_back(text: str):
    assert str(parse_pipeline(text)) == text
    assert parse_pipeline(str(parse_pipeline(text))) == parse_pipeline(text)


def test_options_are_fields():
    (step,) = parse_pipeline(" cse { across-graphs = false , constants } ").items
    assert step == Cse(across_graphs=False, constants=True)
    assert str(step) == "cse{across-graphs=false}"


@pytest.mark.parametrize(
    "text, message",
    [
        ("dce,,cse", "column 5: expected the name of a pass, got ',cse'"),
        ("dce cse", "column 5: expected a comma or the end, got 'cse'"),
        ("dce{", "column 5: expected the name of an option, got the end"),
        ("dce{constants=}", "column 15: expected a value of constants, got '}'"),
        ("dce{constants=maybe}", "column 1: option constants of dce must be true or false, got 'maybe'"),
        ("dce,fold{max-bytes=big}", "column 5: option max-bytes of fold must be a whole number, got 'big'"),
        ("dce{constant=true}", "no option 'constant'; did you mean 'constants'"),
        ("canonicalize{x=1}", "column 1: the pass 'canonicalize' has no option 'x'; it has none"),
        ("dce{constants=true,constants=false}", "column 20: the option 'constants' is given twice"),
        ("csse", "column 1: no pass is called 'csse'; did you mean 'cse'"),
        ("specialize", "column 1: the pass 'specialize' needs the option dims: specialize{dims=...}"),
        ("fixpoint(max=0){dce}", "column 1: fixpoint takes"),
        ("fixpoint(min=1){dce}", "column 1: fixpoint takes"),
        ("fixpoint dce", "column 10: expected '{', got 'dce'"),
        ("fixpoint{dce", "column 13: expected '}', got the end"),
        ('specialize{dims="B=1}', "column 17: expected a closed quotation"),
        ("fixpoint{" * 20, "nested more than 16 deep"),
    ],
)
def test_errors_name_the_column(text: str, message: str):
    with pytest.raises(IrcError, match=re.escape(message)):
        parse_pipeline(text)


def test_an_error_points_at_the_column():
    with pytest.raises(IrcError) as error:
        parse_pipeline("dce cse")
    assert str(error.value).splitlines()[1:] == ["  dce cse", "      ^"]


def test_every_pass_documents_before_and_after():
    passes = all_passes()
    assert {"canonicalize", "fold", "cse", "dce", "batch-norm", "specialize"} <= {p.name for p in passes}
    assert not [p.name for p in passes if "->" not in (p.__doc__ or "")]


def test_get_pass_suggests():
    assert get_pass("cse") is Cse
    with pytest.raises(IrcError, match="no pass is called 'canonicalise'; did you mean 'canonicalize'"):
        get_pass("canonicalise")


@pytest.mark.parametrize("missing", ["name", "dataclass", "docstring"])
def test_register_refuses(missing: str):
    class Broken(Pass):
        """a -> b"""

        name = "" if missing == "name" else "broken"

    if missing == "docstring":
        Broken.__doc__ = None
    cls = Broken if missing == "dataclass" else dataclass(frozen=True)(Broken)
    with pytest.raises(
        IrcError, match={"name": "no name", "dataclass": "frozen dataclass", "docstring": "before"}[missing]
    ):
        register(cls)


def test_register_refuses_a_second_pass_of_one_name():
    @dataclass(frozen=True)
    class Other(Pass):
        """a -> b"""

        name: ClassVar[str] = "cse"

    with pytest.raises(IrcError, match="two passes are called 'cse'"):
        register(Other)


@pytest.fixture
def explode() -> Iterator[None]:
    """Registers passes that break in several ways."""

    @register
    @dataclass(frozen=True)
    class Explode(Pass):
        """a -> nothing"""

        name: ClassVar[str] = "explode"
        how: str = "bug"

        def run(self, model: Model, rewriter: Rewriter) -> None:
            first = model.main.body.first
            assert first is not None
            match self.how:
                case "bug":
                    raise ZeroDivisionError("three")
                case "request":
                    raise UnsupportedError([])
                case "invalid":
                    rewriter.move_before(model.main.body.last, first)
                case "change":
                    rewriter.set_attributes(first)

    yield
    del manager._REGISTRY["explode"]


@pytest.fixture
def model(build: Callable[..., Model]) -> Model:
    return build(lambda b, x: b.tanh(b.exponential(x)), x="f32[B,4]")


@pytest.mark.usefixtures("explode")
def test_a_broken_pass_leaves_a_reproducer(model: Model):
    with pytest.raises(PassError, match=r"the pass 'explode' failed: ZeroDivisionError: three") as error:
        run_all(model, "dce,explode,cse")
    assert error.value.name == "explode"
    path = Path(error.value.reproducer)
    assert str(path) in str(error.value)
    text = path.read_text()
    path.unlink()
    assert text.startswith("// RUN: irc opt %s -p 'dce,explode' --verify-each\n")
    assert "exponential(%x)" in text


@pytest.mark.usefixtures("explode")
def test_verify_each_blames_the_pass(model: Model):
    run_all(model, "explode{how=invalid}")
    with pytest.raises(PassError, match="the pass 'explode' left an invalid model") as error:
        run_all(model, "dce,explode{how=invalid},dce", verify_each=True)
    Path(error.value.reproducer).unlink()


@pytest.mark.usefixtures("explode")
def test_a_request_that_cannot_be_met_is_no_defect(model: Model):
    with pytest.raises(UnsupportedError):
        run_all(model, "explode{how=request}")


@pytest.mark.usefixtures("explode")
def test_fixpoint_stops_when_nothing_changes(model: Model):
    report = PipelineReport()
    run_all(model, "fixpoint(max=5){dce}", report=report)
    assert len(report.passes) == 1
    report = PipelineReport()
    run_all(model, "fixpoint(max=5){explode{how=change}}", report=report)
    assert len(report.passes) == 5


def test_the_model_given_stays(model: Model):
    def fingerprint(m: Model) -> list[object]:
        return [(n.op.name, n.operands) for n in m.nodes()]

    before = fingerprint(model)
    out = run_all(model, "canonicalize,dce")
    assert fingerprint(model) == before
    assert not {id(n) for n in out.nodes()} & {id(n) for n in model.nodes()}


def test_report(build: Callable[..., Model]):
    model = build(lambda b, x: b.negate(b.negate(x)), x="f32[4]")
    report = PipelineReport()
    run_all(model, "canonicalize,dce", report=report)
    first, second = report.passes
    assert (first.name, first.nodes_before, first.nodes_after) == ("canonicalize", 2, 1)
    assert (second.name, second.nodes_before, second.nodes_after, second.changes) == ("dce", 1, 0, 1)
    assert report.rewrites() == {"canonicalize/involution": 1}
    assert report.seconds >= first.seconds > 0
    assert report.as_dict()["passes"][1]["nodes_after"] == 0
    assert re.search(r"^dce +[\d.]+ +1 -> 0 +1$", str(report), re.MULTILINE)


def test_disable_and_print(model: Model):
    report, written = PipelineReport(), []
    run_all(model, "dce,cse", disable=("dce",), print_after=("cse",), report=report, write=written.append)
    assert [p.name for p in report.passes] == ["cse"]
    assert len(written) == 1
    assert written[0].startswith("// after cse\nirc 1")
    with pytest.raises(IrcError, match="no pass is called 'dcee'"):
        run_all(model, "dce", disable=("dcee",))


def test_print_changed_is_silent_without_change(build: Callable[..., Model]):
    model, written = build(lambda b, x: b.negate(b.negate(x)), x="f32[4]"), []
    run_all(model, "cse,canonicalize,dce,dce", print_changed=True, write=written.append)
    assert [text.splitlines()[0] for text in written] == ["// after canonicalize", "// after dce"]


def test_levels_only_rise(model: Model):
    assert level_of(model) is Level.IMPORTED
    out = run_all(model, "canonicalize")
    assert level_of(out) is Level.CANONICAL
    manager.set_level(out, Level.LEGAL)
    assert level_of(run_all(out, "dce,cse,fold")) is Level.LEGAL
    with pytest.raises(
        IrcError, match="'canonicalize' runs on models up to level canonical; this one is already legal"
    ):
        run_all(out, "canonicalize")
    out.metadata[manager.LEVEL_KEY] = "high"
    with pytest.raises(IrcError, match="expected one of canonical, imported, legal"):
        level_of(out)
