"""NumPy arrays in another element type: values rounded once, saturated or wrapped, and bits read as another type."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import dtypes
from .data import Array
from .dtypes import DType
from .errors import InputError

_UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}


def rounded(x: Array, dtype: DType) -> Array:
    """Numbers as the float type `dtype`: nearest, ties to even, rounded once (ml_dtypes rounds f64 twice)."""
    if dtype.bits >= 32 or x.dtype == dtype.numpy or x.dtype.kind not in "fiu":
        return x.astype(dtype.numpy)
    if x.dtype.kind in "iu":
        x = _sticky_float(x)
    if dtype is dtypes.f16 or x.dtype.itemsize < 8:
        return x.astype(dtype.numpy)
    near = x.astype(np.float32)
    inexact = np.isfinite(x) & (near.astype(np.float64) != x)
    bits = near.view(np.uint32) - (inexact & (np.abs(near) > np.abs(x)))  # towards zero
    odd: Array = (bits | inexact).astype(np.uint32).view(np.float32)  # the lost bits leave a trace in the last one
    return odd.astype(dtype.numpy)


def _sticky_float(x: Array) -> Array:
    """Integers as f64: exact up to 2^53, beyond it the last bit tells that something was lost."""
    if x.dtype.itemsize < 8:
        return x.astype(np.float64)
    large = (x > 2**53) | (x < -(2**53))
    low = x & x.dtype.type(0xFFF)
    return np.where(large, (x - low) | ((low != 0).astype(x.dtype) << x.dtype.type(11)), x).astype(np.float64)


def converted(x: Array, dtype: DType, *, saturate: bool = False) -> Array:
    """`x` in another element type, by the rules of `convert`; InputError for a text that spells no value."""
    with np.errstate(all="ignore"):
        if dtype.is_string:
            return _spelled(x)
        if x.dtype.kind == "O":
            x = _parsed(x, dtype)
        if dtype.is_complex:
            return x.astype(dtype.numpy)
        if dtype.is_bool:
            return np.asarray(x != 0)
        if x.dtype.kind == "c":
            x = x.real
        if x.dtype.kind == "b":
            return x.astype(np.int8).astype(dtype.numpy)
        source = DType.from_numpy(x.dtype)
        if dtype.is_integer:
            return _to_integer(x.astype(np.float64), dtype) if source.is_float else _wrapped(x, source, dtype)
        x = x.astype(np.float64) if source.is_float else x.astype(np.int64) if source.bits < 8 else x
        return rounded(_saturated(x, dtype) if saturate and dtype.bits <= 8 else x, dtype)


def _to_integer(x: Array, dtype: DType) -> Array:
    low, high = int(dtype.min_value()), int(dtype.max_value())
    whole = np.trunc(np.where(np.isnan(x), 0.0, x))
    inside = np.where((whole >= low) & (whole < float(high) + 1), whole, 0.0)
    wide = inside.astype(np.uint64 if dtype is dtypes.u64 else np.int64)
    wide = (
        np.where(whole < low, low, np.where(whole > high, high, wide))
        if dtype.bits < 64
        else _ends(whole, wide, low, high)
    )
    return wide.astype(dtype.numpy)


def _ends(whole: Array, wide: Array, low: int, high: int) -> Array:
    """64-bit limits, compared as floats: 2^63 and 2^64 are exact, the greatest integer below them is not."""
    limit = float(high)  # rounds up to the power of two
    wide = np.where(whole >= limit, wide.dtype.type(high), wide)
    return np.where(whole < float(low), wide.dtype.type(low), wide)


def _wrapped(x: Array, source: DType, dtype: DType) -> Array:
    wide = x.astype(np.int64) if source.bits < 8 else x
    return (wide.astype(np.int64) if dtype.bits < 8 else wide).astype(dtype.numpy)


def _saturated(x: Array, dtype: DType) -> Array:
    info = dtype.finfo()
    low, high = float(info.min), float(info.max)
    if dtype is dtypes.f8e8m0fnu:  # no sign and no zero
        return np.where((x >= 0) & (x < low), low, np.minimum(x, high))
    return np.clip(x, low, high)


def _spelled(x: Array) -> Array:
    """Numbers as NumPy spells them: the shortest text that reads back as the same number, `True`, `nan`."""
    if x.dtype.kind == "O":
        return x
    if x.dtype.kind == "V" or x.dtype not in (np.float16, np.float32, np.float64):
        source = DType.from_numpy(x.dtype)
        x = (
            x.astype(np.float32)
            if source.is_float
            else x.astype(np.int64)
            if source.bits < 8 and source.is_integer
            else x
        )
    return x.astype(str).astype(object)


def _parsed(x: Array, dtype: DType) -> Array:
    kind = complex if dtype.is_complex else int if dtype.is_integer else float
    values = [_value(text, dtype, kind) for text in x.reshape(-1)]
    if dtype.is_integer:
        low, high = int(dtype.min_value()), int(dtype.max_value())
        values = [min(max(v, low), high) for v in values]
    plain = (
        np.complex128
        if dtype.is_complex
        else np.uint64
        if dtype is dtypes.u64
        else np.int64
        if dtype.is_integer
        else np.float64
    )
    return np.array(values, plain).reshape(x.shape)


def _value(text: Any, dtype: DType, kind: Any) -> Any:
    text = text.decode() if isinstance(text, bytes) else str(text)
    if dtype.is_bool and text.strip().lower() in ("true", "false"):
        return float(text.strip().lower() == "true")
    try:
        try:
            return kind(text)
        except ValueError:
            if kind is not int:
                raise
            return int(float(text))
    except (ValueError, OverflowError):
        raise InputError(f"the string {text!r} cannot be converted to {dtype}: it spells no such number") from None


def bits_of(x: Array, dtype: DType) -> Array:
    """The bit patterns of `x`, of type `dtype`, as unsigned integers of its NumPy width; unused high bits are 0."""
    if dtype.is_complex:
        raise InputError(f"the bits of {dtype} do not fit in one integer; take real and imag")
    pattern = np.ascontiguousarray(x).reshape(x.shape).view(_UNSIGNED[dtype.itemsize * 8])
    return pattern & pattern.dtype.type((1 << dtype.bits) - 1) if dtype.bits < 8 else pattern


def of_bits(pattern: Array, dtype: DType) -> Array:
    """Unsigned integers as the values of `dtype` with these bits."""
    if dtype.bits >= 8:
        return pattern.astype(_UNSIGNED[dtype.bits]).view(dtype.numpy)
    if dtype.is_float:
        return pattern.astype(np.uint8).view(dtype.numpy)
    value = pattern.astype(np.int64)
    if dtype.kind == "int":
        value = np.where(value >> (dtype.bits - 1) != 0, value - (1 << dtype.bits), value)
    return value.astype(dtype.numpy)


def recast(x: Array, dtype: DType) -> Array:
    """The bits of `x` read as `dtype`.

    A narrower type adds a last axis, a wider one removes it; low bits come first.
    """
    source = DType.from_numpy(x.dtype)
    if source is dtype:
        return x
    if source.bits == dtype.bits:
        return of_bits(bits_of(x, source), dtype)
    wide = bits_of(x, source).astype(np.uint64)
    if source.bits > dtype.bits:
        shifts = np.arange(source.bits // dtype.bits, dtype=np.uint64) * np.uint64(dtype.bits)
        return of_bits((wide[..., None] >> shifts) & np.uint64((1 << dtype.bits) - 1), dtype)
    shifts = np.arange(dtype.bits // source.bits, dtype=np.uint64) * np.uint64(source.bits)
    return of_bits(np.bitwise_or.reduce(wide << shifts, axis=-1), dtype)


def fewer_bits(x: Array, dtype: DType, exponent_bits: int, mantissa_bits: int) -> Array:
    """`x` rounded to fewer exponent and mantissa bits: too large gives inf, below the least normal number 0.

    The rule of XLA's reduce-precision; a format with as many exponent bits as the type keeps its subnormal numbers.
    """
    info = dtype.finfo()
    have, width = int(info.nmant), dtype.bits
    own_exponent_bits = width - 1 - have
    bits = bits_of(x, dtype).astype(np.uint64)
    one = np.uint64(1)
    sign = bits & (one << np.uint64(width - 1))
    magnitude = bits ^ sign
    infinity = np.uint64(((1 << own_exponent_bits) - 1) << have)
    if mantissa_bits < have:
        drop = np.uint64(have - mantissa_bits)
        half = (one << (drop - one)) - one
        magnitude = (magnitude + half + ((magnitude >> drop) & one)) >> drop << drop
    if exponent_bits < own_exponent_bits:
        bias, least = (1 << (own_exponent_bits - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = (magnitude >> np.uint64(have)).astype(np.int64)
        magnitude = np.where(exponent > bias + least, infinity, magnitude)
        magnitude = np.where(exponent <= bias - least, np.uint64(0), magnitude)
    out = of_bits(sign | np.minimum(magnitude, infinity), dtype)
    return np.where(np.isnan(x.astype(np.float64)), x, out)
