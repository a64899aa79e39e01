"""Recipes for exact integer products: MLX multiplies matrices of floats only."""

import math

import mlx.core as mx

from .windows import _out_shape, _places, _slid


def _matmul_small(a, b, dtype, block):
    """a @ b of 8-bit integers, exact: float32 products over at most `block` terms, added as int32."""
    parts = [
        (a[..., k : k + block].astype(mx.float32) @ b[..., k : k + block, :].astype(mx.float32)).astype(mx.int32)
        for k in range(0, max(a.shape[-1], 1), block)
    ]
    return sum(parts[1:], parts[0]).astype(dtype)


def _matmul_integer(a, b, dtype):
    """a @ b of integers, wrapping in dtype: sums of products, a block of the contracted axis at a time."""
    a, b = a.astype(dtype), b.astype(dtype)
    shape = (*mx.broadcast_shapes(a.shape[:-2], b.shape[:-2]), *a.shape[-2:-1], *b.shape[-1:])
    total = mx.zeros(shape, dtype)
    block = max(1, (1 << 22) // max(total.size, 1))
    for k in range(0, a.shape[-1], block):
        part = a[..., :, k : k + block, None] * b[..., None, k : k + block, :]
        total = total + part.sum(axis=-2).astype(dtype)
    return total


def _conv_by_taps(x, w, stride, dilation, groups, dtype, product):
    """Convolution of the padded x[N, .., C] with w[O, .., C / groups]: a product of matrices for each kernel place."""
    out = _out_shape(x.shape[1:-1], w.shape[1:-1], stride, dilation)
    step, channels, features = [1, *stride, 1], w.shape[-1], w.shape[0] // groups
    parts = []
    for g in range(groups):
        total = mx.zeros((x.shape[0], *out, features), dtype)
        for place in _places(w.shape[1:-1]):
            offset = [0, *(p * d for p, d in zip(place, dilation, strict=True)), g * channels]
            part = _slid(x, offset, [x.shape[0], *out, channels], step)
            tap = w[(slice(g * features, (g + 1) * features), *place)]
            total = total + product(part.flatten(0, -2), tap.T).reshape(total.shape)
        parts.append(total)
    return mx.concatenate(parts, axis=-1)


def _solve_triangular(a, b, lower, unit):
    """x with a @ x = b, row by row; only the named triangle of a is read."""
    n = a.shape[-1]
    x = mx.zeros((*b.shape[:-2], 0, b.shape[-1]), b.dtype)
    for i in range(n) if lower else range(n - 1, -1, -1):
        known = a[..., i : i + 1, :i] if lower else a[..., i : i + 1, i + 1 :]
        row = b[..., i : i + 1, :]
        if x.shape[-2]:
            row = row - known @ x
        row = row if unit else row / a[..., i : i + 1, i : i + 1]
        x = mx.concatenate([x, row] if lower else [row, x], axis=-2)
    return x


def _cholesky(a):
    """The lower triangle L with L @ L^H = a, column by column; NaN where a is not positive definite."""
    n = a.shape[-1]
    columns: list[mx.array] = []
    for j in range(n):
        column = a[..., :, j]
        for c in columns:
            column = column - c * mx.conjugate(c[..., j : j + 1])
        pivot = column[..., j : j + 1]
        root = mx.sqrt(pivot.real if a.dtype == mx.complex64 else pivot)
        columns.append(mx.where(mx.arange(n) >= j, column / root, 0))
    if not n:
        return a
    out = mx.stack(columns, axis=-1)
    bad = mx.any(mx.isnan(mx.abs(out)), axis=(-1, -2), keepdims=True)
    return mx.where(bad & (mx.arange(n)[:, None] >= mx.arange(n)), math.nan, out)
