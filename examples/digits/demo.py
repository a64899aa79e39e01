"""digits.onnx through irc: import, save, load, compile for XLA, MLX and ONNX Runtime, compare; what `make demo` runs.

Uses irc's public interface only.  Exits with status 1 where a target is less accurate than it should be, or where
two disagree on a label.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnxruntime
from rich.console import Console
from rich.table import Table

import irc

HERE = Path(__file__).resolve().parent
MODEL = HERE / "digits.onnx"
TARGETS = {"xla": "irc -> XLA", "mlx": "irc -> MLX", "onnx": "irc -> ONNX Runtime"}
ORIGINAL = "ONNX Runtime alone"
LEAST_ACCURACY = 0.95
TOLERANCE = 1e-5  # float32 sums of 512 products in another order; probabilities are at most 1
REPEATS = 50


class Measured(NamedTuple):
    probabilities: np.ndarray  # f32[batch, 10]
    first_call: float  # seconds, compilation for this batch size included
    median: float  # seconds of a later call, NumPy in and out


def held_out() -> tuple[np.ndarray, np.ndarray]:
    """The images that training never saw, f32[360,1,8,8] in [0, 1], and their labels."""
    with np.load(HERE / "digits.npz") as archive:
        chosen = archive["held_out"]
        return archive["images"][chosen][:, None].astype(np.float32) / 16, archive["labels"][chosen]


def measure(call: Callable[[np.ndarray], np.ndarray], images: np.ndarray) -> Measured:
    start = time.perf_counter()
    probabilities = call(images)
    first_call = time.perf_counter() - start
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call(images)
        times.append(time.perf_counter() - start)
    return Measured(probabilities, first_call, statistics.median(times))


def excerpt(source: str, start: str, lines: int = 14) -> str:
    """`lines` lines of the emitted code from the first one that contains `start`, long ones (constants) cut."""
    text = source.splitlines()
    first = next((number for number, line in enumerate(text) if start in line), 0)
    shown = [line if len(line) <= 110 else line[:107] + "..." for line in text[first : first + lines]]
    rest = len(text) - first - len(shown)
    return "\n".join(shown) + (f"\n  ... {rest} more lines" if rest > 0 else "")


def main() -> int:
    console = Console(highlight=False)
    images, labels = held_out()

    model = irc.import_onnx(MODEL)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder) / "digits.ir"
        irc.save(model, saved)
        console.print(f"{MODEL.name}: {MODEL.stat().st_size} bytes -> {saved.name}: {saved.stat().st_size} bytes\n")
        # The loaded model maps its weights from the file, so everything below happens while the folder exists.
        model = irc.load(saved)
        executables = {}
        measured = {}
        for target, title in TARGETS.items():
            with console.status(f"{title}: compiling and running"):
                executable = irc.compile(model, target=target)
                measured[title] = measure(lambda x, run=executable: run(x).by_name["probabilities"], images)
            executables[target] = executable
        sources = {target: executables[target].source for target in ("xla", "mlx")}

    session = onnxruntime.InferenceSession(MODEL, providers=["CPUExecutionProvider"])
    measured[ORIGINAL] = measure(lambda x: session.run(["probabilities"], {"image": x})[0], images)

    console.print("[bold]StableHLO for XLA[/bold]")
    console.print(excerpt(sources["xla"], "func.func public @main"), markup=False, soft_wrap=True)
    console.print("\n[bold]Python for MLX[/bold]")
    console.print(excerpt(sources["mlx"], "def main"), markup=False, soft_wrap=True)

    expected = measured[ORIGINAL].probabilities
    table = Table(
        title=f"\n{len(labels)} held-out images in one batch",
        caption=f"median of {REPEATS} calls, NumPy in and out; max diff from {ORIGINAL}",
    )
    table.add_column("runs on", no_wrap=True)
    for column in ("accuracy", "first call", "median", "max diff", "other labels"):
        table.add_column(column, justify="right")
    failures = []
    for title, run in measured.items():
        found = run.probabilities.argmax(1)
        accuracy = float((found == labels).mean())
        difference = float(np.abs(run.probabilities - expected).max())
        differing = int((found != expected.argmax(1)).sum())
        cells = [f"{accuracy:.4f}", f"{run.first_call * 1e3:.0f} ms", f"{run.median * 1e3:.2f} ms"]
        cells += ["-", "-"] if title == ORIGINAL else [f"{difference:.1e}", str(differing)]
        table.add_row(title, *cells)
        if accuracy < LEAST_ACCURACY:
            failures.append(f"{title}: accuracy {accuracy:.4f} is below {LEAST_ACCURACY}")
        if differing:
            failures.append(f"{title}: {differing} labels differ from those of {ORIGINAL}")
        if not difference <= TOLERANCE:
            failures.append(f"{title}: probabilities differ by {difference:.1e}, more than {TOLERANCE:.0e}")
    console.print(table)
    for failure in failures:
        console.print(f"[bold red]failed[/bold red]  {failure}")
    if not failures:
        console.print("[bold green]All targets give the same labels.[/bold green]")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
