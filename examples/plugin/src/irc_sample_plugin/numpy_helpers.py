"""Functions that emitted NumPy code may need; their source is copied into it."""

import numpy as np


def windows(x, sizes, strides, dilations, padding, fill):
    """x[..] padded -> windows of it [.., places.., sizes..]."""
    low_high = [(max(low, 0), max(high, 0)) for low, high in padding]
    x = np.pad(x, low_high, constant_values=fill)
    crop = tuple(slice(max(-low, 0), n - max(-high, 0)) for (low, high), n in zip(padding, x.shape, strict=True))
    x = x[crop]
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(sizes, dilations, strict=True)]
    every = np.lib.stride_tricks.sliding_window_view(x, reach)
    return every[tuple(slice(None, None, s) for s in (*strides, *dilations))]


def convolution(x, w, strides, padding, dilations, groups):
    """x[N, C, H, W], w[O, C/groups, h, w] -> [N, O, H', W']"""
    ones = (1, 1)
    none = ((0, 0), (0, 0))
    patches = windows(x, (*ones, *w.shape[2:]), (*ones, *strides), (*ones, *dilations), (*none, *padding), 0)
    n, c, height, width = patches.shape[:4]
    patches = patches.reshape(n, groups, c // groups, height, width, *w.shape[2:])
    kernels = w.reshape(groups, -1, *w.shape[1:])
    return np.einsum("ngchwij,gocij->ngohw", patches, kernels, optimize=True).reshape(n, -1, height, width)
