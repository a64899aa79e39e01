"""Operators of ai.onnx.ml: models that are no neural networks, and how their features are encoded."""

from . import encoding, linear, svm, trees

__all__ = ["encoding", "linear", "svm", "trees"]
