"""Runs the ONNX backend suite: `run.py --target reference --select 'test_add'`; `make conformance` runs all of it.

With --write it rewrites the lists of passing cases and docs/conformance.md.  Exit status 1 if a case of --expect fails.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # with `python -P` a script's folder is not on the path

import pool  # noqa: E402
import report  # noqa: E402
import suite  # noqa: E402
from engines import ORT, TARGETS, Result  # noqa: E402

ROOT = HERE.parents[1]
PASSING = HERE / "passing"
KEPT = ROOT / "build" / "conformance"
"""The latest results of each target, so that one target can be run again without the others."""


def passing_file(target: str) -> Path:
    """Where the names of a target's passing cases are kept."""
    return PASSING / f"{target.partition('{')[0]}.txt"


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", action="append", help=f"of {', '.join(TARGETS)}; default: all")
    parser.add_argument("--select", default="", help="a regular expression that names of cases must contain")
    parser.add_argument("--names", type=Path, help="a file of case names, one a line")
    parser.add_argument("--jobs", type=int, default=1, help="worker processes")
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for one case")
    parser.add_argument("--json", type=Path, help="write the results here")
    parser.add_argument("--write", action="store_true", help="rewrite the passing lists and docs/conformance.md")
    parser.add_argument("--quiet", action="store_true", help="print totals only")
    options = parser.parse_args(arguments)
    cases = suite.load()
    names = options.names.read_text().split() if options.names else [n for n in cases if re.search(options.select, n)]
    unknown = [n for n in names if n not in cases]
    if unknown:
        print(f"the installed suite has no case {unknown[0]!r} (and {len(unknown) - 1} more)", file=sys.stderr)
        return 2
    gathered: dict[str, list[Result]] = {}
    for target in options.target or TARGETS:
        gathered[target] = _run(cases, names, target, options)
    if options.json:
        options.json.write_text(json.dumps({t: [r.row() for r in rows] for t, rows in gathered.items()}))
    if options.write:
        _write(cases, gathered)
    return 0


def _run(cases: dict[str, suite.Case], names: list[str], target: str, options: argparse.Namespace) -> list[Result]:
    started = time.monotonic()
    done = Counter[str]()

    def seen(result: Result) -> None:
        done[result.status] += 1
        if not options.quiet and result.status != "pass":
            _line(f"{target}: {result.status} {result.case}: {result.reason}")
        if sys.stdout.isatty():
            print(f"{target}: {sum(done.values())} of {len(names)}", end="\r", flush=True)

    rows = pool.run(cases, names, target, jobs=options.jobs, limit=options.limit, seen=seen)
    seconds = time.monotonic() - started
    _line(f"{target} {done['pass']}/{len(names)}  fail {done['fail']}  cannot {done['cannot']}  ({seconds:.0f} s)")
    return rows


def _line(text: str) -> None:
    print(text, flush=True)


def _write(cases: dict[str, suite.Case], gathered: dict[str, list[Result]]) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    for target, rows in gathered.items():
        path = KEPT / f"{target.partition('{')[0]}.json"
        kept = json.loads(path.read_text()) if path.exists() else {}
        kept.update({r.case: r.row() for r in rows})
        path.write_text(json.dumps(kept))
        if target != ORT:
            passing = sorted(n for n, row in kept.items() if row["status"] == "pass" and n in cases)
            passing_file(target).write_text("".join(f"{n}\n" for n in passing))
    results = {}
    for target in TARGETS:
        path = KEPT / f"{target.partition('{')[0]}.json"
        if path.exists():
            kept = json.loads(path.read_text())
            results[target] = {n: kept[n] for n in cases if n in kept}
    versions = ", ".join(f"{p} {importlib.metadata.version(p)}" for p in ("jax", "mlx", "onnxruntime", "numpy"))
    (ROOT / "docs" / "conformance.md").write_text(report.text(cases, results, versions))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
