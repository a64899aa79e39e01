"""ONNX's composites that move elements: slices with negative strides, padding modes, Split, Tile, depth and space."""

import functools

import numpy as np

from ... import dims as sizes
from ...dims import Size
from ...ints import moved
from ...operators import ANY, Operand, operator
from .. import capacities
from .padding import pad_axis, padded_by_mode
from .positions import MOVES, checked_sizes, offsets, one_each, ordered, sliced, slices


@operator("StridedSlice", family="shape", traits=MOVES)
class StridedSlice:
    """Python's x[starts:limits:strides] with already normalized bounds; strides may be negative.

    Of a negative stride, limit -1 means "before 0".

    The importer's form of ONNX Slice with a negative step; decomposes into slice and reverse.
    """

    x: Operand[ANY]
    starts: tuple[Size, ...]
    limits: tuple[Size, ...]
    strides: tuple[int, ...]

    bucket = capacities.strided_slice

    def infer(ctx, x, *, starts, limits, strides):
        one_each(ctx, x, starts=starts, limits=limits, strides=strides)
        dims = []
        for axis, (start, limit, stride, dim) in enumerate(zip(starts, limits, strides, x.dims, strict=True)):
            ctx.need(stride != 0, f"the stride of axis {axis} must not be 0")
            if stride > 0:
                ordered(ctx, axis, start, limit, dim)
            else:
                ordered(ctx, axis, limit + 1, start + 1, dim)
            dims.append(sizes.ceildiv((limit - start) * (1 if stride > 0 else -1), abs(stride)))
        return moved(x.with_dims(dims), lambda a: a[slices(starts, limits, strides)], x)

    def reference(ctx, x, *, starts, limits, strides):
        return x[slices(starts, limits, strides)]

    def decompose(ctx, x, *, starts, limits, strides):
        backwards = [i for i, stride in enumerate(strides) if stride < 0]
        if backwards:  # of the reversed axis, index i is what was dim - 1 - i
            x = ctx.build.reverse(x, axes=tuple(backwards))
            starts = tuple(d - 1 - s if k < 0 else s for s, k, d in zip(starts, strides, x.dims, strict=True))
            limits = tuple(d - 1 - l if k < 0 else l for l, k, d in zip(limits, strides, x.dims, strict=True))
        return ctx.build.slice(x, starts=starts, limits=limits, strides=tuple(abs(k) for k in strides))


@operator("PadMode", family="shape", traits=MOVES)
class PadMode:
    """ONNX Pad with mode reflect, edge or wrap.  Negative low/high crop first, as ONNX and NumPy have it."""

    x: Operand[ANY]
    low: tuple[Size, ...]
    high: tuple[Size, ...]
    mode: str

    bucket = capacities.pad_mode

    def infer(ctx, x, *, low, high, mode):
        ctx.need(mode in ("reflect", "edge", "wrap"), f"mode must be reflect, edge or wrap, got {mode!r}")
        one_each(ctx, x, low=low, high=high)
        dims = []
        for l, h, dim in zip(low, high, x.dims, strict=True):
            dims.append(l + h + dim)
            ctx.at_most(0, dims[-1], f"padding ({l}, {h}) of a dim of size {dim} leaves a negative size")
            if l != 0 or h != 0:
                cropped = dim + sizes.minimum(l, 0) + sizes.minimum(h, 0)
                ctx.at_most(
                    sizes.minimum(1, sizes.maximum(l, h, 0)), cropped, f"{mode} padding of an axis that is empty"
                )
        return moved(x.with_dims(dims), lambda a: padded_by_mode(a, low, high, mode), x)

    def reference(ctx, x, *, low, high, mode):
        return padded_by_mode(x, low, high, mode)

    def decompose(ctx, x, *, low, high, mode):
        for axis, (l, h) in enumerate(zip(low, high, strict=True)):
            if l != 0 or h != 0:
                x = pad_axis(ctx.build, x, axis, l, h, mode)
        return x


@operator("Split", family="shape", traits=MOVES)
class Split:
    """x cut along axis into pieces of the given sizes, one result each.  The sizes must add up to the dim."""

    x: Operand[ANY]
    axis: int
    sizes: tuple[Size, ...]

    bucket = capacities.split

    def infer(ctx, x, *, axis, sizes):
        axis = ctx.axis(axis, x.rank)
        ctx.need(len(sizes) > 0, "Split needs at least one size")
        checked_sizes(ctx, sizes)
        ctx.equal(
            functools.reduce(lambda a, b: a + b, sizes),
            x.dims[axis],
            f"the sum of the sizes and dim {axis} of {x.type}",
        )
        facts = []
        for start, size in offsets(sizes):
            part = (slice(None),) * axis + (slice(start, start + size),)
            fact = x.with_dims(x.dims[:axis] + (size,) + x.dims[axis + 1 :])
            facts.append(moved(fact, lambda a, part=part: a[part], x))
        return facts[0] if len(facts) == 1 else tuple(facts)

    def reference(ctx, x, *, axis, sizes):
        return tuple(np.split(x, np.cumsum(sizes)[:-1], axis))

    def decompose(ctx, x, *, axis, sizes):
        axis %= x.rank
        return tuple(sliced(ctx.build, x, axis, start, start + size) for start, size in offsets(sizes))


