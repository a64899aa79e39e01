"""`irc opt`: run passes over a model."""

from __future__ import annotations

import time
from pathlib import Path

import click

from . import options
from .options import MODEL


@click.command("opt")
@MODEL
@click.option(
    "--passes",
    "-p",
    "pipeline",
    default=None,
    help="Pipeline such as 'canonicalize,cse,dce' (default: the default one).",
)
@click.option(
    "--output", "-o", type=click.Path(path_type=Path), default=None, help="Write .ir or .onnx; else print text."
)
@click.option("--opset", type=int, default=None, help="Operator set of a written .onnx: 21 (default) to 28.")
@click.option("--verify-each", is_flag=True, help="Verify the model after every pass.")
@click.option("--print-after", multiple=True, metavar="PASS", help="Print the model after this pass.")
@click.option("--print-changed", is_flag=True, help="Print the model after every pass that changed it.")
@click.option("--disable", multiple=True, metavar="PASS", help="Leave a pass out.")
@options.JSON
def command(
    model: Path,
    pipeline: str | None,
    output: Path | None,
    opset: int | None,
    verify_each: bool,
    print_after: tuple[str, ...],
    print_changed: bool,
    disable: tuple[str, ...],
    as_json: bool,
) -> None:
    """Optimize a model and write or print it."""
    from .. import read, save
    from ..ir.clone import clone_model
    from ..ir.errors import IrcError
    from ..ir.text import print_model
    from ..passes import DEFAULT, PipelineReport, parse_pipeline, run_pipeline
    from ..passes.fusions import composites_in

    if output is not None and output.suffix not in (".ir", ".onnx"):
        raise IrcError(f"{output}: expected a file ending in .ir or .onnx")
    if opset is not None and (output is None or output.suffix != ".onnx"):
        raise click.UsageError("--opset is for an output (-o) ending in .onnx")
    parsed = parse_pipeline(DEFAULT if pipeline is None else pipeline)
    started = time.perf_counter()
    work = clone_model(read(model))
    imported = time.perf_counter() - started
    before = sum(1 for _ in work.nodes())
    report = PipelineReport()
    started = time.perf_counter()
    run_pipeline(
        work,
        parsed,
        verify_each=verify_each,
        print_after=print_after,
        print_changed=print_changed,
        disable=disable,
        report=report,
    )
    passed = time.perf_counter() - started
    after = sum(1 for _ in work.nodes())
    if output is not None:
        save(work, output, opset=opset)
    if as_json:
        options.print_json(
            {
                "nodes_before": before,
                "nodes_after": after,
                "fusions": composites_in(work),
                "seconds": {"import": imported, "passes": passed},
            }
        )
    elif output is None:
        click.echo(print_model(work), nl=False)
    else:
        click.echo(str(report))
        click.echo(f"{output}: nodes {before} -> {after}; import {imported:.2f} s, passes {passed:.2f} s")
