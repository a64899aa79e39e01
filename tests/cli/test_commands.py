"""The commands as a user types them: what they print, write, and exit with."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest

from irc.cli.main import run

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


@pytest.fixture
def irc(capsys):
    """Run a command line; (exit code, stdout, stderr)."""

    def call(*words: object) -> tuple[int, str, str]:
        code = run([str(w) for w in words])
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def digits(tmp_path, irc) -> Path:
    """The digits model as a container."""
    path = tmp_path / "digits.ir"
    assert irc("import", DIGITS, "-o", path)[0] == 0
    return path


def test_import_writes_a_container_that_prints_as_the_onnx_file_does(digits, irc):
    code, text, _ = irc("print", digits)
    assert code == 0
    assert text.startswith('irc 1 vocabulary 1\nmodel "digits"')
    assert "func @main<batch>(%image: f32[batch,1,8,8]) -> (%probabilities: f32[batch,10])" in text
    assert irc("print", DIGITS)[1] == text
    assert irc("diff", digits, DIGITS)[:2] == (0, "equal\n")


def test_compile_reports_and_writes_an_artifact_that_runs(digits, irc, tmp_path):
    code, out, _ = irc("compile", digits, "--target", "onnx", "-o", tmp_path / "digits.artifact")
    assert code == 0
    assert "nodes" in out
    assert "constants" in out
    assert "time" in out
    code, out, _ = irc("run", tmp_path / "digits.artifact", "--dim", "batch=3", "-o", tmp_path / "out.npz")
    assert code == 0
    assert "probabilities: float32[3, 10]" in out
    assert "0 compiled, 1 loaded" in out
    probabilities = np.load(tmp_path / "out.npz")["probabilities"]
    np.testing.assert_allclose(probabilities.sum(1), 1, rtol=1e-5)


def test_run_takes_inputs_from_files_and_is_reproducible(digits, irc, tmp_path):
    np.save(tmp_path / "image.npy", np.random.default_rng(0).standard_normal((2, 1, 8, 8)).astype(np.float32))
    args = ("run", digits, "--target", "reference", "--json")
    a = json.loads(irc(*args, "--input", f"image={tmp_path / 'image.npy'}")[1])["outputs"]
    b = json.loads(irc(*args, "--shape", "image=2x1x8x8", "--seed", "0")[1])["outputs"]
    assert a == b, "seeded random inputs are standard normal from numpy's default generator"
    assert a["probabilities"]["shape"] == [2, 10]


def test_verify_agrees_and_finds_a_planted_error(digits, irc, tmp_path):
    code, out, _ = irc("verify", DIGITS, "--target", "reference", "--target", "onnx", "--dim", "batch=4")
    assert code == 0
    assert "agrees with ONNX Runtime" in out
    assert irc("verify", digits, "--target", "onnx", "--dim", "batch=4")[0] == 0
    proto = onnx.load(DIGITS)
    conv = next(n for n in proto.graph.node if n.op_type == "Conv")
    weight = next(t for t in proto.graph.initializer if t.name == conv.input[1])
    array = onnx.numpy_helper.to_array(weight).copy()
    array.reshape(-1)[0] *= 1.01
    weight.CopyFrom(onnx.numpy_helper.from_array(array, weight.name))
    onnx.save(proto, tmp_path / "planted.onnx")
    words = (
        "verify",
        tmp_path / "planted.onnx",
        "--against",
        DIGITS,
        "--target",
        "reference",
        "--dim",
        "batch=4",
        "--layers",
    )
    code, out, _ = irc(*words)
    assert code == 1
    assert "DIFFERS" in out
    assert f"first departs at Conv {conv.name!r}" in out


def test_opt_writes_smaller_onnx_that_the_checker_accepts(irc, tmp_path):
    code, out, _ = irc("opt", DIGITS, "-o", tmp_path / "small.onnx", "--verify-each", "--json")
    assert code == 0
    figures = json.loads(out)
    assert figures["nodes_after"] < figures["nodes_before"]
    assert set(figures["seconds"]) == {"import", "passes"}
    onnx.checker.check_model(onnx.load(tmp_path / "small.onnx"), full_check=True)
    assert (
        irc("verify", tmp_path / "small.onnx", "--against", DIGITS, "--target", "reference", "--dim", "batch=2")[0] == 0
    )


def test_opt_writes_the_operator_set_that_is_asked_for(irc, tmp_path):
    for words, opset in (((), 21), (("--opset", 23), 23)):
        assert irc("opt", DIGITS, "-o", tmp_path / "m.onnx", *words)[0] == 0
        assert onnx.load(tmp_path / "m.onnx").opset_import[0].version == opset
    code, _, err = irc("opt", DIGITS, "-o", tmp_path / "m.onnx", "--opset", 20)
    assert code == 1
    assert "opset 20 cannot be written; expected one of 21, 22, 23, 24" in err


def test_check_lists_everything_unsupported_at_once(irc, tmp_path):
    nodes = [
        onnx.helper.make_node("Wibble", ["x"], ["a"], domain="org.example", name="first_wibble"),
        onnx.helper.make_node("Wibble", ["a"], ["b"], domain="org.example"),
        onnx.helper.make_node("Wobble", ["b"], ["y"], domain="org.example", name="the_wobble"),
    ]
    info = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [2]) for n in "xy"]
    graph = onnx.helper.make_graph(nodes, "g", info[:1], info[1:])
    opsets = [onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("org.example", 1)]
    onnx.save(onnx.helper.make_model(graph, opset_imports=opsets), tmp_path / "odd.onnx")
    code, out, _ = irc("check", tmp_path / "odd.onnx")
    assert code == 1
    assert "Wibble" in out
    assert "x2" in out
    assert "first_wibble" in out
    assert "the_wobble" in out
    assert irc("check", DIGITS, "--target", "onnx")[0] == 0


def test_check_lists_what_a_target_refuses(irc, tmp_path):
    from irc import save
    from irc.ir import build, dtypes
    from irc.ir.model import Model
    from irc.ir.types import TensorType

    model, row = Model("m"), TensorType(dtypes.f64, (2,))
    build.function(model, "main", [("x", row), ("y", row)], lambda b, x, y: b.real(b.complex(x, y)))
    save(model, tmp_path / "m.ir")
    code, out, _ = irc("check", tmp_path / "m.ir", "--target", "xla", "--target", "mlx", "--json")
    assert code == 1
    findings = json.loads(out)["findings"]
    assert {(f["stage"], f["operator"], f["count"]) for f in findings} >= {("mlx", "complex", 1)}
    assert {f["stage"] for f in findings} == {"mlx"}
    assert all("c128" in f["reason"] for f in findings)


def test_lists(irc):
    assert "xla" in irc("targets")[1]
    assert "canonicalize" in irc("passes")[1]
    code, out, _ = irc("ops", "take")
    assert code == 0
    assert "attribute  axis: int = 0" in out
    names = {o["name"] for o in json.loads(irc("ops", "--json")[1])["operators"]}
    assert {"add", "Conv", "while", "take"} <= names


BAD = [
    (("compile", DIGITS, "--target", "xls"), "no target is called 'xls'; did you mean 'xla'"),
    (
        ("compile", DIGITS, "--target", "mlx{compiled=on}"),
        "target mlx has no option 'compiled'; did you mean 'compile'",
    ),
    (("opt", DIGITS, "-p", "canonicalise"), "no pass is called 'canonicalise'; did you mean 'canonicalize'"),
    (("opt", DIGITS, "-p", "cse{across-graph=true}"), "did you mean 'across-graphs'"),
    (("run", DIGITS, "--target", "reference"), "its dims batch are unspecified: give --dim batch=SIZE"),
    (("run", DIGITS, "--target", "reference", "--shape", "imaeg=1x1x8x8"), "no input 'imaeg'; did you mean 'image'"),
    (("run", DIGITS, "--target", "reference", "--shape", "image=1x8x8"), "(rank 4), got shape [1, 8, 8]"),
    (("run", DIGITS, "--target", "reference", "--shape", "image=1x3x8x8"), "axis 1 must be 1, got 3"),
    (("run", DIGITS, "--target", "reference", "--dim", "bacth=1"), "no dim 'bacth'; did you mean 'batch'"),
    (("print", "nowhere.onnx"), "nowhere.onnx"),
    (("print", "pyproject.toml"), "expected a file ending in .ir or .onnx"),
]


@pytest.mark.parametrize("words, message", BAD, ids=[w[1][:40] for w in BAD])
def test_bad_input_gets_a_diagnostic_and_exit_code_1(irc, words, message):
    code, out, err = irc(*words)
    assert code == 1, out + err
    assert message in err
    assert "Traceback" not in err


def test_wrong_dtype_and_hostile_files(irc, tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((1, 1, 8, 8)))
    code, _, err = irc("run", DIGITS, "--target", "reference", "--input", f"image={tmp_path / 'x.npy'}")
    assert code == 1
    assert "expects f32[batch,1,8,8], got element type f64; convert it with .astype('float32')" in err
    (tmp_path / "not.onnx").write_bytes(b"hello, this is no model")
    code, _, err = irc("print", tmp_path / "not.onnx")
    assert code == 1
    assert "not.onnx" in err
    (tmp_path / "cut.onnx").write_bytes(DIGITS.read_bytes()[:2000])
    assert irc("print", tmp_path / "cut.onnx")[0] == 1
    np.save(tmp_path / "object.npy", np.array([{}], object), allow_pickle=True)
    code, _, err = irc("run", DIGITS, "--target", "reference", "--input", f"image={tmp_path / 'object.npy'}")
    assert code == 1
    assert "not a .npy file of numbers" in err


def test_usage_errors_exit_2(irc):
    code, _, err = irc("tagrets")
    assert code == 2
    assert "did you mean 'targets'" in err
    assert irc("run")[0] == 2
    assert irc("run", DIGITS, "--shape", "image")[0] == 2


@pytest.mark.parametrize(
    "words, message",
    [
        (("run", DIGITS, "--target", "reference", "--dim", "batch=1", "--seed", "-1"), "-1 is not in the range x>=0"),
        (("opt", DIGITS, "-o", "m.ir", "--opset", "23"), "--opset is for an output (-o) ending in .onnx"),
    ],
)
def test_option_values_that_cannot_be_are_usage_errors(irc, words, message):
    code, out, err = irc(*words)
    assert code == 2, out + err
    assert message in err


def test_a_defect_exits_3_and_leaves_a_report(irc, monkeypatch):
    def broken(a, b):
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("irc.ir.compare.diff", broken)
    code, _, err = irc("diff", DIGITS, DIGITS)
    assert code == 3
    assert "a defect of irc: ZeroDivisionError: planted" in err
    report = Path(err.split("report it with ")[1].split(",")[0])
    assert "irc diff" in report.read_text()
    report.unlink()


SKLEARN = Path(__file__).parents[1] / "models" / "fixtures" / "sklearn_text.onnx"


def test_what_the_host_does_between_programs_is_no_finding(tmp_path, capsys):
    assert run(["check", str(SKLEARN), "-t", "xla"]) == 0
    assert "or on the host between its programs" in capsys.readouterr().out
    assert run(["compile", str(SKLEARN), "-t", "xla", "--dim", "text_d0=2", "-o", str(tmp_path / "t.xla")]) == 0
    assert "runs in stages" in capsys.readouterr().out


def test_the_text_form_is_read_too(irc, tmp_path):
    """What `irc print` prints and the reproducer of a failure, with the comment that says how to run it."""
    text = '''irc 1 vocabulary 1
model "m" {
  func @main(%x: f32[2]) -> (%y: f32[2]) {
    %0 = negate(%x) : f32[2]
    %y = negate(%0) : f32[2]
    return %y
  }
}
'''
    (tmp_path / "plain.ir").write_text(text)
    (tmp_path / "reproducer.ir").write_text("// RUN: irc opt %s -p canonicalize --verify-each\n" + text)
    for name in ("plain.ir", "reproducer.ir"):
        code, out, err = irc("opt", tmp_path / name, "-p", "canonicalize", "--verify-each")
        assert (code, err) == (0, "")
        assert "return %x" in out
    assert irc("print", tmp_path / "plain.ir")[1] == text
    (tmp_path / "broken.ir").write_text("irc 1 vocabulary 1\nmodel {")
    code, _, err = irc("print", tmp_path / "broken.ir")
    assert code == 1
    assert "broken.ir:2" in err
    (tmp_path / "bytes.ir").write_bytes(b"irc \xff\xfe")
    code, _, err = irc("print", tmp_path / "bytes.ir")
    assert code == 1
    assert "not valid UTF-8" in err
