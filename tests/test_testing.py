"""irc.testing: the helpers fail where what they are given is wrong; their names are public and documented."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import irc.testing
from irc.ir.model import Model
from irc.ir.reference import Evaluator
from irc.ir.rewrite import Rewriter
from irc.passes import Pass, manager, register
from irc.targets.reference.target import ReferenceProgram, ReferenceTarget
from irc.testing import check_equivalent, check_file, check_passes, check_target, model_of


def test_every_public_name_exists_and_stands_in_the_table():
    assert {name for name in irc.testing.__all__ if callable(getattr(irc.testing, name))} == set(irc.testing.__all__)
    undocumented = [n for n in irc.testing.__all__ if n not in (irc.testing.__doc__ or "")]
    assert not undocumented
    with pytest.raises(AttributeError, match="no attribute 'check_nothing'"):
        _ = irc.testing.check_nothing


@pytest.fixture
def careless() -> Iterator[None]:
    """A pass that changes a result: in its last bits, or altogether."""

    @register
    @dataclass(frozen=True)
    class Careless(Pass):
        """tanh(x)   ->   tanh(x) * (1 + a little)"""

        name: ClassVar[str] = "careless"
        factor: float = 1.0000002

        def run(self, model: Model, rewriter: Rewriter) -> None:
            for node in [n for n in model.nodes() if n.op.name == "tanh"]:
                build = rewriter.before(node)
                rewriter.replace(node, build.multiply(build.tanh(node.operands[0]), self.factor))

    yield
    del manager._REGISTRY["careless"]


@pytest.mark.usefixtures("careless")
def test_check_passes():
    model = model_of(lambda b, x: b.tanh(x, name="y"), x="f32[B,16]")
    assert check_passes(model, "canonicalize,dce", {"B": 2}).main.name == "main"
    with pytest.raises(AssertionError, match=r"output '\w+' has other bits than before: \d+ of 32 elements differ"):
        check_passes(model, "careless", {"B": 2})
    check_passes(model, "careless", {"B": 2}, ulps=4)
    with pytest.raises(AssertionError, match=r"output '\w+' is .* ulps from what it was, 4 are allowed"):
        check_passes(model, "careless{factor=1.5}", {"B": 2}, ulps=4)


def test_check_equivalent_compares_types_and_places_of_nan():
    a = model_of(lambda b, x: b.log(x), x="f32[4]")
    x = np.array([-1, 0, 1, 2], np.float32)
    check_equivalent(a, model_of(lambda b, x: b.log(x), x="f32[4]"), inputs=[x])
    with pytest.raises(AssertionError, match="was float32"):
        check_equivalent(a, model_of(lambda b, x: b.reshape(b.log(x), dims=(2, 2)), x="f32[4]"), inputs=[x])
    with pytest.raises(AssertionError, match="NaN and infinity"):
        check_equivalent(a, model_of(lambda b, x: b.log(b.abs(x)), x="f32[4]"), inputs=[x], ulps=4)


class WrongTarget(ReferenceTarget):
    """The reference, but sums come out negated and `sort` cannot be run."""

    def claims(self, node: Any) -> str | None:
        return "it cannot sort" if node.op.name == "sort" else super().claims(node)

    def compile(self, model: Model, entry: str, state: dict[str, Any]) -> Any:
        class Wrong(ReferenceProgram):
            def run(self, arguments: Any, as_numpy: bool) -> Any:
                results = Evaluator(model).call(model.main, arguments)
                wrong = any(n.op.name == "add" for n in model.nodes())
                return [-r if wrong and r.dtype.kind in "fi" else r for r in results]

        return Wrong(model, entry)


def test_check_target():
    report = check_target(WrongTarget(), operators=["multiply", "sort", "Max"])
    assert report.ran["multiply"] > 10
    assert report.refused == {"sort": report.refused["sort"]}
    assert "it cannot sort" in report.refused["sort"]
    assert report.unclaimed == ["sort"]
    with pytest.raises(AssertionError, match="add:f32") as error:
        check_target(WrongTarget(), operators=["add", "multiply"])
    assert "multiply" not in str(error.value)


def test_check_target_reaches_edges_of_composites():
    report = check_target("reference", operators=["Relu", "OneHot", "TopK"])
    assert set(report.ran) == {"Relu", "OneHot", "TopK"}
    assert not report.refused


@pytest.mark.parametrize(
    "text, message",
    [
        ("// CHECK: add\n", "no line that starts with"),
        ("// RUN: irc opt %s -p dce\n", "expected `COMMAND | filecheck %s`"),
        ("// RUN: cat %s | filecheck %s\n", "a RUN line reads"),
        ("// RUN: not irc opt %s -p dce | filecheck %s\n// CHECK: error\n{model}", "was expected to fail"),
        ("// RUN: irc opt %s -p dce | filecheck %s\n// CHECK: exponential\n{model}", "exponential"),
    ],
)
def test_check_file(tmp_path: Path, text: str, message: str):
    model = 'irc 1 vocabulary 1\nmodel "m" {\n  func @main(%x: f32[4]) -> (%y: f32[4]) {\n    return %x\n  }\n}\n'
    path = tmp_path / "case.ir"
    path.write_text(text.replace("{model}", model))
    with pytest.raises(AssertionError, match=message):
        check_file(path)
