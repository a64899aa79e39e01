"""Artifacts beyond a plain round trip: replaced, saved again, damaged, and what they hold."""

from __future__ import annotations

import json
import os
import shutil

import numpy as np
import pytest

import irc
from irc.ir import build, dtypes
from irc.ir.data import ArrayData
from irc.ir.dims import symbol
from irc.ir.model import Model
from irc.ir.types import tensor

A, B = symbol("A"), symbol("B")
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def reversing() -> Model:
    m = Model("reversing")
    build.function(m, "main", [("x", tensor(dtypes.f32, A, B))], lambda b, x: b.reverse(x, axes=(1,)))
    return m


def save(path, *shapes, target="xla"):
    run = irc.compile(reversing(), target=target)
    for a, b in shapes:
        run.specialize(A=a, B=b)
    run.save(path)


def test_a_loaded_executable_survives_that_its_folder_is_replaced(tmp_path):
    save(tmp_path / "a", (2, 3), (3, 2))
    run = irc.load_executable(tmp_path / "a")
    save(tmp_path / "a", (3, 2), (2, 3))
    np.testing.assert_array_equal(run(X)[0], X[:, ::-1])
    shutil.rmtree(tmp_path / "a")
    np.testing.assert_array_equal(run(X.reshape(3, 2))[0], X.reshape(3, 2)[:, ::-1])


@pytest.mark.parametrize("target", ["xla", "onnx", "mlx{compile=off}", "reference"])
def test_a_loaded_executable_is_saved_whole(target, tmp_path):
    save(tmp_path / "a", (2, 3), (3, 2), target=target)
    run = irc.load_executable(tmp_path / "a")
    run(X)
    run.save(tmp_path / "b")
    run.save(tmp_path / "a")
    for name in ("a", "b"):
        again = irc.load_executable(tmp_path / name)
        for x in (X, X.reshape(3, 2)):
            np.testing.assert_array_equal(again(x)[0], x[:, ::-1])
        assert (again.compile_count, again.load_count) == (0, 2 if target == "xla" else 1)


def test_xla_saves_again_what_it_cannot_serialize_again(tmp_path):
    m = Model("softmax")
    build.function(m, "main", [("x", tensor(dtypes.f32, 2, 3))], lambda b, x: b.Softmax(x, axis=1))
    run = irc.compile(m, target="xla")
    run.save(tmp_path / "a")
    loaded = irc.load_executable(tmp_path / "a")
    loaded(X)
    loaded.save(tmp_path / "b")
    again = irc.load_executable(tmp_path / "b")
    np.testing.assert_array_equal(again(X)[0], run(X)[0])
    assert (again.compile_count, again.load_count) == (0, 1)


@pytest.mark.parametrize("target", ["xla", "onnx", "mlx{compile=off}", "reference"])
def test_weights_that_only_derive_others_are_left_out(target, tmp_path):
    m = Model("derived")
    array = np.random.default_rng(0).standard_normal((300, 300)).astype(np.float32)
    w = m.add_constant("w", ArrayData(array))

    def body(b, x):
        return b.dot_general(x, b.tanh(w), lhs_contracting=(1,), rhs_contracting=(0,))

    build.function(m, "main", [("x", tensor(dtypes.f32, 2, 300))], body)
    run = irc.compile(m, target=target)
    x = np.ones((2, 300), np.float32)
    want = run(x)[0]
    run.save(tmp_path / "a")
    assert (tmp_path / "a" / "model.ir").stat().st_size < 1.1 * array.nbytes
    loaded = irc.load_executable(tmp_path / "a")
    assert "w" not in loaded.model.constants
    np.testing.assert_array_equal(loaded(x)[0], want)


def drop_model(manifest, _):
    del manifest["files"]["model.ir"]


def extra_file(_, folder):
    (folder / manifest_row(folder)["folder"] / "more.py").write_text("")


def manifest_row(folder):
    return json.loads((folder / "manifest.json").read_text())["programs"][0]


def row(**changes):
    def change(manifest, _):
        manifest["programs"][0] = {**manifest["programs"][0], **changes}

    return change


def other_inputs(manifest, _):
    manifest["inputs"] = {"x": "f32[B,A]"}


def odd_name(manifest, _):
    manifest["files"]["a\0b"] = "00"


DAMAGES = [
    (drop_model, "the file 'model.ir' is not in the manifest"),
    (extra_file, "more.py' is not in the manifest"),
    (odd_name, "is missing"),
    (row(dims=None), "must have dims and a folder"),
    (row(dims=[1]), "must have dims and a folder"),
    (row(folder="elsewhere"), "the folder elsewhere is not that of a program"),
    (row(dims={"A": 2}), "expected a size for each of A, B"),
    (row(dims={"A": 2, "B": "x"}), "expected a size for each of A, B"),
    (row(dims={"A": 3, "B": 2}), "is not that of a program with the dims {'A': 3, 'B': 2}"),
    (other_inputs, "its inputs are not those of @main"),
]


@pytest.mark.parametrize("change, message", DAMAGES, ids=[m for _, m in DAMAGES])
def test_a_manifest_that_does_not_describe_the_folder_is_refused(change, message, tmp_path):
    save(tmp_path / "a", (2, 3))
    file = tmp_path / "a" / "manifest.json"
    manifest = json.loads(file.read_text())
    change(manifest, tmp_path / "a")
    file.write_text(json.dumps(manifest))
    with pytest.raises(irc.FormatError) as error:
        irc.load_executable(tmp_path / "a")
    assert message in str(error.value)


def test_an_unsound_model_is_refused(tmp_path):
    from irc.ir.container import save as save_model
    from irc.runtime.artifact import _digest

    save(tmp_path / "a", (2, 3))
    m = reversing()
    m.main.output_names = ["", ""]
    save_model(m, tmp_path / "a" / "model.ir")
    file = tmp_path / "a" / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["files"]["model.ir"] = _digest(tmp_path / "a" / "model.ir")
    file.write_text(json.dumps(manifest))
    with pytest.raises(irc.IrcError, match=r"V023|output"):
        irc.load_executable(tmp_path / "a")


def test_saving_over_a_link_replaces_what_it_points_to(tmp_path):
    save(tmp_path / "a", (2, 3))
    (tmp_path / "link").symlink_to(tmp_path / "a")
    save(tmp_path / "link", (3, 2))
    assert (tmp_path / "link").is_symlink()
    assert [dict(k) for k in irc.load_executable(tmp_path / "a").stored] == [{"A": 3, "B": 2}]


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_while_replacing_leaves_the_old_artifact(failing, tmp_path, monkeypatch):
    save(tmp_path / "a", (2, 3))
    moves = []

    def replace(source, target):
        if tmp_path in (source.parent, target.parent):
            moves.append(target)
            if len(moves) == failing:
                raise OSError("no room")
        os.rename(source, target)

    monkeypatch.setattr("irc.runtime.artifact.os.replace", replace)
    with pytest.raises(irc.IrcError, match="the artifact cannot be written: no room"):
        save(tmp_path / "a", (3, 2))
    monkeypatch.undo()
    assert [dict(k) for k in irc.load_executable(tmp_path / "a").stored] == [{"A": 2, "B": 3}]
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_folder_that_cannot_be_written_is_an_error_of_irc(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(irc.IrcError, match="the artifact cannot be written"):
        save(tmp_path / "file" / "a", (2, 3))
