"""NumPy forms of sliding windows, for the references of pools, reduce_window and convolution.  Defines no operators."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np


def dilate(x: np.ndarray, axis: int, factor: int, fill) -> np.ndarray:
    """x with factor - 1 fills between the elements of an axis."""
    if factor == 1:
        return x
    shape = list(x.shape)
    shape[axis] = max((shape[axis] - 1) * factor + 1, 0)
    out = np.full(shape, fill, x.dtype)
    out[(slice(None),) * axis + (slice(None, None, factor),)] = x
    return out


def pad(x: np.ndarray, padding: Sequence[tuple[int, int]], fill) -> np.ndarray:
    """x with (low, high) fills at the ends of each axis; negative ones remove elements."""
    grow = [(max(low, 0), max(high, 0)) for low, high in padding]
    x = np.pad(x, grow, constant_values=fill) if any(map(any, grow)) else x
    return x[
        tuple(slice(max(-low, 0), max(n - max(-high, 0), 0)) for n, (low, high) in zip(x.shape, padding, strict=True))
    ]


def steps(offset: int, count: int, stride: int) -> slice:
    """The `count` places from `offset` on, `stride` apart."""
    return slice(offset, offset + (count - 1) * stride + 1 if count else offset, stride)


def along_axis(ufunc, x: np.ndarray, axis: int, out: int, window: int, stride: int, dilation: int, start) -> np.ndarray:
    """Each of `out` windows along one axis of the padded x combined by a ufunc, from `start` on."""
    before = (slice(None),) * axis
    shape = (*x.shape[:axis], out, *x.shape[axis + 1 :])
    y = np.full(shape, start, x.dtype)
    for k in range(window):
        ufunc(y, x[(*before, steps(k * dilation, out, stride))], out=y)
    return y


def offsets(window: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Places within a window, row-major."""
    return itertools.product(*(range(w) for w in window))


def best_places(
    x: np.ndarray, outs: Sequence[int], window, strides, dilations, padding, least: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The greatest (or least) element inside x of each window over all axes, and its flat index.

    The index is -1 where the window holds nothing of x.  NaN is preferred, then the first in row-major order.
    """
    flat = np.arange(x.size).reshape(x.shape)
    values, places = np.zeros(outs, x.dtype), np.full(outs, -1)
    padded, where = pad(x, padding, 0), pad(flat, padding, -1)
    grow = [(0, max(0, (o - 1) * s + (w - 1) * d + 1 - n)) if o else (0, 0)
            for o, s, w, d, n in zip(outs, strides, window, dilations, padded.shape, strict=True)]  # fmt: skip
    padded, where = pad(padded, grow, 0), pad(where, grow, -1)
    for offset in offsets(window):
        at = tuple(steps(k * d, o, s) for k, d, o, s in zip(offset, dilations, outs, strides, strict=True))
        value, place = padded[at], where[at]
        better = value < values if least else value > values
        wins = (place >= 0) & ((places < 0) | (better & (values == values)) | ((value != value) & (values == values)))
        values, places = np.where(wins, value, values), np.where(wins, place, places)
    return values, places


def correlate(
    x: np.ndarray, w: np.ndarray, strides: Sequence[int], padding: Sequence[tuple[int, int]], dilations: Sequence[int],
    groups: int,
) -> np.ndarray:  # fmt: skip
    """Convolution of x[N, G * I, spatial..] with w[G * O, I, kernel..], one matrix product a kernel element.

    Both have the type to compute in.
    """
    kernel = w.shape[2:]
    x = pad(x, [(0, 0), (0, 0), *padding], 0)
    outs = [max((n - ((k - 1) * d + 1)) // s + 1, 0)
            for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True)]  # fmt: skip
    n, channels, places = x.shape[0], w.shape[1], int(np.prod(outs))
    w = w.reshape(groups, w.shape[0] // groups, channels, *kernel)
    y = np.zeros((n, groups, w.shape[1], places), x.dtype)
    for offset in offsets(kernel):
        at = tuple(steps(k * d, o, s) for k, d, o, s in zip(offset, dilations, outs, strides, strict=True))
        part = np.ascontiguousarray(x[(slice(None), slice(None), *at)]).reshape(n, groups, channels, places)
        at_kernel: Any = (..., *offset)
        row = w[at_kernel]
        y += row * part if channels == 1 else np.matmul(np.ascontiguousarray(row), part)
    return y.reshape(n, groups * w.shape[1], *outs)
