"""Recipes for floats of 8 bits and fewer, which MLX lacks: arrays hold their codes."""

import math

import mlx.core as mx


def _decode_float(code, exponent_bits, mantissa_bits, bias, nan, infinite):
    """Codes of a narrow float format as float32.  `nan`: the code of NaN, -1 if there is none."""
    code = code.astype(mx.int32)
    width = exponent_bits + mantissa_bits
    magnitude = code & ((1 << width) - 1)
    exponent = magnitude >> mantissa_bits
    fraction = magnitude & ((1 << mantissa_bits) - 1)
    whole = mx.where(exponent == 0, fraction, fraction + (1 << mantissa_bits)).astype(mx.float32)
    power = ((mx.maximum(exponent, 1) - bias - mantissa_bits + 127) << 23).view(mx.float32)
    value = mx.where(code >> width == 1, -whole * power, whole * power)
    if infinite:
        special = mx.where(fraction != 0, math.nan, mx.where(code >> width == 1, -math.inf, math.inf))
        return mx.where(exponent == (1 << exponent_bits) - 1, special, value)
    if nan < 0:
        return value
    return mx.where((code if nan == 1 << width else magnitude) == nan, math.nan, value)


def _encode_float(x, exponent_bits, mantissa_bits, bias, top, nan, infinite, has_negative_zero, saturate):
    """float32 rounded to nearest even as codes of a narrow format whose greatest finite code is `top`."""
    width = exponent_bits + mantissa_bits
    bits = x.view(mx.int32)
    negative = bits < 0
    magnitude = (bits & 0x7FFFFFFF).view(mx.float32)
    exponent = mx.clip((magnitude.view(mx.int32) >> 23) - 127, 1 - bias, 127)
    step = mx.clip(exponent - mantissa_bits, -126, 127)
    scaled = mx.where(magnitude < math.inf, magnitude, 0) * ((127 - step) << 23).view(mx.float32)
    code = mx.round(mx.minimum(scaled, 1 << 20)).astype(mx.int32) + ((exponent - (1 - bias)) << mantissa_bits)
    code = mx.where(magnitude == math.inf, top + 1, code)
    beyond = top if saturate or (nan < 0 and not infinite) else top + 1 if infinite else nan
    code = mx.where(code > top, beyond, code)
    sign = negative if has_negative_zero else negative & (code != 0) & (code != nan)
    code = mx.where(sign, code | (1 << width), code)
    if nan < 0:
        return mx.where(x != x, 1 << width, code).astype(mx.uint8)
    return mx.where(x != x, mx.where(negative & has_negative_zero, nan | (1 << width), nan), code).astype(mx.uint8)


def _decode_powers(code):
    """Codes of f8e8m0fnu, 2^(code - 127), as float32."""
    code = code.astype(mx.int32)
    value = mx.where(code == 0, mx.array(1 << 22, mx.int32), code << 23).view(mx.float32)
    return mx.where(code == 255, math.nan, value)


def _encode_powers(x, saturate):
    """float32 as codes of f8e8m0fnu: the nearest power of two, NaN for what is not positive."""
    bits = x.view(mx.int32)
    fraction = bits & 0x7FFFFF
    exponent = bits >> 23
    code = exponent + (fraction >= 0x400000)
    code = mx.where(exponent == 0, mx.where(fraction > 0x600000, 1, 0), code)
    top = 254 if saturate else 255
    code = mx.where(code > 254, top, code)
    if saturate:
        return mx.where((x != x) | (x < 0), 255, code).astype(mx.uint8)
    return mx.where((x != x) | (x <= 0) | (x == math.inf), 255, code).astype(mx.uint8)
