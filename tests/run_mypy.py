"""Run mypy on the checkout as the package `irc`; arguments are handed on to mypy.

mypy derives module names from folder names, and the checkout's folder may have any.  So it is shown a temporary folder
that holds one link, irc -> checkout, and is told the packages by name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main() -> int:
    packages = sorted(path.parent.name for path in ROOT.glob("*/__init__.py"))
    with tempfile.TemporaryDirectory(prefix="irc-mypy-") as folder:
        (Path(folder) / "irc").symlink_to(ROOT, target_is_directory=True)
        command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml")]
        command += ["--cache-dir", str(ROOT / ".mypy_cache"), *sys.argv[1:], "-m", "irc"]
        for package in packages:
            command += ["-p", f"irc.{package}"]
        # From inside the folder, so that messages start with irc/ and the checkout is not on the path a second time.
        return subprocess.run(command, cwd=folder, env={**os.environ, "MYPYPATH": folder}).returncode


if __name__ == "__main__":
    raise SystemExit(main())
