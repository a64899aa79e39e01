"""Times of calls, side by side in one run: rounds in which every contender is called once, in alternating order."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..ir.errors import InputError, IrcError
from ..runtime.executable import Executable
from ..targets.base import Target

Call = Callable[[], object]
WARM_CALLS = 2
"""Calls of each contender before the rounds."""


@dataclass(frozen=True)
class Times:
    """Seconds of each call, in the order of the rounds."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def percentile(self, percent: float) -> float:
        """The least time that is at or above so many percent of all."""
        ordered = sorted(self.seconds)
        return ordered[max(0, math.ceil(percent / 100 * len(ordered)) - 1)]

    def as_dict(self) -> dict[str, float]:
        """For `--json`, in seconds."""
        return {"median": self.median, "p10": self.percentile(10), "p90": self.percentile(90)}


def seconds_of(call: Call) -> float:
    """How long one call takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def interleaved(
    calls: Mapping[str, Call], runs: int, *, rounds: Callable[[range], Iterable[int]] = iter
) -> dict[str, Times]:
    """Times of `runs` rounds.  Odd rounds go backwards, so that none always follows the same other one.

    `rounds` may wrap the numbers of the rounds, to show progress.
    """
    if runs < 1:
        raise InputError(f"runs must be positive, got {runs}")
    for call in calls.values():
        for _ in range(WARM_CALLS):
            call()
    found: dict[str, list[float]] = {name: [] for name in calls}
    for number in rounds(range(runs)):
        for name in list(calls) if number % 2 == 0 else reversed(list(calls)):
            found[name].append(seconds_of(calls[name]))
    return {name: Times(tuple(seconds)) for name, seconds in found.items()}


def ratio(times: Times, base: Times) -> float:
    """The median of the ratios, round by round, to another contender of the same run."""
    return statistics.median(a / b for a, b in zip(times.seconds, base.seconds, strict=True))


@dataclass
class Contender:
    """One thing to call again and again.

    `call` is the work itself, on arrays that are where it wants them, and waits for its end; `copy_in` and `copy_out`
    move inputs and outputs, None where there is nothing to move.
    """

    name: str
    call: Call
    ready_seconds: float
    """Time until it can be called: reading, passes, claims of a target."""
    first_seconds: float
    """Time of the first call, compilation included."""
    copy_in: Call | None = None
    copy_out: Call | None = None
    memory: int | None = None
    """Bytes on the device at the peak of a call, weights included, if that is known."""
    times: dict[str, Times] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """For `--json`; times in seconds."""
        return {
            "name": self.name,
            "ready": self.ready_seconds,
            "first_call": self.first_seconds,
            **{part: times.as_dict() for part, times in self.times.items()},
            "memory_bytes": self.memory,
        }


def of_executable(name: str, executable: Executable, target: Target, feeds: Sequence[Any], ready: float) -> Contender:
    """An executable of irc on NumPy inputs; its first call, here, compiles."""
    first = seconds_of(lambda: executable(*feeds))
    if not feeds or not all(isinstance(a, np.ndarray) and a.dtype != object for a in feeds):
        return Contender(name, lambda: executable(*feeds), ready, first)
    placed = [target.to_device(a) for a in feeds]
    target.wait(placed)

    def call() -> Sequence[Any]:
        results = executable(*placed)
        target.wait(results)
        return results

    results = call()
    programs = list(executable.programs.values())
    out = Contender(name, call, ready, first, memory=target.memory(programs[-1], call) if programs else None)
    if any(a is not b for a, b in zip(placed, feeds, strict=True)):
        out.copy_in = lambda: target.wait([target.to_device(a) for a in feeds])
        out.copy_out = lambda: [target.to_numpy(r) for r in results if target.dtype_of(r) is not None]
    return out


def of_onnxruntime(path: Path, feeds: Mapping[str, Any], name: str = "onnxruntime") -> Contender:
    """ONNX Runtime on the file itself, all its optimizations on, on the CPU."""
    import onnxruntime as ort

    settings = ort.SessionOptions()
    settings.log_severity_level = 3

    def opened() -> Any:
        return ort.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])

    try:
        started = time.perf_counter()
        session = opened()
        ready = time.perf_counter() - started
        first = seconds_of(lambda: session.run(None, feeds))
    except Exception as error:  # ONNX Runtime raises classes of its own without a common public base
        raise IrcError(f"{path}: ONNX Runtime cannot run it: {error}") from error
    return Contender(name, lambda: session.run(None, feeds), ready, first)


def measure(
    contenders: Sequence[Contender], runs: int, *, rounds: Callable[[range], Iterable[int]] = iter
) -> Sequence[Contender]:
    """Fill in the times of all contenders: calls interleaved, then copies."""
    for name, times in interleaved({c.name: c.call for c in contenders}, runs, rounds=rounds).items():
        next(c for c in contenders if c.name == name).times["call"] = times
    for contender in contenders:
        copies = {"copy_in": contender.copy_in, "copy_out": contender.copy_out}
        contender.times.update(interleaved({k: v for k, v in copies.items() if v is not None}, runs))
    return contenders
