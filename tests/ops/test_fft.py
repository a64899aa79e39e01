"""Fourier transforms against NumPy and the definition."""

import numpy as np
import pytest

from irc.ir import dtypes
from irc.ir.dims import symbol
from irc.ir.errors import InferenceError
from irc.ir.types import tensor
from irc.testing.operators import assumptions_of, facts_of, run

X = np.random.default_rng(0).normal(size=(2, 3, 4, 6))


@pytest.mark.parametrize("length", [(6,), (4, 6), (3, 4, 6)], ids=str)
@pytest.mark.parametrize("real, complex_", [(np.float32, np.complex64), (np.float64, np.complex128)])
def test_transforms(length, real, complex_):
    axes, x = tuple(range(4 - len(length), 4)), X.astype(real)
    z = (x + 1j * x[::-1]).astype(complex_)
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if real is np.float32 else {"rtol": 1e-12, "atol": 1e-12}
    for kind, operand, want in (
        ("fft", z, np.fft.fftn(z, axes=axes)),
        ("ifft", z, np.fft.ifftn(z, axes=axes)),
        ("rfft", x, np.fft.rfftn(x, axes=axes)),
        ("irfft", np.fft.rfftn(x, axes=axes).astype(complex_), x),
    ):
        got = run("fft", operand, fft_type=kind, fft_length=length)
        assert got.dtype == (real if kind == "irfft" else complex_)
        np.testing.assert_allclose(got, want, **tolerance)


def test_definition():
    z = X[0, 0, 0] + 1j * X[0, 0, 1]
    k = np.arange(6)
    matrix = np.exp(-2j * np.pi * np.outer(k, k) / 6)
    np.testing.assert_allclose(run("fft", z, fft_type="fft", fft_length=(6,)), matrix @ z, rtol=1e-12)


def test_odd_inverse_and_empty():
    x = X[0, 0, :, :5]
    spectrum = run("fft", x, fft_type="rfft", fft_length=(5,))
    assert spectrum.shape == (4, 3)
    np.testing.assert_allclose(run("fft", spectrum, fft_type="irfft", fft_length=(5,)), x, rtol=1e-12)
    assert run("fft", np.zeros((0, 4), np.complex64), fft_type="fft", fft_length=(4,)).shape == (0, 4)


def test_types_and_errors():
    n = symbol("N")
    assert str(facts_of("fft", tensor(dtypes.f32, n, 8), fft_type="rfft", fft_length=(8,)).type) == "c64[N,5]"
    assert assumptions_of("fft", tensor(dtypes.c128, n), fft_type="irfft", fft_length=(8,)) == ["N == 5"]
    with pytest.raises(InferenceError, match="fft needs c64 or c128"):
        facts_of("fft", tensor(dtypes.f32, 8), fft_type="fft", fft_length=(8,))
    with pytest.raises(InferenceError, match="must be equal, got 6 and 8"):
        facts_of("fft", tensor(dtypes.c64, 6), fft_type="fft", fft_length=(8,))
