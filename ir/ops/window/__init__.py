"""Operators over sliding windows: reduce_window, select_and_scatter, and ONNX's pools."""

from . import core, pools, unfolded
from .core import windows
from .pools import ceil_padding

__all__ = ["ceil_padding", "core", "pools", "unfolded", "windows"]
