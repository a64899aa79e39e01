"""Nodes and seconds of `irc opt` beside onnxsim, onnxslim and onnxscript on the same files, in one run.

    pip install onnxsim onnxslim onnxscript
    python -P bench/node_counts.py det.onnx rec.onnx ... --runs 3

Nodes are those of the written file, sub-graphs included, constants not counted.  Seconds are the best of the runs: for
irc reading and the default pipeline, for the others their optimizer on a loaded model; loading is in all of them.
Every result is checked by onnx.checker and by ONNX Runtime loading it; `irc verify --against` compares outputs.
An optimizer that is not installed, or that fails on a file, shows its reason instead of a number.

Seconds of the others over those of irc, seven published models (two cores, both busy): onnxsim x0.4 to x0.9, onnxslim
x2.8 to x11, onnxscript x1.5 to x7.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
import onnx
import onnxruntime
from rich.console import Console
from rich.table import Table

import irc


def _irc(path: Path) -> Callable[[], onnx.ModelProto]:
    model = irc.run_passes(irc.import_onnx(path))

    def export() -> onnx.ModelProto:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "model.onnx"
            irc.save(model, out)
            return onnx.load(out)

    return export


def _onnxsim(path: Path) -> Callable[[], onnx.ModelProto]:
    import onnxsim

    model, _ = onnxsim.simplify(onnx.load(path))
    return lambda: model


def _onnxslim(path: Path) -> Callable[[], onnx.ModelProto]:
    import onnxslim

    model = onnxslim.slim(onnx.load(path))
    return lambda: model


def _onnxscript(path: Path) -> Callable[[], onnx.ModelProto]:
    import onnxscript.optimizer

    model = onnxscript.optimizer.optimize(onnx.load(path))
    return lambda: model


OPTIMIZERS = {"irc": _irc, "onnxsim": _onnxsim, "onnxslim": _onnxslim, "onnxscript": _onnxscript}


def count(graph: onnx.GraphProto) -> int:
    """Nodes of a graph and its sub-graphs that are no Constant."""
    inner = sum(count(a.g) for n in graph.node for a in n.attribute if a.type == onnx.AttributeProto.GRAPH)
    return inner + sum(node.op_type != "Constant" for node in graph.node)


def measure(optimize: Callable[[Path], Callable[[], onnx.ModelProto]], path: Path, runs: int) -> str:
    """`nodes, seconds` of one optimizer on one file, or why there is none."""
    best = float("inf")
    try:
        for _ in range(runs):
            started = time.perf_counter()
            result = optimize(path)
            best = min(best, time.perf_counter() - started)
        model = result()
        onnx.checker.check_model(model)
        quiet = onnxruntime.SessionOptions()
        quiet.log_severity_level = 4
        onnxruntime.InferenceSession(model.SerializeToString(), quiet, providers=["CPUExecutionProvider"])
    except Exception as error:  # what another optimizer raises is part of the table
        return f"{type(error).__name__}: {str(error).splitlines()[0][:40]}"
    return f"{count(model.graph)}  {best:.2f} s"


@click.command()
@click.argument("models", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--runs", default=3, show_default=True, type=click.IntRange(1))
def main(models: tuple[Path, ...], runs: int) -> None:
    """Print nodes and seconds of every optimizer on every model."""
    table = Table("model", "nodes before", *OPTIMIZERS)
    for path in models:
        before = str(count(onnx.load(path, load_external_data=False).graph))
        table.add_row(path.stem, before, *(measure(optimize, path, runs) for optimize in OPTIMIZERS.values()))
    Console().print(table)


if __name__ == "__main__":
    main()
