"""ONNX Runtime's attention and positions, brought to the composites that ONNX's own operators become."""

from . import decoding, grouped, merged, positions
from .merged import with_past

__all__ = ["decoding", "grouped", "merged", "positions", "with_past"]
