"""Quantization: linear, exact integer products, products with packed weights, recurrent layers."""

from . import linear, packed, products, recurrent

__all__ = ["linear", "packed", "products", "recurrent"]
