"""Random operators.  They are pure: equal keys give equal results, bit for bit the same integers on every target."""

import numpy as np

from .. import dtypes
from ..dims import Size, product
from ..dtypes import DType
from ..facts import Fact
from ..operators import FLOAT, INTEGER, PURE, Operand, operator
from ..types import TensorType
from .widening import converted

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
"""Threefry-2x32 (Salmon et al., Parallel random numbers: as easy as 1, 2, 3): 20 rounds in five groups of four."""

PARITY = 0x1BD11BDA


def _threefry(key, count, add, xor, rotate):
    """The first word of Threefry-2x32 of the block (0, count) under the key words."""
    words = (*key, xor(xor(key[0], key[1]), PARITY))
    x, y = words[0], add(count, words[1])
    for group in range(5):
        for distance in ROTATIONS[group % 2]:
            x = add(x, y)
            y = xor(rotate(y, distance), x)
        x = add(x, words[(group + 1) % 3])
        y = add(add(y, words[(group + 2) % 3]), group + 1)
    return x


def _rotated_array(x, distance):
    return (x << np.uint32(distance)) | (x >> np.uint32(32 - distance))


@operator("RandomBits", family="random", traits=PURE)
class RandomBits:
    """u32[dims]: element i in row-major order is the first word of Threefry-2x32 of block (0, i) under key u32[2]."""

    key: Operand[INTEGER]
    dims: tuple[Size, ...]

    def infer(ctx, key, *, dims):
        ctx.need(key.dtype is dtypes.u32 and key.rank == 1, f"key must be u32[2], got {key.type}")
        return Fact(TensorType(dtypes.u32, dims))

    def reference(ctx, key, *, dims):
        count = np.arange(int(np.prod(dims)), dtype=np.uint32)

        def add(a, b):
            return (a + np.uint32(b)).astype(np.uint32)

        key = [np.full(count.shape, k, np.uint32) for k in key]
        return _threefry(key, count, add, lambda a, b: a ^ np.uint32(b), _rotated_array).reshape(dims)

    def decompose(ctx, key, *, dims):
        b = ctx.build
        words = [b.reshape(b.slice(key, starts=(i,), limits=(i + 1,), strides=(1,)), dims=()) for i in (0, 1)]
        length = (product(dims),)
        words = [b.broadcast_in_dim(w, dims=length, broadcast_dimensions=()) for w in words]
        count = b.iota(dtype=dtypes.u32, dims=length, axis=0)

        def rotate(x, distance):
            left = b.shift_left(x, b.constant(distance, dtypes.u32))
            return b.or_(left, b.shift_right_logical(x, b.constant(32 - distance, dtypes.u32)))

        return b.reshape(_threefry(words, count, b.add, b.xor, rotate), dims=dims)


def _unit(b, key, dims):
    """f32 in [0, 1): 23 random bits behind the point."""
    bits = b.shift_right_logical(b.RandomBits(key, dims=dims), b.constant(9, dtypes.u32))
    one = b.bitcast_convert(b.or_(bits, b.constant(0x3F800000, dtypes.u32)), dtype=dtypes.f32)
    return b.subtract(one, 1.0)


@operator("RandomUniform", family="random", traits=PURE)
class RandomUniform:
    """Uniform in [low, high), computed in f32: low + (high - low) * u with 23 random bits in u."""

    key: Operand[INTEGER]
    dims: tuple[Size, ...]
    dtype: DType = dtypes.f32
    low: float = 0.0
    high: float = 1.0

    def infer(ctx, key, *, dims, dtype, low, high):
        ctx.need(dtype.is_float, f"dtype must be a floating-point type, got {dtype}")
        return Fact(TensorType(dtype, dims))

    def decompose(ctx, key, *, dims, dtype, low, high):
        b = ctx.build
        scaled = b.add(b.multiply(_unit(b, key, dims), high - low), low)
        return converted(b, scaled, dtype)


@operator("RandomNormal", family="random", traits=PURE)
class RandomNormal:
    """Normally distributed, computed in f32 from one uniform number by the inverse error function."""

    key: Operand[INTEGER]
    dims: tuple[Size, ...]
    dtype: DType = dtypes.f32
    mean: float = 0.0
    scale: float = 1.0

    def infer(ctx, key, *, dims, dtype, mean, scale):
        ctx.need(dtype.is_float, f"dtype must be a floating-point type, got {dtype}")
        return Fact(TensorType(dtype, dims))

    def decompose(ctx, key, *, dims, dtype, mean, scale):
        b = ctx.build
        middle = b.add(_unit(b, key, dims), 2.0**-24)  # in (0, 1), symmetric about a half
        normal = b.multiply(b.erf_inv(b.subtract(b.multiply(middle, 2.0), 1.0)), 2**0.5)
        return converted(b, b.add(b.multiply(normal, scale), mean), dtype)


@operator("Bernoulli", family="random", traits=PURE)
class Bernoulli:
    """1 with the probability that x gives, else 0, in `dtype`."""

    key: Operand[INTEGER]
    x: Operand[FLOAT]
    dtype: DType

    def infer(ctx, key, x, *, dtype):
        return x.with_dtype(dtype)

    def decompose(ctx, key, x, *, dtype):
        b = ctx.build
        hit = b.compare(_unit(b, key, x.dims), converted(b, x, dtypes.f32), direction="lt")
        return converted(b, hit, dtype)


@operator("Multinomial", family="random", traits=PURE)
class Multinomial:
    """`samples` classes a row, drawn with the probabilities softmax(x) of logits x[B, C]: integers [B, samples]."""

    key: Operand[INTEGER]
    x: Operand[FLOAT]
    samples: int = 1
    dtype: DType = dtypes.i32

    def infer(ctx, key, x, *, samples, dtype):
        ctx.need(x.rank == 2, f"x must have rank 2 [batch, classes], got {x.type}")
        ctx.need(dtype.is_integer, f"dtype must be an integer type, got {dtype}")
        return Fact(TensorType(dtype, (x.dims[0], samples)))

    def decompose(ctx, key, x, *, samples, dtype):
        b = ctx.build
        batch, classes = x.dims
        unit = b.add(_unit(b, key, (batch, samples, classes)), 2.0**-24)
        noise = b.negate(b.log(b.negate(b.log(unit))))
        total = b.add(b.reshape(converted(b, x, dtypes.f32), dims=(batch, 1, classes)), noise)
        return converted(b, b.ArgMax(total, axis=2, keepdims=False), dtype)


@operator("Dropout", family="random", traits=PURE)
class Dropout:
    """(y, mask) of ONNX Dropout in training: mask is false with probability `ratio`, y = mask ? x / (1 - ratio) : 0.

    ratio 0 drops nothing, and y is x.
    """

    key: Operand[INTEGER]
    x: Operand[FLOAT]
    ratio: Operand[FLOAT]

    def infer(ctx, key, x, ratio):
        ctx.need(ratio.size == 1, f"ratio must be a scalar, got {ratio.type}")
        return x.with_dims(x.dims), x.with_dtype(dtypes.bool_)

    def decompose(ctx, key, x, ratio):
        b = ctx.build
        part = b.reshape(converted(b, ratio, dtypes.f32), dims=())
        mask = b.compare(_unit(b, key, x.dims), part, direction="ge")
        scale = converted(
            b, b.divide(b.constant(1.0, dtypes.f32), b.subtract(b.constant(1.0, dtypes.f32), part)), x.dtype
        )
        return b.select(mask, b.multiply(x, scale), b.constant(0, x.dtype)), mask
