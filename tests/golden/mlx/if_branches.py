"""MLX code of if_branches, written by irc."""

import mlx.core as mx


def main(x, training):
    """x: f32[B,8], training: bool[] -> y: f32[B,8]"""
    scaled = x * 2.0
    if training.item():
        y = scaled - scaled.mean(axis=1, keepdims=True)
    else:
        y = mx.tanh(scaled)
    return y
