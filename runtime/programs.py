"""The programs of one executable by their sizes: each made once, whoever asks; when there are many, some go."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable

from .backend import Program

Dims = tuple[tuple[str, int], ...]
"""Sizes of the entry's dims, by symbol; empty for a shape-polymorphic program."""


class Programs:
    """At most `capacity` programs; the one that has not been used for longest goes first."""

    def __init__(self, capacity: int) -> None:
        self.lock = threading.Lock()
        self._capacity = capacity
        self._kept: OrderedDict[Dims, Program] = OrderedDict()
        self.in_flight: dict[Dims, threading.Lock] = {}
        self.touch = self._kept.move_to_end
        """Note that the program for these sizes is used; KeyError if there is none."""

    def all(self) -> dict[Dims, Program]:
        """A copy of the table, the one used last at the end."""
        return dict(self._kept)

    def get(self, key: Dims, make: Callable[[Dims], Program], dropped: Callable[[Dims], None]) -> Program:
        """The program for these sizes.  One thread makes it, others that want it wait.

        `dropped` is told, under the lock, for which sizes a program had to go.
        """
        with self.lock:
            program = self._kept.get(key)
            if program is not None:
                self._kept.move_to_end(key)
                return program
            flight = self.in_flight.setdefault(key, threading.Lock())
        with flight:
            program = self._kept.get(key)
            try:
                if program is None:
                    program = make(key)
            finally:
                with self.lock:
                    if program is not None:
                        self._keep(key, program, dropped)
                    if self.in_flight.get(key) is flight:
                        del self.in_flight[key]
            return program

    def _keep(self, key: Dims, program: Program, dropped: Callable[[Dims], None]) -> None:
        """Under the lock: enter a program, and let others go if there are too many."""
        self._kept[key] = program
        self._kept.move_to_end(key)
        while len(self._kept) > self._capacity:
            gone, _ = self._kept.popitem(last=False)
            dropped(gone)
