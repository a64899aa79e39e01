"""The ways back from windows: Col2Im adds columns up to an image, MaxUnpool puts maxima where they were."""

from math import prod

from ... import dtypes
from ...dims import Size, product
from ...operators import INTEGER, NUMERIC, PURE, Operand, operator
from ..shape.positions import sliced


def _blocks(image, block, strides, dilations, pads):
    """How many windows fit along each axis."""
    return tuple(
        (n + low + high - d * (k - 1) - 1) // s + 1
        for n, k, s, d, (low, high) in zip(image, block, strides, dilations, pads, strict=True)
    )


@operator("Col2Im", family="window", traits=PURE)
class Col2Im:
    """x[N, C*prod(block), L] -> [N, C, image..]: the L columns are blocks of the image that add up."""

    x: Operand[NUMERIC]
    image: tuple[int, ...]
    block: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[tuple[int, int], ...]

    def infer(ctx, x, *, image, block, strides, dilations, pads):
        ctx.need(x.rank == 3, f"x must have rank 3 [N, C*block, L], got {x.type}")
        ctx.need(isinstance(x.dims[1], int) and x.dims[1] % prod(block) == 0,
                 f"the second dim of x, {x.dims[1]}, must be a multiple of the block's size {prod(block)}")  # fmt: skip
        ctx.equal(
            x.dims[2], prod(_blocks(image, block, strides, dilations, pads)), "the number of columns and of blocks"
        )
        return x.with_dims((x.dims[0], x.dims[1] // prod(block), *image))

    def decompose(ctx, x, *, image, block, strides, dilations, pads):
        b, n = ctx.build, x.dims[0]
        channels, count = x.dims[1] // prod(block), prod(block)
        blocks = _blocks(image, block, strides, dilations, pads)
        columns = b.reshape(x, dims=(n, channels, count, *blocks))
        padded = tuple(i + low + high for i, (low, high) in zip(image, pads, strict=True))
        zero, total = b.constant(0, x.dtype), None
        for number in range(count):
            rest, at = number, []
            for k in reversed(block):
                rest, place = divmod(rest, k)
                at.append(place)
            starts = [p * d for p, d in zip(reversed(at), dilations, strict=True)]
            part = b.reshape(sliced(b, columns, 2, number, number + 1), dims=(n, channels, *blocks))
            ends = [m - s - ((k - 1) * t + 1) for m, s, k, t in zip(padded, starts, blocks, strides, strict=True)]
            part = b.pad(
                part, zero, low=(0, 0, *starts), high=(0, 0, *ends), interior=(0, 0, *(t - 1 for t in strides))
            )
            total = part if total is None else b.add(total, part)
        return b.slice(
            total,
            starts=(0, 0, *(low for low, _ in pads)),
            limits=(n, channels, *(low + i for i, (low, _) in zip(image, pads, strict=True))),
            strides=(1,) * total.rank,
        )


@operator("MaxUnpool", family="window", traits=PURE)
class MaxUnpool:
    """Zeros of `pooled` dims with x at flat indices, then zeros behind each axis up to `dims`."""

    x: Operand[NUMERIC]
    indices: Operand[INTEGER]
    pooled: tuple[Size, ...]
    dims: tuple[Size, ...]

    def infer(ctx, x, indices, *, pooled, dims):
        ctx.equal_dims(x.dims, indices.dims, "dims of x and indices")
        ctx.need(len(pooled) == len(dims) == x.rank, f"pooled and dims must have a size for each axis of {x.type}")
        for most, have in zip(dims, pooled, strict=True):
            ctx.at_most(have, most, "pooled")
        return x.with_dims(dims)

    def decompose(ctx, x, indices, *, pooled, dims):
        b = ctx.build
        empty = b.full(0, x.dtype, (product(pooled),))
        places = b.reshape(b.convert(indices, dtype=dtypes.i64), dims=(product(x.dims),))
        out = b.put_along_axis(empty, places, b.reshape(x, dims=(product(x.dims),)), axis=0)
        none = (0,) * len(dims)
        behind = tuple(d - p for d, p in zip(dims, pooled, strict=True))
        return b.pad(b.reshape(out, dims=pooled), b.constant(0, x.dtype), low=none, high=behind, interior=none)
