"""`bucket` rules: what to do where only a beginning of an axis counts; see `ir.buckets`.  Defines no operators."""

import numpy as np

from .. import dims as sizes
from .. import dtypes
from ..buckets import check_repeats
from .combination import identity


def keep(ctx, *operands, **attributes):
    """The operator itself is right: result elements that count depend only on operand elements that count."""


def least(dtype):
    """What comes last in descending order, behind its equals."""
    return dtype.min_value()


def most(dtype):
    """What comes last in ascending order, behind its equals, where NaN comes first."""
    return dtype.max_value()


def greatest(dtype):
    """What comes last in ascending order behind its equals, where NaN comes last too."""
    if not dtype.is_float:
        return dtype.max_value()
    none = np.array(np.nan).astype(dtype.numpy)[()]
    return none if np.isnan(none) else dtype.max_value()


# Shapes


def broadcast_in_dim(ctx, x, *, dims, broadcast_dimensions):
    for have, axis in zip(x.dims, broadcast_dimensions, strict=True):
        check_repeats(ctx, [have, dims[axis]])


def reshape(ctx, x, *, dims):
    """Elements keep their order: an open axis must be the first of those that it is joined with or cut from."""
    for group in _groups(*([d for d in side if not ctx.is_one(d)] for side in (x.dims, dims))):
        inner = [d for side in group for d in side[1:] if ctx.is_open(d)]
        if inner:
            ctx.refuse(f"reshaping {x.type} moves what counts away from the beginning", *inner)


def _groups(old, new):
    """Both lists cut into pieces with provably equal products."""
    pieces, left, right, i, j = [], [], [], 0, 0
    while i < len(old) or j < len(new):
        a, b = sizes.product(tuple(left)), sizes.product(tuple(right))
        if left and right and sizes.equal(a, b):
            pieces.append((left, right))
            left, right = [], []
        elif i < len(old) and (j == len(new) or not left or (right and sizes.less(b, a) is not True)):
            left, i = [*left, old[i]], i + 1
        else:
            right, j = [*right, new[j]], j + 1
    return [*pieces, (left, right)]


def concatenate(ctx, xs, *, axis):
    """Each operand is written over what of the ones before does not count."""
    b = ctx.build
    if not any(ctx.is_open(x.dims[axis]) for x in xs[:-1]):
        return None
    first, *rest = xs
    none = (0,) * first.rank
    room = sum((x.dims[axis] for x in rest), 0)
    high = tuple(room if i == axis else 0 for i in range(first.rank))
    out = b.pad(first, b.constant(0, first.dtype), low=none, high=high, interior=none)
    zero, place = b.constant(0, dtypes.i64), ctx.size(first.dims[axis])
    for x in rest:
        out = b.dynamic_update_slice(out, x, tuple(place if i == axis else zero for i in range(x.rank)))
        place = b.add(place, ctx.size(x.dims[axis]))
    return out


def slice_(ctx, x, *, starts, limits, strides):
    moving = [a for a, start in enumerate(starts) if ctx.is_open(start)]
    if not moving:
        return None
    b = ctx.build
    if any(strides[a] != 1 for a in moving):
        ctx.refuse(f"a slice of {x.type} with a stride starts where only the true size tells")
    still = b.slice(
        x, starts=tuple(0 if a in moving else s for a, s in enumerate(starts)),
        limits=tuple(x.dims[a] if a in moving else l for a, l in enumerate(limits)), strides=strides,
    )  # fmt: skip
    lengths = tuple(limits[a] - starts[a] if a in moving else d for a, d in enumerate(still.dims))
    places = tuple(ctx.size(starts[a]) if a in moving else b.constant(0, dtypes.i64) for a in range(x.rank))
    return _block(ctx, still, places, lengths)


def _block(ctx, x, starts, lengths):
    """The block at true starts that are in range; x gets room for what of the block does not count."""
    b = ctx.build
    none = (0,) * x.rank
    room = tuple(
        n if ctx.is_open(n) and not sizes.equal(n, d) else 0 for n, d in zip(lengths, x.dims, strict=True)
    )  # fmt: skip
    if any(r != 0 for r in room):
        x = b.pad(x, b.constant(0, x.dtype), low=none, high=room, interior=none)
    return b.dynamic_slice(x, starts, sizes=lengths)


def pad(ctx, x, value, *, low, high, interior):
    if any(ctx.is_open(n) for n in low):
        ctx.refuse("how far padding moves the elements is known of the true size only")
    return ctx.again(ctx.filled(x, value), value) if ctx.open_axes(x) else None


def reverse(ctx, x, *, axes):
    b = ctx.build
    turned = ctx.open_axes(x, axes)
    if not turned:
        return None
    rest = tuple(a for a in axes if a not in turned)
    y = b.reverse(x, axes=rest) if rest else x
    for axis in turned:
        size = x.dims[axis]
        places = b.subtract(b.subtract(ctx.size(size), 1), b.iota(dtype=dtypes.i64, dims=(size,), axis=0))
        y = b.take(y, b.maximum(places, 0), axis=axis)
    return y


def dimensions(ctx, *, dims, scalar):
    b = ctx.build
    if scalar:
        return ctx.size(dims[0])
    return b.concatenate(tuple(b.reshape(ctx.size(d), dims=(1,)) for d in dims), axis=0)


def bitcast_convert(ctx, x, *, dtype):
    if x.dtype.bits != dtype.bits:
        ctx.closed(x, [x.rank - 1] if x.rank else [], "the last axis")


# Reductions and order


