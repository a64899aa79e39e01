"""Products with weights of 2, 4 or 8 bits that are packed into bytes and scaled by blocks; packing and unpacking."""

import numpy as np

from ... import dtypes
from ...dims import ceildiv
from ...operators import FLOAT, PURE, REAL, Operand, operator
from .. import capacities
from ..linalg import matmul
from ..widening import converted, statistics_type


def unpacked_array(packed: np.ndarray, bits: int) -> np.ndarray:
    """u8[.., P] as u8[.., P * 8 / bits]: the elements of each byte, the lowest bits first."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (packed[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*packed.shape[:-1], -1)


def unpacked(b, packed, bits: int):
    """As `unpacked_array`."""
    if bits == 8:
        return packed
    each, rank = 8 // bits, packed.rank
    shifts = b.constant(np.arange(0, 8, bits, dtype=np.uint8))
    parts = b.and_(b.shift_right_logical(b.reshape(packed, dims=(*packed.dims, 1)), shifts), (1 << bits) - 1)
    return b.reshape(parts, dims=(*packed.dims[: rank - 1], packed.dims[-1] * each))


def packed(b, elements, bits: int):
    """The inverse of `unpacked` for u8 elements below 2^bits; the last axis fills whole bytes."""
    if bits == 8:
        return elements
    each, rank = 8 // bits, elements.rank
    dims = (*elements.dims[: rank - 1], ceildiv(elements.dims[-1], each))
    rows = b.reshape(elements, dims=(*dims, each))
    total = None
    for i in range(each):
        starts, limits = (*(0 for _ in dims), i), (*dims, i + 1)
        part = b.reshape(b.slice(rows, starts=starts, limits=limits, strides=(1,) * (rank + 1)), dims=dims)
        part = b.shift_left(part, i * bits) if i else part
        total = part if total is None else b.or_(total, part)
    return total


def _type(ctx, x, weights, scales, zero_points, *, size, bits, block_size):
    ctx.need(bits in (2, 4, 8), f"bits must be 2, 4 or 8, got {bits}")
    ctx.need(block_size * bits % 8 == 0 and block_size > 0, f"blocks of {block_size} elements do not fill whole bytes")
    ctx.need(weights.dtype is dtypes.u8, f"weights must be packed bytes (u8), got {weights.type}")
    ctx.need(weights.rank == 2 and scales.rank == 2, f"weights and scales must be matrices, got {weights.type} and "
                                                     f"{scales.type}")  # fmt: skip
    ctx.need(x.rank >= 1, f"x must have rank 1 or more, got {x.type}")
    ctx.equal(x.dims[-1], size, "the last dim of x and the size of a row of weights")
    blocks = ceildiv(size, block_size)
    ctx.equal_dims(weights.dims, (weights.dims[0], blocks * (block_size * bits // 8)), "dims of weights")
    ctx.equal_dims(scales.dims, (weights.dims[0], blocks), "dims of scales")
    if zero_points is not None:
        ctx.equal_dims(zero_points.dims, (weights.dims[0], blocks), "dims of zero_points")
    return x.with_dims((*x.dims[:-1], weights.dims[0]))


def _reference(ctx, x, weights, scales, zero_points, *, size, bits, block_size):
    q = unpacked_array(weights, bits).astype(np.float64).reshape(*scales.shape, block_size)
    zero = float(1 << (bits - 1)) if zero_points is None else ctx.wide(zero_points)[..., None].astype(np.float64)
    w = ((q - zero) * ctx.wide(scales)[..., None]).reshape(weights.shape[0], -1)[:, :size]
    return np.matmul(ctx.wide(x), w.T)


def _decompose(ctx, x, weights, scales, zero_points, *, size, bits, block_size):
    b, wide = ctx.build, statistics_type(x.dtype)
    rows, blocks = scales.dims
    q = b.reshape(unpacked(b, weights, bits), dims=(rows, blocks, block_size))

    def spread(p):
        return b.reshape(converted(b, p, wide), dims=(rows, blocks, 1))

    zero = b.constant(1 << (bits - 1), wide) if zero_points is None else spread(zero_points)
    w = b.multiply(b.subtract(converted(b, q, wide), zero), spread(scales))
    w = b.reshape(w, dims=(rows, blocks * block_size))
    w = b.slice(w, starts=(0, 0), limits=(rows, size), strides=(1, 1)) if blocks * block_size != size else w
    y = matmul(b, converted(b, x, wide), b.transpose(w, permutation=(1, 0)))
    return converted(b, y, x.dtype)


@operator("QuantizedMatMul", family="quantization", traits=PURE)
class QuantizedMatMul:
    """x[.., size] times the transpose of w[N, size], where w = (q - zero_point) * scale.  -> [.., N]

    q are unsigned numbers of `bits` (2, 4 or 8) bits, packed into weights u8[N, B * block_size * bits / 8],
    the lowest bits of a byte first.  B = ceil(size / block_size) blocks a row have a scale and a zero point each:
    scales[N, B], zero_points[N, B] (u8 or a float type; absent: 2^(bits - 1)).  What follows `size` does not count.
    w is computed in f32 (f64 for f64), products are summed there, and the result is rounded once to x's type.
    """

    x: Operand[FLOAT]
    weights: Operand
    scales: Operand[FLOAT]
    zero_points: Operand[REAL] | None = None
    size: int
    bits: int = 4
    block_size: int = 32
    infer = _type
    reference = _reference
    decompose = _decompose
    bucket = capacities.packed_matmul
