"""The lowering table of the MLX target.  Rules live in the family files and register here; `load` imports them."""

from __future__ import annotations

import importlib

from ..base import LoweringTable

TABLE = LoweringTable("mlx")
lower = TABLE.lower

_FAMILIES = (
    "elementwise", "shape", "indexing", "reduction", "window", "linalg", "convolution", "control", "sort", "fft",
    "normalization", "attention", "resize", "quantization",
)  # fmt: skip


def load() -> LoweringTable:
    """The table with every family's rules in it."""
    for family in _FAMILIES:
        importlib.import_module(f".{family}", __package__)
    return TABLE