def reduce(ctx, xs, *, axes, kind, body):
    first = xs[0]
    if not ctx.open_axes(first, axes):
        return None
    if kind == "custom":
        ctx.refuse("a reduction with a body of its own has no element that changes nothing")
    return ctx.again((ctx.filled(first, identity(kind, first.dtype), axes),))


def reduce_window(
    ctx, xs, *, kind, window_dimensions, window_strides, padding, base_dilations, window_dilations, body
):  # fmt: skip
    x = xs[0]
    rows = zip(window_dimensions, window_strides, padding, base_dilations, strict=True)
    plain = [w == s == d == 1 and tuple(p) == (0, 0) for w, s, p, d in rows]
    axes = ctx.open_axes(x, [a for a in range(x.rank) if not plain[a]])
    _check_windows(ctx, window_dimensions, padding)
    if not axes:
        return None
    if kind == "custom":
        ctx.refuse("a reduction with a body of its own has no element that changes nothing")
    return ctx.again((ctx.filled(x, identity(kind, x.dtype), axes),))


def _check_windows(ctx, window, padding):
    if any(ctx.is_open(n) for n in (*window, *(low for low, _ in padding))):
        ctx.refuse("the size or the place of the windows is known of the true size only")


def select_and_scatter(ctx, x, source, *, select, window_dimensions, window_strides, padding):
    rows = zip(window_dimensions, window_strides, padding, strict=True)
    ctx.closed(
        x, [a for a, (w, s, p) in enumerate(rows) if not (w == s == 1 and tuple(p) == (0, 0))], "a window's axis"
    )


def running(kind):
    """CumSum and CumProd.  What counts never depends on what comes behind it, but 0 * NaN would."""

    def rule(ctx, x, *, axis, exclusive, reverse):
        return ctx.again(ctx.filled(x, identity(kind, x.dtype), (axis,))) if ctx.open_axes(x, (axis,)) else None

    return rule


def best_place(fill):
    """ArgMax and ArgMin: of equals the first wins, and what does not count comes last."""

    def rule(ctx, x, *, axis, keepdims, select_last_index):
        if not ctx.open_axes(x, (axis,)):
            return None
        if select_last_index:
            ctx.refuse("the last of equal elements may be one that does not count")
        return ctx.again(ctx.filled(x, fill(x.dtype), (axis,)))

    return rule


def sort(ctx, xs, *, axis, kind, comparator):
    """Sorts are stable: what does not count stands behind its equals."""
    (keys, *others) = xs
    if not ctx.open_axes(keys, (axis,)):
        return None
    if kind == "custom":
        ctx.refuse("an order of its own has no greatest element")
    fill = greatest(keys.dtype) if kind == "ascending" else least(keys.dtype)
    return ctx.again((ctx.filled(keys, fill, (axis,)), *others))


def top_k(ctx, x, *, k, axis, largest, ordered):
    if not ctx.open_axes(x, (axis,)):
        return None
    return ctx.again(ctx.filled(x, least(x.dtype) if largest else greatest(x.dtype), (axis,)))


def softmax(ctx, x, *, axis):
    return ctx.again(ctx.filled(x, least(x.dtype), (axis,))) if ctx.open_axes(x, (axis,)) else None


def non_zero(ctx, x, *, count):
    """As many places as x can have, then room for the rest of the count, which does not count."""
    b = ctx.build
    most = sizes.minimum(count, sizes.product(x.dims))
    found = b.NonZero(ctx.filled(x, 0), count=most)
    none = (0, 0)
    return b.pad(found, b.constant(0, dtypes.i64), low=none, high=(0, count - most), interior=none)


# Products


def dot_general(
    ctx, lhs, rhs, *, lhs_contracting, rhs_contracting, lhs_batching, rhs_batching, precision, result
):  # fmt: skip
    if not ctx.open_axes(lhs, lhs_contracting) and not ctx.open_axes(rhs, rhs_contracting):
        return None
    return ctx.again(ctx.filled(lhs, 0, lhs_contracting), ctx.filled(rhs, 0, rhs_contracting))


def convolution(
    ctx, x, w, *, lhs_spec, rhs_spec, out_spec, window_strides, padding, lhs_dilation, rhs_dilation, window_reversal,
    feature_group_count, batch_group_count, precision, result,
):  # fmt: skip
    spatial = [i for i, c in enumerate(lhs_spec) if c.isdigit()]
    _check_windows(ctx, (), padding)
    ctx.closed(w, [i for i, c in enumerate(rhs_spec) if c.isdigit()], "the kernel")
    if feature_group_count != 1 or batch_group_count != 1:
        ctx.closed(x, [lhs_spec.index("f")], "the grouped axis")
        ctx.closed(w, [rhs_spec.index("o"), rhs_spec.index("i")], "the grouped axis")
    if batch_group_count != 1:
        ctx.closed(x, [lhs_spec.index("b")], "the grouped axis")
    summed = [*spatial, lhs_spec.index("f")]
    if not ctx.open_axes(x, summed) and not ctx.open_axes(w, [rhs_spec.index("i")]):
        return None
    return ctx.again(ctx.filled(x, 0, summed), ctx.filled(w, 0, [rhs_spec.index("i")]))


def triangular_solve(ctx, a, b, *, left_side, lower, unit_diagonal, transpose_a):
    ctx.closed(a, (-2, -1), "the matrix")


def fft(ctx, x, *, fft_type, fft_length):
    ctx.closed(x, range(x.rank - len(fft_length), x.rank), "an axis that is transformed")


def cholesky(ctx, a, *, lower):
    ctx.closed(a, (-2, -1), "the matrix")
