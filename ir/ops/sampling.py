"""What operators that sample a grid between its places share: interpolation.  Defines no operators."""

from .. import dtypes
from .widening import converted, count


def as_places(b, x):
    """Whole floats as i64."""
    return b.convert(x, dtype=dtypes.i64)


def picked(b, rows, places):
    """rows[N, d1, .., dr, C] at places, r arrays [N, ..] of whole floats: [N, .., C], zero outside the grid."""
    inside = None
    index = []
    for axis, place in enumerate(places):
        last = count(b, (rows.dims[axis + 1] - 1,), place.dtype)
        zero = b.constant(0, place.dtype)
        good = b.and_(b.compare(place, zero, direction="ge"), b.compare(place, last, direction="le"))
        inside = good if inside is None else b.and_(inside, good)
        place = as_places(b, b.maximum(b.minimum(place, last), zero))
        index.append(b.reshape(place, dims=(*place.dims, 1)))
    out = b.GatherND(rows, b.concatenate(tuple(index), axis=index[0].rank - 1), batch_dims=1)
    inside = b.reshape(inside, dims=(*inside.dims, 1))
    return b.select(inside, out, b.constant(0, out.dtype))


def corners(b, rows, points):
    """(value[N, .., C], weight[N, .., 1]) of the 2^r neighbours of points, r arrays [N, ..]; zero outside the grid."""
    low = [b.floor(p) for p in points]
    part = [b.subtract(p, q) for p, q in zip(points, low, strict=True)]
    out = []
    for number in range(2 ** len(points)):
        bits = [(number >> i) & 1 for i in range(len(points))]
        places = [b.add(q, 1.0) if bit else q for q, bit in zip(low, bits, strict=True)]
        weight = None
        for f, bit in zip(part, bits, strict=True):
            w = f if bit else b.subtract(b.constant(1, f.dtype), f)
            weight = w if weight is None else b.multiply(weight, w)
        value = converted(b, picked(b, rows, places), weight.dtype)
        out.append((value, b.reshape(weight, dims=(*weight.dims, 1))))
    return out


def interpolated(b, rows, points):
    """rows between their places: [N, .., C]."""
    return b.Sum(tuple(b.multiply(v, w) for v, w in corners(b, rows, points)))
