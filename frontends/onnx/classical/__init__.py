"""ONNX operators of the domain ai.onnx.ml."""

from . import features, models, trees

__all__ = ["features", "models", "trees"]
