"""ONNX DFT: pairs of real numbers in the last axis become complex values around the core `fft`."""

from __future__ import annotations

from ...ir import dims as sizes
from ...ir.facts import NeedsInts
from .registry import onnx_op


@onnx_op("DFT", since=17, until=19)
def dft_17(ctx, x, dft_length=None, *, axis=1, inverse=0, onesided=0):
    return _dft(ctx, x, dft_length, axis, inverse, onesided)


@onnx_op("DFT", since=20)
def dft(ctx, x, dft_length=None, axis=None, *, inverse=0, onesided=0):
    return _dft(ctx, x, dft_length, -2 if axis is None else ctx.number(axis, "the axis"), inverse, onesided)


def _dft(ctx, x, dft_length, axis, inverse, onesided):
    if x.dtype.bits < 32:
        ctx.refuse(f"transforms of {x.dtype} are not supported: there is no complex type of that width")
    parts = x.dims[-1]
    if parts not in (1, 2):
        ctx.fail(f"the last axis must have size 1 (real) or 2 (complex), got {parts}")
    if onesided and inverse:
        ctx.refuse("onesided inverse transforms are not supported")
    if onesided and parts == 2:
        ctx.fail("onesided transforms take real values")
    b, at, rank = ctx.build, ctx.axis(axis, x), x.rank - 1
    if at == rank:
        ctx.fail("the axis of the transform must not be the last one, which holds real and imaginary parts")
    length = x.dims[at] if dft_length is None else ctx.number(dft_length, "the length of the transform")
    if not isinstance(length, int):
        raise NeedsInts("the length of the transform is known only at run time")
    last = (*(i for i in range(rank) if i != at), at)
    re, im = _part(ctx, x, 0), _part(ctx, x, 1) if parts == 2 else None
    re, im = (None if p is None else _of_length(ctx, b.transpose(p, permutation=last), length) for p in (re, im))
    if onesided:
        out = b.fft(re, fft_type="rfft", fft_length=(length,))
    else:
        zero = b.full(0, x.dtype, re.dims) if im is None else im
        out = b.fft(b.complex(re, zero), fft_type="ifft" if inverse else "fft", fft_length=(length,))
    back = tuple(last.index(i) for i in range(rank))
    columns = [b.transpose(p, permutation=back) for p in (b.real(out), b.imag(out))]
    return b.concatenate(tuple(b.reshape(c, dims=(*c.dims, 1)) for c in columns), axis=rank)


def _part(ctx, x, index):
    """Real (0) or imaginary (1) parts, without the last axis."""
    rest = x.dims[:-1]
    if x.dims[-1] != 1:
        none, ones = (0,) * len(rest), (1,) * x.rank
        x = ctx.build.slice(x, starts=(*none, index), limits=(*rest, index + 1), strides=ones)
    return ctx.build.reshape(x, dims=rest)


def _of_length(ctx, x, length):
    """x cut or padded with zeros to `length` along its last axis."""
    have = x.dims[-1]
    if sizes.equal(have, length) is True:
        return x
    none = (0,) * x.rank
    return ctx.build.pad(x, ctx.zeros(x.dtype), low=none, high=(*none[1:], length - have), interior=none)
