"""Weights that are packed into bytes and scaled by blocks: MatMulNBits, MatMulBnb4, GatherBlockQuantized."""

from __future__ import annotations

from functools import partial

import numpy as np

from .....ir import dims as sizes
from .....ir import dtypes
from .....ir.ops.quantization.packed import unpacked
from ...registry import onnx_op as _onnx_op

onnx_op = partial(_onnx_op, domain="com.microsoft")


@onnx_op("MatMulNBits", absent=("zero_points", "g_idx"))
def matmul_nbits(
    ctx, a, b, scales, zero_points=None, g_idx=None, bias=None, *, K, N, block_size, bits=4, accuracy_level=0,
    weight_prepacked=0,
):  # fmt: skip
    """a times the transpose of the dequantized B[N, K]; always at full accuracy, whatever accuracy_level allows.

    g_idx[k] is the block whose scale and zero point column k has.  (ONNX Runtime 1.32 pairs it with other zero points.)
    """
    build = ctx.build
    if weight_prepacked:
        ctx.refuse(f"weights in the layout of one kind of GPU (weight_prepacked {weight_prepacked}) are not supported")
    if bits not in (2, 4, 8):
        ctx.refuse(f"weights of {bits} bits are not supported, only of 2, 4 and 8")
    if block_size < 16 or block_size & (block_size - 1):
        ctx.fail(f"block_size must be a power of 2 and at least 16, got {block_size}")
    if any(sizes.equal(d, 0) is True for d in b.dims):
        out = build.full(0, a.dtype, (*a.dims[:-1], N))
        return out if bias is None else build.add(out, bias)
    blocks = sizes.ceildiv(K, block_size)
    packed = build.reshape(b, dims=(N, blocks * (block_size * bits // 8)))
    scales = build.reshape(scales, dims=(N, blocks))
    if zero_points is not None:
        zero_points = _zero_points(ctx, zero_points, N, blocks, bits)
    if g_idx is None or _is_plain(ctx, g_idx, K, block_size):
        out = build.QuantizedMatMul(a, packed, scales, zero_points, size=K, bits=bits, block_size=block_size)
    else:
        w = _grouped(ctx, packed, scales, zero_points, g_idx, K, bits)
        out = build.MatMul(a, build.transpose(w, permutation=(1, 0)))
    return out if bias is None else build.add(out, bias)


def _zero_points(ctx, zero_points, rows, blocks, bits):
    """[rows, blocks]: floats as they are, bytes unpacked."""
    build = ctx.build
    if zero_points.dtype is not dtypes.u8:
        return build.reshape(zero_points, dims=(rows, blocks))
    width = sizes.ceildiv(blocks * bits, 8)
    out = unpacked(build, build.reshape(zero_points, dims=(rows, width)), bits)
    if out.dims[-1] == blocks:
        return out
    return build.slice(out, starts=(0, 0), limits=(rows, blocks), strides=(1, 1))


def _is_plain(ctx, g_idx, size, block_size):
    """Whether g_idx only says that blocks stand in order."""
    known = ctx.constant(g_idx)
    return known is not None and np.array_equal(known.numpy().reshape(-1)[:size], np.arange(size) // block_size)


def _grouped(ctx, packed, scales, zero_points, g_idx, size, bits):
    """Weights whose column k has the scale and zero point of block g_idx[k]."""
    build, dtype = ctx.build, scales.dtype
    rows = packed.dims[0]
    q = build.convert(unpacked(build, packed, bits), dtype=dtype)
    q = build.slice(q, starts=(0, 0), limits=(rows, size), strides=(1, 1))
    at = build.slice(g_idx, starts=(0,), limits=(size,), strides=(1,))
    if zero_points is None:
        q = build.subtract(q, float(1 << (bits - 1)))
    else:
        q = build.subtract(q, build.take(build.convert(zero_points, dtype=dtype), at, axis=1))
    return build.multiply(q, build.take(scales, at, axis=1))


_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
BNB4 = {0: (*_FP4, *(-v for v in _FP4)), 1: _NF4}
"""bitsandbytes' values of 4 bits, by quant_type: FP4, NF4."""


@onnx_op("MatMulBnb4")
def matmul_bnb4(ctx, a, b, absmax, *, K, N, block_size, quant_type, transB=1, training_mode=0):
    """Weights are flat, the first of two in the high bits of a byte, and have one scale for `block_size` of them."""
    build = ctx.build
    if quant_type not in BNB4:
        ctx.fail(f"quant_type must be 0 (FP4) or 1 (NF4), got {quant_type}")
    count = N * K
    blocks = sizes.ceildiv(count, block_size)
    pairs = build.reshape(b, dims=(sizes.ceildiv(count, 2), 1))
    q = build.concatenate((build.shift_right_logical(pairs, 4), build.and_(pairs, 15)), axis=1)
    q = build.slice(build.reshape(q, dims=(2 * pairs.dims[0],)), starts=(0,), limits=(count,), strides=(1,))
    values = build.take(build.constant(np.array(BNB4[quant_type], np.float32)), q, axis=0)
    short = blocks * block_size - count
    padded = build.pad(values, ctx.zeros(dtypes.f32), low=(0,), high=(short,), interior=(0,)) if short else values
    factors = build.reshape(build.convert(absmax, dtype=dtypes.f32), dims=(blocks, 1))
    w = build.multiply(build.reshape(padded, dims=(blocks, block_size)), factors)
    w = build.reshape(w, dims=(blocks * block_size,))
    w = build.slice(w, starts=(0,), limits=(count,), strides=(1,)) if short else w
    w = build.convert(build.reshape(w, dims=(N, K)), dtype=a.dtype)
    return build.MatMul(a, build.transpose(w, permutation=(1, 0)) if transB else w)


@onnx_op("GatherBlockQuantized")
def gather_block_quantized(
    ctx, data, indices, scales, zero_points=None, *, gather_axis=0, quantize_axis=1, block_size=128, bits=4
):  # fmt: skip
    """Slices of a table, dequantized after they were taken.  Indices outside [-size, size) give zeros."""
    build = ctx.build
    if not data.dtype.is_integer:
        ctx.refuse(f"tables of {data.dtype} are not supported, only of integers")
    if block_size < 16 or block_size & (block_size - 1):
        ctx.fail(f"block_size must be a power of 2 and at least 16, got {block_size}")
    at, axis = ctx.axis(gather_axis, data), ctx.axis(quantize_axis, data)
    if data.dtype is dtypes.u8:
        if bits not in (2, 4, 8):
            ctx.fail(f"bits must be 2, 4 or 8, got {bits}")
        if at != 0 or axis == 0:
            ctx.fail(f"tables of uint8 are gathered along axis 0 and quantized along another, got {at} and {axis}")
        zero_points = _byte_zero_points(ctx, data, scales, zero_points, axis, bits)
    size = data.dims[at]

    def taken(table):
        return build.take(table, indices, axis=at)

    if at == axis:
        out = taken(build.DequantizeLinear(data, scales, zero_points, axis=axis, block_size=block_size))
    else:
        rows = unpacked(build, taken(data), bits) if data.dtype is dtypes.u8 else taken(data)
        zeros = zero_points if zero_points is None or not zero_points.rank else taken(zero_points)
        new = axis + indices.rank - 1 if axis > at else axis
        factors = taken(scales)
        if zeros is not None and not zeros.rank:
            zeros = build.broadcast_in_dim(zeros, dims=factors.dims, broadcast_dimensions=())
        out = build.DequantizeLinear(rows, factors, zeros, axis=new, block_size=block_size)
    return _within(ctx, out, indices, at, size)


def _byte_zero_points(ctx, data, scales, zero_points, axis, bits):
    """Zero points of a table of bytes, one a byte; a scalar where they have their default."""
    build = ctx.build
    if zero_points is None:
        return build.constant(np.array(1 << (bits - 1), np.uint8))
    out = unpacked(build, zero_points, bits)
    limits = scales.dims
    return build.slice(out, starts=(0,) * out.rank, limits=limits, strides=(1,) * out.rank) if bits < 8 else out


def _within(ctx, out, indices, at, size):
    """Zeros where an index lies outside the table."""
    build = ctx.build
    low = build.compare(indices, build.negate(_count(ctx, size, indices.dtype)), direction="ge")
    inside = build.and_(low, build.compare(indices, _count(ctx, size, indices.dtype), direction="lt"))
    inside = build.reshape(inside, dims=(*indices.dims, *[1] * (out.rank - at - indices.rank)))
    return build.select(inside, out, build.constant(0, out.dtype))


def _count(ctx, size, dtype):
    if isinstance(size, int):
        return ctx.build.constant(size, dtype)
    return ctx.build.convert(ctx.build.dimensions(dims=(size,), scalar=True), dtype=dtype)
