"""`irc passes`: the passes, their options and what they do."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import click

from . import options


@click.command("passes")
@click.argument("name", required=False)
@options.JSON
def command(name: str | None, as_json: bool) -> None:
    """List passes with their options, or explain one."""
    from ..passes import DEFAULT, all_passes, get_pass
    from ..passes.manager import load_plugins

    broken = [] if name else load_plugins()
    chosen = [get_pass(name)] if name else list(all_passes())
    rows: list[dict[str, Any]] = [
        {
            "name": p.name,
            "level": str(p.level),
            "options": {f.name.replace("_", "-"): _default(f) for f in dataclasses.fields(p)},
            "doc": inspect.cleandoc(p.__doc__ or ""),
        }
        for p in chosen
    ]
    if as_json:
        options.print_json({"default": DEFAULT, "passes": rows, "broken": options.broken_rows(broken)})
        return
    for row in rows:
        given = ", ".join(f"{k}={v}" for k, v in row["options"].items())
        click.echo(f"{row['name']}{'{' + given + '}' if given else ''}  [up to level {row['level']}]")
        lines = row["doc"].splitlines()
        for line in lines if name else lines[:1]:
            click.echo(f"    {line}" if line else "")
    options.print_broken(broken)
    if not name:
        click.echo(f"default pipeline: {DEFAULT}")


def _default(field: dataclasses.Field[Any]) -> str:
    return "required" if field.default is dataclasses.MISSING else str(field.default).lower()
