"""Gaussian elimination of stacks of matrices: determinants and inverses written with the builder.  No operators."""

from .. import dtypes
from ..dims import Size, equal, product
from .widening import converted, count, widened


def determinant(b, x):
    """The determinant of x[.., n, n] by Gaussian elimination with row exchanges, one column after the other."""
    n, batch = x.dims[-1], product(x.dims[:-2])
    if equal(n, 0) is True:
        return b.full(1, x.dtype, x.dims[:-2])
    wide = b.reshape(widened(b, x), dims=(batch, n, n))
    rows = b.iota(dtype=dtypes.i64, dims=(1, n, 1), axis=1)

    def step(inner, k, a, det):
        a, row, pivot, stays = _exchanged(inner, a, k, rows)
        nothing = inner.constant(0, a.dtype)
        det = inner.multiply(det, inner.select(stays, pivot, inner.negate(pivot)))
        safe = inner.select(inner.compare(pivot, nothing, direction="eq"), inner.constant(1, a.dtype), pivot)
        factor = inner.divide(_column_of(inner, a, k), safe)
        return inner.add(k, 1), inner.subtract(a, inner.multiply(factor, row)), det

    _, det = _by_columns(b, n, step, wide, b.full(1, wide.dtype, (batch, 1, 1)))
    return converted(b, b.reshape(det, dims=x.dims[:-2]), x.dtype)


def _exchanged(b, a, k, rows):
    """Row k of a[B, n, m] and the row below it with the largest element in column k change places.

    (a with the upper of the two in the lower's place, the lower[B, 1, m], its element in column k, whether it was k.)
    """
    batch, _, m = a.dims
    zero, k3 = b.constant(0, dtypes.i64), b.reshape(k, dims=(1, 1, 1))
    below = b.compare(rows, k3, direction="ge")
    size = b.select(below, b.abs(_column_of(b, a, k)), b.constant(-1, a.dtype))
    place = b.ArgMax(size, axis=1)
    chosen, nothing = b.compare(rows, place, direction="eq"), b.constant(0, a.dtype)
    row = b.reshape(b.reduce(b.select(chosen, a, nothing), axes=(1,), kind="sum"), dims=(batch, 1, m))
    upper = b.dynamic_slice(a, (zero, k, zero), sizes=(batch, 1, m))
    pivot = b.dynamic_slice(row, (zero, zero, k), sizes=(batch, 1, 1))
    return b.select(chosen, upper, a), row, pivot, b.compare(place, k3, direction="eq")


def _column_of(b, a, k):
    return b.dynamic_slice(a, (b.constant(0, dtypes.i64), b.constant(0, dtypes.i64), k), sizes=(*a.dims[:2], 1))


def _by_columns(b, n: Size, step, *states):
    """The states after `step(build, k, *states)`, which gives (k + 1, *states), for every k below n."""
    inits = (b.constant(0, dtypes.i64), *states)
    types, size = [v.type for v in inits], count(b, (n,), dtypes.i64)
    cond = b.region(types, lambda inner, k, *_: inner.compare(k, size, direction="lt"))
    return b.while_(inits, cond=cond, body=b.region(types, step))[1:]


def inverse(b, x):
    """The inverse of x[.., n, n] by Gauss-Jordan elimination of [x, identity] with row exchanges."""
    n, batch = x.dims[-1], product(x.dims[:-2])
    if equal(n, 0) is True:
        return x
    wide = b.reshape(widened(b, x), dims=(batch, n, n))
    rows, columns = (b.iota(dtype=dtypes.i64, dims=d, axis=i) for d, i in (((1, n, 1), 1), ((1, 1, n), 2)))
    ones = b.convert(b.compare(rows, columns, direction="eq"), dtype=wide.dtype)
    ones = b.broadcast_in_dim(ones, dims=(batch, n, n), broadcast_dimensions=(0, 1, 2))

    def step(inner, k, a):
        a, row, pivot, _ = _exchanged(inner, a, k, rows)
        row = inner.divide(row, pivot)
        rest = inner.subtract(a, inner.multiply(_column_of(inner, a, k), row))
        here = inner.compare(rows, inner.reshape(k, dims=(1, 1, 1)), direction="eq")
        return inner.add(k, 1), inner.select(here, row, rest)

    (both,) = _by_columns(b, n, step, b.concatenate((wide, ones), axis=2))
    out = b.slice(both, starts=(0, 0, n), limits=(batch, n, 2 * n), strides=(1, 1, 1))
    return converted(b, b.reshape(out, dims=x.dims), x.dtype)