@operator("Tile", family="shape", traits=MOVES)
class Tile:
    """x repeated repeats[i] times along axis i."""

    x: Operand[ANY]
    repeats: tuple[Size, ...]

    bucket = capacities.tile

    def infer(ctx, x, *, repeats):
        one_each(ctx, x, repeats=repeats)
        checked_sizes(ctx, repeats)
        fact = x.with_dims(d * r for d, r in zip(x.dims, repeats, strict=True))
        return moved(fact, lambda a: np.tile(a, repeats), x)

    def reference(ctx, x, *, repeats):
        return np.tile(x, repeats)

    def decompose(ctx, x, *, repeats):
        b = ctx.build
        spread = tuple(size for pair in zip(repeats, x.dims, strict=True) for size in pair)
        every = b.broadcast_in_dim(x, dims=spread, broadcast_dimensions=tuple(range(1, 2 * x.rank, 2)))
        return b.reshape(every, dims=tuple(d * r for d, r in zip(x.dims, repeats, strict=True)))


@operator("DepthToSpace", family="shape", traits=MOVES)
class DepthToSpace:
    """[N,C,H,W] -> [N, C/b^2, H*b, W*b].  mode DCR (depth, column, row) or CRD, as ONNX has them."""

    x: Operand
    blocksize: int
    mode: str = "DCR"

    def infer(ctx, x, *, blocksize, mode):
        ctx.need(mode in ("DCR", "CRD"), f"mode must be DCR or CRD, got {mode!r}")
        ctx.need(x.rank == 4, f"x must have rank 4 [N,C,H,W], got {x.type}")
        ctx.need(blocksize >= 1, f"blocksize must be at least 1, got {blocksize}")
        n, c, h, w = x.dims
        ctx.equal(sizes.mod(c, blocksize**2), 0, f"the remainder of {c} channels by blocksize squared and 0")
        return x.with_dims((n, sizes.floordiv(c, blocksize**2), h * blocksize, w * blocksize))

    def decompose(ctx, x, *, blocksize, mode):
        b, k = ctx.build, blocksize
        n, c, h, w = x.dims
        depth = sizes.floordiv(c, k * k)
        apart, order = (
            ((n, k, k, depth, h, w), (0, 3, 4, 1, 5, 2))
            if mode == "DCR"
            else ((n, depth, k, k, h, w), (0, 1, 4, 2, 5, 3))
        )
        return b.reshape(b.transpose(b.reshape(x, dims=apart), permutation=order), dims=(n, depth, h * k, w * k))


@operator("SpaceToDepth", family="shape", traits=MOVES)
class SpaceToDepth:
    """[N,C,H,W] -> [N, C*b^2, H/b, W/b], the inverse of DepthToSpace in the same mode, DCR or CRD."""

    x: Operand
    blocksize: int
    mode: str = "DCR"

    def infer(ctx, x, *, blocksize, mode):
        ctx.need(mode in ("DCR", "CRD"), f"mode must be DCR or CRD, got {mode!r}")
        ctx.need(x.rank == 4, f"x must have rank 4 [N,C,H,W], got {x.type}")
        ctx.need(blocksize >= 1, f"blocksize must be at least 1, got {blocksize}")
        n, c, h, w = x.dims
        for what, dim in (("height", h), ("width", w)):
            ctx.equal(sizes.mod(dim, blocksize), 0, f"the remainder of the {what} {dim} by blocksize and 0")
        return x.with_dims((n, c * blocksize**2, sizes.floordiv(h, blocksize), sizes.floordiv(w, blocksize)))

    def decompose(ctx, x, *, blocksize, mode):
        b, k = ctx.build, blocksize
        n, c, h, w = x.dims
        rows, columns = sizes.floordiv(h, k), sizes.floordiv(w, k)
        order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
        apart = b.transpose(b.reshape(x, dims=(n, c, rows, k, columns, k)), permutation=order)
        return b.reshape(apart, dims=(n, c * k * k, rows, columns))
