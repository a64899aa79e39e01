"""Operators that only move or make elements by position: reshape, transpose, broadcast, slice, pad, iota and kin."""

from . import composite, make, move

__all__ = ["composite", "make", "move"]
