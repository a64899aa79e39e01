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
    """Elements keep their order: where an open axis is not the first of those that it is joined with or cut from, they
    move, as what counts of [3,n] is not the beginning of what counts of [3*n]."""
    old, new = ([d for d in side if not ctx.is_one(d)] for side in (x.dims, dims))
    groups = _groups(old, new)
    if not any(ctx.is_open(d) for group in groups for side in group for d in side[1:]):
        return None
    b, y = ctx.build, _flat(ctx, x, groups)
    for axis, (before, after) in enumerate(groups):
        if any(ctx.is_open(d) for side in (before, after) for d in side[1:]):
            y = b.take(y, _moved_places(ctx, before, after), axis=axis)
    return b.reshape(y, dims=dims)


def _flat(ctx, x, groups):
    """x with one axis a group."""
    return ctx.build.reshape(x, dims=tuple(sizes.product(tuple(before)) for before, _ in groups))


def _moved_places(ctx, old, new):
    """i64: for each place in the axes `new`, joined, the place in the axes `old` of the element that comes there."""
    b = ctx.build
    places = b.iota(dtype=dtypes.i64, dims=(sizes.product(tuple(new)),), axis=0)
    rank = _joined(ctx, _parts(ctx, places, new, ctx.capacity), new, ctx.size)
    return _joined(ctx, _parts(ctx, rank, old, ctx.size), old, ctx.capacity)


def _parts(ctx, places, dims, size):
    """Places in joined axes as one place an axis."""
    b, out = ctx.build, []
    for dim in reversed(dims[1:]):
        length = b.maximum(size(dim), 1)
        rest = b.divide(places, length)
        out.insert(0, b.subtract(places, b.multiply(rest, length)))
        places = rest
    return [places, *out]


def _joined(ctx, parts, dims, size):
    b, (places, *rest) = ctx.build, parts
    for part, dim in zip(rest, dims[1:], strict=True):
        places = b.add(b.multiply(places, size(dim)), part)
    return places


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
    x = b.slice(
        x, starts=tuple(0 if a in moving else s for a, s in enumerate(starts)),
        limits=tuple(x.dims[a] if a in moving else l for a, l in enumerate(limits)),
        strides=tuple(1 if a in moving else s for a, s in enumerate(strides)),
    )  # fmt: skip
    for axis in [a for a in moving if strides[a] != 1]:
        length = sizes.ceildiv(limits[axis] - starts[axis], strides[axis])
        steps = b.multiply(b.iota(dtype=dtypes.i64, dims=(length,), axis=0), strides[axis])
        x = b.take(x, b.add(steps, ctx.size(starts[axis])), axis=axis)
    moving = [a for a in moving if strides[a] == 1]
    if not moving:
        return x
    lengths = tuple(limits[a] - starts[a] if a in moving else d for a, d in enumerate(x.dims))
    places = tuple(ctx.size(starts[a]) if a in moving else b.constant(0, dtypes.i64) for a in range(x.rank))
    return _block(ctx, x, places, lengths)


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
    moved = [a for a, n in enumerate(low) if ctx.is_open(n)]
    if not moved:
        return ctx.again(ctx.filled(x, value), value) if ctx.open_axes(x) else None
    b, y = ctx.build, ctx.filled(x, value)
    still = [tuple(0 if a in moved else n for a, n in enumerate(side)) for side in (low, high, interior)]
    if any(n != 0 for side in still for n in side):
        y = b.pad(y, value, low=still[0], high=still[1], interior=still[2])
    for axis in moved:
        y = _set_in(ctx, y, value, axis, low[axis], high[axis], interior[axis])
    return y


def _set_in(ctx, x, value, axis, low, high, interior):
    """x padded along one axis, by looking up what comes to each place."""
    b, size = ctx.build, x.dims[axis]
    length = low + size + high + (sizes.maximum(size - 1, 0) * interior if interior else 0)
    places = b.subtract(b.iota(dtype=dtypes.i64, dims=(length,), axis=0), ctx.size(low))
    source = b.maximum(b.divide(places, interior + 1), 0)
    shown = b.compare(places, b.multiply(source, interior + 1), direction="eq")
    shown = b.and_(shown, b.compare(source, ctx.size(size), direction="lt"))
    y = b.take(_longer(ctx, x, axis), source, axis=axis)
    return b.select(_column(b, shown, x.rank, axis), y, value)


def _longer(ctx, x, axis):
    """x with one more element along an axis, so that there is one."""
    none = (0,) * x.rank
    high = tuple(1 if a == axis else 0 for a in range(x.rank))
    return ctx.build.pad(x, ctx.build.constant(0, x.dtype), low=none, high=high, interior=none)


def _column(b, vector, rank, axis):
    """A vector along one axis of `rank`."""
    return b.reshape(vector, dims=(*vector.dims, *(1,) * (rank - axis - 1)))


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
    summed = ctx.open_axes(first, axes)
    if not summed:
        return None
    if kind == "custom":
        ctx.refuse("a body of its own may have no element that changes nothing", *(first.dims[a] for a in summed))
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
        ctx.refuse("a body of its own may have no element that changes nothing", *(x.dims[a] for a in axes))
    return ctx.again((ctx.filled(x, identity(kind, x.dtype), axes),))


def _check_windows(ctx, window, padding):
    if at_fault := [n for n in (*window, *(low for low, _ in padding)) if ctx.is_open(n)]:
        ctx.refuse("the size or the place of the windows is known of the true size only", *at_fault)


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
        ctx.refuse("an order of its own has no greatest element", keys.dims[axis])
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
    kernel = [w.dims[rhs_spec.index(lhs_spec[i])] for i in spatial]
    reach = {lhs_spec.index(str(i)): tuple(pair) for i, pair in enumerate(padding)}
    summed = [i for i, n in zip(spatial, kernel, strict=True) if n != 1 or reach[i] != (0, 0)] + [lhs_spec.index("f")]
    if not ctx.open_axes(x, summed) and not ctx.open_axes(w, [rhs_spec.index("i")]):
        return None
    return ctx.again(ctx.filled(x, 0, summed), ctx.filled(w, 0, [rhs_spec.index("i")]))


def triangular_solve(ctx, a, b, *, left_side, lower, unit_diagonal, transpose_a):
    ctx.closed(a, (-2, -1), "the matrix")


def fft(ctx, x, *, fft_type, fft_length):
    ctx.closed(x, range(x.rank - len(fft_length), x.rank), "an axis that is transformed")


def cholesky(ctx, a, *, lower):
    ctx.closed(a, (-2, -1), "the matrix")
