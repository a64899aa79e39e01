"""CropAndResize of ONNX Runtime."""

from __future__ import annotations

from ....ir.dtypes import i64
from ..registry import onnx_op


@onnx_op("CropAndResize", domain="com.microsoft")
def crop_and_resize(ctx, x, regions, batch, crop_size, *, mode="bilinear", extrapolation_value=0.0):
    """[regions, C, height, width]: parts of x[N, C, H, W], corners aligned; regions are y1, x1, y2, x2 from 0 to 1.

    Places outside of the image get the extrapolation value.
    """
    if mode not in ("bilinear", "nearest"):
        ctx.fail(f"mode must be bilinear or nearest, got {mode!r}")
    if x.rank != 4 or regions.rank != 2:
        ctx.fail(f"needs images of rank 4 and regions [count, 4], got {x.type} and {regions.type}")
    b, dtype = ctx.build, x.dtype
    wanted = ctx.numbers(crop_size, "the crop's size")
    if len(wanted) != 2 or min(wanted) < 1:
        ctx.fail(f"crop_size must be two positive numbers, got {list(wanted)}")
    height, width = wanted
    channels = b.transpose(x, permutation=(0, 2, 3, 1))
    y1, x1, y2, x2 = b.Split(regions, axis=1, sizes=(1,) * 4)
    rows, row_inside = _places(ctx, y1, y2, x.dims[2], height, dtype)
    columns, column_inside = _places(ctx, x1, x2, x.dims[3], width, dtype)
    shape = (regions.dims[0], height, width)

    def spread(v, axis):
        at = (v.dims[0], v.dims[1], 1) if axis == 1 else (v.dims[0], 1, v.dims[1])
        return b.broadcast_in_dim(b.reshape(v, dims=at), dims=shape, broadcast_dimensions=(0, 1, 2))

    image = b.convert(b.reshape(batch, dims=(batch.dims[0], 1)), dtype=i64)

    def taken(row, column):
        parts = [spread(image, 1), spread(b.convert(row, dtype=i64), 1), spread(b.convert(column, dtype=i64), 2)]
        return b.GatherND(channels, b.concatenate(tuple(b.reshape(p, dims=(*shape, 1)) for p in parts), axis=3))

    if mode == "nearest":
        out = taken(b.round_nearest_afz(rows), b.round_nearest_afz(columns))
    else:
        top, left = b.floor(rows), b.floor(columns)
        down = b.reshape(b.subtract(rows, top), dims=(shape[0], height, 1, 1))
        right = b.reshape(b.subtract(columns, left), dims=(shape[0], 1, width, 1))

        def between(first, second, share):
            return b.add(first, b.multiply(b.subtract(second, first), share))

        upper = between(taken(top, left), taken(top, b.ceil(columns)), right)
        lower = between(taken(b.ceil(rows), left), taken(b.ceil(rows), b.ceil(columns)), right)
        out = between(upper, lower, down)
    inside = b.reshape(b.and_(spread(row_inside, 1), spread(column_inside, 2)), dims=(*shape, 1))
    out = b.select(inside, out, b.constant(extrapolation_value, dtype))
    return b.transpose(out, permutation=(0, 3, 1, 2))


def _places(ctx, start, end, size, count, dtype):
    """([regions, count] places along an axis of `size` from start to end, 0 to 1; whether each lies inside)."""
    b = ctx.build
    last = b.constant(size - 1, dtype) if isinstance(size, int) else b.convert(
        b.dimensions(dims=(size - 1,), scalar=True), dtype=dtype
    )  # fmt: skip
    first, final = b.multiply(start, last), b.multiply(end, last)
    if count == 1:
        at = b.multiply(b.add(first, final), 0.5)
    else:
        step = b.divide(b.subtract(final, first), float(count - 1))
        at = b.add(first, b.multiply(b.iota(dtype=dtype, dims=(1, count), axis=1), step))
    zero = b.constant(0, dtype)
    return at, b.and_(b.compare(at, zero, direction="ge"), b.compare(at, last, direction="le"))
