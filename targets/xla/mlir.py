"""MLIR's Python bindings as jax hands them out, in one place and typed Any, because they carry no usable types."""

from __future__ import annotations

from typing import Any

import jax.extend.mlir
import jax.extend.mlir.dialects
import jax.interpreters.mlir
from jax.extend.mlir import ir as _ir
from jax.extend.mlir.dialects import chlo as _chlo
from jax.extend.mlir.dialects import func as _func
from jax.extend.mlir.dialects import stablehlo as _stablehlo

ir: Any = _ir
hlo: Any = _stablehlo
chlo: Any = _chlo
func: Any = _func


def context() -> Any:
    """A context of its own with all dialects loaded; it owns the attributes made in it, so drop it with the module."""
    return jax.interpreters.mlir.make_ir_context()
