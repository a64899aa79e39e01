"""Writes docs/operators.md from the tables: operators of ONNX that are read, and operators of the IR with their rules.

    python -P tests/operator_tables.py --write      (make docs)
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import onnx.defs

from irc.frontends.onnx import registry
from irc.frontends.onnx.signature import FROM_ONNX_NAMES
from irc.ir.operators import Operator, Trait, all_operators
from irc.targets.base import LoweringTable
from irc.targets.mlx.lowering import TABLE as MLX
from irc.targets.mlx.lowering import load as load_mlx
from irc.targets.onnx.lowering import TABLE as ONNX
from irc.targets.xla.lowering import TABLE as XLA
from irc.targets.xla.lowering import load as load_xla

PATH = Path(__file__).resolve().parents[1] / "docs" / "operators.md"
NAMES = {"": "ai.onnx"}


def text() -> str:
    """The whole document."""
    load_mlx()
    load_xla()
    import irc.targets.onnx.target  # noqa: F401  # its rules

    return "\n".join(["# Operators", "", *_introduction(), "", *_onnx(), *_ir()]).rstrip() + "\n"


def _introduction() -> list[str]:
    return [
        "Written by `make docs` from the tables of handlers, definitions and lowering rules; do not edit. What the",
        "backend suite says of each operator stands in [conformance.md](conformance.md), the edges in",
        "[semantics.md](semantics.md).",
        "",
        f"ONNX as of onnx {onnx.__version__} (operator set {onnx.defs.onnx_opset_version()}).",
    ]


# ---------------------------------------------------------------------------------------------------- what is imported


def _onnx() -> list[str]:
    """One table a domain."""
    schemas: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for schema in onnx.defs.get_all_schemas_with_history():
        schemas[schema.domain][schema.name].append(schema)
    lines = [
        "## ONNX operators",
        "",
        "*versions*: the operator's own versions, as ranges of operator sets; *read by*: the family of the handler, or",
        "the function body that the specification gives (`body`). *types*: what the newest version allows for its",
        "first operand.",
        "",
    ]
    for domain in sorted({d for d, _ in registry.handled()} | set(schemas)):
        names = sorted({t for d, t in registry.handled() if d == domain} | set(schemas.get(domain, {})))
        lines += [f"### {NAMES.get(domain, domain)}", ""]
        lines += ["| operator | versions | read by | types |", "|---|---|---|---|"]
        lines += [_onnx_row(domain, name, schemas.get(domain, {}).get(name, [])) for name in names]
        lines.append("")
    return lines


def _onnx_row(domain: str, name: str, schemas: list[Any]) -> str:
    versions = sorted(s.since_version for s in schemas)
    if not versions:
        entries = registry.known(domain, name)
        return f"| {name} | 1- | {_family(entries[0])} | |"
    readers: dict[str, list[str]] = {}
    for i, version in enumerate(versions):
        until = versions[i + 1] - 1 if i + 1 < len(versions) else None
        span = str(version) if until == version else f"{version}-{until or ''}"
        readers.setdefault(_reader(domain, name, version, schemas), []).append(span)
    newest = max(schemas, key=lambda s: s.since_version)
    spans = "; ".join(", ".join(s) for s in readers.values())
    return f"| {name} | {spans} | {'; '.join(readers)} | {_types(newest)} |"


def _reader(domain: str, name: str, version: int, schemas: list[Any]) -> str:
    entry = registry.find(domain, name, version)
    if entry is not None:
        return _family(entry)
    schema = next(s for s in schemas if s.since_version == version)
    if schema.has_function or schema.has_context_dependent_function:
        return "body"
    return "no one: deprecated" if schema.deprecated else "no one"


def _family(entry: registry.Entry) -> str:
    return str(entry.function.__module__).partition("frontends.onnx.")[2].replace("microsoft.", "")


def _types(schema: Any) -> str:
    """IR element types of the first operand (of the first result where there is none)."""
    formal = next(iter(schema.inputs), None) or next(iter(schema.outputs), None)
    if formal is None:
        return ""
    found = {t.partition("tensor(")[2].rstrip(")") for t in formal.types}
    dtypes = {str(FROM_ONNX_NAMES[t]) for t in found if t in FROM_ONNX_NAMES}
    other = {t.partition("(")[0] for t in formal.types if not t.startswith("tensor(")}
    return ", ".join([*sorted(dtypes, key=_order), *sorted(other)])


def _order(name: str) -> tuple[str, int]:
    digits = "".join(c for c in name if c.isdigit())
    return name.rstrip("0123456789"), int(digits or 0)


# ------------------------------------------------------------------------------------------------------- what there is


def _ir() -> list[str]:
    """One table a family."""
    lines = [
        "## Operators of the IR",
        "",
        "*native*: the target has a rule for it; *some*: a rule for some operands or attributes, else it is",
        "decomposed or refused with the reason; *decomposed*: into operators the target has; *-*: neither; *host*,",
        "*before*: run by the host, or gone before a target sees it. *vjp*: a derivative of its own, or through its",
        "decomposition (*by parts*). Every operator has a reference in NumPy.",
        "",
    ]
    families: dict[str, list[Operator]] = defaultdict(list)
    for op in all_operators():
        families[op.family].append(op)
    for family, ops in families.items():
        lines += [f"### {family}", "", "| operator | operands | xla | mlx | onnx | vjp |", "|---|---|---|---|---|---|"]
        for op in sorted(ops, key=lambda o: o.name):
            cells = [_lowered(op, table) for table in (XLA, MLX, ONNX)]
            vjp = "yes" if op.vjp is not None else "by parts" if op.is_composite else "-"
            lines.append(f"| `{op.name}` | {_operands(op)} | {' | '.join(cells)} | {vjp} |")
        lines.append("")
    return lines


def _operands(op: Operator) -> str:
    """`x: a numeric type, bias?: ...`; long ones keep names only."""
    shown = [f"{o.name}{'...' if o.variadic else ''}{'?' if o.optional else ''}" for o in op.operands]
    kinds = {o.constraint.name for o in op.operands}
    return f"{', '.join(shown)}: {kinds.pop()}" if len(kinds) == 1 else ", ".join(shown)


def _lowered(op: Operator, table: LoweringTable) -> str:
    if Trait.LATE in op.traits or Trait.HOST in op.traits:
        return "before" if Trait.LATE in op.traits else "host"
    entry = table.find(op.name)
    if entry is not None:
        return "some" if entry.when is not None else "native"
    return "decomposed" if op.is_composite else "-"


def main(arguments: list[str]) -> int:
    made = text()
    if "--write" in arguments:
        PATH.write_text(made)
        print(f"{PATH}: {len(made.splitlines())} lines")
        return 0
    print(made, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
