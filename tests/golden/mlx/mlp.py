"""MLX code of mlp, written by irc."""

import mlx.core as mx


def main(x, w):
    """x: f32[B,16] -> probabilities: f32[B,10]"""
    fc1 = mx.addmm(w["fc1.bias"], x, w["fc1.weight"].T)
    hidden = fc1 * 0.5 * (mx.erf(fc1 * 0.70710677) + 1)
    logits = mx.addmm(w["fc2.bias"], hidden, w["fc2.weight"].T)
    probabilities = mx.softmax(logits, axis=1)
    return probabilities


def load(path):
    """The weights, from a safetensors file."""
    w = mx.load(path, format="safetensors")
    return w
