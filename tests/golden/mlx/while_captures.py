"""MLX code of while_captures, written by irc."""

import mlx.core as mx


def main(matrix, steps):
    """matrix: f32[4,4], steps: i32[] -> power: f32[4,4]"""
    eye = mx.eye(4, 4, dtype=mx.float32)
    count, power = mx.array(0, mx.int32), eye
    for _ in range(steps.item()):
        next_i = count + 1
        product = power @ matrix
        count, power = next_i, product
    return power
