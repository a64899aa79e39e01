"""Writes docs/conformance.md from the results of all targets: totals, a row an operator, what is left and why."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence

from suite import Case, version

Rows = Mapping[str, Mapping[str, str]]
"""Case name to a result's fields."""

STATUSES = ("pass", "fail", "cannot")
TITLES = {"onnxruntime": "ONNX Runtime alone", "onnx": "onnx (irc, then ONNX Runtime)"}
SHOWN = 12
"""Case names listed for one reason; the rest is counted."""


def text(cases: Mapping[str, Case], results: Mapping[str, Rows], versions: str) -> str:
    """The whole document."""
    lines = [
        "# Conformance: the ONNX backend suite",
        "",
        "Written by `make conformance`; do not edit.  Every case of the backend suite that the onnx package ships,",
        "strict on shape, element type and value with the suite's own tolerances.  *fail*: a wrong result, an error or",
        "a crash; *cannot*: refused, with a reason.  ONNX Runtime by itself ran in the same process pool.  *on host*:",
        "passes, but the host runs an operator between programs of the target (reading integers that decide shapes and",
        "choosing a branch do not count); those cases are listed by name below.",
        "",
        f"Measured with {version()}; {versions}.",
        "",
        *_totals(cases, results),
        "",
        "## By operator",
        "",
        "Passing cases of all cases; *n on host*: as above.",
        "",
        *_operators(cases, results),
        "",
    ]
    for target, rows in results.items():
        if target != "onnxruntime":
            lines += _left(target, rows)
    for target, rows in results.items():
        if any(row.get("host") for row in rows.values()):
            lines += _on_host(target, rows)
    return "\n".join(lines).rstrip() + "\n"


def totals(rows: Rows) -> dict[str, int]:
    """How many cases have each status."""
    return {s: sum(r["status"] == s for r in rows.values()) for s in STATUSES}


def _title(target: str) -> str:
    return TITLES.get(target, target)


def _totals(cases: Mapping[str, Case], results: Mapping[str, Rows]) -> list[str]:
    out = ["| target | pass | of them on host | fail | cannot | of |", "|---|---:|---:|---:|---:|---:|"]
    for target, rows in results.items():
        passed, failed, refused = totals(rows).values()
        host = sum(bool(row.get("host")) for row in rows.values())
        out.append(f"| {_title(target)} | {passed} | {host} | {failed} | {refused} | {len(rows)} |")
    return out


def _operators(cases: Mapping[str, Case], results: Mapping[str, Rows]) -> list[str]:
    groups: dict[str, list[str]] = defaultdict(list)
    for case in cases.values():
        groups[case.operator].append(case.name)
    out = [
        "| operator | cases | " + " | ".join(_title(t) for t in results) + " |",
        "|---|---:|" + "---:|" * len(results),
    ]
    for operator, names in sorted(groups.items(), key=lambda g: (g[0].startswith("("), g[0].lower())):
        cells = [_cell(names, rows) for rows in results.values()]
        out.append(f"| {operator} | {len(names)} | " + " | ".join(cells) + " |")
    return out


def _cell(names: Sequence[str], rows: Rows) -> str:
    statuses = [rows[n]["status"] for n in names if n in rows]
    passed = statuses.count("pass")
    parts = [f"{statuses.count(s)} {s}" for s in ("fail", "cannot") if s in statuses]
    if host := sum(bool(rows[n].get("host")) for n in names if n in rows):
        parts.append(f"{host} on host")
    return ("all" if passed == len(names) else str(passed)) + (f" ({', '.join(parts)})" if parts else "")


def _left(target: str, rows: Rows) -> list[str]:
    """Cases that do not pass, by reason, the commonest first."""
    groups: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, row in rows.items():
        if row["status"] != "pass":
            groups[row["status"], general(row["reason"])].append(name)
    out = [f"## What is left on {_title(target)}", ""]
    if not groups:
        return [*out, "Nothing.", ""]
    out += ["| cases | | reason | names |", "|---:|---|---|---|"]
    for (status, reason), names in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        listed = ", ".join(n.partition("/")[2].removeprefix("test_") for n in names[:SHOWN])
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        out.append(f"| {len(names)} | {status} | {reason.replace('|', chr(92) + '|')} | {listed}{more} |")
    return [*out, ""]


def _on_host(target: str, rows: Rows) -> list[str]:
    """Passing cases in which the host runs operators, by operators."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, row in rows.items():
        if row.get("host"):
            groups[row["host"]].append(name.partition("/")[2].removeprefix("test_"))
    out = [f"## On host with {_title(target)}", "", "| cases | operators on the host | names |", "|---:|---|---|"]
    for operators, names in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0])):
        out.append(f"| {len(names)} | {operators} | {', '.join(sorted(names))} |")
    return [*out, ""]


def general(reason: str) -> str:
    """A reason without what differs from case to case: node names, numbers of elements, values."""
    reason = re.sub(r"\(version (\d+); (?:1 node,|\d+ nodes, first) '[^']*'\)", r"(version \1)", reason)
    reason = re.sub(r"^\S+: error\[(\w+)\]: ", "", reason)
    reason = re.sub(r"\d+ of \d+ elements differ, first at .*", "values differ", reason)
    return reason[:200]
