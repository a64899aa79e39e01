"""MLX code of attention, written by irc."""

import mlx.core as mx


def main(x, mask, w):
    """x: f32[B,T,32], mask: f32[B,1,T,T] -> out: f32[B,T,32]"""
    B, T = x.shape[:2]
    reshape = mx.addmm(w["query.bias"], x, w["query.weight"]).reshape(B, T, 4, 8)
    reshape_1 = mx.addmm(w["key.bias"], x, w["key.weight"]).reshape(B, T, 4, 8)
    reshape_2 = mx.addmm(w["value.bias"], x, w["value.weight"]).reshape(B, T, 4, 8)
    key_heads = reshape_1.transpose(0, 2, 1, 3)
    value_heads = reshape_2.transpose(0, 2, 1, 3)
    query_heads = reshape.transpose(0, 2, 1, 3)
    context = mx.fast.scaled_dot_product_attention(
        query_heads, key_heads, value_heads, scale=0.3535533905932738, mask=mask
    )
    out = context.transpose(0, 2, 1, 3).reshape(B, T, 32) @ w["out.weight"]
    return out


def load(path):
    """The weights, from a safetensors file."""
    w = mx.load(path, format="safetensors")
    return w
