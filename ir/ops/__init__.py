"""Definitions of all operators, one file a family.  Importing this package fills the table in `ir.operators`."""

from . import (
    attention,
    classical,
    control,
    convolution,
    detection,
    elementwise,
    fft,
    indexing,
    linalg,
    normalization,
    quantization,
    random,
    recurrent,
    reduction,
    resize,
    sequence,
    shape,
    sort,
    text,
    training,
    window,
)

__all__ = [
    "attention", "classical", "control", "convolution", "detection", "elementwise", "fft", "indexing", "linalg",
    "normalization", "quantization", "random", "recurrent", "reduction", "resize", "sequence", "shape", "sort", "text",
    "training", "window",
]  # fmt: skip
