"""Recipes for floats: signs, rounding, remainders, and double precision where MLX computes only in single."""

import math

import mlx.core as mx


def _sign(x):
    """-1, 0 or 1; zeros keep their sign and NaN stays."""
    return mx.where((x == 0) | (x != x), x, mx.sign(x))


def _round_away(x):
    """The nearest integer, halves away from zero."""
    whole = mx.where(x < 0, mx.ceil(x), mx.floor(x))
    return mx.where(mx.abs(x - whole) >= 0.5, whole + mx.sign(x), whole)


def _fmod(x, y):
    """x - y * trunc(x / y), with the sign of x."""
    r = mx.remainder(mx.abs(x), mx.abs(y))
    return mx.where((x == 0) & (r == 0), x, mx.where(x < 0, -r, r))


def _float_modulo(x, y):
    """Python's x % y: the sign of y, also for a remainder of 0."""
    r = _fmod(x, y)
    r = mx.where((r != 0) & ((r < 0) != (y < 0)), r + y, r)
    return mx.where(r == 0, mx.where(y < 0, -0.0, 0.0).astype(r.dtype), r)


def _exp(x):
    """e^x in double precision (mx.exp is accurate to single only)."""
    t = mx.abs(x) / 2
    half = mx.sinh(t) + mx.cosh(t)
    half = mx.where(x < 0, 1 / half, half)
    return half * half


def _sin(x):
    """sin(x) in double precision (mx.sin is accurate to single only)."""
    t = mx.tan(x / 2)
    return 2 * t / (1 + t * t)


def _cos(x):
    """cos(x) in double precision (mx.cos is accurate to single only)."""
    t = mx.tan(x / 2)
    return (1 - t) * (1 + t) / (1 + t * t)


def _expm1(x):
    """e^x - 1 in double precision."""
    return mx.where(mx.abs(x) < 1, 2 * mx.sinh(x / 2) * (mx.sinh(x / 2) + mx.cosh(x / 2)), _exp(x) - 1)


def _logistic(x):
    """1 / (1 + e^-x) in double precision."""
    return 1 / (1 + _exp(-x))


def _cbrt(x):
    """The real cube root."""
    magnitude = mx.abs(x)
    y = mx.power(magnitude, 1 / 3)
    y = y - (y - magnitude / (y * y)) / 3
    y = mx.where((x == 0) | (magnitude == math.inf), x, y)
    return mx.where((x < 0) & (magnitude != math.inf), -y, y)


def _odd_float32(x):
    """Doubles as singles, rounded so that rounding once more to a shorter type is right."""
    near = x.astype(mx.float32)
    inexact = (mx.abs(x) < math.inf) & (near.astype(mx.float64) != x)
    up = inexact & (mx.abs(near).astype(mx.float64) > mx.abs(x))
    return ((near.view(mx.uint32) - up.astype(mx.uint32)) | inexact.astype(mx.uint32)).view(mx.float32)


def _reduce_precision(x, bits, exponent_bits, mantissa_bits, have_exponent, have_mantissa):
    """Floats rounded to a format with fewer exponent and mantissa bits.  `bits` is the unsigned type of their width."""
    pattern = x.view(bits)
    sign = pattern & (mx.array(1, bits) << (have_exponent + have_mantissa))
    magnitude = pattern ^ sign
    infinity = ((1 << have_exponent) - 1) << have_mantissa
    if mantissa_bits < have_mantissa:
        drop = have_mantissa - mantissa_bits
        magnitude = (magnitude + ((1 << (drop - 1)) - 1) + ((magnitude >> drop) & 1)) >> drop << drop
    if exponent_bits < have_exponent:
        bias, least = (1 << (have_exponent - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = magnitude >> have_mantissa
        magnitude = mx.where(exponent > bias + least, infinity, magnitude)
        magnitude = mx.where(exponent <= bias - least, 0, magnitude)
    return mx.where(x != x, x, (sign | mx.minimum(magnitude, infinity)).view(x.dtype))


def _complex(x, y):
    """x + iy with the parts as they are: a sum with 1j * y would make NaN of infinities."""
    x, y = mx.broadcast_arrays(x, y)
    return mx.squeeze(mx.view(mx.contiguous(mx.stack([x, y], axis=-1)), mx.complex64), -1)
