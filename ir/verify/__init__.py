"""The verifier: `verify(model)` lists every breach of the rules in the table, `check(model)` raises them.

The rules live in structure.py (lists, owners, uses), nodes.py (operands, attributes, types), dims.py, functions.py and
constants.py; docs/verifier-rules.md lists them all.
"""

from __future__ import annotations

from ..errors import Diagnostic, IrcError, VerifyError, did_you_mean
from ..model import Model
from . import constants, dims, functions, nodes, structure
from .table import LEVELS, RULES, Context, Level, Rule

__all__ = ["LEVELS", "RULES", "Level", "Rule", "check", "documentation", "verify"]

RULE_MODULES = (structure, nodes, dims, functions, constants)
"""In the order of the documentation; importing them fills the table."""


def verify(model: Model, *, level: str | None = None) -> list[Diagnostic]:
    """Every breach of a rule, in the order of the model's parts; an empty list means that the model is sound.

    `level` (one of `LEVELS`) adds what holds from that level on.  When lists, owners or uses are broken only that is
    reported, as nothing else can be asked; a node's types are checked when its operands and attributes are in order.
    """
    if level is not None and level not in LEVELS:
        raise IrcError(f"no level is called {level!r}{did_you_mean(level, LEVELS)}")
    ctx = Context(model, level)
    findings = list(ctx.run(0))
    if not findings:
        findings.extend(ctx.run(1))
        findings.extend(ctx.run(2))
    return findings


def check(model: Model, *, level: str | None = None) -> None:
    """Raise VerifyError with all findings unless the model is sound."""
    findings = verify(model, level=level)
    if findings:
        raise VerifyError(findings)


def documentation() -> str:
    """The text of docs/verifier-rules.md."""
    lines = [
        "# Rules of the verifier",
        "",
        "`irc.ir.verify.verify(model)` checks these; a finding names the rule's id. The table is made from the rules'",
        "docstrings by `irc.ir.verify.documentation()`, and a test keeps the two equal. Rules of phase 0 come first:",
        "when one is broken, nothing else is checked. Rules of phase 2 skip nodes that break one of phase 1.",
    ]
    for module in RULE_MODULES:
        rows = sorted(r.id for r in RULES.values() if r.check.__module__ == module.__name__)
        title = module.__name__.rpartition(".")[2].capitalize()
        lines += ["", f"## {title}", "", "| rule | of each | phase | text |", "|---|---|---|---|"]
        lines += [f"| {i} | {RULES[i].scope} | {RULES[i].phase} | {RULES[i].text} |" for i in rows]
    return "\n".join(lines) + "\n"
