"""ONNX random operators.  A seed becomes a constant key; without one the key is an input that the executable fills."""

from __future__ import annotations

import hashlib

import numpy as np

from ...ir.dtypes import bool_, f32, i32, u32
from ...ir.types import TensorType
from .registry import onnx_op

KEY = "random_key"
DRAWS = frozenset({
    "RandomUniform", "RandomUniformLike", "RandomNormal", "RandomNormalLike", "Bernoulli", "Multinomial", "Dropout",
})  # fmt: skip
"""Operators that draw: in a loop they must be typed where the iteration is known."""


def key(ctx, seed):
    """u32[2]: of the seed or the executable's key, of the node's name, and of the iterations of the loops around."""
    b = ctx.build
    own = np.frombuffer(hashlib.sha256(ctx.label.encode()).digest()[:8], np.uint32)
    if seed is not None:
        out = b.constant(own ^ np.frombuffer(np.float64(seed).tobytes(), np.uint32), u32)
    else:
        out = b.xor(_filled(ctx), b.constant(own, u32))
    for i in ctx.importer.rounds:
        number = b.reshape(b.convert(i, dtype=u32), dims=(1,))
        zero = b.constant(np.zeros(1, np.uint32))
        out = b.RandomBits(b.xor(out, b.concatenate((zero, number), axis=0)), dims=(2,))
    return out


def _filled(ctx):
    """The input of the entry that the executable fills."""
    function = ctx.importer.main
    if function is None:
        ctx.refuse("random numbers without a seed are not supported in what is typed at run time")
    marked = zip(function.inputs, function.input_attributes, strict=True)
    given = next((v for v, marks in marked if marks.get("role") == KEY), None)
    return function.add_input(TensorType(u32, (2,)), KEY, role=KEY) if given is None else given


def _number_type(ctx, dtype, like=None):
    if dtype is not None:
        return ctx.dtype(dtype)
    return f32 if like is None or not like.dtype.is_float else like.dtype


@onnx_op("RandomUniform")
def random_uniform(ctx, *, shape, dtype=1, high=1.0, low=0.0, seed=None):
    return ctx.build.RandomUniform(key(ctx, seed), dims=shape, dtype=ctx.dtype(dtype), low=low, high=high)


@onnx_op("RandomUniformLike")
def random_uniform_like(ctx, x, *, dtype=None, high=1.0, low=0.0, seed=None):
    return ctx.build.RandomUniform(key(ctx, seed), dims=x.dims, dtype=_number_type(ctx, dtype, x), low=low, high=high)


@onnx_op("RandomNormal")
def random_normal(ctx, *, shape, dtype=1, mean=0.0, scale=1.0, seed=None):
    return ctx.build.RandomNormal(key(ctx, seed), dims=shape, dtype=ctx.dtype(dtype), mean=mean, scale=scale)


@onnx_op("RandomNormalLike")
def random_normal_like(ctx, x, *, dtype=None, mean=0.0, scale=1.0, seed=None):
    return ctx.build.RandomNormal(
        key(ctx, seed), dims=x.dims, dtype=_number_type(ctx, dtype, x), mean=mean, scale=scale
    )


@onnx_op("Bernoulli")
def bernoulli(ctx, x, *, dtype=None, seed=None):
    return ctx.build.Bernoulli(key(ctx, seed), x, dtype=x.dtype if dtype is None else ctx.dtype(dtype))


@onnx_op("Multinomial")
def multinomial(ctx, x, *, dtype=None, sample_size=1, seed=None):
    return ctx.build.Multinomial(
        key(ctx, seed), x, samples=sample_size, dtype=i32 if dtype is None else ctx.dtype(dtype)
    )


@onnx_op("Dropout", since=12)
def dropout(ctx, x, ratio=None, training_mode=None, *, seed=None):
    b = ctx.build
    whole = None if not ctx.wants(1) else b.full(True, bool_, x.dims)
    if training_mode is None:
        return x, whole
    known = ctx.constant(training_mode)
    if known is not None and not bool(known.numpy().reshape(-1)[0]):
        return x, whole
    share = b.constant(0.5, f32) if ratio is None else ratio
    if known is None:  # outside training nothing is dropped
        share = b.select(ctx.scalar(training_mode), ctx.scalar(share), ctx.zeros(share.dtype))
    return b.Dropout(key(ctx, seed), x, share)
