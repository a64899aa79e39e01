"""The disk cache: what is taken from it, what keeps it from being taken, and what it refuses to touch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irc
from irc.ir import build, dtypes
from irc.ir.dims import symbol
from irc.ir.model import Model
from irc.ir.types import tensor
from irc.runtime.disk_cache import MARK, DiskCache, default_path, key_of

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def model_of(body: Any) -> Model:
    model = Model("m")
    build.function(model, "main", [("x", tensor(dtypes.f32, symbol("B"), 3))], body)
    return model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def counts(executable: irc.Executable) -> tuple[int, int]:
    return executable.compile_count, executable.load_count


def test_a_second_executable_loads_what_the_first_compiled(folder: Path):
    weight = np.random.default_rng(0).standard_normal((3, 400)).astype(np.float32)

    def body(b: Any, x: Any) -> Any:
        return b.tanh(b.MatMul(x, b.constant(weight)))

    runs = [irc.compile(model_of(body), target="xla", cache=folder) for _ in range(2)]
    results = [run(X)[0] for run in runs]
    assert [counts(run) for run in runs] == [(1, 0), (0, 1)]
    assert results[0].tobytes() == results[1].tobytes()
    assert "load" in runs[1].report.seconds
    assert "compile" not in runs[1].report.seconds
    assert runs[0](X[:1])[0].tobytes() == runs[1](X[:1])[0].tobytes()
    assert counts(runs[1]) == (0, 2), "the other shape was compiled by the first executable meanwhile"
    assert len(list(DiskCache(folder).entries())) == 2
    off = irc.compile(model_of(body), target="xla")
    off(X)
    assert counts(off) == (1, 0), "without being asked for there is no cache"


def test_weights_are_not_part_of_the_code(folder: Path):
    """Programs that differ in large weights alone share their code, and compute with their own weights."""

    def result(seed: int) -> tuple[np.ndarray[Any, Any], tuple[int, int]]:
        weight = np.random.default_rng(seed).standard_normal((3, 400)).astype(np.float32)
        run = irc.compile(model_of(lambda b, x: b.MatMul(x, b.constant(weight))), target="xla", cache=folder)
        np.testing.assert_allclose(run(X)[0], X @ weight, rtol=1e-5)
        return run(X)[0], counts(run)

    (a, first), (b, second) = result(0), result(1)
    assert (first, second) == ((1, 0), (0, 1))
    assert (a != b).any()


@pytest.mark.parametrize("change", ["program", "options", "flags"])
def test_what_the_code_depends_on_is_part_of_the_key(change: str, folder: Path, monkeypatch: pytest.MonkeyPatch):
    irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=folder)(X)
    spec, body = "xla", lambda b, x: b.tanh(x)
    if change == "program":
        body = lambda b, x: b.sine(x)  # noqa: E731  (a variant of the line above)
    if change == "options":
        spec = "xla{optimization_level=0}"
    if change == "flags":
        monkeypatch.setenv("XLA_FLAGS", os.environ.get("XLA_FLAGS", "") + " ")
    run = irc.compile(model_of(body), target=spec, cache=folder)
    run(X)
    assert counts(run) == (1, 0)


def test_other_processes_load_it_too(folder: Path):
    script = (
        "import sys, numpy as np, irc\n"
        "run = irc.compile('m.ir', target='xla', cache='cache')\n"
        "print(run(np.ones((2, 3), np.float32))[0].tobytes().hex(), run.compile_count, run.load_count)\n"
    )
    irc.save(model_of(lambda b, x: b.tanh(x)), folder.parent / "m.ir")
    said = [
        subprocess.run(
            [sys.executable, "-c", script], cwd=folder.parent, capture_output=True, text=True, check=True
        ).stdout.split()
        for _ in range(2)
    ]
    assert said[0][0] == said[1][0]
    assert (said[0][1:], said[1][1:]) == (["1", "0"], ["0", "1"])


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"[]\n\n", b"no json\ncode", None])
def test_damaged_code_is_compiled_again(damage: bytes | None, folder: Path):
    irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=folder)(X)
    (file,) = folder.glob("*.program")
    whole = file.read_bytes()
    file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]) if damage is None else damage)
    run = irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=folder)
    np.testing.assert_allclose(run(X)[0], np.tanh(X), rtol=1e-5)
    assert counts(run) == (1, 0)
    assert file.read_bytes()[-100:] == whole[-100:], "what is compiled again is kept again"


def test_code_that_cannot_be_loaded_is_compiled_again(folder: Path, monkeypatch: pytest.MonkeyPatch):
    from irc.targets.xla.pjrt import Device

    irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=folder)(X)

    def refuse(*arguments: object) -> None:
        raise irc.IrcError("planted")

    monkeypatch.setattr(Device, "restore", refuse)
    run = irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=folder)
    np.testing.assert_allclose(run(X)[0], np.tanh(X), rtol=1e-5)
    assert counts(run) == (1, 0)


def test_entries_that_run_in_stages_use_it(folder: Path):
    def body(b: Any, x: Any) -> Any:
        total = b.convert(b.reduce((b.abs(x),), axes=(0, 1), kind="sum"), dtype=dtypes.i64)
        b.bind_dim(total, dim="n")
        return b.iota(dtype=dtypes.i64, dims=(symbol("n"),), axis=0)

    runs = [irc.compile(model_of(body), target="xla", cache=folder) for _ in range(2)]
    assert [run(X)[0].tolist() for run in runs] == [list(range(15))] * 2
    assert runs[0].report.segments > 0
    assert runs[1].report.segments == 0
    assert runs[1].load_count == runs[0].report.segments


def test_an_artifact_can_be_saved_from_restored_code(folder: Path, tmp_path: Path):
    for _ in range(2):
        run = irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=folder)
        want = run(X)[0]
    assert counts(run) == (0, 1)
    run.save(tmp_path / "m.xla")
    loaded = irc.load_executable(tmp_path / "m.xla")
    assert loaded(X)[0].tobytes() == want.tobytes()
    assert counts(loaded) == (0, 1)


def test_other_targets_take_no_notice(folder: Path):
    run = irc.compile(model_of(lambda b, x: b.tanh(x)), target="reference", cache=folder)
    run(X)
    assert counts(run) == (1, 0)
    assert not folder.exists()


# ------------------------------------------------------------------------------------------------------- the folder


def test_what_is_used_least_goes_first(folder: Path):
    cache = DiskCache(folder, limit=3000)
    keys = [key_of({"n": n}) for n in range(4)]
    for number, key in enumerate(keys[:3]):
        cache.put(key, bytes(800), {"n": str(number)})
        os.utime(folder / f"{key}.program", (number, number))
    assert cache.get(keys[0]) == bytes(800)
    cache.put(keys[3], bytes(800), {})
    assert [key in {e.key for e in cache.entries()} for key in keys] == [True, False, True, True]
    cache.put(keys[1], bytes(9000), {})
    assert [e.key for e in cache.entries()] == [keys[1]], "one that is too large alone stays until the next"


def test_the_folder_is_ones_own(folder: Path):
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(irc.IrcError, match="writable by nobody else"):
        DiskCache(folder)
    folder.chmod(0o700)
    DiskCache(folder).put(key_of({}), b"code", {})
    assert (folder.stat().st_mode & 0o777, (folder / MARK).exists()) == (0o700, True)


def test_folders_that_hold_something_else_are_refused(folder: Path, tmp_path: Path):
    folder.mkdir(mode=0o700)
    (folder / "letter.txt").write_text("dear")
    with pytest.raises(irc.IrcError, match="no cache of irc"):
        irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=folder)
    with pytest.raises(irc.IrcError, match="not a folder"):
        DiskCache(folder / "letter.txt")
    with pytest.raises(irc.IrcError, match="expected a path, got int"):
        irc.compile(model_of(lambda b, x: b.tanh(x)), target="xla", cache=3)  # type: ignore[arg-type]  # the test


def test_a_folder_that_cannot_be_written_keeps_nothing(folder: Path):
    blocked = folder / "file" / "cache"
    folder.mkdir()
    (folder / "file").write_text("")
    cache = DiskCache(blocked)
    cache.put(key_of({}), b"code", {})
    assert cache.get(key_of({})) is None


def test_nothing_half_is_left(folder: Path, monkeypatch: pytest.MonkeyPatch):
    cache = DiskCache(folder)
    cache.put(key_of({"n": 0}), b"code", {})

    def full(*arguments: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", full)
    cache.put(key_of({"n": 1}), b"more", {})
    assert sorted(f.suffix for f in folder.iterdir()) == [".json", ".program"]


def test_where_it_is_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "own"))
    assert default_path() == tmp_path / "own"
    monkeypatch.delenv("IRC_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_path() == tmp_path / "irc"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert default_path().parts[-3:] == ("Library", "Caches", "irc")
