"""Fourier transforms."""

from ...ir import dtypes
from .lowering import lower


@lower("fft")
def fft(ctx, x, *, fft_type, fft_length):
    if x.dtype in (dtypes.f64, dtypes.c128):
        ctx.refuse("MLX transforms in single precision only")
    kind = ctx.result_types[0]
    dims, dtype = kind.shape, kind.dtype
    if any(isinstance(d, int) and d == 0 for d in (*x.dims, *dims)):
        return ctx.call(
            "mx.zeros", dims, "mx.float32" if dtype is dtypes.f32 else "mx.complex64", dtype=dtype, dims=dims
        )
    count = len(fft_length)
    if count == 1:
        extra = [f"n={fft_length[0]}"] if fft_type == "irfft" else []
        return ctx.call(f"mx.fft.{fft_type}", x, *extra, dtype=dtype, dims=dims)
    axes = tuple(range(-count, 0))
    extra = [f"s={list(fft_length)}"] if fft_type == "irfft" else []
    return ctx.call(f"mx.fft.{fft_type}n", x, *extra, axes=axes, dtype=dtype, dims=dims)
