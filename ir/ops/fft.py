"""Fourier transforms."""

from typing import Literal

import numpy as np

from .. import dtypes
from ..facts import make
from ..operators import INEXACT, PURE, Operand, operator
from . import bucketing
from .widening import wide_array

_REAL = {dtypes.f32: dtypes.c64, dtypes.f64: dtypes.c128}
_COMPLEX = {c: r for r, c in _REAL.items()}


def _fft_type(ctx, x, *, fft_type, fft_length):
    count = len(fft_length)
    ctx.need(1 <= count <= 3, f"fft_length has 1 to 3 entries, got {count}")
    ctx.need(x.rank >= count, f"x needs rank {count} or more, got {x.type}")
    ctx.need(all(n >= 0 for n in fft_length), f"fft_length must not be negative, got {list(fft_length)}")
    real_in, wanted = fft_type == "rfft", _REAL if fft_type == "rfft" else _COMPLEX
    ctx.need(x.dtype in wanted, f"{fft_type} needs {' or '.join(map(str, wanted))}, got {x.type}")
    spectrum = fft_length[-1] // 2 + 1
    read = (*fft_length[:-1], spectrum if fft_type == "irfft" else fft_length[-1])
    ctx.equal_dims(x.dims[-count:], read, "the last dims of x and fft_length")
    last = spectrum if real_in else fft_length[-1]
    dtype = wanted[x.dtype] if fft_type in ("rfft", "irfft") else x.dtype
    return make(dtype, *x.dims[:-count], *fft_length[:-1], last)


def _fft_reference(ctx, x, *, fft_type, fft_length):
    axes = tuple(range(x.ndim - len(fft_length), x.ndim))
    if 0 in fft_length:
        return np.zeros(ctx.result_types[0].dims)
    wide = wide_array(x)
    match fft_type:
        case "fft":
            return np.fft.fftn(wide, axes=axes)
        case "ifft":
            return np.fft.ifftn(wide, axes=axes)
        case "rfft":
            return np.fft.rfftn(wide, axes=axes)
        case _:
            return np.fft.irfftn(wide, fft_length, axes=axes)


@operator("fft", family="fft", traits=PURE)
class Fft:
    """Discrete Fourier transform over the last len(fft_length) axes (1 to 3).

    fft, ifft: complex to complex; rfft: real to complex, last dim n//2+1; irfft: complex to real of last dim
    fft_length[-1].  Inverses divide by the number of elements.
    """

    x: Operand[INEXACT]
    fft_type: Literal["fft", "ifft", "rfft", "irfft"]
    fft_length: tuple[int, ...]
    infer = _fft_type
    reference = _fft_reference
    bucket = bucketing.fft
