"""`irc ops`: the operators of the IR, from their definitions."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import click

from . import options

if TYPE_CHECKING:
    from ..ir.operators import Operator


@click.command("ops")
@click.argument("name", required=False)
@click.option("--family", default=None, help="Only this family.")
@options.JSON
def command(name: str | None, family: str | None, as_json: bool) -> None:
    """List operators by family, or show one's operands, attributes and meaning."""
    from ..ir import operators
    from ..ir.errors import IrcError, did_you_mean

    if family is not None and family not in operators.FAMILIES:
        raise IrcError(f"no family is called {family!r}{did_you_mean(family, operators.FAMILIES, 'irc ops')}")
    broken = [] if name else operators.load_plugins()
    chosen = [operators.get(name)] if name else [o for o in operators.all_operators() if family in (None, o.family)]
    if as_json:
        options.print_json({"operators": [_row(op) for op in chosen], "broken": options.broken_rows(broken)})
    elif name:
        _explain(chosen[0])
    else:
        current = None
        for op in chosen:
            if op.family != current:
                current = op.family
                click.echo(f"{current}:")
            click.echo(f"  {op.name:<24} {op.doc.splitlines()[0]}")
        options.print_broken(broken)


def _row(op: Operator) -> dict[str, Any]:
    return {
        "name": op.name,
        "family": op.family,
        "composite": op.is_composite,
        "operands": [
            {"name": o.name, "optional": o.optional, "variadic": o.variadic, "type": o.constraint.name}
            for o in op.operands
        ],
        "attributes": [
            {"name": n, "kind": str(k), **({} if d is dataclasses.MISSING else {"default": str(d)})}
            for n, k, d in op.fields
        ],
        "doc": op.doc,
    }


def _explain(op: Operator) -> None:
    kind = "composite" if op.is_composite else "core"
    click.echo(f"{op.name}  ({kind} operator, family {op.family}, since vocabulary {op.since})\n\n{op.doc}\n")
    for spec in op.operands:
        marks = "".join([", optional" if spec.optional else "", ", any number" if spec.variadic else ""])
        click.echo(f"  operand    {spec.name}: {spec.constraint.name}{marks}")
    for region in op.regions:
        click.echo(f"  graph      {region.name.rstrip('_')}")
    for field, kind_, default in op.fields:
        shown = "" if default is dataclasses.MISSING else f" = {default}"
        click.echo(f"  attribute  {field}: {kind_}{shown}")
