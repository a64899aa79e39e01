"""`irc cache`: what it shows of the disk cache, and what it empties and does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from irc.cli.caching import size_text
from irc.cli.main import run as cli
from irc.runtime.disk_cache import DiskCache, key_of

DIGITS = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("IRC_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def said(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    assert cli([*map(str, words)]) == code
    out, err = capsys.readouterr()
    return err if code else out


def found(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    return json.loads(said(capsys, *words, "--json"))


def test_a_life_of_a_cache(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert said(capsys, "cache", "path") == f"{folder}\n"
    assert found(capsys, "cache", "path") == {"path": str(folder), "exists": False}
    assert said(capsys, "cache", "list") == "the cache is empty\n"
    assert said(capsys, "cache", "size").startswith("0 programs, 0 B of at most")
    run = ("run", DIGITS, "--dim", "batch=2", "--cache")
    assert "1 compiled, 0 loaded" in said(capsys, *run)
    assert "0 compiled, 1 loaded" in said(capsys, *run)
    rows = found(capsys, "cache", "list")["programs"]
    assert [r["about"]["target"] for r in rows] == ["xla"]
    assert rows[0]["about"]["inputs"] == "f32[2, 1, 8, 8]"
    assert found(capsys, "cache", "size") == {"programs": 1, "bytes": rows[0]["bytes"], "limit": 4 << 30}
    assert rows[0]["bytes"] == sum(f.stat().st_size for f in folder.glob("*.program"))
    assert said(capsys, "cache", "list").startswith(rows[0]["key"][:12])
    words = ("compile", DIGITS, "--dim", "batch=2,3", "--cache", "-o", tmp_path / "m.xla")
    assert "1 compiled, 1 from the cache" in said(capsys, *words)
    assert said(capsys, "cache", "size").startswith("2 programs, ")
    assert said(capsys, "cache", "clear").startswith("removed 2 programs, ")
    assert not folder.exists()
    assert found(capsys, "cache", "clear") == {"removed": 0, "bytes": 0}


def test_only_caches_are_cleared(folder: Path, capsys: pytest.CaptureFixture[str]):
    folder.mkdir()
    (folder / "0.program").write_text("a show")
    assert "no cache of irc" in said(capsys, "cache", "clear", code=1)
    assert "no cache of irc" in said(capsys, "cache", "clear", "--dir", folder, code=1)
    assert (folder / "0.program").read_text() == "a show"
    file = folder / "0.program"
    assert "not a folder" in said(capsys, "cache", "clear", "--dir", file, code=1)
    assert file.exists()


def test_what_others_put_there_stays(folder: Path, capsys: pytest.CaptureFixture[str]):
    DiskCache().put(key_of({}), b"code", {})
    (folder / "letter.txt").write_text("dear")
    (folder / ".tmp-left").write_bytes(b"of a process that was killed")
    (folder.parent / "elsewhere.program").write_text("a show")
    (folder / f"{'0' * 64}.program").symlink_to(folder.parent / "elsewhere.program")
    assert said(capsys, "cache", "clear").startswith("removed 1 program, ")
    assert sorted(f.name for f in folder.iterdir()) == [f"{'0' * 64}.program", "irc-cache.json", "letter.txt"]
    assert said(capsys, "cache", "size").startswith("0 programs"), "it is a cache still"
    assert (folder.parent / "elsewhere.program").read_text() == "a show"


def test_the_one_used_last_comes_first(folder: Path, capsys: pytest.CaptureFixture[str]):
    import os

    keys = [key_of({"n": n}) for n in range(3)]
    for number, key in enumerate(keys):
        DiskCache().put(key, b"code", {"number": str(number)})
        os.utime(folder / f"{key}.program", (number, number))
    assert [r["about"]["number"] for r in found(capsys, "cache", "list")["programs"]] == ["2", "1", "0"]


def test_artifacts_have_their_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    said(capsys, "compile", DIGITS, "-t", "reference", "-o", tmp_path / "m.reference")
    assert "leave --target" in said(capsys, "run", tmp_path / "m.reference", "--cache", code=2)


@pytest.mark.parametrize(
    "nbytes, text",
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"), (4 << 30, "4.3 GB")],
)
def test_sizes_are_readable(nbytes: int, text: str):
    assert size_text(nbytes) == text


def test_usage(capsys: pytest.CaptureFixture[str]):
    assert "No such command" in said(capsys, "cache", "burn", code=2)
