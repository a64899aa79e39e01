"""examples/plugin: built, put on the path of a new process, its own tests and the commands of its README run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PLUGIN = Path(__file__).resolve().parents[1] / "examples" / "plugin"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Variables with which a new process finds the plug-in, installed from a copy that a build may write into."""
    folder = tmp_path_factory.mktemp("plugin")
    shutil.copytree(PLUGIN, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    command = [sys.executable, "-P", "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--target", str(folder / "site"), str(folder / "source")]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    path = os.pathsep.join([str(folder / "site"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**{k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}, "PYTHONPATH": path}


def test_its_own_tests_pass(environment: dict[str, str]):
    command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"]
    done = subprocess.run(command, cwd=PLUGIN, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert re.search(r"\d\d passed", done.stdout)


def test_the_commands_of_its_readme_run(environment: dict[str, str]):
    (block,) = re.findall(r"^```\n(.*?)^```$", (PLUGIN / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    commands = [line.split()[1:] for line in block.splitlines() if line.startswith("irc ")]
    assert len(commands) >= 5
    script = "import sys\nfrom irc.cli.main import run\n" + "".join(f"assert run({c!r}) == 0\n" for c in commands)
    done = subprocess.run([sys.executable, "-c", script], cwd=PLUGIN, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "numpy      Readable NumPy code, a sample of a target in a plug-in. (installed)" in done.stdout
    assert "numpy: " in done.stdout
