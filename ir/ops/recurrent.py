"""Recurrent layers with ONNX's conventions: weights, gate order, activations, directions, layout, sequence lengths."""

from ..facts import make
from ..operators import FLOAT, INTEGER, PURE, Operand, operator


ACTIVATIONS = (
    "Affine", "Elu", "HardSigmoid", "LeakyRelu", "Relu", "ScaledTanh", "Sigmoid", "Softplus", "Softsign", "Tanh",
    "ThresholdedRelu",
)  # fmt: skip
DIRECTIONS = ("forward", "reverse", "bidirectional")


def _layer_facts(ctx, gates, biases, names, x, w, r, b, lens, h0, hidden_size, direction, activations, layout):
    """(y, y_h) of a recurrent layer with `gates` gates and `names` activations a direction; checks all operands."""
    ctx.need(direction in DIRECTIONS, f"direction must be one of {', '.join(DIRECTIONS)}, got {direction!r}")
    ctx.need(layout in (0, 1), f"layout must be 0 or 1, got {layout}")
    count = 2 if direction == "bidirectional" else 1
    ctx.need(x.rank == 3, f"x must be [time, batch, input] (or batch first with layout 1), got {x.type}")
    time, batch = x.dims[:2] if layout == 0 else (x.dims[1], x.dims[0])
    hidden = hidden_size
    ctx.equal_dims(w.dims, (count, gates * hidden, x.dims[2]), "dims of w")
    ctx.equal_dims(r.dims, (count, gates * hidden, hidden), "dims of r")
    if b is not None:
        ctx.equal_dims(b.dims, (count, biases * hidden), "dims of b")
    if lens is not None:
        ctx.equal_dims(lens.dims, (batch,), "dims of sequence_lens")
    state = (count, batch, hidden) if layout == 0 else (batch, count, hidden)
    if h0 is not None:
        ctx.equal_dims(h0.dims, state, "dims of initial_h")
    wanted = names * count
    ctx.need(
        len(activations) in (names, wanted), f"activations needs {names} names a direction, got {list(activations)}"
    )
    for name in activations:
        ctx.need(name in ACTIVATIONS, f"no activation is called {name!r}; expected one of {', '.join(ACTIVATIONS)}")
    dtype = ctx.same_dtype(x, w, r, b, h0)
    y = (time, count, batch, hidden) if layout == 0 else (batch, time, count, hidden)
    return make(dtype, *y), make(dtype, *state)


def _lstm_type(
    ctx, x, w, r, b, sequence_lens, initial_h, initial_c, p, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, input_forget, layout,
):  # fmt: skip
    y, state = _layer_facts(
        ctx, 4, 8, 3, x, w, r, b, sequence_lens, initial_h, hidden_size, direction, activations, layout
    )
    ctx.same_dtype(x, initial_c, p)
    if initial_c is not None:
        ctx.equal_dims(initial_c.dims, state.dims, "dims of initial_c")
    if p is not None:
        ctx.equal_dims(p.dims, (w.dims[0], 3 * hidden_size), "dims of p")
    return y, state, state


def _gru_type(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, linear_before_reset, layout,
):  # fmt: skip
    return _layer_facts(
        ctx, 3, 6, 2, x, w, r, b, sequence_lens, initial_h, hidden_size, direction, activations, layout
    )


def _rnn_type(
    ctx, x, w, r, b, sequence_lens, initial_h, *, hidden_size, direction, activations, activation_alpha,
    activation_beta, clip, layout,
):  # fmt: skip
    return _layer_facts(
        ctx, 1, 2, 1, x, w, r, b, sequence_lens, initial_h, hidden_size, direction, activations, layout
    )


@operator("LSTM", family="recurrent", traits=PURE)
class LSTM:
    """ONNX LSTM (gates i, o, f, c).  x[T,B,I], w[D,4H,I], r[D,4H,H], b[D,8H], sequence_lens[B], h0/c0[D,B,H], p[D,3H].

    (y[T,D,B,H], y_h[D,B,H], y_c[D,B,H]); with layout 1 batch comes first.  Rows past their sequence length are 0 in y.
    activations: 3 names a direction; activation_alpha / activation_beta fill their parameters in order.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    r: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    sequence_lens: Operand[INTEGER] | None = None
    initial_h: Operand[FLOAT] | None = None
    initial_c: Operand[FLOAT] | None = None
    p: Operand[FLOAT] | None = None
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ("Sigmoid", "Tanh", "Tanh")
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    input_forget: bool = False
    layout: int = 0
    infer = _lstm_type


@operator("GRU", family="recurrent", traits=PURE)
class GRU:
    """ONNX GRU (gates z, r, h).  x[T,B,I], w[D,3H,I], r[D,3H,H], b[D,6H], sequence_lens[B], initial_h[D,B,H].

    (y[T,D,B,H], y_h[D,B,H]); otherwise as LSTM.  activations: 2 names a direction.
    """

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    r: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    sequence_lens: Operand[INTEGER] | None = None
    initial_h: Operand[FLOAT] | None = None
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ("Sigmoid", "Tanh")
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    linear_before_reset: bool = False
    layout: int = 0
    infer = _gru_type


@operator("RNN", family="recurrent", traits=PURE)
class RNN:
    """ONNX RNN.  x[T,B,I], w[D,H,I], r[D,H,H], b[D,2H], sequence_lens[B], initial_h[D,B,H].  (y, y_h) as GRU."""

    x: Operand[FLOAT]
    w: Operand[FLOAT]
    r: Operand[FLOAT]
    b: Operand[FLOAT] | None = None
    sequence_lens: Operand[INTEGER] | None = None
    initial_h: Operand[FLOAT] | None = None
    hidden_size: int
    direction: str = "forward"
    activations: tuple[str, ...] = ("Tanh",)
    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    clip: float = 0.0
    layout: int = 0
    infer = _rnn_type
