"""Recipes for integers: division that truncates, powers, shifts, bit counts, conversion from floats."""

import mlx.core as mx


def _divide(a, b):
    """a / b towards zero; a / 0 is -1, the least integer / -1 itself (MLX's // floors, and INT_MIN // -1 is fatal)."""
    safe = mx.where((b == 0) | (b == -1), 1, b)
    q = a // safe
    q = q + ((q * safe != a) & ((a < 0) != (safe < 0)))
    return mx.where(b == 0, -1, mx.where(b == -1, -a, q))


def _divide_by(a, b):
    """a / b towards zero for a number b that is neither 0 nor -1."""
    q = a // b
    return q + ((q * b != a) & ((a < 0) != (b < 0)))


def _divide_unsigned(a, b):
    """a // b; a // 0 is all ones."""
    return mx.where(b == 0, mx.bitwise_invert(mx.zeros_like(a)), a // mx.maximum(b, 1))


def _remainder(a, b):
    """a - b * trunc(a / b), with the sign of a; a rem 0 is a."""
    safe = mx.where((b == 0) | (b == -1), 1, b)
    r = a % safe
    r = mx.where((r != 0) & ((r < 0) != (a < 0)), r - safe, r)
    return mx.where(b == 0, a, mx.where(b == -1, 0, r))


def _remainder_by(a, b):
    """The remainder with the sign of a, for a number b that is neither 0 nor -1."""
    r = a % b
    return mx.where((r != 0) & ((r < 0) != (a < 0)), r - b, r)


def _remainder_unsigned(a, b):
    """a % b; a % 0 is a."""
    return mx.where(b == 0, a, a % mx.maximum(b, 1))


def _modulo(a, b):
    """Python's a % b; a % 0 is a."""
    return mx.where(b == 0, a, mx.where(b == -1, 0, a % mx.where((b == 0) | (b == -1), 1, b)))


def _integer_power(a, b):
    """a ** b, wrapping; a negative exponent gives 0, but 1 for base 1 and 1 or -1 for base -1."""
    odd = mx.where((b & 1) != 0, a, 1)
    small = mx.where(a == 1, 1, mx.where(a == -1, odd, 0))
    return mx.where(b < 0, small, mx.power(a, mx.maximum(b, 0)))


def _shift_left(a, b, width):
    """a << b; 0 unless 0 <= b < width."""
    inside = (b >= 0) & (b < width)
    return mx.where(inside, a << mx.where(inside, b, 0), 0)


def _shift_right(a, b, width):
    """a >> b, filled with a's sign; b outside [0, width) fills everything."""
    inside = (b >= 0) & (b < width)
    return a >> mx.where(inside, b, width - 1)


def _shift_right_zero(a, b, width):
    """Unsigned a >> b; 0 unless 0 <= b < width."""
    inside = (b >= 0) & (b < width)
    return mx.where(inside, a >> mx.where(inside, b, 0).astype(a.dtype), 0)


def _count_ones(a, width):
    """Number of set bits of unsigned integers."""
    ones = (1 << width) - 1
    a = a - ((a >> 1) & (0x5555555555555555 & ones))
    a = (a & (0x3333333333333333 & ones)) + ((a >> 2) & (0x3333333333333333 & ones))
    a = (a + (a >> 4)) & (0x0F0F0F0F0F0F0F0F & ones)
    for step in (8, 16, 32):
        if step < width:
            a = a + (a >> step)
    return a & 0x7F


def _leading_zeros(a, width):
    """Number of leading zero bits of unsigned integers."""
    count = mx.full(a.shape, width, a.dtype)
    for step in (32, 16, 8, 4, 2, 1):
        if step < width:
            high = a >> step
            count = mx.where(high != 0, count - step, count)
            a = mx.where(high != 0, high, a)
    return count - a


def _to_integer(x, dtype, low, high):
    """Floats truncated to an integer type; saturates at its ends, NaN gives 0 (a plain astype is undefined there)."""
    top = float(high + 1)
    inside = mx.where((x > low) & (x < top), x, 0).astype(dtype)
    greatest = mx.array(high, dtype) if high < 1 << 63 else mx.bitwise_invert(mx.array(0, dtype))
    return mx.where(x >= top, greatest, mx.where(x <= low, mx.array(low, dtype), inside))


def _root(total):
    """The integer square root of i64 or u64 numbers that are not negative."""
    root = mx.sqrt(total.astype(mx.float32)).astype(total.dtype)
    root = mx.where(root > total // mx.maximum(root, 1), root - 1, root)
    return mx.where(root + 1 <= total // (root + 1), root + 1, root)


def _sticky(x):
    """Integers beyond 2^24 with a last bit that says that something was lost, so that rounding twice is right."""
    lost = x & 0xFFF
    large = (x > 1 << 24) | (x < -(1 << 24)) if x.dtype in (mx.int32, mx.int64) else x > 1 << 24
    return mx.where(large, (x - lost) | mx.where(lost != 0, 1 << 11, 0).astype(x.dtype), x)


def _split_bits(a, width, part):
    """Unsigned integers as their parts of a few bits each, along a new last axis, the lowest first."""
    mask = (1 << part) - 1
    return mx.stack([((a >> shift) & mask).astype(mx.uint8) for shift in range(0, width, part)], axis=-1)


def _join_bits(a, part, dtype):
    """The inverse of splitting: the last axis as the bits of one integer, the lowest first."""
    total = mx.zeros(a.shape[:-1], dtype)
    for i in range(a.shape[-1]):
        total = total | (a[..., i].astype(dtype) << (i * part))
    return total
