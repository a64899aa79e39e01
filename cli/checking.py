"""`irc check`: everything that is wrong with a model or that a target cannot do, at once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import click

from . import options
from .options import MODEL


@click.command("check")
@MODEL
@options.target_option(multiple=True)
@options.JSON
def command(model: Path, target: tuple[str, ...], as_json: bool) -> int:
    """Verify a model and list every operator that cannot be imported or that a target cannot run."""
    from ..ir.verify import verify

    rows: list[dict[str, Any]] = []
    if model.suffix == ".onnx":
        from ..frontends.onnx import check_onnx

        rows.extend(
            {
                "stage": "import",
                "operator": f"{r.domain}.{r.operator}" if r.domain else r.operator,
                "count": r.count,
                "first": r.first_node,
                "reason": r.reason,
            }
            for r in check_onnx(model)
        )
    if not rows:
        from .. import load, read

        loaded = load(model, verify=False) if model.suffix == ".ir" else read(model)
        rows.extend(
            {"stage": "verify", "operator": d.where, "count": 1, "first": d.where, "reason": f"[{d.rule}] {d.message}"}
            for d in verify(loaded)
        )
        for name in target if not rows else ():
            rows.extend(_refusals(loaded, name))
    if as_json:
        options.print_json({"model": str(model), "findings": rows})
    elif not rows:
        from ..passes.special import is_special

        host = ", or on the host between its programs" if any(map(is_special, loaded.nodes())) else ""
        claimed = f"; every node runs on {', '.join(target)}{host}" if target else ""
        click.echo(f"{model}: fine{claimed}")
    else:
        for row in rows:
            click.echo(f"{row['stage']}: {row['operator']} x{row['count']}, first {row['first']}: {row['reason']}")
        counts = Counter(row["stage"] for row in rows)
        click.echo(f"{model}: " + ", ".join(f"{n} findings at {stage}" for stage, n in counts.items()))
    return 1 if rows else 0


def _refusals(model: Any, name: str) -> list[dict[str, Any]]:
    """What legalizing for a target would refuse.  What the host does between programs of the target is no refusal."""
    from ..ir.clone import clone_model
    from ..passes.legalize import try_legalize
    from ..passes.special import is_special
    from ..targets import get

    work = clone_model(model)
    _, refused = try_legalize(work, get(name))
    on_host = {n.op.name for n in work.nodes() if is_special(n)}
    on_target = {n.op.name for n in work.nodes() if not is_special(n)}
    return [
        {"stage": name, "operator": r.operator, "count": r.count, "first": r.first, "reason": r.reason}
        for r in refused
        if r.operator not in on_host or r.operator in on_target
    ]
