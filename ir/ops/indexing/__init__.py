"""Operators that pick or place elements by index: take, gather, scatter and the along-axis forms."""

from . import composite, gather, selection, take

__all__ = ["composite", "gather", "selection", "take"]
