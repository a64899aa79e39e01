"""Rfft and Irfft of ONNX Runtime: real and imaginary parts are the last axis."""

from __future__ import annotations

from ..registry import onnx_op


def _checked(ctx, signal_ndim, onesided, normalized):
    if not onesided or normalized:
        ctx.fail(f"onesided must be 1 and normalized 0, got {onesided} and {normalized}")
    if not 1 <= signal_ndim <= 3:
        ctx.refuse(f"signals of {signal_ndim} axes are not supported, only of 1 to 3")


def _lengths(ctx, dims):
    if not all(isinstance(d, int) for d in dims):
        ctx.refuse("the length of the signal is known only at run time")
    return tuple(dims)


@onnx_op("Rfft", domain="com.microsoft")
def rfft(ctx, x, *, signal_ndim=1, onesided=1, normalized=0):
    """[.., n] -> [.., n / 2 + 1, 2]: the transform over the last `signal_ndim` axes."""
    _checked(ctx, signal_ndim, onesided, normalized)
    b = ctx.build
    out = b.fft(x, fft_type="rfft", fft_length=_lengths(ctx, x.dims[x.rank - signal_ndim :]))
    parts = tuple(b.reshape(v, dims=(*v.dims, 1)) for v in (b.real(out), b.imag(out)))
    return b.concatenate(parts, axis=x.rank)


@onnx_op("Irfft", domain="com.microsoft")
def irfft(ctx, x, *, signal_ndim, onesided=1, normalized=0):
    """[.., n / 2 + 1, 2] -> [.., n] for even n, divided by the number of elements that are transformed."""
    _checked(ctx, signal_ndim, onesided, normalized)
    b, rank = ctx.build, x.rank - 1
    parts = [b.reshape(v, dims=x.dims[:-1]) for v in b.Split(x, axis=rank, sizes=(1, 1))]
    *others, last = _lengths(ctx, x.dims[rank - signal_ndim : -1])
    return b.fft(b.complex(*parts), fft_type="irfft", fft_length=(*others, 2 * (last - 1)))
