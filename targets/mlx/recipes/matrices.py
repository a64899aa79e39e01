"""Recipes for exact integer products: MLX multiplies matrices of floats only."""

import mlx.core as mx


def _matmul_small(a, b, dtype):
    """a @ b of 8-bit integers, exact: float32 products over at most 1024 terms, added as int32."""
    total = None
    for k in range(0, max(a.shape[-1], 1), 1024):
        part = a[..., k : k + 1024].astype(mx.float32) @ b[..., k : k + 1024, :].astype(mx.float32)
        part = part.astype(mx.int32)
        total = part if total is None else total + part
    return total.astype(dtype)


def _matmul_integer(a, b, dtype):
    """a @ b of integers, wrapping in dtype: one sum of products for each index that is contracted in blocks."""
    total = mx.zeros(mx.broadcast_shapes(a.shape[:-2], b.shape[:-2]) + (a.shape[-2], b.shape[-1]), dtype)
    a, b = a.astype(dtype), b.astype(dtype)
    block = max(1, (1 << 22) // max(total.size, 1))
    for k in range(0, a.shape[-1], block):
        part = a[..., :, k : k + block, None] * b[..., None, k : k + block, :]
        total = total + part.sum(axis=-2).astype(dtype)
    return total


def _conv_integer(x, w, stride, padding, dilation, input_dilation, groups, flip, dtype):
    """mx.conv_general of 8-bit integers, exact: float32 over at most 1024 terms at a time, added as int32."""
    taps = 1
    for n in w.shape[1:-1]:
        taps *= n
    total = None
    if groups == 1:
        step = max(1, 1024 // max(taps, 1))
        cuts = [(c, min(c + step, w.shape[-1])) for c in range(0, w.shape[-1], step)]
    else:
        cuts = [(0, w.shape[-1])]
    for low, high in cuts:
        part = mx.conv_general(
            x[..., low:high].astype(mx.float32) if groups == 1 else x.astype(mx.float32),
            w[..., low:high].astype(mx.float32),
            stride=stride, padding=padding, kernel_dilation=dilation, input_dilation=input_dilation, groups=groups, flip=flip,
        )  # fmt: skip
        part = mx.round(part).astype(mx.int32)
        total = part if total is None else total + part
    return total.astype(dtype)


def _solve_triangular(a, b, lower, unit):
    """x with a @ x = b, row by row; only the named triangle of a is read."""
    n = a.shape[-1]
    rows = [None] * n
    for i in range(n) if lower else range(n - 1, -1, -1):
        row = b[..., i : i + 1, :]
        for j in range(i) if lower else range(i + 1, n):
            row = row - a[..., i : i + 1, j : j + 1] * rows[j]
        rows[i] = row if unit else row / a[..., i : i + 1, i : i + 1]
    return mx.concatenate(rows, axis=-2) if n else b


def _cholesky(a):
    """The lower triangle L with L @ L^H = a, column by column; NaN where a is not positive definite."""
    n = a.shape[-1]
    columns = []
    for j in range(n):
        column = a[..., :, j]
        for c in columns:
            column = column - c * mx.conjugate(c[..., j : j + 1])
        pivot = column[..., j : j + 1]
        root = mx.sqrt(pivot)
        below = mx.arange(n) >= j
        columns.append(mx.where(below, column / root, 0))
    if not n:
        return a
    out = mx.stack(columns, axis=-1)
    bad = mx.any(mx.isnan(mx.abs(out)), axis=(-1, -2), keepdims=True)
    return mx.where(bad & (mx.arange(n)[:, None] >= mx.arange(n)), float("nan"), out)
