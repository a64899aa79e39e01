"""Fourier transforms."""

from typing import Literal

import numpy as np

from ..operators import INEXACT, PURE, Operand, operator


@operator("fft", family="fft", traits=PURE)
class Fft:
    """Discrete Fourier transform over the last len(fft_length) axes (1 to 3).

    fft, ifft: complex to complex; rfft: real to complex, last dim n//2+1; irfft: complex to real of last dim
    fft_length[-1].  Inverses divide by the number of elements.
    """

    x: Operand[INEXACT]
    fft_type: Literal["fft", "ifft", "rfft", "irfft"]
    fft_length: tuple[int, ...]
