"""How PadMode pads one axis: by slices where one period provably is enough, else by computed indices."""

import numpy as np

from ... import dims as sizes
from ... import dtypes
from .positions import size_scalar, sliced


def padded_by_mode(x, low, high, mode):
    """NumPy's pad of an array (of any element type), after cropping."""
    crop = tuple(slice(max(-l, 0), d - max(-h, 0)) for l, h, d in zip(low, high, x.shape, strict=True))
    x = x[crop]
    for axis, (l, h) in enumerate(zip(low, high, strict=True)):
        if max(l, h) > 0:
            x = np.take(
                x, source_indices(np, np.arange(-max(l, 0), x.shape[axis] + max(h, 0)), x.shape[axis], mode), axis
            )
    return x


def source_indices(xp, index, size, mode):
    """For positions relative to the first element, the index in [0, size) that is shown there."""
    if mode == "edge":
        return xp.clip(index, 0, size - 1)
    if mode == "wrap":
        return index % size
    period = max(2 * (size - 1), 1)
    phase = index % period
    return xp.minimum(phase, 2 * (size - 1) - phase) if size > 1 else phase * 0


def pad_axis(b, x, axis, low, high, mode):
    """The decomposition of PadMode for one axis."""
    dim = x.dims[axis]
    x = sliced(b, x, axis, sizes.maximum(-low, 0), dim - sizes.maximum(-high, 0))
    low, high, dim = sizes.maximum(low, 0), sizes.maximum(high, 0), x.dims[axis]
    least = 1 if mode == "edge" else dim - 1 if mode == "reflect" else dim
    if mode == "edge" or all(sizes.less_equal(size, least) for size in (low, high)):
        ends = _ENDS[mode](b, x, axis, low, high, dim)
        parts = [end for end in (ends[0], x, ends[1]) if end.dims[axis] != 0]
        return b.concatenate(tuple(parts), axis=axis) if len(parts) > 1 else x
    return b.take(x, _indices(b, low, dim + low + high, dim, mode), axis=axis)


def _reflect(b, x, axis, low, high, dim):
    parts = sliced(b, x, axis, 1, low + 1), sliced(b, x, axis, dim - 1 - high, dim - 1)
    return tuple(b.reverse(part, axes=(axis,)) for part in parts)


def _edge(b, x, axis, low, high, dim):
    def repeated(start, count):
        dims = x.dims[:axis] + (count,) + x.dims[axis + 1 :]
        return b.broadcast_in_dim(
            sliced(b, x, axis, start, start + 1), dims=dims, broadcast_dimensions=tuple(range(x.rank))
        )

    return repeated(0, low), repeated(dim - 1, high)


def _wrap(b, x, axis, low, high, dim):
    return sliced(b, x, axis, dim - low, dim), sliced(b, x, axis, 0, high)


_ENDS = {"reflect": _reflect, "edge": _edge, "wrap": _wrap}


def _indices(b, low, total, dim, mode):
    """`source_indices` as i64 values, for sizes that may be symbolic."""
    index = b.subtract(b.iota(dtype=dtypes.i64, dims=(total,), axis=0), size_scalar(b, low))
    if mode == "wrap":
        return b.Mod(index, size_scalar(b, dim))
    last = size_scalar(b, 2 * (dim - 1))
    phase = b.Mod(index, b.maximum(last, 1))
    return b.minimum(phase, b.abs(b.subtract(last, phase)))
