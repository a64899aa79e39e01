"""Fourier transforms."""

from ...ir import dtypes
from . import types
from .lowering import lower
from .mlir import hlo, ir


@lower("fft")
def fft(ctx, x, *, fft_type, fft_length):
    """f16 and bf16 are transformed in f32."""
    dtype, dims = ctx.result_types[0]
    x = ctx.convert(x, types.accumulator(x.dtype))
    if 0 in x.dims or 0 in dims:
        return ctx.full(0, dtype, dims)
    lengths = ir.DenseI64ArrayAttr.get(list(fft_length))
    value = hlo.fft(x.value, hlo.FftTypeAttr.get(fft_type.upper()), lengths)
    made = dtypes.f64 if x.dtype in (dtypes.f64, dtypes.c128) else dtypes.f32
    if fft_type != "irfft":
        made = dtypes.c128 if made is dtypes.f64 else dtypes.c64
    return ctx.convert(ctx.wrap(value, made), dtype)
