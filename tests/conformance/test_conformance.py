"""The names of passing cases of the ONNX backend suite are committed; here a fixed part of them runs on each target.

`make conformance` runs everything and rewrites the lists.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent

STRIDES = {"reference": 1, "xla": 12, "mlx{compile=off}": 3}
"""Every how many of the passing cases run here: XLA compiles each, the others do not."""

REQUIRED = {"reference": 1950, "xla": 1900, "mlx{compile=off}": 1900}
"""The least number of passing cases, so that a list cannot shrink without anybody noticing."""

LIMIT = 60
"""Seconds for one case: a machine under load is no regression."""


def passing(target: str) -> list[str]:
    return (HERE / "passing" / f"{target.partition('{')[0]}.txt").read_text().split()


@pytest.mark.parametrize("target", STRIDES)
def test_passing_cases_still_pass(target: str, tmp_path: Path):
    names = passing(target)
    assert len(names) >= REQUIRED[target]
    assert names == sorted(set(names))
    chosen = names[:: STRIDES[target]]
    (tmp_path / "names").write_text("\n".join(chosen))
    arguments = ["--target", target, "--names", tmp_path / "names", "--json", tmp_path / "out", "--limit", str(LIMIT)]
    done = subprocess.run([sys.executable, HERE / "run.py", *arguments, "--quiet"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "out").read_text())[target]
    assert [r["case"] for r in rows] == chosen
    lost = [f"{r['case']}: {r['status']}: {r['reason']}" for r in rows if r["status"] != "pass"]
    assert not lost, f"{len(lost)} of {len(chosen)} cases no longer pass:\n" + "\n".join(lost[:20])


def test_a_crash_and_a_wrong_value_fail_only_their_case(tmp_path: Path):
    script = tmp_path / "crash.py"
    script.write_text(
        f"""
import os, sys
sys.path.insert(0, {str(HERE)!r})
import numpy as np
import pool
from engines import Result
from suite import Case

def run(case, target):
    if case.name == "crash":
        os.abort()
    if case.name == "hang":
        import time; time.sleep(60)
    return Result(case.name, "pass")

pool.run_case = run
pool.START_LIMIT = 0.0
cases = {{n: Case(n, "", None, (), 0, 0) for n in ("first", "crash", "hang", "last")}}
rows = pool.run(cases, list(cases), "reference", limit=1.0)
print([(r.status, r.reason) for r in rows])
"""
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    first, crash, hang, last = eval(done.stdout)  # our own script's literal
    assert first == last == ("pass", "")
    assert crash == ("fail", "the process died: SIGABRT")
    assert hang == ("fail", "took longer than 1 s")
