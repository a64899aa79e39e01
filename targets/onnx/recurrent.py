"""ONNX lowering of recurrent layers."""

from __future__ import annotations

from .lowering import lower


def _attributes(x, hidden_size, direction, activations, activation_alpha, activation_beta, clip, layout):
    return {
        "hidden_size": hidden_size,
        "direction": direction,
        "activations": list(activations),
        "activation_alpha": list(activation_alpha) or None,
        "activation_beta": list(activation_beta) or None,
        "clip": clip or None,
        "layout": layout or None,
    }


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
    common = _attributes(x, hidden_size, direction, activations, activation_alpha, activation_beta, clip, layout)
    return ctx.ops("LSTM", x, w, r, b, sequence_lens, initial_h, initial_c, p, input_forget=int(input_forget), **common)


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
    common = _attributes(x, hidden_size, direction, activations, activation_alpha, activation_beta, clip, layout)
    return ctx.ops("GRU", x, w, r, b, sequence_lens, initial_h, linear_before_reset=int(linear_before_reset), **common)


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
    common = _attributes(x, hidden_size, direction, activations, activation_alpha, activation_beta, clip, layout)
    return ctx.ops("RNN", x, w, r, b, sequence_lens, initial_h, **common)


@lower("DynamicQuantizeLSTM")
def dynamic_quantize_lstm(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale, r_zero_point, *,
    hidden_size, direction, activations, activation_alpha, activation_beta, clip, input_forget,
):  # fmt: skip
    """ONNX Runtime's operator."""
    common = _attributes(x, hidden_size, direction, activations, activation_alpha, activation_beta, clip, 0)
    return ctx.ops(
        "DynamicQuantizeLSTM", x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale,
        r_zero_point, domain="com.microsoft", input_forget=int(input_forget), **common,
    )  # fmt: skip
