"""MLX code of embedding, written by irc."""

import mlx.core as mx


def _some(i, size):
    """The indices; an error if there are any and nothing they could point to (MLX would read foreign memory)."""
    if i.size and size < 1:
        raise RuntimeError("an axis of 0 elements has none to take")
    return i


def _clamped(i, size):
    """Indices in [-size, size), negative ones counted from the end; others clamp (MLX would read foreign memory)."""
    return mx.clip(mx.where(_some(i, size) < 0, i + size, i), 0, size - 1)


def main(tokens, w):
    """tokens: i64[B,T] -> embedded: f32[B,T,16]"""
    B, T = tokens.shape
    words = mx.take(w["tokens.weight"], _clamped(tokens, 50), axis=0)
    places = mx.take(w["positions.weight"], _clamped(mx.arange(T, dtype=mx.int64), 32), axis=0)
    embedded = mx.fast.layer_norm(words + places, w["norm.weight"], w["norm.bias"], 1e-05)
    return embedded


def load(path):
    """The weights, from a safetensors file."""
    w = mx.load(path, format="safetensors")
    return w
