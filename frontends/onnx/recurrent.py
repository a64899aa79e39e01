"""ONNX recurrent layers: LSTM, GRU, RNN, with activation names and defaults spelled out."""

from __future__ import annotations

from .registry import onnx_op

ACTIVATIONS = {
    name.lower(): name
    for name in (
        "Relu", "Tanh", "Sigmoid", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu",
        "Softsign", "Softplus",
    )
}  # fmt: skip
"""ONNX's activation names, which models spell in any case."""
DIRECTIONS = {"forward": 1, "reverse": 1, "bidirectional": 2}


def layer(ctx, w, r, activations, defaults, hidden_size, direction):
    """hidden_size, direction and activations, checked and filled in."""
    if direction not in DIRECTIONS:
        ctx.fail(f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
    size = hidden_size if hidden_size is not None else r.dims[2]
    if not isinstance(size, int):
        ctx.fail("hidden_size is missing and the recurrent weights do not tell it")
    count = len(defaults) * DIRECTIONS[direction]
    names = tuple(activations or defaults * DIRECTIONS[direction])[:count]  # RNN's default has one for each direction
    if len(names) != count:
        ctx.fail(f"needs {count} activations for direction {direction!r}, got {len(names)}")
    for name in names:
        if name.lower() not in ACTIVATIONS:
            ctx.fail(f"no activation is called {name!r}; ONNX has {', '.join(ACTIVATIONS.values())}")
    return {"hidden_size": size, "direction": direction, "activations": tuple(ACTIVATIONS[n.lower()] for n in names)}


@onnx_op("LSTM")
def lstm(
    ctx, x, w, r, b=None, sequence_lens=None, initial_h=None, initial_c=None, p=None, *, hidden_size=None,
    direction="forward", activations=(), activation_alpha=(), activation_beta=(), clip=0.0, input_forget=0, layout=0,
    output_sequence=0,
):  # fmt: skip
    return ctx.build.LSTM(
        x, w, r, b, sequence_lens, initial_h, initial_c, p,
        **layer(ctx, w, r, activations, ("Sigmoid", "Tanh", "Tanh"), hidden_size, direction),
        activation_alpha=activation_alpha, activation_beta=activation_beta, clip=clip, input_forget=bool(input_forget),
        layout=layout,
    )  # fmt: skip


@onnx_op("GRU")
def gru(
    ctx, x, w, r, b=None, sequence_lens=None, initial_h=None, *, hidden_size=None, direction="forward", activations=(),
    activation_alpha=(), activation_beta=(), clip=0.0, linear_before_reset=0, layout=0, output_sequence=0,
):  # fmt: skip
    return ctx.build.GRU(
        x, w, r, b, sequence_lens, initial_h,
        **layer(ctx, w, r, activations, ("Sigmoid", "Tanh"), hidden_size, direction),
        activation_alpha=activation_alpha, activation_beta=activation_beta, clip=clip,
        linear_before_reset=bool(linear_before_reset), layout=layout,
    )  # fmt: skip


@onnx_op("RNN")
def rnn(
    ctx, x, w, r, b=None, sequence_lens=None, initial_h=None, *, hidden_size=None, direction="forward", activations=(),
    activation_alpha=(), activation_beta=(), clip=0.0, layout=0, output_sequence=0,
):  # fmt: skip
    return ctx.build.RNN(
        x, w, r, b, sequence_lens, initial_h, **layer(ctx, w, r, activations, ("Tanh",), hidden_size, direction),
        activation_alpha=activation_alpha, activation_beta=activation_beta, clip=clip, layout=layout,
    )  # fmt: skip
