"""`irc targets`: what can be compiled for, and whether it is installed here."""

from __future__ import annotations

import click

from . import options


@click.command("targets")
@click.option("--devices", is_flag=True, help="Ask each installed target for its devices (imports it).")
@options.JSON
def command(devices: bool, as_json: bool) -> None:
    """List targets, what they need and their devices."""
    from .. import targets

    rows = []
    more, broken = targets.plugin_names()
    for name in (*targets.names(), *more):
        missing = targets.missing(name)
        row = {"name": name, "about": targets.describe(name), "missing": missing}
        if devices and not missing:
            row["devices"] = list(targets.get(name).devices())
        rows.append(row)
    if as_json:
        options.print_json({"targets": rows, "broken": options.broken_rows(broken)})
        return
    for row in rows:
        state = f"needs {', '.join(row['missing'])}" if row["missing"] else "installed"
        found = f"; devices {', '.join(row['devices'])}" if "devices" in row else ""
        click.echo(f"{row['name']:<10} {row['about']} ({state}{found})")
    options.print_broken(broken)
