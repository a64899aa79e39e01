"""Runs cases in worker processes, so that one that crashes or hangs ends its worker and not the run."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from engines import Result, run_case
from suite import Case

START_LIMIT = 60.0
"""Seconds that a worker's first case may take on top: it imports the target."""


@dataclass
class _Worker:
    """A forked process that holds the cases already, and the case it has in hand."""

    process: Any
    connection: Connection
    case: str = ""
    deadline: float = 0.0
    fresh: bool = True

    def give(self, case: str, limit: float) -> None:
        self.case = case
        self.deadline = time.monotonic() + limit + (START_LIMIT if self.fresh else 0.0)
        self.fresh = False
        self.connection.send(case)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def run(
    cases: dict[str, Case],
    names: Sequence[str],
    target: str,
    *,
    jobs: int = 1,
    limit: float = 30.0,
    seen: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Results of the named cases on a target, in the order of `names`; `limit` seconds are a case's time."""
    queue = iter(names)
    out = {}
    for result in _results(cases, queue, target, jobs, limit):
        seen(result)
        out[result.case] = result
    return [out[n] for n in names]


def _results(cases: dict[str, Case], queue: Iterator[str], target: str, jobs: int, limit: float) -> Iterator[Result]:
    workers: list[_Worker] = []
    idle = [_start(cases, target) for _ in range(jobs)]
    while True:
        while idle and (name := next(queue, None)) is not None:
            worker = idle.pop()
            worker.give(name, limit)
            workers.append(worker)
        if not workers:
            break
        ready = wait(
            [w.connection for w in workers], timeout=max(0, min(w.deadline for w in workers) - time.monotonic())
        )
        for worker in list(workers):
            if worker.connection in ready:
                result = _received(worker)
            elif time.monotonic() > worker.deadline:
                result = Result(worker.case, "fail", f"took longer than {limit:g} s")
            else:
                continue
            workers.remove(worker)
            if isinstance(result, Result):
                worker.end()
                worker = _start(cases, target)
                yield result
            else:
                yield Result(**result)
            idle.append(worker)
    for worker in idle:
        worker.end()


def _received(worker: _Worker) -> Any:
    """The row that a worker sends, or the result of a case that killed it."""
    try:
        return worker.connection.recv()
    except EOFError:
        worker.process.join()
        code = worker.process.exitcode
        how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
        return Result(worker.case, "fail", f"the process died: {how}")


def _start(cases: dict[str, Case], target: str) -> _Worker:
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(cases, target, theirs), daemon=True)
    process.start()
    theirs.close()
    return _Worker(process, ours)


def _serve(cases: dict[str, Case], target: str, connection: Connection) -> None:
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)  # engines print warnings by themselves; results go through the pipe
    sys.setrecursionlimit(3000)
    while True:
        try:
            name = connection.recv()
        except EOFError:
            return
        connection.send(run_case(cases[name], target).row())
