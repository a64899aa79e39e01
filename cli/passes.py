"""`irc passes`: the passes, their options and what they do."""

from __future__ import annotations

import click

from . import options


@click.command("passes")
@click.argument("name", required=False)
@options.JSON
def command(name: str | None, as_json: bool) -> None:
    """List passes with their options, or explain one."""
    from ..passes import DEFAULT
    from ..passes.manager import all_passes, get_pass

    chosen = [get_pass(name)] if name else list(all_passes())
    if as_json:
        options.print_json(
            {"default": DEFAULT, "passes": [{"name": p.name, "level": p.level.name.lower(), "options": p.option_defaults(), "doc": p.doc()} for p in chosen]}
        )
        return
    for p in chosen:
        given = ", ".join(f"{k}={v}" for k, v in p.option_defaults().items())
        click.echo(f"{p.name}{'{' + given + '}' if given else ''}  [{p.level.name.lower()}]")
        lines = p.doc().splitlines()
        for line in lines if name else lines[:1]:
            click.echo(f"    {line}" if line else "")
    if not name:
        click.echo(f"default pipeline: {DEFAULT}")
