"""Elementwise operators of the MLX target."""

from . import arithmetic, bits, composite

__all__ = ["arithmetic", "bits", "composite"]
