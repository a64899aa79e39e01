"""DynamicQuantizeLSTM of ONNX Runtime."""

from __future__ import annotations

from ..recurrent import layer
from ..registry import onnx_op


@onnx_op("DynamicQuantizeLSTM", domain="com.microsoft", absent=("b", "sequence_lens", "initial_h", "initial_c", "p"))
def dynamic_quantize_lstm(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale, r_zero_point, *,
    hidden_size=None, direction="forward", activations=(), activation_alpha=(), activation_beta=(), clip=0.0,
    input_forget=0,
):  # fmt: skip
    """Weights are [directions, inputs, gates]; they and the states are quantized as the operator's docstring says.

    ONNX Runtime quantizes the rows of a batch in groups, one a thread, where it computes them in parallel.  irc
    quantizes a whole batch at once, as ONNX Runtime does for one thread and for batches of one row.
    """
    return ctx.build.DynamicQuantizeLSTM(
        x, w, r, b, sequence_lens, initial_h, initial_c, p, w_scale, w_zero_point, r_scale, r_zero_point,
        **layer(ctx, w, r, activations, ("Sigmoid", "Tanh", "Tanh"), hidden_size, direction),
        activation_alpha=activation_alpha, activation_beta=activation_beta, clip=clip, input_forget=bool(input_forget),
    )  # fmt: skip
