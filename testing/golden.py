"""Golden files: emitted code kept in the repository and compared as text."""

from __future__ import annotations

import difflib
from pathlib import Path


def check_golden(path: Path, text: str, *, update: bool = False) -> None:
    """AssertionError with a diff unless the file holds exactly `text`; with `update` write it instead.

    Read the difference before you update: the emitted code is what users get.
    """
    text = text if text.endswith("\n") else text + "\n"
    if update:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return
    if not path.exists():
        raise AssertionError(f"there is no golden file {path.name}; run pytest --update-golden and read what it writes")
    want = path.read_text()
    if want != text:
        diff = "".join(difflib.unified_diff(want.splitlines(True), text.splitlines(True), path.name, "emitted now"))
        raise AssertionError(
            f"{path.name} differs from what is emitted now; if it should, run pytest --update-golden\n{diff}"
        )
