"""The main job on a published detector of free height and width, as a user types it: import, compile, run, verify."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest
from PIL import Image, ImageDraw, ImageFont

import irc
from irc.cli.main import run


@pytest.fixture
def call(capsys):
    def command(*words: object) -> tuple[int, str, str]:
        code = run([str(w) for w in words])
        out, err = capsys.readouterr()
        return code, out, err

    return command


@pytest.fixture
def det(tmp_path, call, model_path):
    """det.ir, imported by the command."""
    path = tmp_path / "det.ir"
    code, _, err = call("import", model_path("det"), "-o", path)
    assert code == 0, err
    return path


@pytest.mark.parametrize("target, compiled", [("xla", 1), ("mlx", 0)])
def test_compile_without_shapes_then_run_at_two(det, call, tmp_path, target, compiled):
    """xla compiles once a shape and not again; mlx runs one module, compiled with the artifact, for all shapes."""
    artifact = tmp_path / f"det.{target}"
    code, out, err = call("compile", det, "--target", target, "-o", artifact)
    assert code == 0, err
    assert "nodes" in out
    for shape in ("1x3x320x480", "1x3x640x640"):
        code, out, err = call("run", artifact, "--shape", f"x={shape}", "--repeat", 2, "--json")
        assert code == 0, err
        figures = json.loads(out)
        assert figures["compiled"] == compiled, "one compilation, none at the second call"
        height, width = shape.split("x")[2:]
        assert figures["outputs"]["sigmoid_0.tmp_0"]["shape"] == [1, 1, int(height), int(width)]
    code, _, err = call("run", artifact, "--shape", "x=1x3x330x480")
    assert code == 1
    assert "cannot run with" in err
    assert "p2o.Add.2" in err, "the diagnostic names the Add whose operands would not fit"
    assert "330" in err


def test_one_executable_counts_its_compilations(det):
    executable = irc.compile(det, target="xla")
    x = np.random.default_rng(0).standard_normal((1, 3, 320, 480), np.float32)
    y = np.random.default_rng(0).standard_normal((1, 3, 64, 96), np.float32)
    counts = []
    for array in (x, y, x, y):
        executable(array)
        counts.append(executable.compile_count)
    assert counts == [1, 2, 2, 2]
    with pytest.raises(irc.AssumptionError, match=r"p2o\.Add\.\d+"):
        executable(np.zeros((1, 3, 330, 480), np.float32))


def test_sizes_given_ahead_are_not_compiled_at_the_run(det, call, tmp_path):
    names = ["p2o.DynamicDimension.0=1", "p2o.DynamicDimension.1=64", "p2o.DynamicDimension.2=96,128"]
    artifact = tmp_path / "det.xla"
    dims = [w for n in names for w in ("--dim", n)]
    code, out, err = call("compile", det, "--target", "xla", "-o", artifact, *dims)
    assert code == 0, err
    assert "2 compiled" in out
    for width in (96, 128):
        code, out, _ = call("run", artifact, "--shape", f"x=1x3x64x{width}", "--json")
        assert code == 0
        assert (json.loads(out)["compiled"], json.loads(out)["loaded"]) == (0, 1)


def test_verify_agrees_for_the_file_and_the_container(det, call, model_path):
    for path in (model_path("det"), det):
        words = ("verify", path, "--shape", "x=1x3x64x96", "--target", "xla", "--target", "mlx{compile=off}", "--json")
        code, out, err = call(*words)
        assert code == 0, out + err
        verdict = json.loads(out)
        assert [row["agrees"] for row in verdict["targets"]] == [True, True]


def test_verify_finds_a_weight_that_is_one_percent_off(det, call, model_path, tmp_path):
    """Planted into the container and into the ONNX file; both are found, and the layer is named."""
    proto = onnx.load(model_path("det"))
    conv = [n for n in proto.graph.node if n.op_type == "Conv"][5]
    constants = {n.output[0]: n for n in proto.graph.node if n.op_type == "Constant"}
    tensor = next((t for t in proto.graph.initializer if t.name == conv.input[1]), None)
    if tensor is None:
        tensor = constants[conv.input[1]].attribute[0].t
    array = onnx.numpy_helper.to_array(tensor).copy()
    array.reshape(-1)[np.abs(array).argmax()] *= 1.01
    tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    image = Image.new("RGB", (320, 96), (235, 235, 230))
    ImageDraw.Draw(image).text((20, 24), "irc compiles 2026", (10, 10, 30), font=ImageFont.load_default(size=32))
    np.save(tmp_path / "page.npy", np.asarray(image, np.float32).transpose(2, 0, 1)[None] / 127.5 - 1)
    planted = tmp_path / "planted.onnx"
    onnx.save(proto, planted)
    container = tmp_path / "planted.ir"
    irc.save(irc.import_onnx(planted), container)
    for path, judge in ((planted, model_path("det")), (container, model_path("det")), (container, det)):
        words = (
            "verify",
            path,
            "--against",
            judge,
            "--input",
            f"x={tmp_path / 'page.npy'}",
            "--target",
            "mlx{compile=off}",
            "--layers",
        )
        code, out, err = call(*words)
        assert code == 1, out + err
        assert "DIFFERS" in out
        assert f"first departs at Conv {conv.name!r}" in out
