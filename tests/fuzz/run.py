"""Differential fuzzing: `python -P tests/fuzz/run.py --minutes 10` (make fuzz MINUTES=10); a failing graph is printed.

A graph is named by its seed, so that one found here is repeated by `--seed NAME`.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import sys
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any


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
    "sign Mod "  # zeros lose their sign
    "LRN "  # what slides out of a sum leaves NaN behind
    "RNN GRU LSTM".split()  # activations limit NaN
)
"""Operators that ONNX Runtime computes otherwise, as docs/semantics.md says; not judged there."""


class Found(AssertionError):
    """A graph on which a target and the reference differ: its text and inputs."""


STEPS = 3000
"""Nodes that one evaluation may take: a loop may count to 2^63."""


class TooLong(Exception):
    """A graph with a loop that nobody waits for."""


@dataclass(frozen=True)
class Graph:
    """A model and calls of it: sizes for its symbols, inputs."""

    model: Any
    calls: tuple[tuple[dict[str, int], list[Any]], ...]


def graph(seed: str, *, leaves: bool = False) -> Graph:
    draw = Random(seed)
    symbol = draw.choice([None, None, None, 2, 3, 4])
    grower = generate.Grower(draw, generate.candidates(), leaves=leaves, symbol=symbol)
    model = grower.grow(draw.choice([1, 1, 2, 3, 5, 8, 12]))
    sizes = [{"N": n} for n in ((symbol, symbol + 2, 1) if symbol and model.main.dims else (1,))]
    sizes = [d for d in sizes if all(a.substitute(d).holds() is not False for a in model.main.assumptions)]
    calls = [(d, generate.contents(draw, model, grower.small, d["N"])) for d in sizes]
    return Graph(model, tuple(calls) if model.main.outputs else ())


def _evaluated(model: Any, inputs: list[Any], make: Any = None) -> Any:
    """What the reference gives; None where it reports an error (an index out of range and the like)."""
    from irc.ir.errors import IrcError
    from irc.ir.reference import Evaluator

    count = itertools.count()

    def trace(node: Any, results: Any) -> None:
        if next(count) > STEPS:
            raise TooLong

    try:
        return (make or Evaluator)(model, trace=trace).call(model.main, inputs)
    except (IrcError, TooLong):
        return None


def check_target(seed: str, target: str) -> None:
    """Found if a node's results are wrong on the target; operators that it refuses pass."""
    import irc
    from irc.ir.errors import UnsupportedError

    drawn = graph(seed)
    known = ONNX_RUNTIME if target == "onnx" else frozenset()
    compiled = None
    for dims, inputs in drawn.calls:
        if _evaluated(drawn.model, inputs) is None:
            continue
        try:
            compiled = compiled or irc.compile(drawn.model, target=target, passes="")
            outputs = compiled(*inputs)
        except UnsupportedError:
            return
        except irc.IrcError as error:
            if "cannot pass" in str(error):  # ONNX Runtime's Python interface has no bf16
                return
            raise Found(_report(seed, target, str(error)[:600], drawn.model, inputs)) from error
        if (reason := judge.fault(drawn.model, inputs, outputs, known, dims)) is not None:
            raise Found(_report(seed, target, reason, drawn.model, inputs))


def check_passes(seed: str) -> None:
    """Found if the default pipeline, or a few passes in any order, change what the reference computes.

    Floats may change by sixteen times what roundings anywhere in the graph change.
    """
    from irc.passes import DEFAULT

    drawn = graph(seed, leaves=True)
    if all(_evaluated(drawn.model, inputs) is None for _, inputs in drawn.calls):
        return  # made for no size at all, by assumptions that contradict each other, or too long
    draw = Random(seed)
    others = "canonicalize lower-loops fold cse dce fuse sink-transposes batch-norm cond-to-if outline inline".split()
    chosen = [draw.choice(others) for _ in range(draw.choice([1, 2, 3]))]
    chosen.sort(key=lambda name: name == "outline")  # it must come after those that make composites
    for pipeline in (DEFAULT, ",".join(chosen)):
        check_pipeline(seed, drawn, pipeline)


def check_pipeline(seed: str, drawn: Graph, pipeline: str) -> None:
    from irc.passes import PassError, run_passes

    try:
        better = run_passes(drawn.model, pipeline, verify_each=True)
    except PassError as error:
        raise Found(_report(seed, pipeline, str(error)[:600], drawn.model, drawn.calls[0][1])) from error
    for _, inputs in drawn.calls:
        before = _evaluated(drawn.model, inputs)
        if before is None:
            continue
        after = _evaluated(better, inputs)
        if after is None:
            raise Found(_report(seed, pipeline, "an error afterwards", drawn.model, inputs))
        shaken = [
            _evaluated(drawn.model, inputs, lambda m, trace, i=i: judge.Shaken(m, i, trace=trace)) for i in range(4)
        ]
        if None in shaken:
            continue
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            if (reason := judge.differs(b, a, [s[i] for s in shaken])) is not None:
                raise Found(_report(seed, pipeline, f"output {i}: {reason}", drawn.model, inputs))


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
