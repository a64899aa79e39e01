"""ONNX DFT: pairs of real numbers in the last axis become complex values around the core `fft`."""

from __future__ import annotations

import numpy as np

from ...ir import dims as sizes
from ...ir.dtypes import i64
from ...ir.facts import NeedsInts
from ...ir.ops.shape.positions import sliced
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
    if onesided and parts != (2 if inverse else 1):
        ctx.fail(f"a onesided transform {'back takes complex' if inverse else 'takes real'} values")
    b, at, rank = ctx.build, ctx.axis(axis, x), x.rank - 1
    if at == rank:
        ctx.fail("the axis of the transform must not be the last one, which holds real and imaginary parts")
    if dft_length is not None:
        length = ctx.number(dft_length, "the length of the transform")
    else:
        length = 2 * (x.dims[at] - 1) if onesided and inverse else x.dims[at]
    if not isinstance(length, int):
        raise NeedsInts("the length of the transform is known only at run time")
    last = (*(i for i in range(rank) if i != at), at)
    back = tuple(last.index(i) for i in range(rank))
    taken = length // 2 + 1 if onesided and inverse else length
    columns = [_of_length(ctx, b.transpose(_part(ctx, x, i), permutation=last), taken) for i in range(parts)]
    if parts == 1 and not inverse:
        out = b.fft(columns[0], fft_type="rfft", fft_length=(length,))
    else:
        zero = b.full(0, x.dtype, columns[0].dims) if parts == 1 else columns[1]
        kind = "irfft" if onesided else "ifft" if inverse else "fft"
        out = b.fft(b.complex(columns[0], zero), fft_type=kind, fft_length=(length,))
    results = [out] if onesided and inverse else [b.real(out), b.imag(out)]
    if parts == 1 and not inverse and not onesided:
        results = [_mirrored(b, part, length, odd) for part, odd in zip(results, (False, True), strict=True)]
    rows = [b.transpose(r, permutation=back) for r in results]
    rows = [b.reshape(r, dims=(*r.dims, 1)) for r in rows]
    return rows[0] if len(rows) == 1 else b.concatenate(tuple(rows), axis=rank)


def _mirrored(b, half, length, odd):
    """All bins of a real signal from the first length // 2 + 1: bin length - k is the conjugate of bin k, exactly."""
    count, axis = (length - 1) // 2, half.rank - 1
    if count < 1:
        return half
    rest = b.reverse(sliced(b, half, axis, 1, 1 + count), axes=(axis,))
    return b.concatenate((half, b.negate(rest) if odd else rest), axis=axis)


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


@onnx_op("STFT")
def stft(ctx, signal, frame_step, window=None, frame_length=None, *, onesided=1):
    """[batch, frames, bins, 2]: transforms of overlapping pieces of the signal, each multiplied by the window."""
    b = ctx.build
    step = ctx.number(frame_step, "the frame step")
    if frame_length is not None:
        length = ctx.number(frame_length, "the frame length")
    elif window is not None:
        length = window.dims[0]
    else:
        ctx.fail("needs a window or a frame length")
    if not isinstance(length, int) or step < 1:
        raise NeedsInts("the frame length is known only at run time")
    frames = sizes.floordiv(signal.dims[1] - length, step) + 1
    start = b.multiply(b.iota(dtype=i64, dims=(frames, 1), axis=0), step)
    pieces = b.take(signal, b.add(start, b.iota(dtype=i64, dims=(1, length), axis=1)), axis=1)
    if window is not None:
        pieces = b.multiply(pieces, b.reshape(window, dims=(1, 1, length, 1)))
    real = signal.dims[-1] == 1
    return _dft(ctx, pieces, None, 2, 0, int(bool(onesided) and real))


@onnx_op("MelWeightMatrix")
def mel_weight_matrix(ctx, bins, dft_length, sample_rate, low, high, *, output_datatype=1):
    """The matrix from a spectrum to mel bins: triangles at frequencies equally spaced in mel.  A constant."""
    count, length, rate = (
        ctx.number(v, what)
        for v, what in ((bins, "the number of bins"), (dft_length, "the length"), (sample_rate, "the sample rate"))
    )
    lowest, highest = (2595 * np.log10(1 + ctx.floats(v, "a frequency")[0] / 700) for v in (low, high))
    steps = np.arange(count + 2) * ((highest - lowest) / (count + 2)) + lowest
    edges = ((length + 1) * (700 * (10 ** (steps / 2595) - 1)) // rate).astype(np.int64)
    left, middle, right = edges[:-2], edges[1:-1], edges[2:]
    rows = np.arange(length // 2 + 1)[:, None]
    with np.errstate(all="ignore"):
        rising = np.where(left == middle, rows == middle, (rows - left) / (middle - left))
        falling = (right - rows) / (right - middle)
    out = np.where((rows >= left) & (rows <= middle), rising, 0.0)
    out = np.where((rows >= middle) & (rows < right), falling, out)
    return ctx.build.constant(out.astype(ctx.dtype(output_datatype).numpy), ctx.dtype(output_datatype))
