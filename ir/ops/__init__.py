"""Definitions of all operators, one file a family.  Importing this package fills the table in `ir.operators`."""

from . import (
    attention,
    control,
    convolution,
    elementwise,
    fft,
    indexing,
    linalg,
    normalization,
    quantization,
    recurrent,
    reduction,
    resize,
    sequence,
    shape,
    sort,
    window,
)

__all__ = [
    "attention", "control", "convolution", "elementwise", "fft", "indexing", "linalg", "normalization", "quantization",
    "recurrent", "reduction", "resize", "sequence", "shape", "sort", "window",
]  # fmt: skip
