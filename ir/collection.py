"""Pausing Python's cyclic garbage collector around work that makes many objects and little garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """No automatic collection inside; afterwards the collector is as it was found.  Nests; also a decorator.

    Graphs are cyclic and live long: each full collection walks all of them and frees next to nothing, so that the time
    of a pass would grow faster than the model.  Two threads at once are safe: only the one that found the collector on
    turns it on again, at worst while the other still works.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
