"""`irc view`: a page that shows a model's graphs and what each pass replaced in them."""

from __future__ import annotations

from pathlib import Path

import click

from .options import MODEL


@click.command("view")
@MODEL
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), default=None, help="The page (default: MODEL with .html)."
)
@click.option(
    "--passes",
    "-p",
    "pipeline",
    default=None,
    help="Pipeline to step through (default: the default one; '' for none).",
)
def command(model: Path, output: Path | None, pipeline: str | None) -> None:
    """Write a page, to be opened in a browser, that shows a model's graphs before and after every pass."""
    from .. import read
    from ..ir.clone import clone_model
    from ..ir.errors import IrcError
    from ..passes import DEFAULT, parse_pipeline
    from .view import page, record

    output = model.with_suffix(".html") if output is None else output
    if output.suffix.lower() not in (".html", ".htm"):
        raise IrcError(f"{output}: expected a file ending in .html")
    data = record(clone_model(read(model)), parse_pipeline(DEFAULT if pipeline is None else pipeline))
    content = page(data)
    partial = output.with_name(f".{output.name}.partial")
    partial.write_bytes(content)
    partial.replace(output)
    stages, nodes = data["stages"], data["stages"][0]["nodes"]
    changing = sum(1 for stage in stages if stage["changes"])
    click.echo(
        f"{output}: {nodes} nodes, {len(stages) - 1} passes of which {changing} changed it, {len(content) >> 10} KiB"
    )
