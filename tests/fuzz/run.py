"""Differential fuzzing: `python -P tests/fuzz/run.py --minutes 10` (make fuzz MINUTES=10); a failing graph is printed.

A graph is named by its seed, so that one found here is repeated by `--seed NAME`.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import traceback
from pathlib import Path
from random import Random
from typing import Any

import numpy as np


def _load(name: str) -> Any:
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"fuzz_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


generate, judge = _load("generate"), _load("judge")
TARGETS = ("xla", "mlx{compile=off}", "onnx")
ONNX_RUNTIME = frozenset(
    "reduce ReduceMax ReduceMin MaxPool GlobalMaxPool Hardmax ReduceLogSumExp "  # pass over NaN
    "ReduceSum ReduceProd ReduceMean ReduceL1 ReduceSumSquare "  # integers in floating point
    "sign Mod".split()  # zeros lose their sign
)
"""Operators that ONNX Runtime computes otherwise, as docs/semantics.md says; not judged there."""


class Found(AssertionError):
    """A graph on which a target and the reference differ: its text and inputs."""


def graph(seed: str) -> tuple[Any, list[Any]]:
    draw = Random(seed)
    model = generate.Grower(draw, generate.candidates()).grow(draw.choice([1, 1, 2, 3, 5, 8, 12]))
    return model, generate.contents(draw, model)


def check_target(seed: str, target: str) -> None:
    """Found if a node's results are wrong on the target; operators that it refuses pass."""
    import irc
    from irc.ir.errors import UnsupportedError
    from irc.ir.reference import evaluate

    model, inputs = graph(seed)
    if not model.main.outputs:
        return
    try:
        evaluate(model, inputs)
    except irc.IrcError:
        return  # an index out of range and the like: an error on the reference
    try:
        outputs = irc.compile(model, target=target, passes="")(*inputs)
    except UnsupportedError:
        return
    except irc.IrcError as error:
        if "cannot pass" in str(error):  # ONNX Runtime's Python interface has no bf16
            return
        raise
    known = ONNX_RUNTIME if target == "onnx" else frozenset()
    if (reason := judge.fault(model, inputs, outputs, known)) is not None:
        raise Found(_report(seed, target, reason, model, inputs))


def check_passes(seed: str) -> None:
    """Found if the default pipeline changes what the reference computes by more than roundings."""
    from irc.ir.errors import IrcError
    from irc.ir.reference import evaluate
    from irc.passes import run_passes

    model, inputs = graph(seed)
    if not model.main.outputs:
        return
    try:
        before = evaluate(model, inputs)
    except IrcError:
        return
    better = run_passes(model, verify_each=True)
    after = evaluate(better, inputs)
    for i, (a, b) in enumerate(zip(before, after, strict=True)):
        wide_a, wide_b = (np.asarray(v).astype(np.complex128) for v in (a, b))
        with np.errstate(all="ignore"):
            size = np.abs(np.where(np.isfinite(wide_a), wide_a, 0)).max(initial=0)
            eps = judge._eps(a.dtype) if judge._is_float(a.dtype) or a.dtype.kind == "c" else 0
            near = np.abs(wide_a - wide_b) <= 256 * eps * size
            same = (wide_a == wide_b) | (np.isnan(wide_a) & np.isnan(wide_b)) | near
        if not same.all():
            raise Found(_report(seed, "passes", f"output {i}: {judge._spelled(~same, b, a)}", model, inputs))


def _report(seed: str, target: str, reason: str, model: Any, inputs: list[Any]) -> str:
    from irc.ir.text import print_model

    shown = "\n".join(f"x{i} = {x.dtype} {x.tolist()}" for i, x in enumerate(inputs))
    return f"seed {seed} on {target}: {reason}\n{print_model(model)}\n{shown}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--start", default="long", help="names of the graphs begin with this")
    parser.add_argument("--seed", help="one graph only")
    parser.add_argument("--target", action="append")
    options = parser.parse_args()
    until, number, found = time.monotonic() + 60 * options.minutes, 0, 0
    while time.monotonic() < until:
        seed = options.seed or f"{options.start}.{number}"
        number += 1
        for target in options.target or (*TARGETS, "passes"):
            try:
                check_passes(seed) if target == "passes" else check_target(seed, target)
            except Found as fault:
                found += 1
                print(f"{fault}\n", flush=True)
            except Exception as error:  # whatever breaks off is a find
                found += 1
                where = traceback.extract_tb(error.__traceback__)[-1]
                print(f"seed {seed} on {target}: {type(error).__name__}: {str(error)[:500]} ({where})\n", flush=True)
        if options.seed:
            break
    print(f"{number} graphs, {found} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
