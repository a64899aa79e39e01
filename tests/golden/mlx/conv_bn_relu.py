"""MLX code of conv_bn_relu, written by irc."""

import mlx.core as mx


def main(image, w):
    """image: f32[B,3,16,16] -> features: f32[B,8,8,8]"""
    bn = mx.conv2d(image.transpose(0, 2, 3, 1), w["conv.weight.folded"], stride=2, padding=1) + w["conv.bias.folded"]
    features = mx.maximum(bn, 0.0)
    return features.transpose(0, 3, 1, 2)


def prepare(w):
    """Weights in the layout that main takes."""
    w["conv.weight.folded"] = mx.contiguous(w["conv.weight.folded"].transpose(0, 2, 3, 1))
    return w


def load(path):
    """The weights, from a safetensors file."""
    w = mx.load(path, format="safetensors")
    return prepare(w)
