"""Recurrent layers with ONNX's conventions: weights, gate order, activations, directions, layout, sequence lengths."""

from ..operators import FLOAT, INTEGER, PURE, Operand, operator


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
