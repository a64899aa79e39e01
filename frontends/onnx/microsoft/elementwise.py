"""Activations, additions and complex products of ONNX Runtime, and the activations of its fused operators."""

from __future__ import annotations

from functools import partial

from ....ir import dims as sizes
from ....ir.dtypes import bool_
from ..registry import onnx_op as _onnx_op

onnx_op = partial(_onnx_op, domain="com.microsoft")

ACTIVATIONS = {
    "Relu": (), "Sigmoid": (), "Tanh": (), "Softplus": (), "Softsign": (), "LeakyRelu": (0.01,), "Elu": (1.0,),
    "ThresholdedRelu": (1.0,), "HardSigmoid": (0.2, 0.5), "Clip": (None, None), "HardSwish": (), "Gelu": (),
}  # fmt: skip
"""Names of activations of fused operators, with the defaults of their parameters."""
_CORE = {"Sigmoid": "logistic", "Tanh": "tanh"}


def activated(ctx, x, name, parameters=()):
    """x behind the activation of a fused operator; an empty name is none.  Clip's parameters are its bounds."""
    if not name:
        return x
    if name not in ACTIVATIONS:
        ctx.refuse(f"the activation {name!r} is not supported, only {', '.join(ACTIVATIONS)}")
    defaults, b = ACTIVATIONS[name], ctx.build
    if len(parameters) > len(defaults):
        ctx.fail(f"the activation {name} takes {len(defaults)} parameters, got {list(parameters)}")
    given = [*parameters, *defaults[len(parameters) :]]
    if name == "Clip":
        return b.Clip(x, *(None if v is None else b.constant(v, x.dtype) for v in given))
    return b.apply(_CORE.get(name, name), x, **dict(zip(("alpha", "beta"), given, strict=False)))


def _biased(ctx, x, bias):
    """x plus a vector of its last axis."""
    if bias is None:
        return x
    if bias.rank != 1 or sizes.equal(bias.dims[0], x.dims[-1]) is False:
        ctx.fail(f"the bias must be a vector of the last axis of {x.type}, got {bias.type}")
    return ctx.build.add(x, bias)


@onnx_op("Gelu")
def gelu(ctx, x):
    return ctx.build.Gelu(x)


@onnx_op("FastGelu")
def fast_gelu(ctx, x, bias=None):
    return ctx.build.Gelu(_biased(ctx, x, bias), approximate="tanh")


@onnx_op("BiasGelu")
def bias_gelu(ctx, x, bias):
    return ctx.build.Gelu(_biased(ctx, x, bias))


@onnx_op("QuickGelu")
def quick_gelu(ctx, x, *, alpha=1.702):
    return ctx.build.Swish(x, alpha=alpha)


@onnx_op("BiasSplitGelu")
def bias_split_gelu(ctx, x, bias):
    """The left half of x + bias times Gelu of the right half."""
    half = sizes.floordiv(x.dims[-1], 2)
    left, right = ctx.build.Split(_biased(ctx, x, bias), axis=x.rank - 1, sizes=(half, half))
    return ctx.build.multiply(left, ctx.build.Gelu(right))


@onnx_op("BiasAdd")
def bias_add(ctx, x, bias, skip):
    return ctx.build.add(_biased(ctx, x, bias), skip)


@onnx_op("BiasDropout")
def bias_dropout(ctx, x, bias, residual=None, ratio=None, training_mode=None, *, seed=None):
    """Inference only: x + bias + residual, and a mask that keeps everything."""
    if training_mode is not None:
        known = ctx.constant(training_mode)
        if known is None or bool(known.numpy().reshape(-1)[0]):
            ctx.refuse("it drops elements: the model is, or may be, in training mode")
    out = ctx.build.add(x, bias)
    out = out if residual is None else ctx.build.add(out, residual)
    return out, ctx.build.full(True, bool_, out.dims) if ctx.wants(1) else None


@onnx_op("ComplexMul", "ComplexMulConj")
def complex_mul(ctx, x, y):
    """Products of complex numbers whose parts are the last axis; ComplexMulConj takes the conjugate of y."""
    b = ctx.build
    for v in (x, y):
        if not v.rank or sizes.equal(v.dims[-1], 2) is False:
            ctx.fail(f"the last axis must hold real and imaginary parts, got {v.type}")
    (xr, xi), (yr, yi) = (b.Split(v, axis=v.rank - 1, sizes=(1, 1)) for v in (x, y))
    if ctx.node.op_type == "ComplexMulConj":
        yi = b.negate(yi)
    real = b.subtract(b.multiply(xr, yr), b.multiply(xi, yi))
    imaginary = b.add(b.multiply(xr, yi), b.multiply(xi, yr))
    return b.concatenate((real, imaginary), axis=real.rank - 1)
