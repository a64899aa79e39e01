"""MLX code of depthwise_block, written by irc."""

import mlx.core as mx


def main(x, w):
    """x: f32[B,16,8,8] -> y: f32[B,16,8,8]"""
    depthwise = mx.conv2d(x.transpose(0, 2, 3, 1), w["depthwise.weight"], padding=1, groups=16)
    activated = depthwise * mx.clip(depthwise / 6 + 0.5, 0, 1)
    pointwise = mx.conv2d(activated, w["pointwise.weight"]) + w["pointwise.bias"]
    y = x + pointwise.transpose(0, 3, 1, 2)
    return y


def prepare(w):
    """Weights in the layout that main takes."""
    for name in ("depthwise.weight", "pointwise.weight"):
        w[name] = mx.contiguous(w[name].transpose(0, 2, 3, 1))
    return w


def load(path):
    """The weights, from a safetensors file."""
    w = mx.load(path, format="safetensors")
    return prepare(w)
