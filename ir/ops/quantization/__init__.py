"""Quantization: linear quantize and dequantize, and exact integer products."""

from . import linear, products

__all__ = ["linear", "products"]
