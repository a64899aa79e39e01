"""Activations of recurrent layers: their parameters, NumPy forms and builder forms.  Defines no operators."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

PARAMETERS: dict[str, tuple[float | None, float | None]] = {
    "Affine": (1.0, 0.0), "Elu": (1.0, None), "HardSigmoid": (0.2, 0.5), "LeakyRelu": (0.01, None),
    "Relu": (None, None), "ScaledTanh": (1.0, 1.0), "Sigmoid": (None, None), "Softplus": (None, None),
    "Softsign": (None, None), "Tanh": (None, None), "ThresholdedRelu": (1.0, None),
}  # fmt: skip
"""Names of the activations, with the defaults of alpha and beta, None where one is not taken."""

Activation = tuple[str, float, float]
"""Name, alpha, beta; a parameter that is not taken is 0."""


def activations(
    names: Sequence[str], alphas: Sequence[float], betas: Sequence[float], each: int, directions: int
) -> list[list[Activation]]:
    """`each` activations a direction.  The lists fill the parameters of those activations that take one, in order."""
    rest = [list(alphas), list(betas)]
    out = []
    for name in names:
        values = [
            0.0 if d is None else (left.pop(0) if left else d) for d, left in zip(PARAMETERS[name], rest, strict=True)
        ]
        out.append((name, values[0], values[1]))
    out *= directions if len(out) == each else 1
    return [out[i * each : (i + 1) * each] for i in range(directions)]


def on_arrays(activation: Activation) -> Callable[[np.ndarray], np.ndarray]:
    """The activation as a function of a float array."""
    name, alpha, beta = activation
    table: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "Affine": lambda x: alpha * x + beta,
        "Elu": lambda x: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0))),
        "HardSigmoid": lambda x: np.clip(alpha * x + beta, 0, 1),
        "LeakyRelu": lambda x: np.where(x >= 0, x, alpha * x),
        "Relu": lambda x: np.maximum(x, 0),
        "ScaledTanh": lambda x: alpha * np.tanh(beta * x),
        "Sigmoid": lambda x: 1 / (1 + np.exp(-x)),
        "Softplus": lambda x: np.logaddexp(x, 0),
        "Softsign": lambda x: x / (1 + np.abs(x)),
        "Tanh": np.tanh,
        "ThresholdedRelu": lambda x: np.where(x > alpha, x, 0),
    }
    return table[name]


def on_values(activation: Activation) -> Callable[[Any, Any], Any]:
    """The activation as a function of a builder and a value."""
    name, alpha, beta = activation
    return {
        "Affine": lambda b, x: b.add(b.multiply(x, alpha), beta),
        "Elu": lambda b, x: b.Elu(x, alpha=alpha),
        "HardSigmoid": lambda b, x: b.HardSigmoid(x, alpha=alpha, beta=beta),
        "LeakyRelu": lambda b, x: b.LeakyRelu(x, alpha=alpha),
        "Relu": lambda b, x: b.Relu(x),
        "ScaledTanh": lambda b, x: b.multiply(b.tanh(b.multiply(x, beta)), alpha),
        "Sigmoid": lambda b, x: b.logistic(x),
        "Softplus": lambda b, x: b.Softplus(x),
        "Softsign": lambda b, x: b.Softsign(x),
        "Tanh": lambda b, x: b.tanh(x),
        "ThresholdedRelu": lambda b, x: b.ThresholdedRelu(x, alpha=alpha),
    }[name]


def limited_array(clip: float, x: np.ndarray) -> np.ndarray:
    """x limited to [-clip, clip]; clip 0 limits nothing."""
    return np.clip(x, -clip, clip) if clip > 0 else x


def limited(b: Any, clip: float, x: Any) -> Any:
    """As `limited_array`."""
    return b.clamp(b.constant(-clip, x.dtype), x, b.constant(clip, x.dtype)) if clip > 0 else x


def gate_arrays(row: Sequence[Activation], clips: Sequence[float]) -> list[Callable[[np.ndarray], np.ndarray]]:
    """Activations of arrays limited by their clip."""
    return [partial(_on_limited_array, on_arrays(a), clip) for a, clip in zip(row, clips, strict=True)]


def _on_limited_array(function: Callable[[np.ndarray], np.ndarray], clip: float, x: np.ndarray) -> np.ndarray:
    return function(limited_array(clip, x))


def gate_values(row: Sequence[Activation], clips: Sequence[float]) -> list[Callable[[Any, Any], Any]]:
    """Activations of values limited by their clip; called with a builder and a value."""
    return [partial(_on_limited_value, on_values(a), clip) for a, clip in zip(row, clips, strict=True)]


def _on_limited_value(function: Callable[[Any, Any], Any], clip: float, b: Any, x: Any) -> Any:
    return function(b, limited(b, clip, x))
