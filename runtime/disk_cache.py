"""The disk cache: compiled code by a digest of everything that it depends on, in a folder that processes may share.

    irc-cache.json     marks the folder as a cache, so that clearing can refuse any other
    <key>.program      a line of JSON (what it is, how long, its sha256), then the code

What is in it is run, so the folder must be the user's own, and code whose digest differs is dropped.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..ir.errors import IrcError

FORMAT = 1
MARK, SUFFIX = "irc-cache.json", ".program"
LIMIT = 4 << 30
"""Bytes that a cache may take; what has not been used for longest goes first."""

LONGEST_HEADER = 1 << 16
_NAME = re.compile(rf"[0-9a-f]{{64}}{re.escape(SUFFIX)}")
_TEMPORARY = re.compile(r"\.tmp-\w+")


def default_path() -> Path:
    """Where the cache is: $IRC_CACHE_DIR, else `irc` in the folder that the system has for caches."""
    if own := os.environ.get("IRC_CACHE_DIR"):
        return Path(own)
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "irc"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "irc"


def key_of(parts: Mapping[str, Any]) -> str:
    """A key for code that depends on these parts and nothing else."""
    return hashlib.sha256(json.dumps([FORMAT, parts], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Entry:
    """One program in the cache; `used` in seconds since 1970, `about` for people."""

    key: str
    nbytes: int
    used: float
    about: Mapping[str, str]


class DiskCache:
    """A folder of compiled code.  It is made when something is first put into it.

    IrcError if the folder is another user's or others may write to it, or if it holds something else.
    """

    def __init__(self, path: str | Path | None = None, *, limit: int = LIMIT) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.limit = limit
        if self.path.exists():
            self._check()

    def _check(self) -> None:
        """The folder is a cache of ours, or an empty one that may become it."""
        if not self.path.is_dir():
            raise IrcError(f"{self.path}: not a folder, so it cannot be a cache")
        info = self.path.stat()
        if hasattr(os, "getuid") and (info.st_uid != os.getuid() or info.st_mode & 0o022):
            raise IrcError(
                f"{self.path}: a cache holds code that is run, so it must belong to you and be writable by nobody else;"
                " mend its owner and mode, or choose another folder"
            )
        if not self.is_cache and any(self.path.iterdir()):
            raise IrcError(f"{self.path}: no cache of irc: it has no {MARK} and is not empty")

    @property
    def is_cache(self) -> bool:
        """Whether the folder is marked as one."""
        try:
            mark = json.loads((self.path / MARK).read_bytes())
        except (OSError, ValueError):
            return False
        return isinstance(mark, dict) and mark.get("format") == FORMAT

    def get(self, key: str) -> bytes | None:
        """The code put under this key; None if there is none, or it is damaged (then it is dropped)."""
        file = self._file(key)
        try:
            with file.open("rb") as stream:
                header = _header(stream.readline(LONGEST_HEADER))
                code = stream.read()
        except OSError:
            return None
        if header is None or hashlib.sha256(code).hexdigest() != header.get("sha256"):
            file.unlink(missing_ok=True)
            return None
        with contextlib.suppress(OSError):  # the time of its last use; another process may have dropped it
            os.utime(file)
        return code

    def put(self, key: str, code: bytes, about: Mapping[str, str]) -> None:
        """Keep code under a key, whole or not at all; a disk that is full or read-only keeps nothing."""
        header = {"sha256": hashlib.sha256(code).hexdigest(), "bytes": len(code), "about": dict(about)}
        try:
            self.path.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not self.is_cache:
                self._write(self.path / MARK, json.dumps({"format": FORMAT}).encode())
            self._write(self._file(key), json.dumps(header).encode() + b"\n" + code)
            self._shrink()
        except OSError:
            return

    def _write(self, file: Path, contents: bytes) -> None:
        handle, name = tempfile.mkstemp(prefix=".tmp-", dir=self.path)
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(contents)
            os.replace(name, file)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

    def _shrink(self) -> None:
        """Drop what has not been used for longest until the limit is kept."""
        entries = sorted(self.entries(), key=lambda e: e.used)
        total = sum(e.nbytes for e in entries)
        for entry in entries[:-1]:
            if total <= self.limit:
                return
            self._file(entry.key).unlink(missing_ok=True)
            total -= entry.nbytes

    def entries(self) -> Iterator[Entry]:
        """Everything in the cache, in the order of keys."""
        for file in self._files():
            try:
                info = file.stat()
                with file.open("rb") as stream:
                    header = _header(stream.readline(LONGEST_HEADER))
            except OSError:  # dropped by another process meanwhile
                continue
            about = header.get("about") if header is not None else None
            texts = {str(k): str(v) for k, v in about.items()} if isinstance(about, dict) else {}
            yield Entry(file.stem, info.st_size, info.st_mtime, texts)

    def clear(self) -> tuple[int, int]:
        """Remove all programs, and the folder if nothing else is in it; how many programs there were, and their bytes.

        IrcError if it is no cache.
        """
        if not self.path.exists():
            return 0, 0
        if not self.is_cache:
            raise IrcError(f"{self.path}: no cache of irc, so nothing is removed: it has no {MARK}")
        count, nbytes = 0, 0
        for file in self._files():
            with contextlib.suppress(FileNotFoundError):  # another process was faster
                size = file.stat().st_size
                file.unlink()
                count, nbytes = count + 1, nbytes + size
        for file in [f for f in self.path.iterdir() if _TEMPORARY.fullmatch(f.name)]:
            file.unlink(missing_ok=True)
        if [f.name for f in self.path.iterdir()] == [MARK]:  # what others put there stays, and so does the mark
            (self.path / MARK).unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                self.path.rmdir()
        return count, nbytes

    def _files(self) -> list[Path]:
        if not self.is_cache:
            return []
        return sorted(f for f in self.path.iterdir() if _NAME.fullmatch(f.name) and not f.is_symlink())

    def _file(self, key: str) -> Path:
        return self.path / f"{key}{SUFFIX}"


def _header(line: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None
