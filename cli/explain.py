"""`irc explain`: which fusions fired where, which nearly did, and what is left as several nodes, with the reasons."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import options
from .options import MODEL

if TYPE_CHECKING:
    from ..passes.pattern import Apart


@click.command("explain")
@MODEL
@click.option("--disable", multiple=True, metavar="FUSION", help="Leave a fusion out.")
@click.option("--fusion", "only", multiple=True, metavar="FUSION", help="Tell only of this fusion.")
@options.JSON
def command(model: Path, disable: tuple[str, ...], only: tuple[str, ...], as_json: bool) -> None:
    """Tell which fusions fire in a model, where, which nearly do, and what stays apart on purpose."""
    from .. import read
    from ..passes.fusions import explain
    from ..passes.pattern import get_fusion

    for name in only:
        get_fusion(name)  # a misspelt name must not pass in silence
    report = explain(read(model), disable=disable)
    fired = [f for f in report.fired if not only or f.fusion in only]
    misses = [m for m in report.misses if not only or m.fusion in only]
    if as_json:
        options.print_json(
            {
                "fusions": report.composites,
                "fired": [dataclasses.asdict(f) for f in fired],
                "near_misses": [dataclasses.asdict(m) for m in misses],
                "left_apart": [dataclasses.asdict(a) for a in report.apart],
            }
        )
        return
    held = ", ".join(f"{name} {count}" for name, count in report.composites.items())
    click.echo(f"{model}: {held or 'no composites'}")
    if fired:
        click.echo("\nfired")
        _table([(f.fusion, f.node, f"{f.matched} nodes") for f in fired])
    if misses:
        click.echo("\nnearly fired")
        for miss in misses:
            click.echo(f"  {miss.fusion} at {miss.node}: {miss.matched} nodes matched")
            click.echo(f"    at {miss.reached}: {miss.why}")
    if report.apart and not only:
        click.echo("\nrecognised and left as several nodes")
        for (name, why), nodes in _grouped(report.apart).items():
            click.echo(f"  {name} {len(nodes)}, the first at {nodes[0]}")
            click.echo(f"    {why}")


def _grouped(apart: list[Apart]) -> dict[tuple[str, str], list[str]]:
    rows: dict[tuple[str, str], list[str]] = {}
    for found in apart:
        rows.setdefault((found.name, found.why), []).append(found.node)
    return rows


def _table(rows: list[tuple[str, ...]]) -> None:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        click.echo("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
