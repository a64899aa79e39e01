"""Elementwise operators: arithmetic, comparison, logic, conversion, and ONNX's activations.

Operands broadcast as NumPy's do.  Integer arithmetic wraps.  Floats follow IEEE 754; subnormals may be flushed to zero
by a target.  Where no `infer` is written the result has the operands' common element type and their broadcast dims.
"""

from . import activation, binary, composite, convert, transcendental, unary

__all__ = ["activation", "binary", "composite", "convert", "transcendental", "unary"]
