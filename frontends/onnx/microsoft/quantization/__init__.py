"""ONNX Runtime's quantized operators: element by element, products, packed weights, attention, experts."""

from . import attention, experts, linear, packed, products

__all__ = ["attention", "experts", "linear", "packed", "products"]
