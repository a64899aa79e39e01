"""Random operators.  They are pure: equal keys give equal results, bit for bit the same on every target.

So they compute with integers, and with floats only where one rounding, or none, decides: conversions, comparisons,
single sums and products.
"""

import math
from fractions import Fraction

import numpy as np

from .. import dtypes
from ..dims import Size, product
from ..dtypes import DType
from ..facts import Fact
from ..operators import FLOAT, INTEGER, PURE, Operand, operator
from ..types import TensorType
from .gauss import QUANTILES
from .widening import converted, wide_type

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
    """f32 in (0, 1): 32 random bits, the last one set, rounded to f32, but below 1."""
    bits = b.convert(b.or_(b.RandomBits(key, dims=dims), 1), dtype=dtypes.f32)
    return b.multiply(b.minimum(bits, 2.0**32 - 2.0**8), 2.0**-32)


def _held(dtype, *values):
    """Numbers as f32 and `dtype` hold them."""
    with np.errstate(over="ignore"):
        return [float(np.float32(v).astype(dtype.numpy)) for v in values]


def _finite(ctx, dtype, **attributes):
    """Reject attributes that are infinite or NaN as f32 and `dtype` hold them."""
    for name, value in attributes.items():
        ctx.need(math.isfinite(_held(dtype, value)[0]), f"{name} must be finite in f32 and {dtype}, got {value}")


