"""ONNX lowering of recurrent layers."""

from __future__ import annotations

from .lowering import lower


def _attributes(hidden_size, direction, activations, activation_alpha, activation_beta, clip):
    return {
        "hidden_size": hidden_size,
        "direction": direction,
        "activations": list(activations),
        "activation_alpha": list(activation_alpha) or None,
        "activation_beta": list(activation_beta) or None,
        "clip": clip or None,
    }


def _layer(ctx, kind, x, weights, sequence_lens, states, peepholes, layout, attributes):
    """The layer; batches first are transposed for ONNX Runtime, whose kernels want steps first."""
    if not layout or not ctx.dialect.runtime:
        given = {**attributes, "layout": layout or None}
        return ctx.ops(kind, x, *weights, sequence_lens, *states, *peepholes, **given)
    x, *states = (None if v is None else ctx.transpose(v, (1, 0, 2)) for v in (x, *states))
    whole, *last = ctx.results
    types = [whole.with_dims([whole.shape[i] for i in (1, 2, 0, 3)])]
    types += [t.with_dims([t.shape[i] for i in (1, 0, 2)]) for t in last]
    y, *final = ctx.ops(kind, x, *weights, sequence_lens, *states, *peepholes, types=types, **attributes)
    return ctx.transpose(y, (2, 0, 1, 3)), *(ctx.transpose(v, (1, 0, 2)) for v in final)


@lower("LSTM")
def lstm(
    ctx,
    x,
    w,
    r,
    b,
    sequence_lens,
    initial_h,
    initial_c,
    p,
    *,
    hidden_size,
    direction,
    activations,
    activation_alpha,
    activation_beta,
    clip,
    input_forget,
    layout,
):
    common = _attributes(hidden_size, direction, activations, activation_alpha, activation_beta, clip)
    common["input_forget"] = int(input_forget)
    return _layer(ctx, "LSTM", x, (w, r, b), sequence_lens, (initial_h, initial_c), (p,), layout, common)


@lower("GRU")
def gru(
    ctx,
    x,
    w,
    r,
    b,
    sequence_lens,
    initial_h,
    *,
    hidden_size,
    direction,
    activations,
    activation_alpha,
    activation_beta,
    clip,
    linear_before_reset,
    layout,
):
    common = _attributes(hidden_size, direction, activations, activation_alpha, activation_beta, clip)
    common["linear_before_reset"] = int(linear_before_reset)
    return _layer(ctx, "GRU", x, (w, r, b), sequence_lens, (initial_h,), (), layout, common)


@lower("RNN")
def rnn(
    ctx,
    x,
    w,
    r,
    b,
    sequence_lens,
    initial_h,
    *,
    hidden_size,
    direction,
    activations,
    activation_alpha,
    activation_beta,
    clip,
    layout,
):
    common = _attributes(hidden_size, direction, activations, activation_alpha, activation_beta, clip)
    return _layer(ctx, "RNN", x, (w, r, b), sequence_lens, (initial_h,), (), layout, common)


@lower("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale, r_zero_point, *,
    hidden_size, direction, activations, activation_alpha, activation_beta, clip, input_forget,
):  # fmt: skip
    """ONNX Runtime's operator."""
    common = _attributes(hidden_size, direction, activations, activation_alpha, activation_beta, clip)
    return ctx.ops(
        "DynamicQuantizeLSTM", x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale,
        r_zero_point, domain="com.microsoft", input_forget=int(input_forget), **common,
    )  # fmt: skip
