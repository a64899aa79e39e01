"""ONNX's training preview operators: gradients, and one step of an optimizer for any number of tensors."""

from __future__ import annotations

from ...ir.clone import copy_nodes
from ...ir.differentiate import between, gradients
from ...ir.errors import IrcError
from ...ir.model import Value
from .registry import onnx_op

PREVIEW = "ai.onnx.preview.training"


def _columns(ctx, xs, count):
    """`count` tuples of equal length: the optimized tensors, their gradients, their states."""
    each, rest = divmod(len(xs), count)
    if rest or not each:
        ctx.fail(f"takes {count} inputs for each optimized tensor behind the rate and the count, got {len(xs)}")
    return [tuple(xs[i * each : (i + 1) * each]) for i in range(count)]


@onnx_op("Adagrad", domain=PREVIEW)
def adagrad(ctx, rate, count, *xs, norm_coefficient=0.0, decay_factor=0.0, epsilon=1e-6):
    return ctx.build.Adagrad(
        rate, count, *_columns(ctx, xs, 3), norm_coefficient=norm_coefficient, decay_factor=decay_factor,
        epsilon=epsilon,
    )  # fmt: skip


@onnx_op("Adam", domain=PREVIEW)
def adam(ctx, rate, count, *xs, alpha=0.9, beta=0.999, norm_coefficient=0.0, norm_coefficient_post=0.0, epsilon=1e-6):
    return ctx.build.Adam(
        rate, count, *_columns(ctx, xs, 4), alpha=alpha, beta=beta, norm_coefficient=norm_coefficient,
        norm_coefficient_post=norm_coefficient_post, epsilon=epsilon,
    )  # fmt: skip


@onnx_op("Momentum", domain=PREVIEW)
def momentum(ctx, rate, count, *xs, alpha, beta, mode, norm_coefficient):
    return ctx.build.Momentum(
        rate, count, *_columns(ctx, xs, 3), alpha=alpha, beta=beta, mode=mode, norm_coefficient=norm_coefficient
    )


@onnx_op("Gradient", domain=PREVIEW)
def gradient(ctx, *inputs, xs, y, zs=()):
    """Derivatives of the tensor named y in those named xs, of its sum if it has several elements.

    Inputs that are other values than those named xs and zs are put in their place: y is computed again from them.
    """
    if len(inputs) != len(xs) + len(zs):
        ctx.fail(f"takes one input for each of xs and zs, {len(xs) + len(zs)}, got {len(inputs)}")
    named = [_named(ctx, name) for name in (*xs, *zs)]
    output = _named(ctx, y)
    for name, value, given in zip((*xs, *zs), named, inputs, strict=True):
        if given is None or given.type != value.type:
            ctx.fail(f"{name} has type {value.type}, its input {'none' if given is None else given.type}")
    if any(value is not given for value, given in zip(named, inputs, strict=True)):
        nodes = between([output], set(named))
        if effects := next((n for n in nodes if n.op.has_effects), None):
            ctx.refuse(f"{y} would have to be computed again, and {effects.label} must happen once")
        mapping = dict(zip(named, inputs, strict=True))
        copy_nodes(nodes, ctx.build.graph, mapping)
        output = mapping.get(output, output)
    try:
        return gradients(ctx.build, [output], inputs[: len(xs)], constants=inputs[len(xs) :])
    except IrcError as error:
        ctx.refuse(str(error))


def _named(ctx, name) -> Value:
    """The value that an attribute names."""
    value: Value = ctx.importer.value(ctx.frame.scope, name, ctx.build)
    return value
