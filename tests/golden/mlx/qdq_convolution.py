"""MLX code of qdq_convolution, written by irc."""

import mlx.core as mx


def _to_integer(x, dtype, low, high):
    """Floats truncated to an integer type; saturates at its ends, NaN gives 0 (a plain astype is undefined there)."""
    top = float(high + 1)
    inside = mx.where((x > low) & (x < top), x, 0).astype(dtype)
    greatest = mx.array(high, dtype) if high < 1 << 63 else mx.bitwise_invert(mx.array(0, dtype))
    return mx.where(x >= top, greatest, mx.where(x <= low, mx.array(low, dtype), inside))


def main(x, w):
    """x: f32[B,3,8,8] -> y: f32[B,8,8,8]"""
    x_q = _to_integer(mx.clip(mx.round(x / 0.05) + 3.0, 0.0, 255.0), mx.uint8, 0, 255)
    x_dq = (x_q.astype(mx.int32) - 3).astype(mx.float32) * 0.05
    conv = mx.conv2d(x_dq.transpose(0, 2, 3, 1), w["w_dq"], padding=1)
    y_q = _to_integer(mx.clip(mx.round(conv / 0.1) + 3.0, 0.0, 255.0), mx.uint8, 0, 255)
    y = (y_q.astype(mx.int32) - 3).astype(mx.float32) * 0.1
    return y.transpose(0, 3, 1, 2)


def prepare(w):
    """Weights in the layout that main takes."""
    w["w_dq"] = mx.contiguous(w["w_dq"].transpose(0, 2, 3, 1))
    return w


def load(path):
    """The weights, from a safetensors file."""
    w = mx.load(path, format="safetensors")
    return prepare(w)
