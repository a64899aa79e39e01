"""`irc import model.onnx -o model.ir`."""

from __future__ import annotations

from pathlib import Path

import click

from .options import MODEL


@click.command("import")
@MODEL
@click.option("--output", "-o", type=click.Path(path_type=Path), default=None, help="Default: the name with .ir.")
def command(model: Path, output: Path | None) -> None:
    """Import an ONNX model and write it as a model.ir container."""
    from .. import import_onnx, save

    output = output or model.with_suffix(".ir")
    imported = import_onnx(model)
    save(imported, output)
    nodes = sum(1 for _ in imported.nodes())
    click.echo(f"{output}: {nodes} nodes, {len(imported.constants)} constants")
