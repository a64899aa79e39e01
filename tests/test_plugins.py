"""Plug-ins: found by entry points, loaded lazily, namespaced; broken and clashing ones are named and harm nothing else.

The distributions of these tests are folders with a `.dist-info` that stand on the path for one test.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

import irc
from irc import targets
from irc.cli.main import run
from irc.ir import operators, plugins
from irc.ir.errors import FormatError, IrcError, UnsupportedError
from irc.ir.text import parse_model, print_model
from irc.passes import get_pass, manager, parse_pipeline
from irc.passes.pattern import registry as fusions
from irc.testing import model_of

ROOT = Path(__file__).resolve().parents[1]
DIGITS = ROOT / "examples" / "digits" / "digits.onnx"
Install = Callable[..., Path]

OPERATOR = """
    from irc.ir.operators import ELEMENTWISE, FLOAT, PURE, Operand, operator

    @operator("{name}", family="elementwise", traits=PURE | ELEMENTWISE)
    class Twice:
        \"\"\"x + x.\"\"\"
        x: Operand[FLOAT]
        def reference(ctx, x): return x + x
        def decompose(ctx, x): return ctx.build.add(x, x)
"""
PASS = """
    from dataclasses import dataclass
    from irc.passes import Pass

    @dataclass(frozen=True)
    class Nothing(Pass):
        \"\"\"%x   ->   %x\"\"\"
        name = "{name}"
        def run(self, model, rewriter): pass
"""


TEXT = """irc 1 vocabulary 1
model "m" {
  requires acme from "acme-ops"
  func @main(%x: f32[4]) -> (%y: f32[4]) {
    %y = acme.Twice(%x) : f32[4]
    return %y
  }
}
"""


def write_distribution(folder: Path, name: str, groups: dict[str, dict[str, str]], modules: dict[str, str]) -> Path:
    """An installed distribution: its metadata and modules."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"[{g}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items()) for g, rows in groups.items()]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(textwrap.dedent(text))
    return folder


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """install(name, groups, modules) puts a distribution on the path; all traces go when the test ends."""
    operators.load()
    manager._load()
    tables = (operators._TABLE, operators._FOLDED, operators._MODULES, manager._REGISTRY, fusions._REGISTRY)
    before = [dict(t) for t in tables]
    modules = set(sys.modules)

    def put(name: str, groups: dict[str, dict[str, str]], modules: dict[str, str]) -> Path:
        folder = write_distribution(tmp_path / name, name, groups, modules)
        monkeypatch.syspath_prepend(folder)
        return folder

    yield put
    for table, old in zip(tables, before, strict=True):
        table.clear()
        table.update(old)
    for name in set(sys.modules) - modules:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    plugins._results.clear()


def test_an_operator_is_found_by_its_namespace(install: Install):
    install("acme-ops", {"irc.operators": {"acme": "acme_ops"}}, {"acme_ops": OPERATOR.format(name="acme.Twice")})
    assert "acme_ops" not in sys.modules
    op = operators.get("acme.Twice")
    assert op.is_composite
    model = model_of(lambda b, x: b.acme.Twice(x), x="f32[B,4]")
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    np.testing.assert_array_equal(irc.compile(model, target="xla")(x)[0], 2 * x)
    text = print_model(model)
    assert '  requires acme from "acme-ops"\n' in text
    assert print_model(parse_model(text)) == text
    with pytest.raises(IrcError, match=r"no operator is called 'acme.Thrice'; did you mean 'acme.Twice'"):
        operators.get("acme.Thrice")


def test_a_file_of_an_absent_plugin_says_what_to_install():
    wanted = (
        r"m.ir:5:10: error: no operator is called 'acme.Twice'; the plug-in of the namespace 'acme' is not installed: "
    )
    with pytest.raises(FormatError, match=wanted + "pip install acme-ops"):
        parse_model(TEXT, filename="m.ir")
    with pytest.raises(
        FormatError, match=wanted + r"install the distribution that has the entry point 'acme' in the group"
    ):
        parse_model(TEXT.replace('requires acme from "acme-ops"', ""), filename="m.ir")


def test_an_operator_outside_the_namespace_is_refused(install: Install):
    install("acme-ops", {"irc.operators": {"acme": "acme_ops"}}, {"acme_ops": OPERATOR.format(name="Twice")})
    plugin = r"acme-ops 1.0 \(irc.operators: acme = acme_ops\) cannot be used: "
    why = "the operator 'Twice' of a plug-in needs the plug-in's namespace; call it 'acme.Twice'"
    with pytest.raises(IrcError, match=plugin + why):
        operators.get("acme.Twice")
    assert operators.find("Twice") is None


