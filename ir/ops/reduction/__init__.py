"""Operators that combine elements along axes: reduce and ONNX's reductions, ArgMax/ArgMin, cumulative sums."""

from . import along, reduce
from .reduce import reduced

__all__ = ["along", "reduce", "reduced"]