def _line(b, k, most, factor, offset):
    """factor * k + offset for k in i64, |k| <= most: a sum of integers that is rounded to f32 once.

    They count multiples of a power of two, at most 2^61 of them and at least of 2^-126, so that no result is subnormal;
    what factor and offset lose by it is below 2^-28 of the greatest result.  In floats the bits would hang on whether a
    compiler contracts the product and the sum.
    """
    factor, offset = Fraction(factor), Fraction(offset)
    top = abs(factor) * most + abs(offset)
    exponent = max(top.numerator.bit_length() - top.denominator.bit_length() - 60, -126)
    factor, offset = (round(x / Fraction(2) ** exponent) for x in (factor, offset))
    shared = (factor | offset) & -(factor | offset) or 1  # the greatest power of two that divides both
    total = k if factor == shared else b.multiply(k, factor // shared)
    total = total if offset == 0 else b.add(total, offset // shared)
    return b.multiply(b.convert(total, dtype=dtypes.f32), 2.0**exponent * shared)


@operator("RandomUniform", family="random", traits=PURE)
class RandomUniform:
    """Uniform in [low, high): low + (high - low) * bits / 2^32 with `RandomBits`, equal bit for bit on every target.

    low and high are taken as f32 and `dtype` hold them.  Results are multiples of at least 2^-126, rounded to f32, then
    to `dtype`; where that gives high, the result is the number next to it.
    """

    key: Operand[INTEGER]
    dims: tuple[Size, ...]
    dtype: DType = dtypes.f32
    low: float = 0.0
    high: float = 1.0

    def infer(ctx, key, *, dims, dtype, low, high):
        ctx.need(dtype.is_float, f"dtype must be a floating-point type, got {dtype}")
        _finite(ctx, dtype, low=low, high=high)
        return Fact(TensorType(dtype, dims))

    def decompose(ctx, key, *, dims, dtype, low, high):
        b = ctx.build
        narrow = dtype if dtype.bits < 32 else dtypes.f32
        low, high = _held(narrow, low, high)
        last = float(np.nextafter(narrow.numpy.type(high), narrow.numpy.type(low)))
        bits = b.convert(b.RandomBits(key, dims=dims), dtype=dtypes.i64)
        x = _line(b, bits, 2**32, (Fraction(high) - Fraction(low)) / 2**32, low)
        least, greatest = (b.constant(end, narrow) for end in sorted((low, last)))
        return converted(b, b.clamp(least, converted(b, x, narrow), greatest), dtype)


def _polynomial(b, x, bits, coefficients):
    """c0 - x * (c1 - x * (c2 - ...)) in u64, with `bits` bits of x behind the point."""
    *rest, out = coefficients
    for c in reversed(rest):
        out = b.subtract(c, b.shift_right_logical(b.multiply(x, out), bits))
    return out


def normal_quantiles(b, bits):
    """i64: the standard normal quantile of (bits + 1/2) / 2^32 times 2^32.

    The smaller tail is an odd number of 2^-33.  The number of its leading zeros and the three bits behind its first 1
    choose the row of the table; the bits behind them are the place there.
    """
    upper = b.compare(bits, b.constant(1 << 31, dtypes.u32), direction="ge")
    tail = b.or_(b.shift_left(b.select(upper, b.not_(bits), bits), 1), 1)
    row = b.constant(0, dtypes.i32)
    for step in (16, 8, 4, 2, 1):
        small = b.compare(tail, b.constant(1 << (32 - step), dtypes.u32), direction="lt")
        tail = b.select(small, b.shift_left(tail, step), tail)
        row = b.add(row, b.select(small, b.constant(8 * step, dtypes.i32), b.constant(0, dtypes.i32)))
    row = b.add(row, b.convert(b.and_(b.shift_right_logical(tail, 28), 7), dtype=dtypes.i32))
    place = b.convert(b.and_(tail, (1 << 28) - 1), dtype=dtypes.u64)
    columns = [b.take(b.constant(c), row) for c in np.array(QUANTILES, np.uint64).T]
    out = b.convert(_polynomial(b, place, 28, columns), dtype=dtypes.i64)
    return b.select(upper, out, b.negate(out))


@operator("RandomNormal", family="random", traits=PURE)
class RandomNormal:
    """mean + scale * n, n the normal quantile of (bits + 1/2) / 2^32 of `RandomBits`, equal bits on every target.

    n is symmetric about 0, reaches 6.34 and is off by less than 2^-27.8 (rounding a number from 1 to 2 to f32: 2^-24).
    mean and scale are taken as f32 holds them.  Results are multiples of at least 2^-126 and rounded to f32, then to
    `dtype`.
    """

    key: Operand[INTEGER]
    dims: tuple[Size, ...]
    dtype: DType = dtypes.f32
    mean: float = 0.0
    scale: float = 1.0

    def infer(ctx, key, *, dims, dtype, mean, scale):
        ctx.need(dtype.is_float, f"dtype must be a floating-point type, got {dtype}")
        _finite(ctx, dtypes.f32, mean=mean, scale=scale)
        return Fact(TensorType(dtype, dims))

    def decompose(ctx, key, *, dims, dtype, mean, scale):
        b = ctx.build
        mean, scale = _held(dtypes.f32, mean, scale)
        n = normal_quantiles(b, b.RandomBits(key, dims=dims))
        return converted(b, _line(b, n, 7 * 2**32, Fraction(scale) / 2**32, mean), dtype)


@operator("Bernoulli", family="random", traits=PURE)
class Bernoulli:
    """1 with the probability that x gives, else 0, in `dtype`; 0 for NaN.  Equal x give equal results on every target.

    x, in f32, is compared with a number in (0, 1) of 32 random bits rounded to f32.
    """

    key: Operand[INTEGER]
    x: Operand[FLOAT]
    dtype: DType

    def infer(ctx, key, x, *, dtype):
        return x.with_dtype(dtype)

    def decompose(ctx, key, x, *, dtype):
        b = ctx.build
        hit = b.compare(_unit(b, key, x.dims), converted(b, x, dtypes.f32), direction="lt")
        return converted(b, hit, dtype)


POWERS = (2147483645, 1488521945, 515877823, 119165869, 20572593, 2739202, 234782)
"""2^31 * 2^-t for t in [0, 1) as c0 - t * (c1 - ...), off by less than 2^-28.7 (through seven Chebyshev nodes)."""

LOG2_E = 3098164010  # of e, times 2^31


def _weights(b, x):
    """i64[B, C] of f32 logits: 2^31 * e^(x - greatest of the row); 0 from e^-21 on and in rows with NaN or inf."""
    batch, _ = x.dims
    below = b.subtract(b.reshape(b.reduce(x, axes=(1,), kind="max"), dims=(batch, 1)), x)
    counts = b.compare(below, 21.0, direction="lt")
    below = b.multiply(b.select(counts, below, b.constant(0.0, dtypes.f32)), 2.0**27)
    below = b.convert(b.convert(below, dtype=dtypes.i64), dtype=dtypes.u64)
    halvings = b.shift_right_logical(b.multiply(below, LOG2_E), 27)
    power = _polynomial(b, b.and_(halvings, 2**31 - 1), 31, [b.constant(c, dtypes.u64) for c in POWERS])
    whole = b.convert(b.shift_right_logical(halvings, 31), dtype=dtypes.i32)
    scale = b.take(b.constant(2 ** np.arange(31, -1, -1).astype(np.uint64)), whole)
    weights = b.convert(b.shift_right_logical(b.multiply(power, scale), 31), dtype=dtypes.i64)
    return b.select(counts, weights, b.constant(0, dtypes.i64))


@operator("Multinomial", family="random", traits=PURE)
class Multinomial:
    """`samples` classes a row, drawn with the probabilities softmax(x) of logits x[B, C]: integers [B, samples].

    e^x relative to the likeliest class is computed with integers, of logits in f32, within 2^-25; a number of 32 random
    bits chooses among its running sums.  So equal x give equal classes on every target that finds NaN in a maximum.
    Classes less probable than the likeliest by e^-21 are never drawn.  A row whose softmax is NaN gives class 0.
    """

    key: Operand[INTEGER]
    x: Operand[FLOAT]
    samples: int = 1
    dtype: DType = dtypes.i32

    def infer(ctx, key, x, *, samples, dtype):
        ctx.need(x.rank == 2, f"x must have rank 2 [batch, classes], got {x.type}")
        ctx.need(dtype.is_integer, f"dtype must be an integer type, got {dtype}")
        ctx.at_most(1, x.dims[1], "there must be classes")
        return Fact(TensorType(dtype, (x.dims[0], samples)))

    def decompose(ctx, key, x, *, samples, dtype):
        b = ctx.build
        batch, classes = x.dims
        weights = _weights(b, converted(b, x, dtypes.f32))
        total = b.convert(b.reshape(b.reduce(weights, axes=(1,), kind="sum"), dims=(batch, 1)), dtype=dtypes.u64)
        bits = b.convert(b.RandomBits(key, dims=(batch, samples)), dtype=dtypes.u64)
        low = b.shift_right_logical(b.multiply(bits, b.and_(total, 2**32 - 1)), 32)
        place = b.add(b.multiply(bits, b.shift_right_logical(total, 32)), low)  # bits * total / 2^32 in two halves
        place = b.reshape(b.convert(place, dtype=dtypes.i64), dims=(batch, samples, 1))
        ends = b.reshape(b.CumSum(weights, axis=1), dims=(batch, 1, classes))
        passed = b.reduce(b.convert(b.compare(ends, place, direction="le"), dtype=dtypes.i32), axes=(2,), kind="sum")
        some = b.compare(total, b.constant(0, dtypes.u64), direction="gt")
        return converted(b, b.select(some, passed, b.constant(0, dtypes.i32)), dtype)


@operator("Dropout", family="random", traits=PURE)
class Dropout:
    """(y, mask) of ONNX Dropout in training: mask is false with probability `ratio`, y = mask ? x / (1 - ratio) : 0.

    ratio 0 drops nothing, and y is x.  y is x times the inverse of 1 - ratio, each rounded to f32 (f64 for f64), and
    then to the type of x.  As in `Bernoulli` a number of 32 random bits is compared with ratio in f32.
    """

    key: Operand[INTEGER]
    x: Operand[FLOAT]
    ratio: Operand[FLOAT]

    def infer(ctx, key, x, ratio):
        ctx.need(ratio.size == 1, f"ratio must be a scalar, got {ratio.type}")
        return x.with_dims(x.dims), x.with_dtype(dtypes.bool_)

    def decompose(ctx, key, x, ratio):
        b = ctx.build
        share = b.reshape(ratio, dims=())
        mask = b.compare(_unit(b, key, x.dims), converted(b, share, dtypes.f32), direction="ge")
        wide = wide_type(x.dtype)
        # As 1 / (1 - ratio) ONNX Runtime would divide x by 1 - ratio; as a division XLA would multiply by the inverse.
        twice = b.multiply(b.subtract(b.constant(1.0, wide), converted(b, share, wide)), 2.0)
        kept = b.multiply(converted(b, x, wide), b.divide(b.constant(2.0, wide), twice))
        return b.select(mask, converted(b, kept, x.dtype), b.constant(0, x.dtype)), mask
