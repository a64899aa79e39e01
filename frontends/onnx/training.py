"""ONNX's training preview operators: one step of an optimizer for any number of tensors."""

from __future__ import annotations

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