def test_what_a_failed_import_has_registered_goes_again(install: Install):
    module = OPERATOR.format(name="acme.Twice") + "\n    raise RuntimeError('no more')\n"
    install("acme-ops", {"irc.operators": {"acme": "acme_ops"}}, {"acme_ops": module})
    for _ in range(2):
        with pytest.raises(plugins.PluginError, match=r"acme-ops 1.0 .* RuntimeError: no more"):
            operators.find("acme.Twice")
    assert "acme.Twice" not in operators._TABLE
    with pytest.raises(FormatError, match=r"m.ir:5:10: error: the plug-in acme-ops 1.0 .* RuntimeError: no more"):
        parse_model(TEXT, filename="m.ir")


def test_two_distributions_of_one_namespace_are_both_named(install: Install):
    for name in ("acme-one", "acme-two"):
        module = name.replace("-", "_")
        install(name, {"irc.operators": {"acme": module}}, {module: OPERATOR.format(name="acme.Twice")})
    with pytest.raises(IrcError, match=r"acme-one 1.0 .* clashes with acme-two 1.0"):
        operators.get("acme.Twice")
    assert "acme_one" not in sys.modules


def test_a_pass_is_found_by_its_name(install: Install):
    install("acme-passes", {"irc.passes": {"acme-nothing": "acme_passes:Nothing"}},
            {"acme_passes": PASS.format(name="acme-nothing")})  # fmt: skip
    assert [str(s) for s in parse_pipeline("dce,acme-nothing").items] == ["dce", "acme-nothing"]


@pytest.mark.parametrize(
    "entry, module, reason",
    [
        ("acme_bad:Nothing", PASS.format(name="other"), "the pass calls itself 'other'"),
        ("acme_bad:missing", "", "AttributeError: module 'acme_bad' has no attribute 'missing'"),
        ("acme_bad:x", "x = 3", "expected a subclass of irc.passes.Pass, got 3"),
        ("acme_bad:x", "def f(", "SyntaxError"),
        ("acme_nowhere:x", "", "ModuleNotFoundError: No module named 'acme_nowhere'"),
    ],
)
def test_a_broken_pass_is_an_error_only_where_it_is_asked_for(
    install: Install, capsys: pytest.CaptureFixture[str], entry: str, module: str, reason: str
):
    install("acme-bad", {"irc.passes": {"acme-bad": entry}}, {"acme_bad": module})
    assert run(["passes"]) == 0
    said = capsys.readouterr()
    name = f"acme-bad 1.0 (irc.passes: acme-bad = {entry})"
    assert f"acme-bad  [broken: {name}]\n    {reason}" in said.out
    assert said.err.startswith(f"warning: the plug-in {name} cannot be used: {reason}")
    assert run(["opt", str(DIGITS), "-p", "dce"]) == 0
    assert capsys.readouterr().err == ""
    assert run(["opt", str(DIGITS), "-p", "dce,acme-bad"]) == 1
    assert f"pipeline column 5: the plug-in {name} cannot be used: {reason}" in capsys.readouterr().err


def test_a_pass_that_has_the_name_of_an_own_one_is_broken(install: Install, capsys: pytest.CaptureFixture[str]):
    install("acme-passes", {"irc.passes": {"cse": "acme_passes:Nothing"}}, {"acme_passes": PASS.format(name="cse")})
    assert get_pass("cse").__module__ == "irc.passes.cse"
    assert run(["passes", "--json"]) == 0
    said = capsys.readouterr()
    assert "its name clashes with irc's own 'cse'" in said.out
    assert "acme-passes 1.0 (irc.passes: cse = acme_passes:Nothing)" in said.err
    assert "acme_passes" not in sys.modules


def test_a_broken_fusion_leaves_the_pipeline_as_it_is(install: Install):
    install("acme-bad", {"irc.fusions": {"acme": "acme_fusions"}}, {"acme_fusions": "1 / 0"})
    with pytest.warns(plugins.PluginWarning, match=r"acme-bad 1.0 \(irc.fusions: .* ZeroDivisionError"):
        assert irc.run_passes(irc.import_onnx(DIGITS)).main.output_names == ["probabilities"]


