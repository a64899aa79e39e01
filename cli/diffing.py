"""`irc diff a b`: what differs between two models."""

from __future__ import annotations

from pathlib import Path

import click

from . import options


@click.command("diff")
@click.argument("a", type=click.Path(path_type=Path))
@click.argument("b", type=click.Path(path_type=Path))
@options.JSON
def command(a: Path, b: Path, as_json: bool) -> int:
    """Compare two models (.ir or .onnx) by structure, attributes and constants.  Exits 1 if they differ."""
    from .. import read
    from ..ir.compare import diff

    differences = diff(read(a), read(b))
    if as_json:
        options.print_json({"equal": not differences, "differences": [str(d) for d in differences]})
    else:
        for difference in differences:
            click.echo(str(difference))
        click.echo(f"{len(differences)} differences" if differences else "equal")
    return 1 if differences else 0
