"""MLX code of resize_concat, written by irc."""

import mlx.core as mx


def main(coarse, fine):
    """coarse: f32[B,4,H,W], fine: f32[B,2,2*H,2*W] -> merged: f32[B,6,2*H,2*W]"""
    up = mx.repeat(mx.repeat(coarse, 2, axis=2), 2, axis=3)
    merged = mx.concatenate([up, fine], axis=1)
    return merged
