"""`irc compile model.ir --target xla -o model.xla`: compile, write the artifact, report."""

from __future__ import annotations

from pathlib import Path

import click

from . import options
from .options import MODEL


@click.command("compile")
@MODEL
@options.target_option()
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), default=None, help="Artifact folder (default: MODEL.TARGET)."
)
@click.option(
    "--dim", "dims", multiple=True, metavar="NAME=SIZE[,SIZE]", help="Compile ahead for these sizes of a dim."
)
@click.option("--passes", "-p", default=None, help="Pipeline instead of the default one; see `irc passes`.")
@options.POLICY
@options.CACHE
@options.ENTRY
@options.JSON
def command(
    model: Path,
    target: str,
    output: Path | None,
    dims: tuple[str, ...],
    passes: str | None,
    policy: str | None,
    cache: bool,
    entry: str | None,
    as_json: bool,
) -> None:
    """Compile a model for a target and write an artifact that `irc run` takes."""
    from .. import compile as compile_model
    from ..targets import get

    backend = get(target)
    output = output or model.with_suffix(f".{backend.name}")
    sizes = options.dims(dims)
    executable = compile_model(
        model, target=backend, entry=entry, dims=sizes, passes=passes, shapes=policy or "exact", cache=cache
    )
    executable.save(output)
    report = executable.report
    if as_json:
        counts = {"compiled": executable.compile_count, "loaded": executable.load_count}
        options.print_json({"artifact": str(output), **counts, **report.as_dict()})
        return
    loaded = f", {executable.load_count} from the cache" if executable.load_count else ""
    click.echo(f"{output}: {backend.spec}, {executable.compile_count} compiled{loaded}")
    click.echo(f"  nodes      {report.nodes_before} -> {report.nodes_after}")
    click.echo(f"  constants  {report.constants}, {report.constant_bytes / 1e6:.1f} MB")
    if report.decomposed:
        click.echo("  decomposed " + ", ".join(f"{n} x{c}" for n, c in report.decomposed.items()))
    if report.bucketed:
        click.echo(f"  rounded up {', '.join(report.bucketed)}")
    for name, why in report.exact.items():
        click.echo(f"  exact      {name}: {why}")
    click.echo("  time       " + ", ".join(f"{stage} {s:.2f} s" for stage, s in report.seconds.items()))
    if executable.is_staged:
        click.echo("  runs in stages: values decide shapes, so programs are compiled at the first calls, not by --dim")
    elif executable.entry.dims and not executable.programs:
        click.echo(f"  shapes are compiled at their first run; --dim {executable.entry.dims[0]}=SIZE compiles ahead")
