"""Operators over sliding windows: reduce_window, select_and_scatter, and ONNX's pools."""

from . import core, pools

__all__ = ["core", "pools"]
