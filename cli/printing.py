"""`irc print`: a model as text."""

from __future__ import annotations

from pathlib import Path

import click

from .options import MODEL


@click.command("print")
@MODEL
@click.option("--function", "only", default=None, help="Print one function only.")
@click.option("--locations", is_flag=True, help="Show which source nodes and rewrites each node comes from.")
def command(model: Path, only: str | None, locations: bool) -> None:
    """Print a model (.ir or .onnx) in the text form of the IR."""
    from .. import read
    from ..ir.errors import IrcError, did_you_mean
    from ..ir.text import print_function, print_model

    loaded = read(model)
    if only is None:
        click.echo(print_model(loaded, locations=locations), nl=False)
        return
    if only not in loaded.functions:
        raise IrcError(f"{model} has no function {only!r}{did_you_mean(only, loaded.functions)}")
    click.echo(print_function(loaded.functions[only], locations=locations), nl=False)