def test_a_fusion_of_two_plugins_is_named_with_both(install: Install):
    fusion = '''
        from irc.passes.pattern import fusion

        @fusion("acme-double")
        class Double:
            """x + x   ->   2 * x"""
            def pattern(self, p, x): return p.add(x, x)
            def rewrite(self, m): return m.build.multiply(m.x, 2.0)
    '''
    for name in ("acme_f1", "acme_f2"):
        install(name, {"irc.fusions": {"acme": name}}, {name: fusion})
    with pytest.warns(plugins.PluginWarning, match="two fusions are called 'acme-double': acme_f1 and acme_f2"):
        assert fusions.get_fusion("acme-double").name == "acme-double"


def test_targets(install: Install, capsys: pytest.CaptureFixture[str]):
    target = '''
        from irc.targets.reference.target import ReferenceTarget

        class Acme(ReferenceTarget):
            """The reference under another name."""
            name = "acme"
            requires = ("acme_driver_that_is_nowhere",)

        class Half:
            pass
    '''
    install("acme-targets", {"irc.targets": {"acme": "acme_t:Acme", "half": "acme_t:Half"}}, {"acme_t": target})
    assert run(["targets"]) == 0
    said = capsys.readouterr().out
    assert "acme       The reference under another name. (needs acme_driver_that_is_nowhere)" in said
    assert (
        "half  [broken: acme-targets 1.0 (irc.targets: half = acme_t:Half)]\n    expected a subclass of irc.targ"
        in said
    )
    with pytest.raises(IrcError, match="target acme needs the package 'acme_driver_that_is_nowhere'"):
        targets.get("acme")
    with pytest.raises(IrcError, match=r"cannot be used: expected a subclass of irc.targets.base.Target"):
        targets.get("half{x=1}")
    with pytest.raises(IrcError, match="no target is called 'acne'; did you mean 'acme'"):
        targets.get("acne")


def test_a_plugin_lowers_no_operator_of_irc(install: Install):
    rules = """
        from irc.targets.xla.lowering import lower

        @lower("Relu")
        def rule(ctx, x): return x
    """
    install("acme-ops", {"irc.operators": {"acme": "acme_ops"}, "irc.lowerings": {"xla": "acme_xla"}},
            {"acme_ops": OPERATOR.format(name="acme.Twice"), "acme_xla": rules})  # fmt: skip
    model = model_of(lambda b, x: b.acme.Twice(x), x="f32[4]")
    with pytest.warns(plugins.PluginWarning, match="a plug-in lowers operators of plug-ins; Relu is irc's own"):
        exe = irc.compile(model, target="xla")
    assert exe(np.ones(4, np.float32))[0].tolist() == [2.0] * 4
    assert exe.report.decomposed == {"acme.Twice": 1}


def test_a_domain_whose_handlers_cannot_be_loaded_is_reported_with_the_reason(install: Install):
    install("acme-onnx", {"irc.frontends": {"acme.onnx": "acme_handlers"}}, {"acme_handlers": "1 / 0"})
    node = helper.make_node("Twice", ["x"], ["y"], domain="acme.onnx")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("acme.onnx", 1)]
    with (
        pytest.warns(plugins.PluginWarning, match="acme-onnx"),
        pytest.raises(UnsupportedError, match=r"acme.onnx.Twice .* the plug-in acme-onnx 1.0 .* ZeroDivisionError"),
    ):
        irc.import_onnx(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def test_nothing_is_looked_at_before_a_name_is_unknown(tmp_path: Path):
    """`import irc`, --help and work with irc's own names import no plug-in and search no distributions."""
    folder = write_distribution(
        tmp_path,
        "acme-loud",
        {group: {"acme": "acme_loud"} for group in plugins.GROUPS if group != plugins.FUSIONS},
        {"acme_loud": "raise SystemExit('a plug-in was imported')"},
    )
    script = """
import sys
import irc
from irc.cli.main import run
assert "importlib.metadata" not in sys.modules
assert run(["--help"]) == 0
assert "importlib.metadata" not in sys.modules
assert run(["opt", sys.argv[1], "-p", "canonicalize,cse,dce"]) == 0
assert run(["passes", "cse"]) == 0
assert run(["run", sys.argv[1], "-t", "reference", "--dim", "batch=2"]) == 0
assert "acme_loud" not in sys.modules
"""
    path = os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-c", script, str(DIGITS)],
        env={**os.environ, "PYTHONPATH": path},
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
